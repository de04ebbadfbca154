// SPDX-License-Identifier: MIT OR Apache-2.0
//! Initializes the performance monitors of a vCPU. Only runs that measure cycles have them, because KVM switches
//! between the guest's and the host's counters at each entry and exit, which takes time.

use kvm_bindings::{
    KVM_ARM_VCPU_PMU_V3_CTRL, KVM_ARM_VCPU_PMU_V3_INIT, KVM_ARM_VCPU_PMU_V3_IRQ, kvm_device_attr,
};
use kvm_ioctls::VcpuFd;
use vmm_sys_util::errno;

use super::Obstacle;

/// The PMU's interrupt, with the number that Arm servers use (Server Base System Architecture,
/// "PPI assignments"). The guest leaves it disabled.
const INTID: u32 = 23;

/// Initializes the PMU of `cpu`. The machine's GIC has to exist already (Linux,
/// Documentation/virt/kvm/devices/vcpu.rst, 1).
pub fn init_pmu(cpu: &VcpuFd) -> Result<(), Obstacle> {
    let set = |attr: u32, value: Option<&u32>| {
        cpu.set_device_attr(&kvm_device_attr {
            flags: 0,
            group: KVM_ARM_VCPU_PMU_V3_CTRL,
            attr: u64::from(attr),
            addr: value.map_or(0, |value| std::ptr::from_ref(value) as u64),
        })
    };
    let begun: Result<(), errno::Error> = set(KVM_ARM_VCPU_PMU_V3_IRQ, Some(&INTID))
        .and_then(|()| set(KVM_ARM_VCPU_PMU_V3_INIT, None));
    begun.map_err(|error| {
        Obstacle(format!(
            "--pmu: KVM's PMU can't be set up ({error}); leave --pmu out, or measure time"
        ))
    })
}

/// Returns the error for a host without a PMU.
pub fn missing_pmu() -> Obstacle {
    Obstacle(
        "--pmu: KVM has no PMU for guests here; measure time, or use a metal instance, or a \
         kernel with CONFIG_ARM_PMUV3"
            .into(),
    )
}
