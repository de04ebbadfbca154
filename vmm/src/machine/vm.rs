// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual machine in KVM: RAM, vCPUs, the GIC, and the first vCPU's registers at the start.

use std::sync::Arc;

use kvm_bindings::{
    KVM_ARM_VCPU_PMU_V3, KVM_ARM_VCPU_POWER_OFF, KVM_ARM_VCPU_PSCI_0_2, KVM_CAP_HALT_POLL,
    kvm_enable_cap, kvm_userspace_memory_region, kvm_vcpu_init,
};
use kvm_ioctls::{Cap, DeviceFd, Kvm, VcpuFd, VmFd};
use platform::AFFINITY;
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::errno;

use super::Obstacle;
use super::cpu::Cpu;
use super::exits::Exits;
use super::files::Files;
use super::gic;
use super::pmu;
use super::registers;
use crate::layout::{Loaded, RAM, TREE_SIZE};
use crate::options::{MIB, Options};
use crate::tree::{self, Console, Guest};

/// PSTATE at the start: EL1h with all exceptions masked (Linux, Documentation/arch/arm64/booting.rst, "Call the kernel
/// image").
const START: u64 = 0x3c5;
/// Number of bits in guest physical addresses, if KVM supports this number. KVM's default is 40
/// (Documentation/virt/kvm/api.rst, 4.2), so stage 2 is like that of most guests.
const IPA_BITS: u32 = 40;

/// A virtual machine and its memory.
#[derive(Debug)]
pub struct Vm {
    /// The machine's file descriptor.
    pub fd: Arc<VmFd>,
    _memory: GuestMemoryMmap,
    _gic: DeviceFd,
}

impl Vm {
    /// Creates a machine that is ready to run the image in `files`. Returns it with its vCPUs.
    pub fn new(options: &Options, files: &Files) -> Result<(Self, Vec<Cpu>), Obstacle> {
        let size = options.memory;
        let loaded = files.places(options)?;
        let kvm = open()?;
        if options.cpus > kvm.get_max_vcpus() {
            return Err(Obstacle(format!(
                "--cpus {}: KVM has at most {} vCPUs here; use fewer",
                options.cpus,
                kvm.get_max_vcpus()
            )));
        }
        let most = u32::try_from(kvm.get_host_ipa_limit()).unwrap_or(0);
        let fd = kvm
            .create_vm_with_ipa_size(IPA_BITS.min(most))
            .map_err(kvm_failure("/dev/kvm: no virtual machine can be made"))?;
        if let Some(us) = options.host_poll_us {
            limit_polling(&fd, us)?;
        }
        let memory = map_memory(&fd, size)?;
        let mut cpus = (0..options.cpus)
            .map(|index| create_vcpu(&fd, index, options.pmu))
            .collect::<Result<Vec<_>, _>>()?;
        let exits = Exits::open(cpus.iter().map(|cpu| &cpu.fd));
        for (cpu, exits) in cpus.iter_mut().zip(exits) {
            cpu.exits = Some(exits);
        }
        let (gic, version) = gic::create(&fd, options.cpus)?;
        if options.pmu {
            cpus.iter().try_for_each(|cpu| pmu::init_pmu(&cpu.fd))?;
        }
        let affinities = cpus
            .iter()
            .map(|cpu| registers::get(&cpu.fd, registers::MPIDR_EL1).map(|id| id & AFFINITY))
            .collect::<Result<Vec<_>, _>>()
            .map_err(kvm_failure("/dev/kvm: MPIDR_EL1 can't be read"))?;
        let tree = tree::blob(&Guest {
            cpus: &affinities,
            gic: version,
            memory: size,
            arguments: &options.arguments(),
            initrd: files.initrd.as_ref().map(|initrd| {
                let start = loaded.initrd;
                start..start + initrd.len() as u64
            }),
            seed: options.seed,
            exits: cpus.iter().all(|cpu| cpu.exits.is_some()),
            console: Console::Ns16550,
            hypervisor: None,
        })
        .ok()
        .filter(|tree| tree.len() as u64 <= TREE_SIZE)
        .ok_or_else(|| Obstacle("the boot arguments don't fit a device tree; use fewer".into()))?;
        let initrd = files.initrd.as_deref().unwrap_or_default();
        for (what, bytes, at) in [
            ("the device tree", &*tree, loaded.tree),
            ("the image", &*files.image, loaded.image),
            ("the initial RAM disk", initrd, loaded.initrd),
        ] {
            let written = memory.write_slice(bytes, GuestAddress(at));
            written.map_err(|_| Obstacle(format!("{what} can't be put into the guest's RAM")))?;
        }
        set_start_registers(&cpus[0].fd, loaded)
            .map_err(kvm_failure("/dev/kvm: registers can't be set"))?;
        let vm = Self {
            fd: Arc::new(fd),
            _memory: memory,
            _gic: gic,
        };
        Ok((vm, cpus))
    }
}

