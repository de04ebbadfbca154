// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the first Rust instruction to a machine that can run a guest.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTFRQ_EL0, ID_AA64PFR0_EL1, MPIDR_EL1, Readable};
use arch::layout;
use arrayvec::ArrayVec;
use plan::{Arguments, Names};
use platform::{Conduit, Platform, Region};
use spin::once::Once;

use crate::divide::divide;
use crate::found::{Found, fit, from_tree, open_console, report};
use crate::memory::{self, EL2_REGIME};
use crate::percpu::PerCpu;
use crate::{efi, fault, log, refuse, say, smp, stage, survey, vcpu, vgic_cpu, vm};

/// What stays of the machine's description once it was read.
pub struct Machine {
    /// As the firmware describes it.
    pub platform: Platform<'static>,
    /// RAM that is the guest's.
    pub guest: Region,
    /// State of each CPU, in the order of `platform.cpus`.
    pub cpus: ArrayVec<&'static PerCpu, { platform::MAX_CPUS }>,
    /// VTTBR_EL2 and VTCR_EL2 of the guest's map.
    pub stage2: (u64, u64),
    /// Frequency of the counter, Hz.
    pub frequency: u64,
}

impl Machine {
    /// `nanoseconds` in ticks of the counter.
    pub fn ticks(&self, nanoseconds: u64) -> u64 {
        (u128::from(nanoseconds) * u128::from(self.frequency) / 1_000_000_000) as u64
    }
}

static MACHINE: Once<Machine> = Once::new();

/// The machine.
///
/// # Panics
/// Panics before [`el2_start`] has read the description.
pub fn machine() -> &'static Machine {
    MACHINE
        .get()
        .expect("the machine is described before anything asks")
}

/// Makes sure that there is time: every wait of the start ends by the counter.
///
/// A counter without a frequency, or one that stands still, is refused.
fn check_counter() {
    /// Looks at it: far more than a tick takes on any machine.
    const PATIENCE: u32 = 1_000_000;
    if CNTFRQ_EL0.get() == 0 {
        refuse!("counter: CNTFRQ_EL0 is 0; the firmware has to set it");
    }
    let first = fault::counter();
    if !(0..PATIENCE).any(|_| fault::counter() != first) {
        refuse!(
            "counter: CNTPCT_EL0 stands still at {first:#x}; the firmware has to enable the system counter"
        );
    }
}

/// Runs on the first CPU with MMU and caches off, on the boot stack.
#[unsafe(no_mangle)]
extern "C" fn el2_start(dtb: u64) -> ! {
    let found = from_tree(dtb);
    take_over(&found)
}

/// As [`el2_start`], for a machine that [`crate::efi`] has described.
#[unsafe(no_mangle)]
extern "C" fn el2_start_described() -> ! {
    take_over(efi::found())
}

/// Runs at another level than EL2, to say so.
#[unsafe(no_mangle)]
extern "C" fn el2_missing(dtb: u64) -> ! {
    let mut found = from_tree(dtb);
    let (arguments, _) = Arguments::<Names>::read(found.platform.bootargs);
    open_console(&mut found.platform, arguments.uart);
    if let Err(unfit) = fit() {
        say!("refused: {unfit}");
    }
    stop()
}

