// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries every encoding of SYS and SYSL, 16384 of each: cache maintenance by address and by set and
//! way, TLB maintenance, address translation, prediction restriction, and encodings that have no
//! meaning.

use core::sync::atomic::AtomicU64;

use super::attempt::run_attempt;
use super::stubs::{self, RET, WORDS};
use super::tally::Tally;
use super::window::{self, As};
use sched::random::Random;

/// Number of encodings: op1, CRn, CRm and op2 as 14 bits.
const COUNT: u32 = 1 << 14;

/// Memory that may be cleaned, invalidated and zeroed.
#[repr(align(4096))]
struct Scratch([AtomicU64; 512]);
static SCRATCH: Scratch = Scratch([const { AtomicU64::new(0) }; 512]);

/// Runs the class.
pub fn run(tally: &mut Tally, _random: &mut Random) {
    window::run_with_window(|| {
        let hole = window::map_page(0x1000, As::Normal);
        let scratch = SCRATCH.0.as_ptr() as u64;
        let mut first = 0;
        while first < COUNT {
            first += try_encodings(tally, first, [scratch, hole, 0]);
        }
    });
}

/// Tries encodings from `first` on, as many as the page of code holds, with each of `arguments`.
/// Returns how many encodings it tried.
fn try_encodings(tally: &mut Tally, first: u32, arguments: [u64; 3]) -> u32 {
    let count = WORDS as u32 / 4;
    let mut code = [RET; WORDS];
    for (n, place) in (first..).zip(code.chunks_exact_mut(4)) {
        place[0] = 0xd508_0000 | n << 5;
        place[2] = 0xd528_0000 | n << 5;
    }
    stubs::write_code(&code);
    for n in first..first + count {
        let at = stubs::place() + u64::from(n - first) * 16;
        let (op1, crn, crm, op2) = (n >> 11, n >> 7 & 15, n >> 3 & 15, n & 7);
        for (at, name) in [(at, "SYS"), (at + 8, "SYSL")] {
            for argument in arguments {
                // SAFETY: the arguments name memory that only this class uses, or no memory. Other
                // operations concern caches and TLBs, and do not change contents.
                let outcome = unsafe { run_attempt(at, argument, 0) };
                // Instructions of EL2 and EL3, and implementation-defined instructions.
                let good = if matches!(op1, 4 | 6) || matches!(crn, 11 | 15) {
                    outcome.is_undefined_at(at)
                } else {
                    // Where stage 1 has no mapping, stage 1 itself faults.
                    outcome.returned()
                        || outcome.is_undefined_at(at)
                        || outcome.abort_at(argument)
                        || argument == 0 && outcome.trap().is_some_and(|trap| trap.class() == 0x25)
                };
                tally.case(
                    good,
                    format_args!("{name} #{op1}, C{crn}, C{crm}, #{op2}, {argument:#x}: {outcome}"),
                );
            }
        }
    }
    count
}
