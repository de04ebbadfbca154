// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the fields of a CPU's state are, for who looks at accesses from outside: absolute symbols of the image's ELF file,
//! `per_cpu.` and the field's path. They take no byte of the image. `cargo xtask cost --board gem5` names lines by them.

use core::mem::offset_of;

use crate::cpu::percpu::PerCpu;

/// Names these offsets.
macro_rules! symbols {
    ($($name:literal = $offset:expr,)*) => {
        core::arch::global_asm!(
            $(concat!(".set per_cpu.", $name, ", {}"),)*
            $(const $offset,)*
        );
    };
}

symbols! {
    "stack_top" = offset_of!(PerCpu, stack_top),
    "mpidr" = offset_of!(PerCpu, mpidr),
    "redistributor" = offset_of!(PerCpu, redistributor),
    "online" = offset_of!(PerCpu, online),
    "shown" = offset_of!(PerCpu, shown),
    "look" = offset_of!(PerCpu, look),
    "vcpu.fast_paths.halt_if" = offset_of!(PerCpu, vcpu.fast_paths.halt_if),
    "vcpu.fast_paths.sgi_fields" = offset_of!(PerCpu, vcpu.fast_paths.sgi_fields),
    "vcpu.fast_paths.interrupts" = offset_of!(PerCpu, vcpu.fast_paths.interrupts),
    "vcpu.fast_paths.waited" = offset_of!(PerCpu, vcpu.fast_paths.waited),
    "vcpu.counters" = offset_of!(PerCpu, vcpu.counters),
    "vcpu.list" = offset_of!(PerCpu, vcpu.list),
    "vcpu.list.straight" = offset_of!(PerCpu, vcpu.list) + vgic::List::STRAIGHT,
    "vcpu.list.firsts" = offset_of!(PerCpu, vcpu.list) + vgic::List::FIRSTS,
    "vcpu.list.arrivals" = offset_of!(PerCpu, vcpu.list) + vgic::List::ARRIVALS,
    "vcpu.waits" = offset_of!(PerCpu, vcpu.waits),
    "vcpu.halt" = offset_of!(PerCpu, vcpu.halt),
    "vcpu.trace" = offset_of!(PerCpu, vcpu.trace),
    "vcpu.refused" = offset_of!(PerCpu, vcpu.refused),
    "vcpu.switch" = offset_of!(PerCpu, vcpu.switch),
    "vcpu.private" = offset_of!(PerCpu, vcpu.private),
    "vcpu.recheck_timers" = offset_of!(PerCpu, vcpu.recheck_timers),
    "serror" = offset_of!(PerCpu, serror),
    "slice_end" = offset_of!(PerCpu, slice_end),
    "end" = size_of::<PerCpu>(),
}
