// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creates KVM's GIC for the guest, which is a GICv3, or a GICv2 on hosts with a GICv2 (Linux,
//! Documentation/virt/kvm/devices/arm-vgic-v3.rst and arm-vgic.rst).

use kvm_bindings::{
    KVM_DEV_ARM_VGIC_CTRL_INIT, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_DEV_ARM_VGIC_GRP_CTRL,
    KVM_VGIC_V2_ADDR_TYPE_CPU, KVM_VGIC_V2_ADDR_TYPE_DIST, KVM_VGIC_V3_ADDR_TYPE_DIST,
    KVM_VGIC_V3_ADDR_TYPE_REDIST_REGION, kvm_create_device, kvm_device_attr,
    kvm_device_type_KVM_DEV_TYPE_ARM_VGIC_V2, kvm_device_type_KVM_DEV_TYPE_ARM_VGIC_V3,
};
use kvm_ioctls::{DeviceFd, VmFd};
use platform::GicV2;
use vmm_sys_util::errno;

use super::Obstacle;
use super::vm::kvm_failure;
use crate::layout::{CPU_INTERFACE, DISTRIBUTOR, REDISTRIBUTORS};
use crate::tree::Gic;

/// Creates the GIC for `cpus` vCPUs, which exist already.
pub fn create(vm: &VmFd, cpus: usize) -> Result<(DeviceFd, Gic), Obstacle> {
    let version3 = device(vm, kvm_device_type_KVM_DEV_TYPE_ARM_VGIC_V3);
    let (gic, version) = match version3 {
        Ok(gic) => (gic, Gic::V3),
        Err(_) => (create_version2(vm, cpus)?, Gic::V2),
    };
    // The value has the count, the base and the index of a region.
    let redistributors = (cpus as u64) << 52 | REDISTRIBUTORS;
    let addresses = match version {
        Gic::V3 => [
            (KVM_VGIC_V3_ADDR_TYPE_DIST, DISTRIBUTOR),
            (KVM_VGIC_V3_ADDR_TYPE_REDIST_REGION, redistributors),
        ],
        Gic::V2 => [
            (KVM_VGIC_V2_ADDR_TYPE_DIST, DISTRIBUTOR),
            (KVM_VGIC_V2_ADDR_TYPE_CPU, CPU_INTERFACE),
        ],
    };
    let set = |group: u32, attr: u32, value: Option<&u64>| {
        gic.set_device_attr(&kvm_device_attr {
            flags: 0,
            group,
            attr: u64::from(attr),
            addr: value.map_or(0, |value| std::ptr::from_ref(value) as u64),
        })
    };
    for (attr, address) in &addresses {
        set(KVM_DEV_ARM_VGIC_GRP_ADDR, *attr, Some(address))
            .map_err(kvm_failure("/dev/kvm: the GIC can't be placed"))?;
    }
    set(KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, None)
        .map_err(kvm_failure("/dev/kvm: the GIC can't be set up"))?;
    Ok((gic, version))
}

fn create_version2(vm: &VmFd, cpus: usize) -> Result<DeviceFd, Obstacle> {
    let gic = device(vm, kvm_device_type_KVM_DEV_TYPE_ARM_VGIC_V2).map_err(|error| {
        Obstacle(format!(
            "/dev/kvm: KVM has neither a GICv3 nor a GICv2 for guests here ({error}); use a machine whose GIC has \
             the virtualization extensions"
        ))
    })?;
    if cpus > GicV2::MAX_CPUS {
        return Err(Obstacle(format!(
            "--cpus {cpus}: this machine has a GICv2, with which a guest has at most {} CPUs; use fewer",
            GicV2::MAX_CPUS
        )));
    }
    Ok(gic)
}

fn device(vm: &VmFd, type_: u32) -> Result<DeviceFd, errno::Error> {
    vm.create_device(&mut kvm_create_device {
        type_,
        fd: 0,
        flags: 0,
    })
}
