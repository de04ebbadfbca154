// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends SGIs in all forms: to this CPU, to one CPU, to some with one write, and to all others; with an INTID that only
//! this CPU sends, or with one that any CPU may send.

use arch::{gic_cpu, insn};

use super::pause_randomly;
use crate::soak::books::{self, OWN, first_shared_sgi, usable_sgi_count};
use guest_kernel_shim::percpu::{self, PerCpu};
use sched::random::Random;

/// Records that `me` is about to send `intid` to each of `targets`; returns whether it may. If only `me` sends
/// this INTID and `merge` is not set, `me` must not send until the last SGI has been taken, so that no two SGIs merge.
fn book_send<'a>(
    me: &PerCpu,
    intid: u32,
    targets: impl Iterator<Item = &'a PerCpu> + Clone,
    merge: bool,
) -> bool {
    let channel = |target: &PerCpu| &books::books_of(target).sgi[intid as usize];
    if intid != own_id(me) {
        targets.for_each(|target| channel(target).note_shared_send());
        return true;
    }
    if !merge && targets.clone().any(|target| channel(target).is_open()) {
        return false;
    }
    targets.for_each(|target| {
        channel(target).note_send(true);
    });
    true
}

/// Returns the INTID that only `me` sends.
fn own_id(me: &PerCpu) -> u32 {
    OWN + me.index as u32
}

/// Returns an INTID that `me` may send: mostly the one that only `me` sends.
fn draw_intid(me: &PerCpu, random: &mut Random) -> u32 {
    let first = first_shared_sgi();
    let of_all = first + random.below(u64::from(usable_sgi_count() - first)) as u32;
    if random.one_in(4) { of_all } else { own_id(me) }
}

fn send_to_cpu(me: &PerCpu, target: &PerCpu, random: &mut Random) {
    let intid = draw_intid(me, random);
    if book_send(me, intid, core::iter::once(target), random.one_in(8)) {
        gic_cpu::send_sgi(intid, target.mpidr);
    }
}

/// Sends an SGI to the CPU itself.
pub fn send_to_self(me: &'static PerCpu, random: &mut Random) {
    send_to_cpu(me, me, random);
}

/// Sends an SGI to another CPU, or by chance to the CPU itself.
pub fn send_to_one(me: &'static PerCpu, random: &mut Random) {
    send_to_cpu(me, random.of(percpu::all()), random);
}

/// Sends an SGI to some of the CPUs that one write can name.
pub fn send_to_some(me: &'static PerCpu, random: &mut Random) {
    /// The target list of ICC_SGI1R_EL1 (IHI 0069H, 12.2).
    const LIST: u64 = 0xffff;
    let chosen = random.below(1 << percpu::all().len());
    let intid = draw_intid(me, random);
    let merge = random.one_in(8);
    let value = |cpu: &PerCpu| gic_cpu::sgi_value(intid, cpu.mpidr);
    let mine = value(me) & !LIST;
    let cpus = percpu::all().iter().copied();
    let targets = cpus.filter(|cpu| chosen >> cpu.index & 1 != 0 && value(cpu) & !LIST == mine);
    let written = targets.clone().fold(mine, |sum, cpu| sum | value(cpu));
    if written != mine && book_send(me, intid, targets, merge) {
        gic_cpu::send_sgi_value(written);
    }
}

pub fn send_to_others(me: &'static PerCpu, random: &mut Random) {
    let intid = draw_intid(me, random);
    let others = percpu::all().iter().copied();
    let others = others.filter(|cpu| cpu.index != me.index);
    if book_send(me, intid, others, random.one_in(8)) {
        gic_cpu::send_sgi_to_others(intid);
    }
}

/// Sends up to eight SGIs of several INTIDs to one CPU.
pub fn send_burst(me: &'static PerCpu, random: &mut Random) {
    let target = random.of(percpu::all());
    for _ in 0..=random.below(8) {
        send_to_cpu(me, target, random);
    }
}

/// Sends all SGIs to the CPU itself, so that more are pending than there are list registers.
pub fn send_while_masked(me: &'static PerCpu, random: &mut Random) {
    insn::mask_irq();
    for intid in core::iter::once(own_id(me)).chain(first_shared_sgi()..usable_sgi_count()) {
        if book_send(me, intid, core::iter::once(me), false) {
            gic_cpu::send_sgi(intid, me.mpidr);
        }
    }
    pause_randomly(random);
    insn::unmask_irq();
}