/// Takes the machine over, on the first CPU with MMU and caches off.
fn take_over(found: &Found) -> ! {
    let mut platform = found.platform.clone();
    note_conduit(platform.psci);
    let (arguments, wrong) = Arguments::<Names>::read(platform.bootargs);
    open_console(&mut platform, arguments.uart);
    fault::ask(arguments.fault);
    say!("hypervisor {} at EL2", env!("CARGO_PKG_VERSION"));
    say!("base hypervisor {:#x}", layout::base());
    if let Err(unfit) = fit() {
        refuse!("{unfit}");
    }
    // By GIC, bits 27:24, the PE has the system registers of a GICv3 (DDI 0487K.a,
    // D23.2.85).
    if ID_AA64PFR0_EL1.get() >> 24 & 15 == 0 {
        refuse!(
            "GIC: this CPU has no registers of a GICv3 (ID_AA64PFR0_EL1.GIC is 0), which Rouse needs"
        );
    }
    if let Some(wrong) = wrong {
        say!("refused: boot arguments: {wrong}");
        stop();
    }
    check_counter();
    platform.begin_with(MPIDR_EL1.get() & platform::AFFINITY);
    report(found, &platform);
    let machine = divide(platform, found);
    stage!(
        "memory",
        "guest {:#x}..{:#x}",
        machine.guest.base,
        machine.guest.end()
    );
    // SAFETY: `divide` mapped the image, the boot stack in it included.
    unsafe { memory::enter(&EL2_REGIME) };
    // Not before: it is an exclusive access, which needs cacheable memory.
    let machine = MACHINE.call_once(|| machine);
    log::enable_locking();
    machine.cpus[0].install();
    let audit = memory::audit();
    stage!(
        "mmu",
        "stage 1 on, {} bytes of code, {} that can be written, none both",
        audit.executable,
        audit.writable
    );
    memory::audit_guest(machine.stage2.0, machine.guest);
    // SAFETY: the description is true and `divide` mapped the distributor.
    unsafe { gic::enable_distributor(&machine.platform.gic) }
        .unwrap_or_else(|error| refuse!("{error}"));
    prepare(machine.cpus[0]);
    smp::start_others(machine);
    if arguments.survey {
        survey::print(machine, found);
    }
    vm::create(machine);
    run_guest(machine.cpus[0])
}

/// Runs the guest's first vCPU on this CPU.
fn run_guest(cpu: &PerCpu) -> ! {
    fault::before_guest();
    let turned = cpu.vcpu.turn_on(vm::vm().entry, vm::RAM);
    assert!(
        turned.is_ok(),
        "the first vCPU is on before it was turned on"
    );
    stage!("enter", "guest at {:#x}", vm::vm().entry);
    vcpu::wait_for_power()
}

/// Sets up what each CPU has of its own: GIC interfaces, EL2 timer.
fn prepare(cpu: &'static PerCpu) {
    let machine = machine();
    // SAFETY: the description is true, the frames are mapped, and this CPU is
    // the only one that touches its own redistributor before it reports in.
    unsafe { vgic_cpu::prepare(cpu, &machine.platform) }
        .unwrap_or_else(|error| refuse!("CPU {:#x}: {error}", cpu.mpidr));
    cpu.set_online();
}

/// Runs on each other CPU, on its own stack, with MMU and caches on.
#[unsafe(no_mangle)]
extern "C" fn el2_start_secondary() -> ! {
    prepare(PerCpu::this());
    vcpu::wait_for_power()
}

/// How the firmware is called, as soon as that is known: 1 is SMC, 2 is HVC. Not
/// a lock, because those are exclusive accesses.
static CONDUIT: AtomicU32 = AtomicU32::new(0);

/// Notes how the firmware is called, for [`stop`].
pub fn note_conduit(conduit: Option<Conduit>) {
    let number = match conduit {
        None => 0,
        Some(Conduit::Smc) => 1,
        Some(Conduit::Hvc) => 2,
    };
    CONDUIT.store(number, Relaxed);
}

fn conduit() -> Option<Conduit> {
    match CONDUIT.load(Relaxed) {
        1 => Some(Conduit::Smc),
        2 => Some(Conduit::Hvc),
        _ => None,
    }
}

/// Ends the machine: PSCI SYSTEM_OFF, [`console::END`] where there is none, and a halt
/// where that does not return.
pub fn stop() -> ! {
    off(smp::SYSTEM_OFF)
}

/// Resets the machine: PSCI SYSTEM_RESET, and a halt where that does not return.
pub fn reset() -> ! {
    off(smp::SYSTEM_RESET)
}

fn off(function: u64) -> ! {
    if log::uses_firmware() {
        efi::shut_down();
    }
    if let Some(conduit) = conduit() {
        smp::psci(conduit, function, 0, 0, 0);
    }
    log::print_unlocked(format_args!("{}", console::END));
    loop {
        arch::insn::wfi();
    }
}
