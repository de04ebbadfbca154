// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the operations that a CPU can perform in a step, besides passing a token on. Every operation leaves
//! masks and enables as it found them; other changes (knobs, priorities, routes) may stay until the
//! next quiescent point.

mod sgi;
pub mod timer;

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTVCT_EL0, Readable};
use abi::KnobValue;
use arch::regs::{ICC_IGRPEN1_EL1, ICC_PMR_EL1};
use arch::{gic_cpu, insn};
use wait::stream::Stream;

use super::books::{self, OWN, PPI, first_shared_sgi, usable_sgi_count};
use super::violation::{Kind, stop_machine};
use super::{check, neighbour, power};
use guest_kernel_shim::features::features;
use guest_kernel_shim::interrupts::redistributor;
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{clock, hypervisor, knobs};
use sched::random::Random;

/// Longest pause in an operation, in microseconds.
const PAUSE_US: u32 = 4;

/// Declares the operations with their names, weights and functions.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $weight:literal, $run:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Operation { $($(#[$doc])* $name,)* }

        impl Operation {
            /// All operations, with their names and weights.
            pub const ALL: &[(Self, &'static str, u64)] = &[$((Self::$name, $text, $weight),)*];

            /// Performs the operation. The operation's draws depend only on `random`.
            pub fn run(self, me: &'static PerCpu, random: &mut Random) {
                match self {
                    $(Self::$name => {
                        let run: fn(&'static PerCpu, &mut Random) = $run;
                        run(me, random);
                    })*
                }
            }
        }
    };
}

operations! {
    /// A call that has no effect, through the conduit.
    Call = "call", 4, |_, _| { hypervisor::psci_ver(); };
    /// An SGI to the CPU itself.
    SgiSelf = "sgi-self", 4, sgi::send_to_self;
    /// An SGI to another CPU.
    SgiOne = "sgi-one", 8, sgi::send_to_one;
    /// One write that sends an SGI to several receivers.
    SgiList = "sgi-list", 4, sgi::send_to_some;
    /// An SGI to all other CPUs.
    SgiBroadcast = "sgi-broadcast", 4, sgi::send_to_others;
    /// SGIs of several INTIDs, one after another, to one CPU.
    SgiBurst = "sgi-burst", 4, sgi::send_burst;
    /// Several SGIs to the CPU itself while masked, more than there are list registers.
    SgiMasked = "sgi-masked", 2, sgi::send_while_masked;
    /// The virtual timer.
    TimerVirtual = "timer-virtual", 4, |me, random| timer::arm(me, timer::VIRTUAL, random);
    /// The physical timer.
    TimerPhysical = "timer-physical", 4, |me, random| timer::arm(me, timer::PHYSICAL, random);
    /// One of the two timers, stopped.
    TimerStop = "timer-stop", 1, |me, random| timer::stop(me, random.below(2) as usize);
    /// A PPI made pending through a register.
    Ppi = "ppi", 2, |me, _| pend_ppi(me);
    /// An SPI made pending through a register.
    SpiPending = "spi-pending", 4, pend_spi;
    /// An SPI routed to a random CPU, whether it is pending or not.
    SpiRoute = "spi-route", 3, |me, random| books::spi_of(me).route(random.of(percpu::all()).mpidr);
    /// An SPI disabled for a while.
    SpiDisable = "spi-disable", 3, disable_spi;
    /// An SPI's pending state cleared.
    SpiWithdraw = "spi-withdraw", 1, |me, _| withdraw_spi(me);
    /// The priority of an interrupt.
    Priority = "priority", 3, draw_priority;
    /// SGIs and PPIs disabled for a while.
    Disable = "disable", 3, disable_private;
    /// Less urgent interrupts masked for a while by priority.
    Mask = "mask-priority", 3, mask_priority;
    /// All interrupts masked for a while by PSTATE.
    MaskAll = "mask-all", 3, |_, random| { insn::mask_irq(); pause_randomly(random); insn::unmask_irq(); };
    /// Group 1 off for a while at the CPU interface.
    Group = "mask-group", 2, mask_group;
    /// An SGI of another CPU made active through a register for a while.
    Activate = "activate", 3, |_, random| activate_sgi(random);
    /// Reads of distributor and redistributor.
    Read = "read", 4, |me, random| check::check_identification(me, random);
    /// The owner of the CPU interface.
    Deliver = "knob-deliver", 8, draw_delivery;
    /// The waits that trap.
    Trap = "knob-trap", 4, |_, random| draw_trap(random);
    /// The way in which EL2 waits.
    HostPoll = "knob-host-poll", 3, draw_host_poll;
    /// Whether the guest announces that it polls.
    Hint = "knob-hint", 2, |_, random| set_knob(KnobValue::GuestPolls(random.below(2) == 1));
    /// The period of EL2's event stream.
    EventStream = "knob-stream", 2, draw_event_stream;
    /// Time stamps, turned on or off.
    Trace = "trace", 3, |_, random| knobs::set_tracing(random.one_in(2));
    /// A wait with a deadline.
    Timed = "wait-timed", 3, wait_timed;
    /// Standby through PSCI, with an interrupt that ends it.
    Suspend = "suspend", 2, |me, _| suspend(me);
    /// A check that counters and times only grow.
    Counters = "counters", 3, |me, _| check::check_counters(me);
    /// EL2's own audit of the list registers.
    Audit = "audit", 3, |_, _| check::check_audit();
    /// The neighbour's work. This operation is drawn separately ([`Operation::draw`]).
    Neighbour = "neighbour", 0, neighbour::draw_neighbour;
    /// Turns the CPU off; another CPU turns it on again.
    Off = "off", 1, |me, random| if me.index != 0 { power::turn_off(me, random) };
}

/// Number of times that each operation was performed.
static DONE: [AtomicU64; Operation::ALL.len()] =
    [const { AtomicU64::new(0) }; Operation::ALL.len()];

impl Operation {
    pub fn draw(random: &mut Random) -> Self {
        // If no neighbour is possible, this branch draws nothing, so the draws of the other operations do not change.
        if neighbour::is_possible() && random.one_in(12) {
            return Self::Neighbour;
        }
        let sum = Self::ALL.iter().map(|(_, _, weight)| weight).sum();
        let mut at = random.below(sum);
        for &(operation, _, weight) in Self::ALL {
            if at < weight {
                return operation;
            }
            at -= weight;
        }
        Self::Call
    }

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub fn count(self) {
        DONE[self as usize].fetch_add(1, Relaxed);
    }

    /// Returns how often the operation was performed.
    pub fn times_done(self) -> u64 {
        DONE[self as usize].load(Relaxed)
    }
}

fn pause_randomly(random: &mut Random) {
    clock::pause(random.below(clock::us_to_ticks(PAUSE_US)));
}

/// Sets a knob, if there is a hypervisor.
fn set_knob(value: KnobValue) {
    if hypervisor::exists() {
        hypervisor::set_knob(value);
    }
}

fn draw_trap(random: &mut Random) {
    let bits = random.below(4);
    set_knob(KnobValue::Trap(abi::Trap {
        wfi: bits & 1 != 0,
        wfe: bits & 2 != 0,
    }));
}

/// Draws the owner of the CPU interface. EL2 keeps delivering the first CPU's interrupts: the watchdog runs there.
fn draw_delivery(me: &PerCpu, random: &mut Random) {
    let deliver = match random.below(2) {
        0 => abi::Deliver::Inject,
        _ => abi::Deliver::Direct,
    };
    if me.index != 0 {
        if deliver == abi::Deliver::Direct {
            neighbour::end_neighbour();
        }
        let (knob, word) = KnobValue::Deliver(deliver).encode();
        if hypervisor::exists() {
            // EL2 refuses while another CPU has made an SGI active here.
            hypervisor::call(abi::Call::Set.function(), [knob as u64, word, 0]);
        }
    }
}

fn draw_host_poll(_: &PerCpu, random: &mut Random) {
    set_knob(KnobValue::HostPoll(random.below(3) * clock::us_to_ticks(5)));
    set_knob(KnobValue::HostPollAdaptive(random.below(2) == 1));
}

fn draw_event_stream(_: &PerCpu, random: &mut Random) {
    let period = random.of(&[0, 10, 100]);
    let stream = Stream::nearest(period, clock::frequency(), features().ecv);
    set_knob(KnobValue::EventStream(stream.map_or(0, Stream::fields)));
}

fn pend_ppi(me: &PerCpu) {
    if books::books_of(me).ppi.note_send(false) {
        insn::dsb_ishst();
        redistributor(me).set_pending(1 << PPI);
    }
}

fn pend_spi(me: &PerCpu, random: &mut Random) {
    if books::spi_channel(me).note_send(random.one_in(8)) {
        insn::dsb_ishst();
        books::spi_of(me).set_pending();
    }
}

fn disable_spi(me: &PerCpu, random: &mut Random) {
    books::spi_of(me).disable();
    pause_randomly(random);
    books::spi_of(me).enable();
}

fn withdraw_spi(me: &PerCpu) {
    books::spi_channel(me).note_withdrawal();
    books::spi_of(me).clear_pending();
}

/// Priorities. The lowest mask of [`mask_priority`] lets some of them through, and masks the rest.
const PRIORITIES: [u8; 4] = [0x20, 0x60, 0x80, 0xc0];

fn draw_priority(me: &PerCpu, random: &mut Random) {
    let priority = random.of(&PRIORITIES);
    let intid = OWN + random.below(u64::from(usable_sgi_count() - OWN)) as u32;
    if random.one_in(4) {
        books::spi_of(me).set_priority(priority);
    } else {
        // SAFETY: only this CPU sets its redistributor's priorities.
        unsafe { redistributor(me).set_priority(intid, priority) };
    }
}

fn disable_private(me: &PerCpu, random: &mut Random) {
    let chosen = (random.below(1 << 32) as u32) & check::enabled_interrupts() & !check::KERNEL;
    redistributor(me).disable_all(chosen);
    pause_randomly(random);
    redistributor(me).enable_all(chosen);
}

/// Makes an interrupt active for a while without an acknowledge. If the interrupt was active already, it ends early,
/// which does not matter.
fn activate_sgi(random: &mut Random) {
    let target = redistributor(random.of(percpu::all()));
    let bit = 1 << (OWN + random.below(u64::from(usable_sgi_count() - OWN)) as u32);
    target.set_active(bit);
    pause_randomly(random);
    target.clear_active(bit);
}

fn mask_priority(_: &PerCpu, random: &mut Random) {
    let before = ICC_PMR_EL1.get();
    ICC_PMR_EL1.set(random.of(&[0x00, 0x40, 0x80, 0xa0]));
    pause_randomly(random);
    ICC_PMR_EL1.set(before);
    insn::isb();
}

fn mask_group(_: &PerCpu, random: &mut Random) {
    ICC_IGRPEN1_EL1.set(0);
    insn::isb();
    pause_randomly(random);
    ICC_IGRPEN1_EL1.set(1);
    insn::isb();
}

fn wait_timed(_: &PerCpu, random: &mut Random) {
    let deadline = CNTVCT_EL0.get() + random.below(clock::us_to_ticks(2 * PAUSE_US));
    let by_event = random.one_in(2);
    if !features().wfxt {
        return;
    }
    if by_event {
        insn::wfet(deadline);
    } else {
        insn::wfit(deadline);
    }
}

fn suspend(me: &PerCpu) {
    insn::mask_irq();
    // A pending interrupt makes standby return, whether it is masked or not.
    books::books_of(me).sgi[first_shared_sgi() as usize].note_shared_send();
    gic_cpu::send_sgi(first_shared_sgi(), me.mpidr);
    let status = hypervisor::cpu_suspend();
    insn::unmask_irq();
    if status != 0 {
        stop_machine(Kind::Answer, format_args!("CPU_SUSPEND answers {status}"));
    }
}
