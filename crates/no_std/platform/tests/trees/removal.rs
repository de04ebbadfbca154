// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removes each node and each property of the device tree of QEMU's `virt` in turn (`virt.dtb`, two
//! CPUs and a watchdog, made by `-machine dumpdtb=`). Either a removal is harmless, or the tree is refused
//! with an error that names the missing part; in both cases, the console is still known unless it was
//! removed.

use std::fmt::Write;

use platform::{Report, claims};

use super::{read, word};

fn report(tree: &[u8]) -> Report<'_> {
    Report::from_fdt(tree, claims::END)
}

const TREE: &[u8] = include_bytes!("../virt.dtb");

/// Tokens of the structure block (Devicetree Specification 0.4, 5.4.1).
const BEGIN: u32 = 1;
const END: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;

/// A node or a property: its path, and the bytes that it takes.
struct Part {
    path: String,
    start: usize,
    end: usize,
}

/// Returns every node and property of `tree`.
fn parts(tree: &[u8]) -> Vec<Part> {
    let strings = word(tree, 12) as usize;
    let text = |at: usize| {
        let end = at + tree[at..].iter().position(|&byte| byte == 0).unwrap();
        std::str::from_utf8(&tree[at..end]).unwrap().to_owned()
    };
    let mut at = word(tree, 8) as usize;
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut parts = Vec::new();
    loop {
        let start = at;
        let token = word(tree, at);
        at += 4;
        match token {
            BEGIN => {
                let name = text(at);
                at = (at + name.len() + 4) & !3;
                let parent = open.last().map_or("", |(path, _)| path.as_str());
                let path = if open.is_empty() {
                    String::new()
                } else {
                    format!("{parent}/{name}")
                };
                open.push((path, start));
            }
            END => {
                let (path, start) = open.pop().unwrap();
                if open.is_empty() {
                    return parts;
                }
                parts.push(Part {
                    path,
                    start,
                    end: at,
                });
            }
            PROPERTY => {
                let (length, name) = (word(tree, at) as usize, word(tree, at + 4) as usize);
                at = (at + 8 + length + 3) & !3;
                let path = format!("{}:{}", open.last().unwrap().0, text(strings + name));
                parts.push(Part {
                    path,
                    start,
                    end: at,
                });
            }
            NOP => {}
            other => panic!("token {other} at {start}"),
        }
    }
}

/// Returns the tree without `part`.
fn without(part: &Part) -> Vec<u8> {
    let mut tree = TREE.to_vec();
    for token in tree[part.start..part.end].chunks_exact_mut(4) {
        token.copy_from_slice(&NOP.to_be_bytes());
    }
    tree
}

#[test]
fn the_tree_is_complete() {
    let platform = read(TREE).unwrap();
    assert_eq!(platform.cpus.len(), 2);
    assert!(platform.uart.is_some() && platform.psci.is_some());
}

/// Parts without which a tree is refused, each with its error.
const REFUSED: &str = "\
:#size-cells device tree: interrupt-controller: property 'reg' is missing or malformed
/psci:method device tree: psci: property 'method' is missing or malformed
/memory@40000000:reg device tree: memory: property 'reg' is missing or malformed
/memory@40000000:device_type device tree: no memory node
/memory@40000000 device tree: no memory node
/intc@8000000:reg device tree: interrupt-controller: property 'reg' is missing or malformed
/intc@8000000:compatible device tree: no GICv3 (arm,gic-v3) node
/intc@8000000:#interrupt-cells device tree: interrupt-controller: property '#interrupt-cells' is missing or malformed
/intc@8000000 device tree: no GICv3 (arm,gic-v3) node
/cpus/cpu@0:reg device tree: cpu: property 'reg' is missing or malformed
/cpus/cpu@1:reg device tree: cpu: property 'reg' is missing or malformed
/cpus device tree: no cpus node
/timer:interrupts device tree: timer: property 'interrupts' is missing or malformed
/timer:compatible device tree: no timer node
/timer device tree: no timer node
";

/// Parts whose absence is allowed, though it changes something that a user may notice.
const NOTICED: &str = "\
/psci:compatible
/psci
/watchdog@f001000:reg
/watchdog@f001000:compatible
/watchdog@f001000
/pl011@9000000:reg
/pl011@9000000:compatible
/pl011@9000000
/cpus/cpu@0:enable-method
/cpus/cpu@0
/cpus/cpu@1:enable-method
/cpus/cpu@1
/chosen:stdout-path
/chosen
";

#[test]
fn each_removal_is_harmless_or_refused_by_name() {
    let whole = read(TREE).unwrap();
    let (mut refused, mut noticed) = (String::new(), String::new());
    for part in parts(TREE) {
        let tree = without(&part);
        let path = &part.path;
        match read(&tree) {
            Err(error) => writeln!(refused, "{path} {error}").unwrap(),
            Ok(platform) if platform != whole => writeln!(noticed, "{path}").unwrap(),
            Ok(_) => {}
        }
        // The root's cells decide the form of every address.
        let names_console = ["/chosen", "/aliases", "/pl011", ":#"];
        if !names_console.iter().any(|start| path.starts_with(start)) {
            assert_eq!(report(&tree).uart, whole.uart, "without {path}");
        }
    }
    assert_eq!(refused, REFUSED);
    assert_eq!(noticed, NOTICED);
}

#[test]
fn a_damaged_tree_is_refused() {
    for length in [0, 4, 39, 40, 100, TREE.len() / 2] {
        let mut tree = TREE[..length].to_vec();
        assert!(read(&tree).is_err());
        assert!(report(&tree).uart.is_none());
        tree.resize(TREE.len(), 0);
        assert!(read(&tree).is_err());
    }
}

/// Replaces each token of the structure in turn. Each refusal of such a tree can be reported: the
/// console is known, and so is PSCI, unless PSCI is damaged.
#[test]
fn a_damaged_structure_is_reported() {
    let whole = report(TREE);
    for part in parts(TREE) {
        let mut tree = TREE.to_vec();
        tree[part.start..part.start + 4].copy_from_slice(&0x55_u32.to_be_bytes());
        let error = read(&tree).unwrap_err().to_string();
        let place = format!("its structure is damaged at offset {:#x}", part.start);
        assert!(error.contains(&place), "{}: {error}", part.path);
        let damaged = report(&tree);
        assert_eq!(damaged.uart, whole.uart, "{}", part.path);
        if !part.path.starts_with("/psci") {
            assert_eq!(damaged.psci, whole.psci, "{}", part.path);
        }
    }
}

/// If not even the names of properties are left, boot arguments can still name a console.
#[test]
fn a_uart_of_the_boot_arguments_is_found_in_any_damage() {
    let mut tree = TREE[..40].to_vec();
    tree.extend(b"a=b rouse.uart=pl011,0x9000000 quiet\0more");
    assert!(read(&tree).is_err());
    assert_eq!(report(&tree).bootargs, "rouse.uart=pl011,0x9000000");
    tree[0] = 0;
    assert_eq!(report(&tree).bootargs, "rouse.uart=pl011,0x9000000");
}
