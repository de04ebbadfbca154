// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creates the virtual machine (its memory, vCPUs and distributor), and loads the guest's
//! image.
//!
//! | guest physical address | what |
//! |---|---|
//! | `0x0800_0000` | distributor, emulated |
//! | `0x080a_0000` | redistributors, emulated, 0x20000 bytes per vCPU, for up to 123 vCPUs |
//! | `0x0801_0000` | the CPU interface of a GICv2: the CPU's GICV |
//! | `0x0900_0000` | PL011, emulated, output only |
//! | `0x0901_0000` | EL2's counters and knobs for programs of the guest |
//! | `0x1000_0000` | redistributors, if there are more than 123 vCPUs |
//! | `0x4000_0000` | RAM: device tree, then the image at 2 MiB + `text_offset`, or nearer ([`Image::placed`]) |
//!
//! The addresses are those of QEMU's `virt` machine, so that the same guest image boots with and
//! without a hypervisor.

use aarch64_cpu::registers::{ID_AA64MMFR0_EL1, Readable};
use arch::lock::Lock;
use arch::place::Place;
use arrayvec::ArrayVec;
use plan::{Arguments, Names};
use platform::guest::GuestTree;
use platform::image::Image;
use platform::index::Index;
use platform::{Conduit, GicV2, Region, Uart, UartKind};
use spin::once::Once;
use vgic::Distributor;
use vgic::version2::Target;

use crate::console::log;
use crate::cpu::percpu::PerCpu;
use crate::machine::latencies::{self, Latencies};
use crate::machine::payload::{self, Chosen};
use crate::machine::{Machine, machine};
use crate::{planted, refuse, stage};

/// Registers of the emulated distributor.
pub const DISTRIBUTOR: Region = Region {
    base: 0x0800_0000,
    size: 0x1_0000,
};
/// The CPU interface of a GICv2, in place of the redistributors.
pub const INTERFACE: Region = Region {
    base: 0x0801_0000,
    size: 0x2000,
};
/// Where the frames of the emulated redistributors begin, if all of them fit below the
/// UART.
const REDISTRIBUTORS: u64 = 0x080a_0000;
/// Where the frames begin otherwise: `virt` has PCI there, which a guest of Rouse does not have.
const MANY_REDISTRIBUTORS: u64 = 0x1000_0000;
/// Bytes of a redistributor's two frames.
pub const REDISTRIBUTOR_SIZE: u64 = 0x2_0000;
/// Registers of the emulated UART.
pub const UART: Region = Region {
    base: 0x0900_0000,
    size: 0x1000,
};
/// Registers of [`abi::exits`], in a page of the largest size that a guest can use.
pub const EXITS: Region = Region {
    base: 0x0901_0000,
    size: 0x1_0000,
};
const _: () = {
    let most = platform::MAX_CPUS as u64 * REDISTRIBUTOR_SIZE;
    assert!(MANY_REDISTRIBUTORS + most <= RAM, "they lie in RAM");
};
/// Start of RAM.
pub const RAM: u64 = 0x4000_0000;
/// Maximum size of the guest's device tree, in bytes.
pub const TREE_SIZE: usize = 0x2_0000;
const _: () = assert!(TREE_SIZE as u64 <= platform::image::ALIGN);

/// The one virtual machine.
pub struct Vm {
    /// CPUs that have a vCPU, in the order of the guest's description.
    pub cpus: &'static [&'static PerCpu],
    /// The CPU that EL2 keeps for itself, which has no vCPU.
    pub kept: Option<&'static PerCpu>,
    /// Frames of the vCPUs' emulated redistributors.
    pub redistributors: Region,
    /// With a GICv2: the vCPUs as targets of SPIs, in the order of `cpus`.
    pub targets: ArrayVec<Target, { GicV2::MAX_CPUS }>,
    /// The vCPUs' numbers by affinity.
    index: Index,
    /// The emulated distributor.
    pub distributor: Lock<Distributor>,
    /// RAM as the guest addresses it.
    pub ram: Region,
    /// Where the guest's first vCPU starts.
    pub entry: u64,
    /// Where the guest's device tree is.
    pub tree: u64,
    /// Exit latencies of the idle states that the guest enters by PSCI.
    pub latencies: Latencies,
}

static VM: Once<Vm> = Once::new();

/// Storage of [`Vm::cpus`].
static CPUS: Place<ArrayVec<&'static PerCpu, { platform::MAX_CPUS }>> =
    Place::new(ArrayVec::new_const());

/// Returns the frames for `cpus` emulated redistributors, one per vCPU.
const fn redistributor_frames(cpus: usize) -> Region {
    let size = cpus as u64 * REDISTRIBUTOR_SIZE;
    let base = match size <= UART.base - REDISTRIBUTORS {
        true => REDISTRIBUTORS,
        false => MANY_REDISTRIBUTORS,
    };
    Region { base, size }
}

