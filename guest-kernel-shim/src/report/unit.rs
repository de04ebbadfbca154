// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the values of samples count, chosen once, before the first of them is
//! written: instructions, ticks, or cycles of the core where they were asked
//! for and can be had. Samples are kept in ticks; [`value`] converts.

use core::fmt::{self, Write};

use arrayvec::ArrayString;
use hist::Ratio;
use spin::once::Once;

use super::record::{record, send};
use crate::clock;
use crate::clock::cycles::{self, Unknown};

/// Cycles per tick, if values are cycles.
static CYCLES: Once<Ratio> = Once::new();

/// A value of a sample in the unit of the records.
pub fn value(ticks: u64) -> u64 {
    CYCLES.get().map_or(ticks, |cycles| cycles.convert(ticks))
}

/// The unit, as far as it was asked for and could be had.
pub struct Unit {
    /// Cycles per tick, or why there is no such number; `None`: not asked for.
    cycles: Option<Result<Ratio, Unknown>>,
}

impl Unit {
    /// Finds out whether there are cycles, if they are asked for.
    pub fn choose(cycles: bool) -> Self {
        let cycles = cycles.then(cycles::per_tick);
        if let Some(Ok(ratio)) = cycles {
            CYCLES.call_once(|| ratio);
        }
        Self { cycles }
    }

    /// The clock of the core, Hz, if it was measured.
    pub fn core_hz(&self) -> Option<u64> {
        let ratio = self.cycles?.ok()?;
        Some(ratio.convert(clock::frequency()))
    }

    /// Writes it, and why it is not cycles if those were asked for.
    pub fn report(&self) {
        let instructions = clock::counts_instructions();
        let other = if instructions { "insns" } else { "ticks" };
        match self.cycles {
            Some(Ok(ratio)) => {
                let mut how = ArrayString::<120>::new();
                let written = how_cycles(&mut how, ratio, instructions);
                written.expect("these texts have less than 120 bytes");
                write("cycles", &how);
            }
            Some(Err(why)) => {
                let text = format_args!("rouse.cycles: {why}; values are {other}");
                send(record("note").field("text", text));
                write(other, how(instructions));
            }
            None => write(other, how(instructions)),
        }
    }
}

fn write(unit: &str, how: &str) {
    send(record("unit").field("unit", unit).field("how", how));
}

fn how(instructions: bool) -> &'static str {
    if instructions {
        "CNTVCT counts every instruction of the machine, one tick each"
    } else {
        "CNTVCT"
    }
}

/// How cycles come about. An emulator may have a PMU whose cycles are its
/// instructions, and the reader of the cycles has to know.
fn how_cycles(how: &mut ArrayString<120>, ratio: Ratio, instructions: bool) -> fmt::Result {
    if ratio.is_one() {
        how.write_str("CNTVCT, one cycle of the core a tick (PMCCNTR_EL0)")?;
    } else {
        write!(
            how,
            "CNTVCT, {ratio} cycles of the core a tick (PMCCNTR_EL0)"
        )?;
    }
    if instructions {
        how.write_str(", and every instruction takes one")?;
    }
    Ok(())
}
