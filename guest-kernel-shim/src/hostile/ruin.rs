// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that disable everything and spin, or that do one expensive thing for
//! ever. None of them ever comes back, more and more of them run at the same
//! time, and those that measure go on.

use plan::Deliver;

use super::puppets;
use super::tally::Tally;
use crate::random::Random;
use crate::start::platform;

/// Stands for the redistributor of the CPU itself.
const OWN: u64 = u64::MAX;
/// Bytes of a redistributor, and where the second of its frames is.
const FRAMES: u64 = 0x2_0000;
const SGI_FRAME: u64 = 0x1_0000;
/// Round trips that have to be possible beside each.
const TRIPS: u32 = 20;

/// The class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let gic = &platform().gic;
    let all = puppets::all();
    let acts = [
        ("spins", puppets::spin(), 0),
        ("sleeps", puppets::sleep(), 0),
        ("has exceptions", puppets::recurse(), 0),
        ("makes calls", puppets::make_calls(), 0),
        ("touches holes", puppets::touch(), 0x1000),
        (
            "writes to the distributor",
            puppets::touch(),
            gic.distributor.base + 0x104,
        ),
        ("sends interrupts", puppets::storm(), 0),
        ("writes to its redistributor", puppets::enable(), OWN),
    ];
    // Which of them run together is for the seed to say.
    let first = random.next() as usize;
    for (n, puppet) in all.iter().enumerate() {
        let (name, act, place) = acts[(first.wrapping_add(n)) % acts.len()];
        tally.case(puppets::take(puppet), format_args!("CPU_OFF"));
        let argument = if place == OWN {
            gic.redistributors[0].base + puppet.index as u64 * FRAMES + SGI_FRAME
        } else {
            place
        };
        // Bit 0: it owns its interrupts.
        let direct = u64::from(tally.deliver() == Deliver::Direct);
        let answer = puppets::start(puppet, act, argument | direct) as i64;
        tally.case(
            answer == 0,
            format_args!("one that {name}: CPU_ON {answer}"),
        );
        tally.case(
            super::others_go_on(TRIPS),
            format_args!("nobody measures beside one that {name}"),
        );
    }
}