/// Returns the virtual machine.
///
/// # Panics
/// Panics if [`create`] has not run.
#[inline]
pub fn vm() -> &'static Vm {
    VM.get().expect("vCPUs run after the machine was created")
}

/// Whether the virtual machine has been created.
pub fn is_created() -> bool {
    VM.is_completed()
}

impl Vm {
    /// Returns the CPU of the vCPU with affinity `mpidr`, and the number of that vCPU.
    pub fn find(&self, mpidr: u64) -> Option<(usize, &'static PerCpu)> {
        let number = self.index.find(mpidr, |number| self.cpus[number].mpidr)?;
        Some((number, self.cpus[number]))
    }
}

/// Byte offsets, in the guest's RAM, of its contents when the guest starts.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// The guest's image.
    pub image: u64,
    /// The guest's device tree, of [`TREE_SIZE`] bytes.
    pub tree: u64,
    /// The end of the contents that begin at the start of the RAM: the image's file and the tree.
    pub loaded: u64,
    /// The guest's initial RAM disk, which ends where the RAM does; the end of the RAM if there is no disk.
    pub initrd: u64,
}

/// Finds places in `ram` for the guest's image, which is `file`, and for its initial RAM disk of
/// `initrd` bytes. Refuses a guest that can't run in that much RAM or on these CPUs.
pub fn place_images(file: Region, initrd: u64, ram: Region) -> Places {
    // SAFETY: the packer put the image there, it is mapped, and nothing writes to it.
    let bytes = unsafe { core::slice::from_raw_parts(file.base as *const u8, file.size as usize) };
    let image = Image::parse(bytes).unwrap_or_else(|error| refuse!("the guest {error}"));
    let granule = image
        .granule
        .filter(|granule| !granule.is_in(ID_AA64MMFR0_EL1.get()));
    if let Some(granule) = granule {
        refuse!(
            "the guest has pages of {0} KiB, and this CPU has none of these (ID_AA64MMFR0_EL1.TGran{0}); \
             use a guest with others, or another CPU",
            granule.kib()
        );
    }
    let placed = image.placed(file.size, TREE_SIZE as u64);
    let initrd = initrd.next_multiple_of(pages::PAGE);
    let needs = placed.end.saturating_add(initrd);
    if needs > ram.size {
        refuse!(
            "the guest needs {} KiB of RAM in one piece, and {} are free; give the machine more memory",
            needs >> 10,
            ram.size >> 10
        );
    }
    Places {
        image: placed.image,
        tree: placed.tree,
        loaded: (placed.image + file.size).max(placed.tree + TREE_SIZE as u64),
        initrd: ram.size - initrd,
    }
}

/// Zeroes the guest's RAM, so that the guest can't read its former contents. The zeros go to memory
/// and not only to the caches, which a guest does not use at first.
fn zero_ram(ram: Region) {
    planted::before_scrub(ram);
    pages::zero(ram);
}

/// Creates the virtual machine: copies the image that `arguments` ask for, or else the best one,
/// into its RAM, and writes its device tree there.
pub fn create(machine: &Machine, arguments: &Arguments<'_, Names>) {
    let Chosen {
        image,
        initrd,
        choice,
    } = payload::choose_image(arguments.plan.atomics);
    log::with_line(|line| line.set_source(payload::output_source()));
    let ram = machine.guest;
    let places = place_images(image, initrd.map_or(0, |initrd| initrd.size), ram);
    let offset = places.image;
    // The stage is reported beforehand, because clearing a server's RAM takes seconds.
    stage!("scrub", "clearing {} MiB, the guest's RAM", ram.size >> 20);
    zero_ram(ram);
    let online = machine.cpus.iter().copied().filter(|cpu| cpu.is_online());
    // SAFETY: there is one virtual machine, and it is created once.
    let cpus = unsafe { CPUS.take() };
    cpus.extend(online);
    let kept = if arguments.keep_cpu {
        keep_cpu_for_el2(cpus)
    } else {
        None
    };
    let vm = VM.call_once(|| Vm {
        distributor: Lock::new(new_distributor(machine, cpus.len())),
        redistributors: match machine.platform.gic.version2 {
            Some(_) => Region { base: 0, size: 0 },
            None => redistributor_frames(cpus.len()),
        },
        targets: match machine.platform.gic.version2 {
            Some(_) => targets(cpus),
            None => ArrayVec::new(),
        },
        ram: Region {
            base: RAM,
            size: ram.size,
        },
        entry: RAM + offset,
        tree: RAM + places.tree,
        latencies: Latencies::from_states(arguments.guest_states.as_ref()),
        index: Index::new(cpus.iter().map(|cpu| cpu.mpidr)),
        cpus,
        kept,
    });
    // SAFETY: nothing but the guest uses its RAM, which is mapped and was checked to be large
    // enough, and no vCPU runs yet.
    unsafe {
        pages::copy(image, ram.base + offset);
        if let Some(initrd) = initrd {
            pages::copy(initrd, ram.base + places.initrd);
        }
        let tree = core::slice::from_raw_parts_mut((ram.base + places.tree) as *mut u8, TREE_SIZE);
        let initrd = initrd.map(|initrd| Region {
            base: RAM + places.initrd,
            ..initrd
        });
        write_tree(vm, machine, arguments, initrd, tree);
    }
    // The guest starts with its caches off, and no CPU may hold instructions that it fetched from this RAM earlier.
    let used = [
        (0, places.loaded),
        (places.initrd, ram.size - places.initrd),
    ];
    pages::evict(used.map(|(from, size)| Region {
        base: ram.base + from,
        size,
    }));
    let (size, entry) = (image.size, vm.entry);
    match choice {
        Some(choice) => stage!("guest", "{size} bytes at IPA {entry:#x}{choice}"),
        None => stage!("guest", "{size} bytes at IPA {entry:#x}"),
    }
}

