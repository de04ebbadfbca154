// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the unit of the values of samples, once, before the first value is written:
//! instructions, ticks, or cycles of the core if these were asked for and are available. Samples
//! are kept in ticks; [`Values`] converts them.

use core::fmt::{self, Write};

use arrayvec::ArrayString;
use hist::Ratio;
use plan::Plan;
use spin::once::Once;

use super::cores;
use super::record::{record, send_line};
use crate::clock;
use crate::clock::cycles::PerTick;
use crate::percpu::PerCpu;
use crate::pmu;

/// Set if values are cycles of the core that measured them.
static CYCLES: Once = Once::new();

/// Conversion of the values of samples for records.
#[derive(Clone, Copy)]
pub struct Values(Option<Ratio>);

impl Values {
    /// Returns the unit of samples that `cpu` took.
    pub fn of_cpu(cpu: &PerCpu) -> Self {
        let ratio = cycle_ratio(cpu).and_then(Result::ok);
        Self(ratio.filter(|_| CYCLES.is_completed()))
    }

    /// Returns the clock of the core that the cycles belong to, in Hz, if the values are cycles.
    pub fn core_hz(self) -> Option<u64> {
        Some(self.0?.convert(clock::frequency()))
    }

    /// Converts a value of a sample to the unit of the records.
    pub fn convert(self, ticks: u64) -> u64 {
        self.0.map_or(ticks, |ratio| ratio.convert(ticks))
    }
}

/// The unit that was asked for, if it is available.
pub struct Unit {
    /// Cycles per tick of the first core, or why there is no such number; `None` if cycles were not asked for.
    cycles: Option<PerTick>,
}

impl Unit {
    /// Decides whether there are cycles, if `plan` asks for them: each CPU that may measure needs a
    /// ratio from the start ([`cores`]), because a run must not have two units.
    pub fn choose(plan: &Plan) -> Self {
        if !plan.cycles {
            return Self { cycles: None };
        }
        let failed = cycle_ratios(plan).find_map(Result::err);
        let first = cycle_ratios(plan).next();
        let cycles = match failed {
            Some(why) => Some(Err(why)),
            None => first,
        };
        if failed.is_none() {
            CYCLES.call_once(|| ());
        }
        Self { cycles }
    }

    /// Returns the clock of the first core, in Hz, if it was measured.
    pub fn core_hz(&self) -> Option<u64> {
        let ratio = self.cycles?.ok()?;
        Some(ratio.convert(clock::frequency()))
    }

    /// Reports the unit; if cycles were asked for but are not the unit, also reports why.
    pub fn report(&self, plan: &Plan) {
        let instructions = clock::counts_instructions();
        let other = if instructions { "insns" } else { "ticks" };
        match self.cycles {
            Some(Ok(ratio)) => {
                let mut how = ArrayString::<120>::new();
                let written = write_cycle_origin(&mut how, ratio, plan, instructions);
                written.expect("these texts have less than 120 bytes");
                write_unit("cycles", &how);
            }
            Some(Err(why)) => {
                let failed = |cpu: &PerCpu| cycle_ratio(cpu).is_some_and(|ratio| ratio.is_err());
                let cpu = cores::measuring_cpus(plan).find(|(_, cpu)| failed(cpu));
                let cpu = cpu.map_or(0, |(_, cpu)| cpu.mpidr);
                let text = format_args!("rouse.cycles: CPU {cpu:#x}: {why}; values are {other}");
                send_line(record("note").field("text", text));
                write_unit(other, unit_origin(instructions));
            }
            None => write_unit(other, unit_origin(instructions)),
        }
    }
}

/// Returns the ratio that converts the samples of `cpu` to cycles, or why there is none.
fn cycle_ratio(cpu: &PerCpu) -> Option<PerTick> {
    let found = cpu.per_tick.get().copied();
    found.map(|ratio| ratio.map(Ratio::nearly_whole))
}

/// Returns the ratios of the CPUs that may measure cells of `plan`.
fn cycle_ratios(plan: &Plan) -> impl Iterator<Item = PerTick> {
    cores::measuring_cpus(plan).filter_map(|(_, cpu)| cycle_ratio(cpu))
}

fn write_unit(unit: &str, how: &str) {
    send_line(record("unit").field("unit", unit).field("how", how));
}

fn unit_origin(instructions: bool) -> &'static str {
    if instructions {
        "CNTVCT counts every instruction of the machine, one tick each"
    } else {
        "CNTVCT"
    }
}

/// Writes where the cycles come from. An emulator may have a PMU whose cycles are its instructions,
/// and a reader of the cycles has to know this.
fn write_cycle_origin(
    how: &mut ArrayString<120>,
    first: Ratio,
    plan: &Plan,
    instructions: bool,
) -> fmt::Result {
    let known = || cycle_ratios(plan).filter_map(Result::ok);
    let of_many = |ratio: &Ratio| ratio.convert(1 << 32);
    let low = known().min_by_key(of_many).unwrap_or(first);
    let high = known().max_by_key(of_many).unwrap_or(first);
    let by = match pmu::is_present() {
        true => "PMCCNTR_EL0",
        false => "rouse.core-mhz",
    };
    if low != high {
        write!(
            how,
            "CNTVCT, {low} to {high} cycles of the core that measures a tick ({by})"
        )?;
    } else if first.is_one() {
        write!(how, "CNTVCT, one cycle of the core a tick ({by})")?;
    } else {
        write!(how, "CNTVCT, {first} cycles of the core a tick ({by})")?;
    }
    if instructions {
        how.write_str(", and every instruction takes one")?;
    }
    Ok(())
}
