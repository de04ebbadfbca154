// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

/// A made-up kernel.
#[derive(Clone, Copy)]
struct Kernel {
    form: Form,
    alignment: usize,
    /// Whether the addresses follow the tokens.
    new: bool,
    /// Whether the kernel's first symbol is in the table.
    whole: bool,
}

const LINUX: Kernel = Kernel {
    form: Form::Base,
    alignment: 8,
    new: true,
    whole: true,
};
const KERNELS: [Kernel; 6] = [
    LINUX,
    Kernel {
        new: false,
        ..LINUX
    },
    Kernel {
        whole: false,
        ..LINUX
    },
    Kernel {
        form: Form::Place,
        whole: false,
        ..LINUX
    },
    Kernel {
        form: Form::Place,
        alignment: 4,
        ..LINUX
    },
    Kernel {
        form: Form::Whole,
        alignment: 256,
        new: false,
        ..LINUX
    },
];

/// The link address. `BASE` is the base of addresses in a kernel that lacks the first symbol.
const LINK: u64 = 0xffff_8000_0800_0000;
const BASE: u64 = 0x800;

impl Kernel {
    /// Returns each symbol's type and name, and its distance from the beginning.
    fn symbols(&self) -> Vec<(String, u64)> {
        let mut all = vec![("T_text".to_owned(), 0), ("t_head".to_owned(), 0)];
        all.extend((0..600).map(|n| (format!("tfile.c#function{n:03}"), 0x1000 + 0x40 * n)));
        all.push((format!("T{}", "x".repeat(200)), 0x2_0000));
        all.push(("T_etext".to_owned(), 0x2_1000));
        all.push(("Dvariable".to_owned(), 0x3_0040));
        all.split_off(if self.whole { 0 } else { 2 })
    }

    fn align(&self, bytes: &mut Vec<u8>) {
        bytes.resize(bytes.len().next_multiple_of(self.alignment), 0);
    }

    fn addresses(&self, bytes: &mut Vec<u8>) {
        let base = if self.whole { 0 } else { BASE };
        for (_, distance) in self.symbols() {
            match self.form {
                Form::Base => bytes.extend(((distance - base) as u32).to_le_bytes()),
                Form::Place => {
                    let here = distance.wrapping_sub(bytes.len() as u64);
                    bytes.extend((here as u32).to_le_bytes());
                }
                Form::Whole => bytes.extend((LINK + distance).to_le_bytes()),
            }
        }
        self.align(bytes);
        if self.form == Form::Base {
            bytes.extend((LINK + base).to_le_bytes());
            self.align(bytes);
        }
    }

    /// Returns the image. Each character is a token, and so is `fu`.
    fn image(&self) -> Vec<u8> {
        let symbols = self.symbols();
        let mut bytes = vec![0x5a; 256];
        if !self.new {
            self.addresses(&mut bytes);
        }
        bytes.extend((symbols.len() as u32).to_le_bytes());
        self.align(&mut bytes);
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
        self.align(&mut bytes);
        bytes.extend(markers);
        self.align(&mut bytes);
        let (mut tokens, mut offsets) = (Vec::new(), Vec::new());
        for code in 0..TOKENS {
            offsets.extend((tokens.len() as u16).to_le_bytes());
            match code {
                1 => tokens.extend(b"fu"),
                // These characters include the digits in the functions' numbers.
                0x20..0x7f => tokens.push(code as u8),
                _ => tokens.extend(b"ab"),
            }
            tokens.push(0);
        }
        bytes.extend(tokens);
        self.align(&mut bytes);
        bytes.extend(offsets);
        if self.new {
            self.align(&mut bytes);
            self.addresses(&mut bytes);
        }
        bytes
    }
}

#[test]
fn functions_are_found_in_tables_of_all_forms() {
    for kernel in KERNELS {
        let shown = format!(
            "{:?}, new {}, whole {}",
            kernel.form, kernel.new, kernel.whole
        );
        let found = functions(&kernel.image(), "_text").expect(&shown);
        let mut expected: Vec<(u64, String)> = kernel
            .symbols()
            .into_iter()
            .filter(|(name, _)| !name.starts_with('D'))
            .map(|(name, distance)| {
                let name = name[1..].rsplit('#').next().unwrap();
                (distance, name.to_owned())
            })
            .collect();
        // `_head` has the same address as `_text`.
        expected.dedup_by_key(|(distance, _)| *distance);
        assert_eq!(found, expected, "{shown}");
    }
}

#[test]
fn an_image_without_a_whole_table_has_no_functions() {
    assert_eq!(functions(&[0; 4096], "_text"), None);
    let good = LINUX.image();
    let digits = memmem::find(&good, b"1\x002\x003\0").unwrap();
    let mut damaged = good.clone();
    damaged[digits + 2] = b'x';
    assert_eq!(functions(&damaged, "_text"), None);
    // Three kinds of damage: a token that is longer than its offsets allow, a name that is longer than before, and a
    // missing end.
    let mut damaged = good.clone();
    damaged[digits + 1] = b'x';
    assert_eq!(functions(&damaged, "_text"), None);
    let mut damaged = good.clone();
    let name = memmem::find(&good, b"_text").unwrap();
    damaged[name - 2] += 1;
    assert_eq!(functions(&damaged, "_text"), None);
    assert_eq!(functions(&good[..good.len() - 400], "_text"), None);
    let whole = Kernel {
        form: Form::Whole,
        new: false,
        whole: false,
        ..LINUX
    };
    assert_eq!(functions(&whole.image(), "_text"), None);
}
