// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a CPU that is shared with a neighbour: whatever the neighbour does, none of this guest's
//! registers, interrupts and memory changes, and none of the neighbour's own state changes.

mod registers;

use aarch64_cpu::registers::{CPACR_EL1, Readable, Writeable};
use abi::{KnobValue, Neighbour, Shared};
use arch::insn;
use arch::regs::{ICC_PMR_EL1, PMCCNTR_EL0, PMCNTENSET_EL0, PMCR_EL0};
use plan::{Deliver, Trap};

use self::registers::{Registers, Way};
use super::eviction::checksum;
use super::levels::{Timer, nothing};
use super::outcome::{Failure, ensure};
use crate::system_registers::System;
use guest_kernel_shim::{clock, hypervisor, knobs, pmu};

/// Number of turns of each kind.
const ROUNDS: u64 = 40;
/// Number of times that a wait may be doubled.
const MOST_LONGER: u32 = 12;
/// Length of a wait and of a slice, in us.
const WAIT_US: u32 = 300;
const SLICE_US: u32 = 100;

/// Kinds of neighbours that the check uses.
const NEIGHBOURS: [Neighbour; 3] = [Neighbour::Work, Neighbour::Cache(16), Neighbour::Hostile];

/// Whether there may be a neighbour, which is so if the plan names one.
pub fn possible() -> bool {
    let possible = hypervisor::try_set(KnobValue::Neighbour(Neighbour::Work));
    if possible {
        hypervisor::set(KnobValue::Neighbour(Neighbour::None));
    }
    possible
}

/// Checks with each neighbour that registers, interrupts and memory are kept over a wait, a trapped WFE and a slice.
pub fn kept_apart() -> Result<(), Failure> {
    insn::mask_irq();
    knobs::turn_exits(Trap::Both, Deliver::Inject);
    // FPEN is set, because this image uses no floating point and lets it trap.
    let access = CPACR_EL1.get();
    CPACR_EL1.set(access | 3 << 20);
    insn::isb();
    let image = checksum();
    let mut result = Ok(());
    for neighbour in NEIGHBOURS {
        result = result.and_then(|()| beside(neighbour));
    }
    hypervisor::set(KnobValue::Neighbour(Neighbour::None));
    hypervisor::set(KnobValue::Slice(0));
    hypervisor::set(KnobValue::YieldOnWfe(false));
    knobs::turn_back();
    CPACR_EL1.set(access);
    insn::unmask_irq();
    result?;
    ensure(checksum() == image, "code or constants changed")
}

/// Counts of a neighbour between two readings.
struct NeighbourCounts([u64; Shared::COUNT]);

impl NeighbourCounts {
    fn of(&self, what: Shared) -> u64 {
        hypervisor::shared()[what as usize] - self.0[what as usize]
    }
}

fn beside(neighbour: Neighbour) -> Result<(), Failure> {
    let timer = Timer::both()[0];
    timer.enable();
    hypervisor::set(KnobValue::Slice(0));
    hypervisor::set(KnobValue::Neighbour(neighbour));
    let tally = NeighbourCounts(hypervisor::shared());
    for round in 0..ROUNDS {
        let turns = tally.of(Shared::Turns);
        // On a busy host, a short wait may be over before it begins.
        for longer in 0..MOST_LONGER {
            timer.arm(clock::ticks(WAIT_US << longer));
            keep(round, Way::Wfi)?;
            timer.take()?;
            timer.lower();
            end(timer.intid)?;
            if tally.of(Shared::Turns) > turns {
                break;
            }
        }
        ensure(tally.of(Shared::Turns) > turns, "it has no turn in a WFI")?;
    }
    ensure(tally.of(Shared::Slices) == 0, "it takes a slice of none")?;
    ensure(tally.of(Shared::Given) > 0, "no time is given to it")?;
    counts_nothing(timer)?;
    hypervisor::set(KnobValue::Slice(clock::ticks(SLICE_US)));
    hypervisor::set(KnobValue::YieldOnWfe(true));
    let turns = tally.of(Shared::Turns);
    for round in 0..ROUNDS {
        keep(round, Way::Wfe)?;
    }
    ensure(tally.of(Shared::Turns) > turns, "it has no turn in a WFE")?;
    for round in 0..ROUNDS {
        keep(round, Way::Run(clock::ticks(3 * SLICE_US)))?;
    }
    ensure(tally.of(Shared::Slices) >= ROUNDS, "it gets no slice")?;
    ensure(tally.of(Shared::Taken) > 0, "no time is taken for it")?;
    ensure(tally.of(Shared::Work) > 0, "it does not get on")?;
    ensure(tally.of(Shared::Damaged) == 0, "something of it changed")?;
    let trapped = tally.of(Shared::Trapped) > 0;
    ensure(
        trapped == (neighbour == Neighbour::Hostile),
        "what it does is not what was asked for",
    )?;
    nothing()
}

fn end(intid: u32) -> Result<(), Failure> {
    arch::gic_cpu::end(intid);
    nothing()
}

/// Gives every register its own value, and checks that the value is unchanged after some turns of
/// the neighbour.
fn keep(round: u64, way: Way) -> Result<(), Failure> {
    let mask = ICC_PMR_EL1.get();
    let system = System::put(round);
    let put = Registers::of(round);
    let got = registers::around(&put, way);
    let kept = system.is_kept();
    system.put_back();
    ensure(kept, "a system register changed")?;
    ensure(
        got.agrees(&put, way),
        "a general register, or one of floating point, changed",
    )?;
    ensure(ICC_PMR_EL1.get() == mask, "the priority mask changed")
}

/// Checks that the cycle counter stands still while the neighbour runs: in some round it counts less than the
/// neighbour's time. If it counted that, no round could show less. How much more a round shows depends on the machine.
fn counts_nothing(timer: Timer) -> Result<(), Failure> {
    /// PMCNTENSET_EL0.C.
    const CYCLES: u64 = 1 << 31;
    if !pmu::is_there() {
        return Ok(());
    }
    let before = (PMCR_EL0.get(), PMCNTENSET_EL0.get());
    PMCR_EL0.set(before.0 | 1);
    PMCNTENSET_EL0.set(CYCLES);
    insn::isb();
    let mut stood = false;
    for _ in 0..ROUNDS {
        let busy = cycles(|| clock::pause(clock::ticks(WAIT_US)));
        timer.arm(clock::ticks(WAIT_US));
        let idle = cycles(insn::wfi);
        timer.take()?;
        timer.lower();
        end(timer.intid)?;
        stood |= idle < busy / 2;
    }
    PMCR_EL0.set(before.0);
    insn::isb();
    ensure(stood, "the PMU counts what the neighbour does")
}

/// Returns the cycles that the counter counts during `what`.
fn cycles(what: impl FnOnce()) -> u64 {
    let begin = PMCCNTR_EL0.get();
    what();
    insn::isb();
    PMCCNTR_EL0.get().wrapping_sub(begin)
}