/// Converts an error of KVM to an [`Obstacle`]; `what` names the failed operation and its place.
pub(super) fn kvm_failure(what: &'static str) -> impl Fn(errno::Error) -> Obstacle {
    move |error| {
        Obstacle(format!(
            "{what} ({error}); see what the host's kernel says of kvm"
        ))
    }
}

fn open() -> Result<Kvm, Obstacle> {
    Kvm::new().map_err(|error| {
        Obstacle(match error.errno() {
            libc::ENOENT | libc::ENODEV | libc::ENXIO => {
                "/dev/kvm is missing: this machine has no KVM, or started Linux below EL2; \
                 use a metal instance, or a virtual one with nested virtualization"
                    .into()
            }
            libc::EACCES | libc::EPERM => {
                "/dev/kvm may not be opened; run as root, or as a member of the group kvm".into()
            }
            _ => format!("/dev/kvm can't be opened ({error})"),
        })
    })
}

/// Limits the time that KVM polls before it halts a vCPU.
fn limit_polling(vm: &VmFd, us: u32) -> Result<(), Obstacle> {
    let capability = kvm_enable_cap {
        cap: KVM_CAP_HALT_POLL,
        args: [u64::from(us) * 1000, 0, 0, 0],
        ..Default::default()
    };
    vm.enable_cap(&capability).map_err(kvm_failure(
        "--host-poll-us: this KVM can't be told how long it polls",
    ))
}

/// Allocates RAM of `size` bytes and maps it into the guest.
fn map_memory(vm: &VmFd, size: u64) -> Result<GuestMemoryMmap, Obstacle> {
    let too_large = |why: &dyn std::fmt::Display| {
        Obstacle(format!(
            "--memory {}: this machine has not as much ({why}); use less",
            size / MIB
        ))
    };
    let start = GuestAddress(RAM);
    let memory = GuestMemoryMmap::<()>::from_ranges(&[(start, size as usize)])
        .map_err(|error| too_large(&error))?;
    let host = memory
        .get_host_address(start)
        .map_err(|error| too_large(&error))?;
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: RAM,
        memory_size: size,
        userspace_addr: host as u64,
    };
    // SAFETY: `size` bytes are mapped at `host`. The bytes stay mapped until `Vm` is dropped after the end of the
    // guest; until then, this program has no reference into them.
    unsafe { vm.set_user_memory_region(region) }.map_err(|error| too_large(&error))?;
    Ok(memory)
}

/// Creates vCPU `index`, which is off unless it is the first vCPU.
fn create_vcpu(vm: &VmFd, index: usize, has_pmu: bool) -> Result<Cpu, Obstacle> {
    let fd = vm
        .create_vcpu(index as u64)
        .map_err(kvm_failure("/dev/kvm: no vCPU can be made"))?;
    let mut model = kvm_vcpu_init::default();
    let initialized = vm.get_preferred_target(&mut model).and_then(|()| {
        model.features[0] |= 1 << KVM_ARM_VCPU_PSCI_0_2;
        if has_pmu {
            model.features[0] |= 1 << KVM_ARM_VCPU_PMU_V3;
        }
        if index > 0 {
            model.features[0] |= 1 << KVM_ARM_VCPU_POWER_OFF;
        }
        fd.vcpu_init(&model)
    });
    initialized.map_err(
        |error| match has_pmu && !vm.check_extension(Cap::ArmPmuV3) {
            true => pmu::missing_pmu(),
            false => kvm_failure("/dev/kvm: a vCPU can't be set up")(error),
        },
    )?;
    Ok(Cpu {
        index,
        fd,
        exits: None,
    })
}

/// Sets the first vCPU's registers to their values at the start.
fn set_start_registers(cpu: &VcpuFd, loaded: Loaded) -> Result<(), errno::Error> {
    registers::set(cpu, registers::PSTATE, START)?;
    registers::set(cpu, registers::x_number(0), loaded.tree)?;
    registers::set(cpu, registers::PC, loaded.image)
}
