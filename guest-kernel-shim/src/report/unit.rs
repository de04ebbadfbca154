// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the values of samples count, chosen once, before the first of them is
//! written: instructions, ticks, or cycles of the core where they were asked
//! for and can be had. Samples are kept in ticks; [`Values`] converts.

use core::fmt::{self, Write};

use arrayvec::ArrayString;
use hist::Ratio;
use plan::{Fault, Plan};
use spin::once::Once;

use super::record::{record, send};
use crate::clock;
use crate::clock::cycles::{self, PerTick};
use crate::percpu::{self, PerCpu};
use crate::workers::lead;

/// Values are cycles: of the core that measured them.
static CYCLES: Once = Once::new();

/// How the values of samples are written.
#[derive(Clone, Copy)]
pub struct Values(Option<Ratio>);

impl Values {
    /// Those of samples that `cpu` took.
    pub fn of(cpu: &PerCpu) -> Self {
        let ratio = cpu.per_tick.get().and_then(|ratio| ratio.ok());
        Self(ratio.filter(|_| CYCLES.is_completed()))
    }

    /// A value of a sample in the unit of the records.
    pub fn value(self, ticks: u64) -> u64 {
        self.0.map_or(ticks, |ratio| ratio.convert(ticks))
    }
}

/// The unit, as far as it was asked for and could be had.
pub struct Unit {
    /// Cycles per tick of the first core, or why there is no such number; `None`: not asked for.
    cycles: Option<PerTick>,
}

impl Unit {
    /// Finds out whether there are cycles, if `plan` asks for them: of each CPU that may measure,
    /// by itself, or a run would have two units. `fault` may have them seem different.
    pub fn choose(plan: &Plan, fault: Option<Fault>) -> Self {
        if !plan.cycles {
            return Self { cycles: None };
        }
        for cpu in measuring(plan) {
            lead::on(cpu, &mut || {
                let seen = cycles::per_tick();
                let other = fault == Some(Fault::CoresDiffer) && cpu.index != 0;
                let seen = if other { seen.map(twice) } else { seen };
                cpu.per_tick.call_once(|| seen);
            });
        }
        let failed = ratios(plan).find_map(Result::err);
        let first = ratios(plan).next();
        let cycles = match failed {
            Some(why) => Some(Err(why)),
            None => first,
        };
        if failed.is_none() {
            CYCLES.call_once(|| ());
        }
        Self { cycles }
    }

    /// The clock of the first core, Hz, if it was measured.
    pub fn core_hz(&self) -> Option<u64> {
        let ratio = self.cycles?.ok()?;
        Some(ratio.convert(clock::frequency()))
    }

    /// Writes it, and why it is not cycles if those were asked for.
    pub fn report(&self, plan: &Plan) {
        let instructions = clock::counts_instructions();
        let other = if instructions { "insns" } else { "ticks" };
        match self.cycles {
            Some(Ok(ratio)) => {
                let mut how = ArrayString::<120>::new();
                let written = how_cycles(&mut how, ratio, plan, instructions);
                written.expect("these texts have less than 120 bytes");
                write("cycles", &how);
            }
            Some(Err(why)) => {
                let cpu =
                    measuring(plan).find(|cpu| cpu.per_tick.get().is_some_and(Result::is_err));
                let cpu = cpu.map_or(0, |cpu| cpu.mpidr);
                let text = format_args!("rouse.cycles: CPU {cpu:#x}: {why}; values are {other}");
                send(record("note").field("text", text));
                write(other, how(instructions));
            }
            None => write(other, how(instructions)),
        }
    }
}

/// The ratio of a core that seems to be twice as fast.
fn twice(ratio: Ratio) -> Ratio {
    let wanted = ratio.wanted * 2;
    Ratio { wanted, ..ratio }
}

/// The CPUs that may measure something of `plan`.
fn measuring(plan: &Plan) -> impl Iterator<Item = &'static PerCpu> {
    let places = percpu::online().enumerate();
    places
        .filter(|&(place, _)| plan.may_measure(place))
        .map(|(_, cpu)| cpu)
}

/// What they found.
fn ratios(plan: &Plan) -> impl Iterator<Item = PerTick> {
    measuring(plan).filter_map(|cpu| cpu.per_tick.get().copied())
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
fn how_cycles(
    how: &mut ArrayString<120>,
    first: Ratio,
    plan: &Plan,
    instructions: bool,
) -> fmt::Result {
    let known = || ratios(plan).filter_map(Result::ok);
    let of_many = |ratio: &Ratio| ratio.convert(1 << 32);
    let low = known().min_by_key(of_many).unwrap_or(first);
    let high = known().max_by_key(of_many).unwrap_or(first);
    if low != high {
        write!(
            how,
            "CNTVCT, {low} to {high} cycles of the core that measures a tick (PMCCNTR_EL0)"
        )?;
    } else if first.is_one() {
        how.write_str("CNTVCT, one cycle of the core a tick (PMCCNTR_EL0)")?;
    } else {
        write!(
            how,
            "CNTVCT, {first} cycles of the core a tick (PMCCNTR_EL0)"
        )?;
    }
    if instructions {
        how.write_str(", and every instruction takes one")?;
    }
    Ok(())
}
