// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a CPU that is shared with a neighbour: whatever the neighbour does, this guest's registers, interrupts and
//! memory keep their values, and so does the neighbour's own state.

mod registers;

use aarch64_cpu::registers::{CPACR_EL1, Readable, Writeable};
use abi::{KnobValue, Neighbour, Shared};
use arch::insn;
use arch::regs::{ICC_PMR_EL1, PMCCNTR_EL0, PMCNTENSET_EL0, PMCR_EL0};
use plan::{Deliver, Trap};

use self::registers::{Registers, Way};
use super::eviction::image_checksum;
use super::levels::{Timer, none_due};
use super::outcome::{Failure, ensure};
use crate::system_registers::System;
use guest_kernel_shim::{clock, hypervisor, knobs, pmu};

/// Number of turns of each kind.
const ROUNDS: u64 = 40;
/// Number of times that the length of a wait may be doubled.
const MOST_LONGER: u32 = 12;
/// Length of a wait and of a slice, in us.
const WAIT_US: u32 = 300;
const SLICE_US: u32 = 100;

/// Kinds of neighbours that the check uses.
const NEIGHBOURS: [Neighbour; 3] = [Neighbour::Work, Neighbour::Cache(16), Neighbour::Hostile];

/// Whether the plan names a neighbour, so that EL2 can provide one.
pub fn can_have_neighbour() -> bool {
    let possible = hypervisor::try_knob(KnobValue::Neighbour(Neighbour::Work));
    if possible {
        hypervisor::set_knob(KnobValue::Neighbour(Neighbour::None));
    }
    possible
}

/// Checks with each neighbour that registers, interrupts and memory are kept over a wait, a trapped WFE and a slice.
pub fn neighbour_kept_apart() -> Result<(), Failure> {
    insn::mask_irq();
    knobs::set_exit_knobs(Trap::Both, Deliver::Inject);
    // FPEN is set, because floating point traps otherwise: this image's other code does not use it.
    let access = CPACR_EL1.get();
    CPACR_EL1.set(access | 3 << 20);
    insn::isb();
    let image = image_checksum();
    let mut result = Ok(());
    for neighbour in NEIGHBOURS {
        result = result.and_then(|()| check_beside(neighbour));
    }
    hypervisor::set_knob(KnobValue::Neighbour(Neighbour::None));
    hypervisor::set_knob(KnobValue::Slice(0));
    hypervisor::set_knob(KnobValue::YieldOnWfe(false));
    knobs::reset_knobs();
    CPACR_EL1.set(access);
    insn::unmask_irq();
    result?;
    ensure(image_checksum() == image, "code or constants changed")
}

/// Counts of a neighbour between two readings.
struct NeighbourCounts([u64; Shared::COUNT]);

impl NeighbourCounts {
    fn diff(&self, what: Shared) -> u64 {
        hypervisor::neighbour_counts()[what as usize] - self.0[what as usize]
    }
}

fn check_beside(neighbour: Neighbour) -> Result<(), Failure> {
    let timer = Timer::both()[0];
    timer.enable();
    hypervisor::set_knob(KnobValue::Slice(0));
    hypervisor::set_knob(KnobValue::Neighbour(neighbour));
    let tally = NeighbourCounts(hypervisor::neighbour_counts());
    for round in 0..ROUNDS {
        let turns = tally.diff(Shared::Turns);
        // On a busy host, the time of a short wait may be over before the wait begins.
        for longer in 0..MOST_LONGER {
            timer.arm(clock::us_to_ticks(WAIT_US << longer));
            check_registers_kept(round, Way::Wfi)?;
            timer.acknowledge()?;
            timer.lower();
            end_interrupt(timer.intid)?;
            if tally.diff(Shared::Turns) > turns {
                break;
            }
        }
        ensure(tally.diff(Shared::Turns) > turns, "it has no turn in a WFI")?;
    }
    ensure(tally.diff(Shared::Slices) == 0, "it takes a slice of none")?;
    ensure(tally.diff(Shared::Given) > 0, "no time is given to it")?;
    check_cycles_stop(timer)?;
    hypervisor::set_knob(KnobValue::Slice(clock::us_to_ticks(SLICE_US)));
    hypervisor::set_knob(KnobValue::YieldOnWfe(true));
    // The neighbour's program begins again; the hostile program begins with its stage 1 off.
    hypervisor::set_knob(KnobValue::Neighbour(neighbour));
    let turns = tally.diff(Shared::Turns);
    for round in 0..ROUNDS {
        check_registers_kept(round, Way::Wfe)?;
    }
    ensure(tally.diff(Shared::Turns) > turns, "it has no turn in a WFE")?;
    hypervisor::set_knob(KnobValue::Neighbour(neighbour));
    for round in 0..ROUNDS {
        check_registers_kept(round, Way::Run(clock::us_to_ticks(3 * SLICE_US)))?;
    }
    ensure(tally.diff(Shared::Slices) >= ROUNDS, "it gets no slice")?;
    ensure(tally.diff(Shared::Taken) > 0, "no time is taken for it")?;
    ensure(tally.diff(Shared::Work) > 0, "it does not get on")?;
    ensure(tally.diff(Shared::Damaged) == 0, "something of it changed")?;
    let trapped = tally.diff(Shared::Trapped) > 0;
    ensure(
        trapped == (neighbour == Neighbour::Hostile),
        "what it does is not what was asked for",
    )?;
    none_due()
}

fn end_interrupt(intid: u32) -> Result<(), Failure> {
    arch::gic_cpu::end(intid);
    none_due()
}

/// Gives every register its own value, and checks that the value is unchanged after some turns of
/// the neighbour.
fn check_registers_kept(round: u64, way: Way) -> Result<(), Failure> {
    let mask = ICC_PMR_EL1.get();
    let system = System::write_values(round);
    let put = Registers::for_round(round);
    let got = registers::registers_after(&put, way);
    let kept = system.is_unchanged();
    system.restore();
    ensure(kept, "a system register changed")?;
    ensure(
        got.agrees(&put, way),
        "a general register, or one of floating point, changed",
    )?;
    ensure(ICC_PMR_EL1.get() == mask, "the priority mask changed")
}

/// Checks that the cycle counter stops while the neighbour runs: in some round, it counts less than the neighbour's time.
/// If the counter ran meanwhile, no round could show less. The machine decides how much other time a round includes.
fn check_cycles_stop(timer: Timer) -> Result<(), Failure> {
    /// PMCNTENSET_EL0.C.
    const CYCLES: u64 = 1 << 31;
    if !pmu::is_present() {
        return Ok(());
    }
    let before = (PMCR_EL0.get(), PMCNTENSET_EL0.get());
    PMCR_EL0.set(before.0 | 1);
    PMCNTENSET_EL0.set(CYCLES);
    insn::isb();
    let mut stood = false;
    for _ in 0..ROUNDS {
        let busy = count_cycles(|| clock::pause(clock::us_to_ticks(WAIT_US)));
        timer.arm(clock::us_to_ticks(WAIT_US));
        let idle = count_cycles(insn::wfi);
        timer.acknowledge()?;
        timer.lower();
        end_interrupt(timer.intid)?;
        stood |= idle < busy / 2;
    }
    PMCR_EL0.set(before.0);
    insn::isb();
    ensure(stood, "the PMU counts what the neighbour does")
}

/// Returns the cycles that the counter counts during `what`.
fn count_cycles(what: impl FnOnce()) -> u64 {
    let begin = PMCCNTR_EL0.get();
    what();
    insn::isb();
    PMCCNTR_EL0.get().wrapping_sub(begin)
}
