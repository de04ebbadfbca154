// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes CPUs disable everything and spin, or do one expensive thing for ever. None of these CPUs returns, and more and
//! more of them run at the same time, but the measuring CPUs must make progress.

use plan::Deliver;

use super::bystanders::others_go_on;
use super::tally::Tally;
use super::victims;
use guest_kernel_shim::interrupts::redistributor;
use guest_kernel_shim::machine::platform;
use sched::random::Random;

/// Stands for the redistributor of the victim itself.
const OWN: u64 = u64::MAX;
/// Offset of a redistributor's second frame.
const SGI_FRAME: u64 = 0x1_0000;
/// Number of round trips that the other CPUs have to complete with each victim.
const TRIPS: u32 = 20;

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let gic = &platform().gic;
    let all = victims::all_victims();
    let acts = [
        ("spins", victims::spin(), 0),
        ("sleeps", victims::sleep(), 0),
        ("has exceptions", victims::recurse(), 0),
        ("makes calls", victims::make_calls(), 0),
        ("touches holes", victims::touch(), 0x1000),
        (
            "writes to the distributor",
            victims::touch(),
            gic.distributor.base + 0x104,
        ),
        ("sends interrupts", victims::storm(), 0),
        ("writes to its redistributor", victims::enable(), OWN),
    ];
    // The seed decides which victims run together.
    let first = random.draw() as usize;
    for (n, victim) in all.iter().enumerate() {
        let (name, act, place) = acts[(first.wrapping_add(n)) % acts.len()];
        tally.case(victims::take_cpu(victim), format_args!("CPU_OFF"));
        let argument = if place == OWN {
            redistributor(victim).base().wrapping_add(SGI_FRAME)
        } else {
            place
        };
        // Bit 0 is set if the victim owns its CPU interface.
        let direct = u64::from(tally.deliver() == Deliver::Direct);
        let answer = victims::start_victim(victim, act, argument | direct) as i64;
        tally.case(
            answer == 0,
            format_args!("one that {name}: CPU_ON {answer}"),
        );
        tally.case(
            others_go_on(TRIPS),
            format_args!("nobody measures next to one that {name}"),
        );
    }
}
