// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares the machine, from the first Rust instruction to the first instruction of the guest.

use core::sync::atomic::Ordering::SeqCst;

use aarch64_cpu::registers::{CNTPCT_EL0, CNTV_CVAL_EL0, Readable, TPIDR_EL0, Writeable};
use arch::{insn, layout};
use plan::{Arguments, Names};
use platform::Platform;

use crate::boot::discovery::{
    Discovered, Level, Unfit, check_usable, find_el, from_tree, is_e2h_clear, open_console, report,
};
use crate::boot::memory_split::split_ram;
use crate::boot::{efi, smp, survey, watchdogs};
use crate::console::log;
use crate::cpu::percpu::PerCpu;
use crate::cpu::{controls, gicv2, pending_word};
use crate::dumps::{deadline, own_timer, serror};
use crate::exits::enter;
use crate::interrupts::vgic_cpu;
use crate::machine::memory::{self, EL2_REGIME};
use crate::machine::power::{note_conduit, turn_machine_off};
use crate::machine::{self, machine, payload, vm};
use crate::{planted, refuse, say, stage};

/// Checks that the counter runs, because the waits during boot rely on the counter to end.
///
/// Refuses a machine whose counter stands still.
fn check_counter() {
    /// Number of reads before a counter is refused: on any machine, they take far longer than a tick.
    const PATIENCE: u32 = 1_000_000;
    let counter = || planted::counter_at_start().unwrap_or_else(|| CNTPCT_EL0.get());
    let first = counter();
    if !(0..PATIENCE).any(|_| counter() != first) {
        refuse!(
            "counter: CNTPCT_EL0 stands still at {first:#x}; the firmware has to enable the system counter"
        );
    }
}

/// Starts the hypervisor, on the first CPU with MMU and caches off, on the boot stack.
#[unsafe(no_mangle)]
extern "C" fn el2_start(dtb: u64) -> ! {
    let discovered = from_tree(dtb);
    take_over_machine(&discovered)
}

/// Like [`el2_start`], for a machine that [`efi`] has described.
#[unsafe(no_mangle)]
extern "C" fn el2_start_described() -> ! {
    efi::print_kept_refusal();
    take_over_machine(efi::description())
}

/// Runs if the image was entered at neither EL2 nor EL1, and refuses the machine.
#[unsafe(no_mangle)]
extern "C" fn el2_missing(dtb: u64) -> ! {
    let mut discovered = from_tree(dtb);
    let (arguments, _) = Arguments::<Names>::read(discovered.platform.bootargs);
    open_console(&mut discovered.platform, arguments.uart);
    if let Err(unfit) = find_el() {
        say!("refused: {unfit}");
    }
    turn_machine_off()
}

/// Opens the console. Returns the machine, the boot arguments, and an error in these arguments.
pub fn open_machine(
    discovered: &Discovered,
) -> (
    Platform<'static>,
    Arguments<'static, Names>,
    Option<plan::Error<'static>>,
) {
    let mut platform = discovered.platform.clone();
    note_conduit(platform.psci);
    let (arguments, wrong) = Arguments::<Names>::read(platform.bootargs);
    open_console(&mut platform, arguments.uart);
    let wrong = wrong.or(planted::read_arguments(&arguments));
    (platform, arguments, wrong)
}

