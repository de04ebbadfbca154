// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the bytes of an input as the steps of a guest with its GIC, in lockstep with the model.

use crate::bytes::Bytes;
use crate::gic::{Bits, CPUS, GuestAction, World};

/// INTIDs that steps use. There are so few that several steps affect one interrupt.
const PRIVATE: [u32; 8] = [0, 1, 7, 15, 16, 31, 27, 30];
const SHARED: [u32; 4] = [32, 33, 63, 95];
/// Maximum number of steps in an input.
const MOST: usize = 200;

/// Checks that the machine and the model agree, and that no interrupt is lost in the end.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut world = World::started(2 + bytes.below(4));
    for _ in 0..MOST {
        if bytes.is_empty() {
            break;
        }
        world.step(&step(&mut bytes));
    }
    world.settle();
    world.compare();
}

fn step(bytes: &mut Bytes<'_>) -> GuestAction {
    let (what, by) = (bytes.u8(), bytes.below(CPUS));
    match what % 16 {
        0..3 => GuestAction::Acknowledge(by),
        3..5 => GuestAction::End(by),
        5 if what & 0x80 == 0 => GuestAction::Deactivate(by, bytes.below(4)),
        5 => GuestAction::Line(by, bytes.choice(&PRIVATE[6..]), what & 0x40 != 0),
        6 => GuestAction::Send(bytes.choice(&PRIVATE[..4]), bytes.u8()),
        7 => GuestAction::Mask(by, bytes.u8()),
        8 => GuestAction::Split(by, what & 0x80 != 0),
        9 => GuestAction::Enable(by, what & 0x80 == 0),
        10 => GuestAction::Priority(by, bytes.below(CPUS), intid(bytes), bytes.u8() & 0xf8),
        11 => GuestAction::Route(by, bytes.choice(&SHARED), bytes.below(CPUS + 1)),
        12 if what & 0x80 == 0 => GuestAction::Forward(by, what & 0x40 != 0),
        12 => GuestAction::Drain(by),
        13 => GuestAction::Read {
            by,
            of: bytes.below(CPUS),
            bits: bytes.choice(&Bits::ALL),
            first: intid(bytes) / 32 * 32,
        },
        _ => {
            let intid = intid(bytes);
            GuestAction::Write {
                by,
                of: bytes.below(CPUS),
                bits: bytes.choice(&Bits::ALL),
                first: intid / 32 * 32,
                value: 1 << (intid % 32) | if what & 0x80 != 0 { bytes.u32() } else { 0 },
            }
        }
    }
}

fn intid(bytes: &mut Bytes<'_>) -> u32 {
    match bytes.u8() {
        at @ 0..128 => PRIVATE[usize::from(at) % PRIVATE.len()],
        at => SHARED[usize::from(at) % SHARED.len()],
    }
}
