// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends SGIs of all shapes: to this CPU, to one CPU, to some with one write, to all others; with
//! an INTID that only this CPU sends, or that any CPU may send.

use arch::{gic_cpu, insn};

use super::pause;
use crate::soak::books::{self, OWN, sgis, shared};
use guest_kernel_shim::percpu::{self, PerCpu};
use sched::random::Random;

/// Records that `me` is about to send `intid` to each of `targets`; returns whether it may. With an INTID
/// of its own, it may not send before the last one was taken, so that none merge, unless `merge` is set.
fn book<'a>(
    me: &PerCpu,
    intid: u32,
    targets: impl Iterator<Item = &'a PerCpu> + Clone,
    merge: bool,
) -> bool {
    let channel = |target: &PerCpu| &books::of(target).sgi[intid as usize];
    if intid != own(me) {
        targets.for_each(|target| channel(target).send_shared());
        return true;
    }
    if !merge && targets.clone().any(|target| channel(target).is_open()) {
        return false;
    }
    targets.for_each(|target| {
        channel(target).send(true);
    });
    true
}

/// Returns the INTID that only `me` sends.
fn own(me: &PerCpu) -> u32 {
    OWN + me.index as u32
}

/// Returns an INTID that `me` may send: mostly its own.
fn intid(me: &PerCpu, random: &mut Random) -> u32 {
    let first = shared();
    let of_all = first + random.below(u64::from(sgis() - first)) as u32;
    if random.one_in(4) { of_all } else { own(me) }
}

fn send(me: &PerCpu, target: &PerCpu, random: &mut Random) {
    let intid = intid(me, random);
    if book(me, intid, core::iter::once(target), random.one_in(8)) {
        gic_cpu::send_sgi(intid, target.mpidr);
    }
}

/// Sends an SGI to the CPU itself.
pub fn to_self(me: &'static PerCpu, random: &mut Random) {
    send(me, me, random);
}

/// Sends an SGI to another CPU, or by chance to the CPU itself.
pub fn to_one(me: &'static PerCpu, random: &mut Random) {
    send(me, random.of(percpu::all()), random);
}

/// Sends an SGI to some of the CPUs that one write can name.
pub fn to_some(me: &'static PerCpu, random: &mut Random) {
    /// The target list of ICC_SGI1R_EL1 (IHI 0069H, 12.2).
    const LIST: u64 = 0xffff;
    let chosen = random.below(1 << percpu::all().len());
    let intid = intid(me, random);
    let merge = random.one_in(8);
    let value = |cpu: &PerCpu| gic_cpu::sgi_value(intid, cpu.mpidr);
    let mine = value(me) & !LIST;
    let cpus = percpu::all().iter().copied();
    let targets = cpus.filter(|cpu| chosen >> cpu.index & 1 != 0 && value(cpu) & !LIST == mine);
    let written = targets.clone().fold(mine, |sum, cpu| sum | value(cpu));
    if written != mine && book(me, intid, targets, merge) {
        gic_cpu::send_sgi_value(written);
    }
}

pub fn to_others(me: &'static PerCpu, random: &mut Random) {
    let intid = intid(me, random);
    let others = percpu::all().iter().copied();
    let others = others.filter(|cpu| cpu.index != me.index);
    if book(me, intid, others, random.one_in(8)) {
        gic_cpu::send_sgi_to_others(intid);
    }
}

/// Sends up to eight SGIs of several INTIDs to one CPU.
pub fn burst(me: &'static PerCpu, random: &mut Random) {
    let target = random.of(percpu::all());
    for _ in 0..=random.below(8) {
        send(me, target, random);
    }
}

/// Sends all SGIs to the CPU itself, so that more are pending than there are list registers.
pub fn while_masked(me: &'static PerCpu, random: &mut Random) {
    insn::mask_irq();
    for intid in core::iter::once(own(me)).chain(shared()..sgis()) {
        if book(me, intid, core::iter::once(me), false) {
            gic_cpu::send_sgi(intid, me.mpidr);
        }
    }
    pause(random);
    insn::unmask_irq();
}
