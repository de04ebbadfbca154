// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's GICv2: its SGIs, and its accesses to the distributor, and to the CPU interface while
//! that is closed ([`crate::cpu::gicv2`]). `exits::fast_paths_version2` has the common cases.
//!
//! A vCPU's interface has the same number as its CPU's, so the value that the guest writes to GICD_SGIR names
//! the right CPUs, and the sender that a CPU reads at the acknowledgement has the sending vCPU's number.

use abi::Counter;
use gic::gich::Sgi;
use gic::version2::write_sgir;
use vgic::version2::{Changed, Frame, GICD_SGIR, SENDERS};
use vgic::{Access, version2};

use crate::cpu::gicv2::DOORBELL;
use crate::cpu::pending_word::EVALUATE;
use crate::cpu::percpu::PerCpu;
use crate::cpu::trace::{On, Trace, Traced};
use crate::cpu::traps;
use crate::interrupts::{kick, vgic_cpu};
use crate::machine::vm::{DISTRIBUTOR, INTERFACE, vm};

/// Takes SGI `sgi`, which this CPU has acknowledged and ended.
pub fn take_sgi(cpu: &PerCpu, sgi: Sgi) {
    if sgi.intid == DOORBELL {
        return kick::serve_requests(cpu);
    }
    cpu.vcpu.private.send(sgi.intid, sgi.sender);
    vgic_cpu::inject_sgis(cpu);
}

/// Opens the CPU interface if it was closed only until the access to `address`; then the guest executes
/// that access again.
pub fn opens_interface(cpu: &PerCpu, address: u64) -> bool {
    INTERFACE.contains(address) && vgic_cpu::handle_access_trap(cpu)
}

/// Emulates an access to the GIC; returns the value of a read, or `None` if there is no register.
pub fn emulate_access(cpu: &PerCpu, address: u64, size: u32, write: Option<u64>) -> Option<u64> {
    /// Bytes of a GICv2's distributor.
    const FRAME: u64 = 0x1000;
    let access = |base| Access {
        offset: address - base,
        size,
        write,
    };
    if INTERFACE.contains(address) {
        return Some(access_interface(cpu, access(INTERFACE.base)));
    }
    let offset = address.checked_sub(DISTRIBUTOR.base)?;
    match (offset, write) {
        (GICD_SGIR, Some(value)) if size == 4 => {
            send(cpu, value);
            Some(0)
        }
        (FRAME.., _) => None,
        _ => Some(access_distributor(cpu, access(DISTRIBUTOR.base))),
    }
}

/// Sends the SGI that the guest requested by writing `value` to GICD_SGIR.
fn send(cpu: &PerCpu, value: u64) {
    cpu.vcpu.counters.uncount(Counter::Mmio);
    cpu.vcpu.counters.add(Counter::Sgi);
    let (me, vm) = (cpu.version2.number(), vm());
    let all = vm
        .targets
        .iter()
        .fold(0, |all, cpu| all | 1 << cpu.interface);
    let Some(version2::Sgi { intid, targets }) = version2::Sgi::decode(value, me, all) else {
        return;
    };
    if intid < DOORBELL {
        write_sgir(intid, targets);
        if traps::is_tracing() {
            On::note_event(cpu, Traced::Sent, value);
        }
        return;
    }
    for (target, number) in vm.cpus.iter().zip(&vm.targets) {
        if targets >> number.interface & 1 != 0 {
            target.vcpu.private.send(intid, me);
            kick::send_requests(target, EVALUATE);
        }
    }
}

fn access_distributor(cpu: &PerCpu, access: Access) -> u64 {
    if SENDERS.contains(&access.offset) {
        let value = vgic_cpu::access_senders(cpu, access);
        vgic_cpu::update_cpu(cpu);
        return value;
    }
    let reads_states = (0x200..0x400).contains(&access.offset);
    if reads_states {
        vgic_cpu::publish_states(cpu);
    }
    let vm = vm();
    let mut distributor = vm.distributor.lock();
    let mut frame = Frame {
        distributor: &mut distributor,
        private: &cpu.vcpu.private,
        me: cpu.version2.number(),
        lines: if reads_states {
            vgic_cpu::high_ppis(cpu)
        } else {
            0
        },
        cpus: &vm.targets,
    };
    let (value, changed) = frame.access(access);
    if changed == Changed::Everywhere {
        for cpu in vm.cpus {
            distributor.forward(&cpu.vcpu.private);
        }
    }
    drop(distributor);
    match changed {
        Changed::Nothing => {}
        Changed::Here => vgic_cpu::update_cpu(cpu),
        Changed::Everywhere => vm
            .cpus
            .iter()
            .for_each(|cpu| kick::send_requests(cpu, EVALUATE)),
    }
    value
}

fn access_interface(cpu: &PerCpu, access: Access) -> u64 {
    let (value, due) = vgic_cpu::access_interface(cpu, access);
    vgic_cpu::do_due(cpu, due);
    value
}
