// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

/// Symbols of a made-up kernel: types, names and addresses.
fn symbols() -> Vec<(String, u32)> {
    let mut all = vec![("T_text".to_owned(), 0), ("t_head".to_owned(), 0)];
    all.extend((0..600).map(|n| (format!("tfunction{n:03}"), 0x1000 + 0x40 * n)));
    all.push((format!("T{}", "x".repeat(200)), 0x2_0000));
    all.push(("T_etext".to_owned(), 0x2_1000));
    all.push(("Dvariable".to_owned(), 0x3_0040));
    all
}

fn aligned(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNED), 0);
}

/// Returns an image whose names use each character as a token, and `fu` as token 1. The addresses come last if `new`.
fn image(new: bool, damage: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let symbols = symbols();
    let mut bytes = vec![0x5a; 64];
    let addresses = |bytes: &mut Vec<u8>| {
        for (_, address) in &symbols {
            bytes.extend(address.to_le_bytes());
        }
        aligned(bytes);
    };
    if !new {
        addresses(&mut bytes);
        bytes.extend(0xffff_8000_0800_0000_u64.to_le_bytes());
    }
    bytes.extend((symbols.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    let (mut names, mut markers) = (Vec::new(), Vec::new());
    for (n, (name, _)) in symbols.iter().enumerate() {
        if n.is_multiple_of(MARKED) {
            markers.extend((names.len() as u32).to_le_bytes());
        }
        let codes: Vec<u8> = name.replace("fu", "\u{1}").bytes().collect();
        match codes.len() {
            short @ ..0x80 => names.push(short as u8),
            long => names.extend([long as u8 | 0x80, (long >> 7) as u8]),
        }
        names.extend(codes);
    }
    bytes.extend(names);
    aligned(&mut bytes);
    bytes.extend(markers);
    aligned(&mut bytes);
    let (mut tokens, mut offsets) = (Vec::new(), Vec::new());
    for code in 0..TOKENS {
        offsets.extend((tokens.len() as u16).to_le_bytes());
        match code {
            1 => tokens.extend(b"fu"),
            0x20..0x7f => tokens.push(code as u8),
            _ => tokens.extend(b"ab"),
        }
        tokens.push(0);
    }
    bytes.extend(tokens);
    aligned(&mut bytes);
    bytes.extend(offsets);
    if new {
        addresses(&mut bytes);
        bytes.extend([0; 8]);
    }
    damage(&mut bytes);
    bytes
}

#[test]
fn functions_of_both_orders_of_the_parts_are_found() {
    for new in [false, true] {
        let found = functions(&image(new, |_| ()), "_text", true).unwrap();
        // `_head` is at the place of `_text`, and a variable is no function.
        assert_eq!(found.len(), symbols().len() - 2, "{new}");
        assert_eq!(found[0], (0, "_text".into()));
        assert_eq!(found[1], (0x1000, "function000".into()));
        assert_eq!(found[600], (0x1000 + 0x40 * 599, "function599".into()));
        assert_eq!(found[601].1.len(), 200);
    }
}

#[test]
fn a_kernel_without_a_table_has_no_functions() {
    assert_eq!(functions(&[0; 4096], "_text", true), None);
    let digits = |bytes: &mut Vec<u8>| {
        let at = memmem::find(bytes, b"0\x001\x002\0").unwrap();
        bytes[at + 2] = b'x';
    };
    assert_eq!(functions(&image(true, digits), "_text", true), None);
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 4000);
    assert_eq!(functions(&image(true, cut), "_text", true), None);
    assert_eq!(functions(&image(true, |_| ()), "_absent", true), None);
}
