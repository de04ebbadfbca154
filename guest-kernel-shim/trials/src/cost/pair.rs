// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the paths that involve several CPUs. Each round has a number: the receiver reports that it is ready, the
//! other CPU acts, and the round is over when the receiver has seen this.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Release};

use abi::{KnobValue, Neighbour};
use arch::{gic_cpu, insn};
use cost::Path;
use wait::request::RESCHED;
use wait::target::Target;

use super::{empty_caches, mark_begin, mark_end, pass_count, settling_us};
use guest_kernel_shim::interrupts::journal;
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::wake::Waker;
use guest_kernel_shim::{boot, clock, hypervisor, idle, interrupts, workers};

/// Number of times that receivers have been ready, and number of times that they have received, in all rounds together.
pub static READY: AtomicU32 = AtomicU32::new(0);
pub static RECEIVED: AtomicU32 = AtomicU32::new(0);

/// Gives the other CPU, which has reported that it is ready, time to reach its wait.
pub fn pause_for_wait() {
    clock::pause(clock::us_to_ticks(settling_us()));
}

/// Waits in WFE, which the store of another CPU ends (DDI 0487K.a, D1.7.1.4 and B2.12.2). A spinning loop would execute
/// millions of instructions while that CPU empties caches, and would be most of a simulator's work.
pub fn wait_for_count(counter: &AtomicU32, count: u32) {
    while insn::load_exclusive(counter) != count {
        insn::wfe();
    }
}

pub fn reset_counts() {
    READY.store(0, Release);
    RECEIVED.store(0, Release);
}

pub fn second_cpu() -> &'static PerCpu {
    percpu::all()[1]
}

/// Sends a wake-up to the second CPU through `wake` each time it is ready.
pub fn send_each_round(wake: fn(&Waker, &PerCpu)) {
    let me = PerCpu::this();
    let waker = Waker::new(second_cpu(), RESCHED, interrupts::RESCHED, false, false);
    for round in 1..=pass_count() {
        wait_for_count(&READY, round);
        pause_for_wait();
        wake(&waker, me);
        wait_for_count(&RECEIVED, round);
    }
    workers::wait_for_second();
}

/// Makes one pass of a sender's path, `PATH`; not inlined, so that the code around it does not change the code in it.
#[inline(never)]
fn pass_wake<const PATH: u8>(waker: &Waker, me: &PerCpu) {
    mark_begin::<PATH>();
    waker.wake(me);
    mark_end::<PATH>();
}

/// Sends wake-ups to a CPU that runs other code.
pub fn cost_sgi() {
    fn receive() {
        let me = PerCpu::this();
        for _ in 0..pass_count() {
            me.take_interrupted();
            empty_caches();
            mark_begin::<{ Path::SgiReceive as u8 }>();
            READY.fetch_add(1, AcqRel);
            while !me.take_interrupted() {
                insn::yield_now();
            }
            mark_end::<{ Path::SgiReceive as u8 }>();
            me.request.take(RESCHED);
            RECEIVED.fetch_add(1, AcqRel);
        }
    }
    reset_counts();
    workers::run_on_2nd(receive);
    send_each_round(pass_wake::<{ Path::SgiSend as u8 }>);
}

/// Like [`cost_sgi`], but with an SGI that EL2 may not send as a physical SGI.
pub fn doorbell() {
    /// The first SGI that is never sent as a physical SGI.
    const INTID: u32 = 8;
    fn receive() {
        let me = PerCpu::this();
        interrupts::redistributor(me).enable_all(1 << INTID);
        for _ in 0..pass_count() {
            journal(me).clear();
            empty_caches();
            mark_begin::<{ Path::DoorbellReceive as u8 }>();
            READY.fetch_add(1, AcqRel);
            while journal(me).count() == 0 {
                insn::yield_now();
            }
            mark_end::<{ Path::DoorbellReceive as u8 }>();
            RECEIVED.fetch_add(1, AcqRel);
        }
    }
    #[inline(never)]
    fn one_doorbell(intid: u32, target: u64) {
        mark_begin::<{ Path::DoorbellSend as u8 }>();
        gic_cpu::send_sgi(intid, target);
        mark_end::<{ Path::DoorbellSend as u8 }>();
    }
    reset_counts();
    let target = second_cpu().mpidr;
    workers::run_on_2nd(receive);
    for round in 1..=pass_count() {
        wait_for_count(&READY, round);
        pause_for_wait();
        one_doorbell(INTID, target);
        wait_for_count(&RECEIVED, round);
    }
    workers::wait_for_second();
}

