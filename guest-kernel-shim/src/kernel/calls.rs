// SPDX-License-Identifier: MIT OR Apache-2.0
//! Function calls on other CPUs: what `smp_call_function_single` and
//! `smp_call_function_many` do.
//!
//! A call is put into the target's list. The caller that finds the list empty tells
//! the target, and the others rely on that. How a target that polls is
//! told is one of five systems ([`CallBy`]): by a bit of its own, by the bit
//! that asks it to schedule, with what follows from that in the idle loop, or by
//! interrupt as every other target (K. P. Nayak and the answers to him,
//! "sched/fair: Skip newidle_balance() when an idle CPU is woken up to process an
//! IPI", January 2024).

use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use arch::{gic_cpu, insn};
use plan::CallBy;
use wait::request::{CALL, RESCHED};

use super::Cpu;
use super::handoff::Call;
use super::stats::Stat;
use super::table::{COMMON, called_by, cpu};
use crate::clock;
use crate::interrupts;
use crate::percpu::{self, PerCpu};
use crate::tally::Event;

/// A function that is called, on the called CPU, with interrupts masked or in
/// the idle loop; its argument is the caller's.
pub type Function = fn(&'static Cpu, u64);

/// The call from CPU `from` to CPU `to`.
#[inline(always)]
pub fn between(from: usize, to: usize) -> &'static Call {
    &cpu(from).outgoing[to]
}

/// Has CPU `to` run `function`, and goes on; waits for the last call to there
/// first.
pub fn single(me: &PerCpu, to: usize, function: Function, argument: u64) -> &'static Call {
    let call = between(me.index, to);
    call.wait();
    let from = cpu(me.index);
    from.stats.add(Stat::Made);
    call.function.store(function as *mut (), Relaxed);
    call.argument.store(argument, Relaxed);
    call.busy.store(true, Release);
    let number = (me.index * percpu::all().len() + to) as u32;
    if cpu(to).calls.push(number, &call.link) {
        notify(me, percpu::all()[to]);
    }
    call
}

/// The same on several CPUs; [`Call::wait`] of each waits for all.
pub fn many(me: &PerCpu, to: impl Iterator<Item = usize>, function: Function, argument: u64) {
    for to in to {
        single(me, to, function, argument);
    }
}

/// Tells `target` that there are calls.
#[inline(always)]
fn notify(me: &PerCpu, target: &'static PerCpu) {
    let bit = match () {
        () if called_by(CallBy::Ipi) => 0,
        () if called_by(CallBy::Notify) => CALL,
        () => RESCHED,
    };
    if bit != 0 && target.request.wake_polling(bit) {
        if COMMON.event.load(Relaxed) {
            insn::dsb_ishst();
            insn::sev();
        }
        me.tally.add(Event::Elided);
    } else {
        gic_cpu::send_sgi(interrupts::FUNCTION, target.mpidr);
        me.tally.add(Event::Sent);
    }
}

/// Runs what is in this CPU's list; `by` is what counts them.
pub fn drain(cpu: &'static Cpu, by: Stat) {
    let width = percpu::all().len();
    let call = |number: u32| between(number as usize / width, number as usize % width);
    for number in cpu.calls.take(|number| &call(number).link) {
        let call = call(number);
        cpu.stats.add(by);
        let function = call.function.load(Relaxed);
        // SAFETY: `single` stored a `Function` before it put the call into the
        // list, and does not change it until `busy` is cleared.
        let function = unsafe { core::mem::transmute::<*mut (), Function>(function) };
        call.began.store(clock::now(), Relaxed);
        function(cpu, call.argument.load(Relaxed));
        call.busy.swap(false, AcqRel);
    }
}
