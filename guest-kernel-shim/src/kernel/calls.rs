// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs functions on other CPUs, like `smp_call_function_single` and `smp_call_function_many`.
//!
//! A call is put into the target's list. The caller that finds the list empty notifies the target, and other
//! callers rely on this notification. Several targets are notified through one interrupt that names them
//! all, whether they poll or not. A single target that polls is notified in one of five ways ([`CallBy`]):
//! by a bit for calls; by the bit that asks it to schedule, in three ways that differ in what the idle loop
//! then does; or by an interrupt, as if the target did not poll (K. P. Nayak and the replies to him,
//! "sched/fair: Skip newidle_balance() when an idle CPU is woken up to process an IPI", January 2024).

use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use arch::{gic_cpu, insn};
use plan::{CallBy, CpuSet};
use wait::request::{CALL, RESCHED};

use super::Cpu;
use super::handoff::Call;
use super::stats::Stat;
use super::table::{COMMON, cpu, is_called_by};
use crate::clock;
use crate::interrupts;
use crate::percpu::{self, PerCpu};
use crate::tally::Event;

/// A function that runs on the called CPU, with interrupts masked or in the idle loop; the caller
/// sets its argument.
pub type Function = fn(&'static Cpu, u64);

/// Returns the call from CPU `from` to CPU `to`.
#[inline(always)]
pub fn call_between(from: usize, to: usize) -> &'static Call {
    &cpu(from).outgoing[to]
}

/// Waits until this CPU's previous call to CPU `to` has run; then makes CPU `to` run `function`,
/// and returns at once.
pub fn call_one(me: &PerCpu, to: usize, function: Function, argument: u64) -> &'static Call {
    let (call, is_first) = queue_call(me, to, function, argument);
    if is_first {
        notify(me, percpu::all()[to]);
    }
    call
}

/// Puts a call into the list of CPU `to`; returns whether that CPU needs a notification.
#[inline(always)]
fn queue_call(me: &PerCpu, to: usize, function: Function, argument: u64) -> (&'static Call, bool) {
    let call = call_between(me.index, to);
    call.wait();
    let from = cpu(me.index);
    from.stats.add(Stat::Made);
    call.function.store(function as *mut (), Relaxed);
    call.argument.store(argument, Relaxed);
    call.busy.store(true, Release);
    let number = (me.index * percpu::all().len() + to) as u32;
    (call, cpu(to).calls.push(number, &call.link))
}

/// Calls `function` on several CPUs; [`Call::wait`] on each call waits for all of them. If only one CPU needs
/// a notification, it is notified as by [`call_one`]; several CPUs are interrupted, whether they poll or not.
pub fn call_many(me: &PerCpu, to: impl Iterator<Item = usize>, function: Function, argument: u64) {
    let mut told = CpuSet::NONE;
    let mut count = 0;
    for to in to {
        if queue_call(me, to, function, argument).1 {
            told = told.with(to);
            count += 1;
        }
    }
    let targets = || told.iter(percpu::all().len()).map(|to| percpu::all()[to]);
    match count {
        0 => {}
        1 => targets().for_each(|target| notify(me, target)),
        _ => {
            gic_cpu::send_sgi_to(interrupts::FUNCTION, targets().map(|target| target.mpidr));
            me.tally.add_many(Event::Sent, count);
        }
    }
}

/// Notifies `target` that there are calls in its list.
#[inline(always)]
fn notify(me: &PerCpu, target: &'static PerCpu) {
    let bit = match () {
        () if is_called_by(CallBy::Ipi) => 0,
        () if is_called_by(CallBy::Notify) => CALL,
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

/// Runs the calls in this CPU's list, and counts each as `by`.
pub fn run_calls(cpu: &'static Cpu, by: Stat) {
    let width = percpu::all().len();
    let call = |number: u32| call_between(number as usize / width, number as usize % width);
    for number in cpu.calls.take(|number| &call(number).link) {
        let call = call(number);
        cpu.stats.add(by);
        let function = call.function.load(Relaxed);
        // SAFETY: `call_one` stored a `Function` before it put the call into the
        // list, and does not change it until `busy` is cleared.
        let function = unsafe { core::mem::transmute::<*mut (), Function>(function) };
        call.began.store(clock::now(), Relaxed);
        function(cpu, call.argument.load(Relaxed));
        call.busy.swap(false, AcqRel);
    }
}
