// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device trees of guests and boards, with parts missing, and with impossible contents.

mod boards;
mod guest;
mod refused;
mod removal;

use platform::guest::GuestTree;
use platform::{Conduit, Firmware, Platform, Region, Timer, Uart, UartKind};

/// Reads a tree into storage that is never freed.
fn read(tree: &[u8]) -> Result<Platform<'_>, platform::Error> {
    Platform::from_fdt(tree, Box::leak(Box::default()))
}

#[track_caller]
fn refused(tree: &[u8], expected: &str) {
    let expected = format!("device tree: {expected}");
    assert_eq!(read(tree).unwrap_err().to_string(), expected);
}

const fn region(base: u64, size: u64) -> Region {
    Region { base, size }
}

/// Returns a guest with `cpus`.
fn guest_of(
    cpus: &[u64],
) -> GuestTree<'_, impl Iterator<Item = u64> + Clone, impl Iterator<Item = &str> + Clone> {
    GuestTree {
        cpus: cpus.iter().copied(),
        memory: region(0x4000_0000, 0x1000_0000),
        distributor: region(0x800_0000, 0x1_0000),
        version2: None,
        redistributors: const { &[region(0x80a_0000, 0x4_0000)] },
        stride: None,
        uart: Some(Uart {
            kind: UartKind::Pl011,
            base: 0x900_0000,
        }),
        timer: Timer {
            virt: 27,
            phys: 30,
            hyp: Some(26),
        },
        conduit: Some(Conduit::Smc),
        hypervisor: None,
        described_by: Firmware::Fdt,
        exits: None,
        idle_states: &[],
        seed: None,
        initrd: None,
        bootargs: ["rouse.wait=wfi ", "rouse.workload=ipi"].into_iter(),
    }
}

/// Writes the guest's device tree.
fn written<'a>(
    guest: &GuestTree<'a, impl Iterator<Item = u64> + Clone, impl Iterator<Item = &'a str> + Clone>,
) -> Vec<u8> {
    let mut buffer = vec![0; 0x4_0000];
    let size = guest.write(&mut buffer).unwrap();
    buffer.truncate(size);
    buffer
}

/// Returns the tree with the first `from` replaced by `to`, which is as long.
fn with(tree: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = tree.windows(from.len()).position(|window| window == from);
    let at = at.unwrap();
    let mut tree = tree.to_vec();
    tree[at..at + to.len()].copy_from_slice(to);
    tree
}

/// Inserts `bytes` at `at`, and adds to each header field in `fields` the number next to it.
fn grown(tree: &[u8], at: usize, bytes: Vec<u8>, fields: &[(usize, usize)]) -> Vec<u8> {
    let mut tree = tree.to_vec();
    tree.splice(at..at, bytes);
    for &(field, more) in fields {
        let value = word(&tree, field) + more as u32;
        tree[field..field + 4].copy_from_slice(&value.to_be_bytes());
    }
    tree
}

fn cells(cells: &[u32]) -> Vec<u8> {
    cells.iter().flat_map(|cell| cell.to_be_bytes()).collect()
}

fn word(tree: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(tree[at..at + 4].try_into().unwrap())
}