/// Takes the machine over, on the first CPU with MMU and caches off.
fn take_over_machine(discovered: &Discovered) -> ! {
    let (mut platform, arguments, wrong) = open_machine(discovered);
    say!("hypervisor {} at EL2", env!("CARGO_PKG_VERSION"));
    say!("base hypervisor {:#x}", layout::base());
    if let Err(unfit) = find_el() {
        refuse!("{unfit}");
    }
    if !is_e2h_clear() {
        refuse!("{}", Unfit::NoE2h0);
    }
    if let Some(wrong) = wrong {
        say!("refused: boot arguments: {wrong}");
        turn_machine_off();
    }
    check_usable(&platform, Level::El2).unwrap_or_else(|why| refuse!("{why}"));
    check_counter();
    deadline::set_deadlines(arguments.deadline, arguments.cell_deadline);
    report(discovered, &platform);
    watchdogs::stop(&platform, arguments.keep_watchdogs);
    if let Err(name) = arguments.leave.map_or(Ok(()), controls::note_left_alone) {
        refuse!("rouse.leave={name}: not a register that firmware may keep");
    }
    controls::try_optional_writes();
    if let Some(version2) = &mut platform.gic.version2 {
        // SAFETY: the description names the interfaces, which were checked to be outside of RAM, and the MMU is off.
        let read = |register| unsafe { gic::version2::read_register(register) };
        *version2 = version2.with_adjacent_pages(read);
        if let Some(why) = version2.lacks_second_page(read) {
            refuse!("{why}");
        }
        // SAFETY: MMU and caches are off, the other CPUs are off or held, and loaders put an image into
        // writable RAM.
        unsafe { arch::gicv2::adapt() };
        arch::gicv2::REGISTERS.set_access(gicv2::access_register);
        gic::version2::record_registers(platform.gic.distributor.base, version2);
    }
    let machine = split_ram(platform, discovered, arguments.plan.neighbours);
    stage!(
        "memory",
        "guest {:#x}..{:#x}",
        machine.guest.base,
        machine.guest.end()
    );
    // SAFETY: `split_ram` mapped the image, the boot stack in it included.
    unsafe { memory::enable_translation(&EL2_REGIME) };
    // Publishing is an exclusive access, which needs cacheable memory, so it comes after the caches are turned on.
    let machine = machine::set_machine(machine);
    log::enable_locking();
    machine.cpus[0].make_current();
    serror::take_leftover(machine.cpus[0]);
    let audit = memory::audit_el2_map();
    stage!(
        "mmu",
        "stage 1 on, {} bytes of code, {} that can be written, none both",
        audit.executable,
        audit.writable
    );
    let virt = machine.platform.gic.version2.and_then(|gic| gic.virt);
    let gicv = virt.map(|[_, gicv]| gicv);
    memory::audit_guest_map(machine.stage2.0, machine.guest, gicv);
    memory::audit_guest_map(machine.closed, machine.guest, None);
    // SAFETY: the description is true and `split_ram` mapped the distributor.
    let spis = unsafe { gic::enabled_spis(&machine.platform.gic) };
    // SAFETY: as above.
    unsafe { gic::enable_distributor(&machine.platform.gic) }
        .unwrap_or_else(|error| refuse!("{error}"));
    prepare_cpu(machine.cpus[0]);
    smp::start_others(machine);
    vgic_cpu::show_secure();
    if arguments.survey {
        survey::print_survey(machine, discovered, spis);
    }
    vm::create(machine, &arguments);
    if let Some(kept) = vm::vm().kept {
        vgic_cpu::disable_sgis(kept);
    }
    // Each CPU set its timer before EL2 knew which CPUs check for failures.
    schedule_checks();
    run_guest(machine.cpus[0])
}

/// Makes each CPU with a vCPU decide again when it next checks for failures.
fn schedule_checks() {
    for cpu in vm::vm().cpus {
        cpu.vcpu
            .switch
            .word()
            .fetch_or(pending_word::REVIEW, SeqCst);
        // The bit has to be visible before the doorbell is. This CPU takes its own doorbell when it
        // enters the guest.
        insn::dsb_ishst();
        cpu.doorbell.ring();
    }
}

/// Runs the guest's first vCPU on this CPU.
fn run_guest(cpu: &PerCpu) -> ! {
    planted::before_guest();
    let turned = cpu.vcpu.turn_on(vm::vm().entry, vm::vm().tree);
    assert!(
        turned.is_ok(),
        "the first vCPU is on before it was turned on"
    );
    stage!("enter", "guest at {:#x}", vm::vm().entry);
    enter::wait_for_power()
}

/// Sets up the private parts of each CPU: TLBs, GIC interfaces, EL2 timer.
fn prepare_cpu(cpu: &'static PerCpu) {
    let machine = machine();
    // An earlier hypervisor may have used any VMID, and a reset need not invalidate TLBs (DDI
    // 0487K.a, D8.16).
    insn::tlbi_alle1();
    insn::dsb_nsh();
    // A neighbour's turn saves the timers' registers, which the guest need not have written: they
    // are UNKNOWN after the reset (DDI 0487K.a, D24.1.2.1).
    CNTV_CVAL_EL0.set(0);
    TPIDR_EL0.set(0);
    // SAFETY: the description is true, the frames are mapped, and this CPU is
    // the only one that touches its own redistributor before it reports in.
    unsafe { vgic_cpu::prepare_cpu(cpu, &machine.platform) }
        .unwrap_or_else(|error| refuse!("CPU {:#x}: {error}", cpu.mpidr));
    payload::note_lse();
    own_timer::review_next_check(cpu);
    cpu.set_online();
}

/// Runs on each other CPU, on its own stack, with MMU and caches on.
#[unsafe(no_mangle)]
extern "C" fn el2_start_secondary() -> ! {
    let cpu = PerCpu::this();
    serror::take_leftover(cpu);
    prepare_cpu(cpu);
    enter::wait_for_power()
}
