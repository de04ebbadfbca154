// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles exits on accesses to system registers that are neither measured nor the guest's own. `trap::sysreg` gives
//! the result of each access, and [`crate::cpu::controls`] the reason for its trap.

use abi::Counter;
use arch::frame::Frame;
use arch::regs::{OSLAR_EL1, OSLSR_EL1, feature_register};
use trap::id;
use trap::interface::Register;
use trap::sysreg::{Answer, SystemRegister, answer};

use crate::cpu::controls;
use crate::cpu::percpu::PerCpu;
use crate::exits::inject;
use crate::exits::registers::{general_register as register_value, skip_instruction};
use crate::interrupts::vgic_cpu;

pub fn handle_exit(cpu: &PerCpu, frame: &mut Frame, access: SystemRegister) {
    cpu.vcpu.counters.add(Counter::Sysreg);
    let interface = Register::named(access.encoding);
    if interface.is_some_and(Register::is_group1) && vgic_cpu::handle_access_trap(cpu) {
        return;
    }
    let write = (!access.read).then(|| register_value(frame, access.rt));
    let value = match answer(access) {
        Answer::Undefined => return inject::inject_undefined(cpu),
        Answer::Interface(register) => match vgic_cpu::emulate_access(cpu, register, write) {
            Some(value) => value,
            None => return inject::inject_undefined(cpu),
        },
        Answer::Constant(value) => value,
        Answer::Feature => {
            let (crm, op2) = (access.encoding >> 1 & 15, access.encoding >> 17 & 7);
            let value = id::seen(access.encoding, feature_register(crm, op2));
            match controls::has_copy_instructions() {
                true => value,
                false => id::without_copies(access.encoding, value),
            }
        }
        Answer::OsLock if access.read => OSLSR_EL1.get(),
        Answer::OsLock => {
            OSLAR_EL1.set(register_value(frame, access.rt) & 1);
            0
        }
    };
    if let (true, Some(register)) = (access.read, frame.x.get_mut(access.rt as usize)) {
        *register = value;
    }
    skip_instruction();
}
