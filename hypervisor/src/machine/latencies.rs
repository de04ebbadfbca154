// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for the exit latency of an idle state that the guest enters by PSCI CPU_SUSPEND: no emulator models this time.

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use arch::insn;
use arm_psci::PowerState;
use arrayvec::ArrayVec;
use plan::GuestStates;
use platform::guest::IdleState;
use wait::target::after;

use crate::machine::machine;

/// The exit latencies of the guest's states, from shallow to deep.
#[derive(Debug)]
pub struct Latencies(ArrayVec<u32, { GuestStates::MOST }>);

impl Latencies {
    /// Returns the latencies of `states`; the list is empty if the guest has no states.
    pub fn from_states(states: Option<&GuestStates>) -> Self {
        Self(idle_states(states).iter().map(|it| it.exit_us).collect())
    }

    /// Waits as long as a CPU woken by an interrupt takes to leave `state`; not at all for an unknown state.
    #[cold]
    pub fn spend_exit_latency(&self, state: PowerState) {
        let (PowerState::StandbyOrRetention(number) | PowerState::PowerDown(number)) = state;
        let Some(&exit_us) = self.0.get(number as usize) else {
            return;
        };
        let ticks = machine().ns_to_ticks(u64::from(exit_us) * 1000);
        // The counter may be read before the WFI is over (DDI 0487K.a, D12.2.1).
        insn::isb();
        let end = after(CNTPCT_EL0.get(), ticks);
        while CNTPCT_EL0.get() < end {
            // On an emulator with one thread, the other CPUs run meanwhile.
            insn::yield_now();
        }
    }
}

/// Returns the states in the form in which the guest's device tree describes them.
pub fn idle_states(states: Option<&GuestStates>) -> ArrayVec<IdleState, { GuestStates::MOST }> {
    let states = states.into_iter().flat_map(GuestStates::as_slice);
    let states = states.map(|state| IdleState {
        exit_us: state.exit_us,
        residency_us: state.residency_us,
    });
    states.collect()
}