/// Sends wake-ups to a CPU that waits in the plain idle loop.
pub fn cost_wfi() {
    reset_counts();
    workers::run_on_2nd(park::<{ Path::Wfi as u8 }>);
    send_each_round(pass_wake::<{ Path::WfiSend as u8 }>);
}

/// Sends wake-ups to a CPU that waits in the plain idle loop and has a neighbour.
pub fn cost_switch() {
    reset_counts();
    workers::run_on_2nd(|| {
        hypervisor::set_knob(KnobValue::Neighbour(Neighbour::Work));
        park::<{ Path::Switch as u8 }>();
        hypervisor::set_knob(KnobValue::Neighbour(Neighbour::None));
    });
    send_each_round(Waker::wake);
}

/// Waits for each wake-up of [`send_each_round`], as path `PATH`.
pub fn park<const PATH: u8>() {
    let me = PerCpu::this();
    for _ in 0..pass_count() {
        empty_caches();
        READY.fetch_add(1, AcqRel);
        mark_begin::<PATH>();
        idle::park(me);
        mark_end::<PATH>();
        RECEIVED.fetch_add(1, AcqRel);
    }
}

/// Sends to all other CPUs, which wait in a WFI: if there are more CPUs than the emulating machine
/// has, spinning CPUs would only take turns.
pub fn cost_broadcast() {
    fn receive(me: &PerCpu) {
        for _ in 0..pass_count() {
            insn::mask_irq();
            me.take_interrupted();
            empty_caches();
            READY.fetch_add(1, AcqRel);
            mark_begin::<{ Path::SgiReceive as u8 }>();
            while !me.take_interrupted() {
                insn::wfi();
                insn::unmask_irq();
                // A pending interrupt is taken before code after a context synchronization event
                // (DDI 0487K.a, D1.3.6). Without such an event, the architecture does not promise
                // that it is taken before IRQs are masked again: on gem5's o3, it never was.
                insn::isb();
                insn::mask_irq();
            }
            mark_end::<{ Path::SgiReceive as u8 }>();
            insn::unmask_irq();
            RECEIVED.fetch_add(1, AcqRel);
        }
    }
    fn send() {
        let others = percpu::online().count() as u32 - 1;
        for round in 1..=pass_count() {
            wait_for_count(&READY, round * others);
            pause_for_wait();
            mark_begin::<{ Path::Broadcast as u8 }>();
            gic_cpu::send_sgi_to_others(interrupts::RESCHED);
            mark_end::<{ Path::Broadcast as u8 }>();
            wait_for_count(&RECEIVED, round * others);
        }
    }
    reset_counts();
    workers::run_on_all(|| {
        let me = PerCpu::this();
        if me.index == 0 {
            send();
        } else {
            receive(me);
        }
    });
}

/// Turns the second CPU off and on again.
pub fn cost_cpu_on() {
    let target = second_cpu();
    let context = core::ptr::from_ref(target) as u64;
    for _ in 0..pass_count() {
        turn_second_off();
        empty_caches();
        pause_for_wait();
        clean_context(context);
        mark_begin::<{ Path::CpuOn as u8 }>();
        hypervisor::cpu_on(target.mpidr, boot::secondary_entry(), context);
        mark_end::<{ Path::CpuOn as u8 }>();
        wait_until_started();
    }
}

/// Turns the second CPU off. The marked window begins before that, and [`super::note_started`] ends the window.
pub fn turn_second_off() {
    /// The value that AFFINITY_INFO returns for a CPU that is off (DEN0022F.b, 5.1.5).
    const OFF: i64 = 1;
    fn turn_off() {
        PerCpu::this().set_offline();
        mark_begin::<{ Path::CpuStart as u8 }>();
        hypervisor::cpu_off();
    }
    let target = second_cpu();
    workers::run_on_2nd(turn_off);
    clock::wait_for(|| !target.is_online() && hypervisor::affinity_info(target.mpidr) == OFF);
}

/// Cleans the started CPU's memory, which it reads with its caches off, from the caches.
pub fn clean_context(context: u64) {
    pages::clean(platform::Region {
        base: context,
        size: size_of::<PerCpu>() as u64,
    });
}

/// Waits until the second CPU is on. It stopped in the middle of its task, so it gets an empty task.
pub fn wait_until_started() {
    clock::wait_for(|| second_cpu().is_online());
    workers::run_on_2nd(|| {});
    workers::wait_for_second();
}
