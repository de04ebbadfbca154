// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the settings of a CPU for a cell: how it waits, how it is woken, and which knobs it sets
//! at EL1 and EL2.

use abi::{KnobValue, Neighbour};
use arch::insn;
use arch::regs::CNTKCTL_EL1;
use plan::{Cell, Deliver, Hint, HostPoll, Trap, Wake, WfiBarrier, Workload, YieldOn};
use wait::request::{CALL, RESCHED};
use wait::stream::{self, Stream};

use crate::features::features;
use crate::percpu::PerCpu;
use crate::setting::Setting;
use crate::wake::Waker;
use crate::{clock, hypervisor, interrupts, logs, vectors};

/// Returns how a CPU waits in `cell`.
pub fn wait_mode(cell: &Cell) -> Setting {
    /// Time after which a WFET without a limit of its own returns.
    const BOUND_US: u32 = 100;
    Setting {
        wait: cell.wait,
        // Without elision, function calls are served only by the interrupt handler.
        wanted: match cell.wake {
            Wake::Ipi => RESCHED,
            Wake::Elide => RESCHED | CALL,
        },
        limit: clock::us_to_ticks(cell.poll_limit_us),
        bound: clock::us_to_ticks(BOUND_US),
        wfxt: features().wfxt,
        stream: cell.event_stream_us != 0,
        timed: false,
        noting: false,
        hands_over: clock::counts_instructions(),
        barrier: match cell.wfi_barrier {
            WfiBarrier::None => false,
            WfiBarrier::Dsb => true,
        },
        states: cell.states,
        standby_us: cell.standby_us,
        tick_ns: cell.hz.tick_ns(),
        psd_ms: cell.psd_ms,
        psd_limit: cell.psd_limit,
        forced: None,
    }
}

/// Returns a waker of `target` for `cell`.
pub fn new_waker(cell: &Cell, target: &'static PerCpu) -> Waker {
    let (bit, intid) = match cell.workload {
        Workload::Ipi => (CALL, interrupts::CALL),
        _ => (RESCHED, interrupts::RESCHED),
    };
    let (elide, event) = (cell.wake.elides(), cell.wait.needs_sev());
    Waker::new(target, bit, intid, elide, event)
}

/// Returns the event stream of `cell`, as nearly as the counter can generate it.
pub fn event_stream(cell: &Cell) -> Option<Stream> {
    let ecv = features().ecv;
    Stream::nearest(cell.event_stream_us, clock::frequency(), ecv)
}

/// Sets this CPU's knobs for `cell`.
pub fn set_knobs(cell: &Cell) {
    let fields = event_stream(cell).map_or(0, Stream::fields);
    CNTKCTL_EL1.set(CNTKCTL_EL1.get() & !stream::FIELDS | fields);
    insn::isb();
    if hypervisor::exists() {
        let adaptive = cell.host_poll == HostPoll::Adaptive && cell.host_poll_us != 0;
        hypervisor::set_knob(KnobValue::HostPoll(clock::us_to_ticks(cell.host_poll_us)));
        hypervisor::set_knob(KnobValue::HostPollAdaptive(adaptive));
        hypervisor::set_knob(KnobValue::GuestPolls(cell.hint == Hint::Tell));
        // The measured code acknowledges a timer's interrupt before it turns the timer off.
        hypervisor::set_knob(KnobValue::RecheckTimers(false));
        set_exit_knobs(cell.trap, cell.deliver);
        if cell.neighbour.is_there() {
            add_neighbour(cell);
        }
    }
}

/// Gives this CPU a neighbour. Interrupts must already be injected when this is called.
fn add_neighbour(cell: &Cell) {
    let does = match cell.neighbour.kib() {
        0 => Neighbour::Work,
        kib => Neighbour::Cache(kib),
    };
    hypervisor::set_knob(KnobValue::Slice(clock::us_to_ticks(cell.slice_us)));
    hypervisor::set_knob(KnobValue::YieldOnWfe(cell.yield_on == YieldOn::Wfe));
    hypervisor::set_knob(KnobValue::Neighbour(does));
}

/// Sets the knobs that decide which events exit.
pub fn set_exit_knobs(trap: Trap, deliver: Deliver) {
    hypervisor::set_trap(trap);
    hypervisor::set_deliver(deliver);
}

/// Resets the knobs that [`set_knobs`] has set.
pub fn reset_knobs() {
    CNTKCTL_EL1.set(CNTKCTL_EL1.get() & !stream::FIELDS);
    insn::isb();
    if hypervisor::exists() {
        if hypervisor::has_had_neighbour() {
            hypervisor::set_knob(KnobValue::Neighbour(Neighbour::None));
        }
        hypervisor::set_deliver(Deliver::Inject);
        hypervisor::set_trap(Trap::None);
        hypervisor::set_knob(KnobValue::HostPoll(0));
        hypervisor::set_knob(KnobValue::HostPollAdaptive(false));
        hypervisor::set_knob(KnobValue::GuestPolls(false));
        hypervisor::set_knob(KnobValue::RecheckTimers(true));
    }
}

/// Turns time stamps on or off for this CPU, at EL1 and at EL2.
pub fn set_tracing(on: bool) {
    vectors::set_tracing(on);
    if hypervisor::exists() {
        let log = logs::cpu_logs(PerCpu::this()).map(|[_, el2]| el2);
        hypervisor::set_log(log.filter(|_| on));
        hypervisor::set_knob(KnobValue::Trace(on));
    }
}
