// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the bytes of an input as the steps of a guest with a GICv2, in lockstep with the model.

use super::spec::CPUS;
use super::world::{ALL, GuestAction, World};
use crate::bytes::Bytes;
use crate::gic::Bits;

/// INTIDs used by steps: few enough that several steps affect one interrupt, and that all fit [`ALL`] list registers.
const PRIVATE: [u32; 8] = [0, 1, 6, 7, 15, 16, 27, 30];
const SHARED: [u32; 4] = [32, 33, 63, 95];
/// Maximum number of steps in an input.
const MOST: usize = 200;

/// Checks that the machine and the model agree, and that no interrupt is lost in the end.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes(data);
    let registers = bytes.choice(&[ALL, 2, 3, 4]);
    let mut world = World::started(registers);
    set_up(&mut world, &mut bytes);
    for _ in 0..MOST {
        if bytes.is_empty() {
            break;
        }
        let step = step(&mut bytes);
        world.step(&step);
        if matches!(step, GuestAction::Read(..)) {
            world.compare();
        }
    }
    world.settle();
    world.compare();
}

/// Closes the interfaces of some CPUs, and gives interrupts different priorities, so that handlers nest.
fn set_up(world: &mut World, bytes: &mut Bytes<'_>) {
    let (closed, mut spread) = (bytes.u8(), bytes.u8());
    for cpu in 0..CPUS {
        world.step(&GuestAction::Close(cpu, closed >> cpu & 1 != 0));
        for &intid in PRIVATE.iter().chain(&SHARED) {
            spread = spread.rotate_left(3).wrapping_add(closed);
            world.step(&GuestAction::Priority(cpu, intid, spread & 0xe0));
        }
    }
}

fn step(bytes: &mut Bytes<'_>) -> GuestAction {
    let (what, by) = (bytes.u8(), bytes.below(CPUS));
    let flag = what & 0x80 != 0;
    match what % 32 {
        0..7 => GuestAction::Acknowledge(by, what & 0xc0 == 0xc0),
        7..12 => GuestAction::End(by),
        12 => GuestAction::Deactivate(by, bytes.below(4)),
        13 => GuestAction::Line(by, bytes.choice(&PRIVATE[6..]), flag),
        14..19 => {
            let (intid, list) = (bytes.choice(&PRIVATE[..5]), bytes.u8());
            GuestAction::Send(by, intid, u32::from(what >> 6), list)
        }
        19..21 => GuestAction::Senders(by, bytes.choice(&PRIVATE[..5]), flag, bytes.u8()),
        21 if flag => GuestAction::Close(by, what & 0x40 != 0),
        21 => GuestAction::Mask(by, bytes.choice(&[0xff, 0xf8, 0x80, 0x40])),
        22 if flag => GuestAction::Control(by, bytes.choice(&[7, 4, 3, 1, 2, 5, 6])),
        22 => GuestAction::Split(by, what & 0x40 != 0),
        23 => GuestAction::Priority(by, intid(bytes), bytes.u8() & 0xe0),
        24 => GuestAction::Targets(by, bytes.choice(&SHARED), bytes.choice(&TARGETS)),
        25 => GuestAction::Forward(by, bytes.choice(&[3, 3, 1, 2, 0])),
        26 => GuestAction::Read(by, bytes.choice(&Bits::ALL), 0),
        _ => {
            let intid = intid(bytes);
            let more = if flag { bytes.u32() & used(intid) } else { 0 };
            let bits = bytes.choice(&Bits::ALL);
            GuestAction::Write(by, bits, intid / 32 * 32, 1 << (intid % 32) | more)
        }
    }
}

/// Values of GICD_ITARGETSR: none, one, several, and one that does not exist.
const TARGETS: [u8; 6] = [0x01, 0x04, 0x20, 0x24, 0x00, 0x02];

fn intid(bytes: &mut Bytes<'_>) -> u32 {
    match bytes.u8() {
        at @ 0..128 => PRIVATE[usize::from(at) % PRIVATE.len()],
        at => SHARED[usize::from(at) % SHARED.len()],
    }
}

/// Returns a mask of the INTIDs that steps use, for the register that contains the bit of `intid`.
fn used(intid: u32) -> u32 {
    let all = PRIVATE.iter().chain(&SHARED);
    let near = all.filter(|one| **one / 32 == intid / 32);
    near.fold(0, |bits, one| bits | 1 << (one % 32))
}