/// Creates the distributor for `cpus` vCPUs, in the version of the machine's GIC.
fn new_distributor(machine: &Machine, cpus: usize) -> Distributor {
    let mut distributor = Distributor::new(cpus);
    if machine.platform.gic.version2.is_some() {
        distributor.become_version2();
    }
    distributor
}

/// Returns the vCPUs as targets of SPIs, and lets them send SGIs to each other.
fn targets(cpus: &[&PerCpu]) -> ArrayVec<Target, { GicV2::MAX_CPUS }> {
    let targets: ArrayVec<_, _> = cpus
        .iter()
        .map(|cpu| Target {
            interface: cpu.version2.number(),
            affinity: cpu.mpidr,
        })
        .collect();
    let all = targets.iter().fold(0, |all, cpu| all | 1 << cpu.interface);
    cpus.iter().for_each(|cpu| cpu.version2.set_targets(all));
    targets
}

/// Takes the last of `cpus` for EL2, unless this would leave the guest fewer than two CPUs: most
/// measurements need two.
fn keep_cpu_for_el2(
    cpus: &mut ArrayVec<&'static PerCpu, { platform::MAX_CPUS }>,
) -> Option<&'static PerCpu> {
    const LEFT: usize = 2;
    let kept = (cpus.len() > LEFT).then(|| cpus.pop()).flatten();
    match kept {
        Some(cpu) => stage!("keep", "CPU {:#x} watches and has no vCPU", cpu.mpidr),
        None => stage!("keep", "no CPU is kept: there are only {}", cpus.len()),
    }
    kept
}

/// Returns how the guest calls firmware: through SMC, as it would without a hypervisor, if SMC
/// works. Without EL3, SMC is UNDEFINED, whether or not EL2 traps SMC (DDI 0487K.a, C6.2.328); such
/// a machine has no firmware to call through SMC.
fn guest_conduit(machine: &Machine) -> Conduit {
    match machine.platform.psci {
        Some(Conduit::Smc) => Conduit::Smc,
        Some(Conduit::Hvc) | None => Conduit::Hvc,
    }
}

fn write_tree(
    vm: &Vm,
    machine: &Machine,
    arguments: &Arguments<'_, Names>,
    initrd: Option<Region>,
    buffer: &mut [u8],
) {
    let states = latencies::idle_states(arguments.guest_states.as_ref());
    let frames = &[vm.redistributors];
    let tree = GuestTree {
        cpus: vm.cpus.iter().map(|cpu| cpu.mpidr),
        memory: vm.ram,
        distributor: DISTRIBUTOR,
        version2: machine.platform.gic.version2.map(|_| GicV2 {
            gicc: INTERFACE,
            virt: None,
        }),
        redistributors: match machine.platform.gic.version2 {
            Some(_) => &[],
            None => frames,
        },
        stride: None,
        uart: Some(Uart {
            kind: UartKind::Pl011,
            base: UART.base,
        }),
        timer: machine.platform.timer,
        conduit: Some(guest_conduit(machine)),
        // No name is given here: the guest learns the name of its hypervisor through a call.
        hypervisor: None,
        described_by: machine.platform.described_by,
        exits: Some((abi::exits::COMPATIBLE, EXITS)),
        idle_states: &states,
        seed: arguments.seed,
        initrd,
        bootargs: plan::guest_part(machine.platform.bootargs),
    };
    if tree.write(buffer).is_err() {
        refuse!(
            "the guest's device tree has more than {TREE_SIZE} bytes; give fewer boot arguments"
        );
    }
}

/// Returns a pointer to the `T` at guest physical `address`; `None` unless the address is aligned and the `T` is in
/// RAM, which is mapped and stays mapped.
pub fn ram_pointer<T>(address: u64) -> Option<*const T> {
    let last = address.checked_add(size_of::<T>() as u64 - 1)?;
    let inside = vm().ram.contains(address) && vm().ram.contains(last);
    (inside && address.is_multiple_of(align_of::<T>() as u64))
        .then(|| (machine().guest.base + (address - RAM)) as *const T)
}
