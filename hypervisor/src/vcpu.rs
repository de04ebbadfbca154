// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU: one per physical CPU, pinned. Its EL1 state stays in the EL1
//! registers, so there is nothing here to save or load but what EL2 emulates.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTV_CTL_EL0, CNTVOFF_EL2, CPACR_EL1, ELR_EL2, HCR_EL2, ID_AA64MMFR1_EL1,
    MIDR_EL1, MPIDR_EL1, Readable, SCTLR_EL1, SPSR_EL2, VMPIDR_EL2, VTCR_EL2, VTTBR_EL2, Writeable,
};
use abi::{Counter, End, Trap};
use arch::insn;
use arch::regs::{CNTKCTL_EL1, MDSCR_EL1, VPIDR_EL2};
use spin::mutex::SpinMutex;
use vgic::Private;

use crate::console::Console;
use crate::controls::HCR_GUEST;
use crate::counters::Counters;
use crate::percpu::{Line, Local, PerCpu};
use crate::shortcuts::{self, Shortcuts, Waits};
use crate::start::machine;
use crate::trace::{self, Ring};
use crate::wfx::Halt;
use crate::{controls, deliver, ending, irq, vgic_cpu};

/// FMO and IMO: interrupts are EL2's, and the guest has the virtual interface.
const HCR_INJECT: u64 = 1 << 3 | 1 << 4;
const HCR_TWI: u64 = 1 << 13;
const HCR_TWE: u64 = 1 << 14;
/// TWEDEn, with TWEDEL 0: where the PE has FEAT_TWED, a WFE waits 2^8 cycles
/// before it traps, so that one that is about to end by itself does not exit.
const HCR_TWED: u64 = 1 << 59;
/// SCTLR_EL1 at the entry of a vCPU: the RES1 bits, MMU and caches off.
const SCTLR_EL1_RESET: u64 = 0x30d0_0800;
/// EL1 with SP_EL1, all interrupts masked.
const SPSR_RESET: u64 = 0x3c5;

/// vCPUs that are on or about to be. Only one that is on turns another on: once
/// there is none, there will be none.
static ON: AtomicU32 = AtomicU32::new(0);

/// Power states of a vCPU.
mod power {
    pub const OFF: u32 = 0;
    /// Somebody turns it on and writes entry and context.
    pub const CLAIMED: u32 = 1;
    pub const ON_PENDING: u32 = 2;
    pub const ON: u32 = 3;
}

/// Why a vCPU was not turned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOff {
    /// It runs.
    On,
    /// It is about to.
    Pending,
}

/// One vCPU. First what only its own CPU touches, what every exit uses before
/// the rest; then what others write, on lines of its own, so that their writes
/// take no line away that this CPU is about to use.
#[repr(C, align(64))]
pub struct Vcpu {
    /// What is handled in assembly.
    pub shortcuts: Shortcuts,
    /// Exits and events.
    pub counters: Counters,
    /// Its list registers and what waits for one.
    pub list: Local<vgic::List>,
    /// What else a trapped WFI in assembly looks at.
    pub waits: Waits,
    /// How EL2 waits for it in a trapped WFI.
    pub halt: Local<Halt>,
    /// What it did last, if that is traced.
    pub trace: Ring,
    /// Accesses to addresses where nothing is.
    pub refused: AtomicU64,
    /// Output that is not yet a line.
    pub console: Local<Console>,
    /// Virtual interrupts and requests that others left here; see [`crate::kick`].
    pub mailbox: Line<AtomicU32>,
    /// The registers of its redistributor.
    pub private: Private,
    /// The guest owns the CPU interface; see [`deliver`].
    pub direct: AtomicBool,
    /// Timers' interrupts that were made pending physically because software set
    /// them so.
    pub lines_set: AtomicU32,
    /// Held while the physical redistributor changes hands, and while its
    /// registers are written for the guest.
    pub switching: SpinMutex<()>,
    power: AtomicU32,
    entry: AtomicU64,
    context: AtomicU64,
}

// The exits that are measured find what they need of a vCPU on its first lines,
// and what others write begins on another.
const _: () = assert!(offset_of!(Vcpu, list) <= 4 * 64);
const _: () = assert!(offset_of!(Vcpu, mailbox).is_multiple_of(64));
const _: () = assert!(align_of::<Vcpu>() == 64);

impl Vcpu {
    /// A vCPU that is off.
    pub fn new() -> Self {
        Self {
            shortcuts: Shortcuts::new(),
            counters: Counters::new(),
            list: Local::new(vgic::List::new()),
            waits: Waits::new(),
            halt: Local::new(Halt::new()),
            trace: Ring::new(),
            refused: AtomicU64::new(0),
            console: Local::new(Console::new()),
            mailbox: Line(AtomicU32::new(0)),
            private: Private::new(),
            direct: AtomicBool::new(false),
            lines_set: AtomicU32::new(0),
            switching: SpinMutex::new(()),
            power: AtomicU32::new(power::OFF),
            entry: AtomicU64::new(0),
            context: AtomicU64::new(0),
        }
    }

    /// How often `counter` happened, in assembly or not.
    pub fn count(&self, counter: Counter) -> u64 {
        let short = match counter {
            Counter::Wfi | Counter::Halt => self.shortcuts.halted.load(Relaxed),
            _ => 0,
        };
        // A WFI that halted took its interrupt on the way; there it is counted.
        let listed = match counter {
            Counter::Irq | Counter::Listed => self.shortcuts.listed.load(Relaxed),
            _ => 0,
        };
        self.counters.get(counter) + short + listed
    }

    /// Turns it on at `entry` with x0 = `context`.
    pub fn turn_on(&self, entry: u64, context: u64) -> Result<(), NotOff> {
        let claim = self
            .power
            .compare_exchange(power::OFF, power::CLAIMED, AcqRel, Acquire);
        match claim {
            Ok(_) => {
                // It counts before it can run, so before it can turn itself off. The
                // caller is on meanwhile: the count can't reach zero before this.
                ON.fetch_add(1, Relaxed);
                self.entry.store(entry, Relaxed);
                self.context.store(context, Relaxed);
                self.power.store(power::ON_PENDING, Release);
                Ok(())
            }
            Err(power::ON) => Err(NotOff::On),
            Err(_) => Err(NotOff::Pending),
        }
    }

    /// Whether it is on, `None` in between.
    pub fn is_on(&self) -> Option<bool> {
        match self.power.load(Acquire) {
            power::OFF => Some(false),
            power::ON => Some(true),
            _ => None,
        }
    }
}

unsafe extern "C" {
    /// Empties the EL2 stack, clears the general registers and enters the
    /// guest as ELR_EL2 and SPSR_EL2 say, with x0 = `context`.
    fn el2_enter_guest(context: u64, stack_top: u64) -> !;
    /// Empties the EL2 stack and waits to be turned on.
    fn el2_park(stack_top: u64) -> !;
}

core::arch::global_asm!(
    r#"
    .section .text.enter, "ax"
el2_enter_guest:
    mov     sp, x1
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    mov     x\n, #0
    .endr
    eret

el2_park:
    mov     sp, x0
    bl      {wait}
    udf     #0
    "#,
    wait = sym wait_for_power,
);

/// Turns this CPU's vCPU off and waits until it is turned on again; with the last
/// one, the machine ends.
pub fn turn_off(cpu: &PerCpu) -> ! {
    deliver::reclaim(cpu);
    if ON.fetch_sub(1, AcqRel) == 1 {
        ending::end(cpu, End::NoCpu);
    }
    ending::flush(cpu);
    cpu.vcpu.power.store(power::OFF, Release);
    // SAFETY: nothing on this stack is needed again.
    unsafe { el2_park(cpu.stack_top) }
}

/// Waits with interrupts masked until the vCPU is to run, then runs it.
pub extern "C" fn wait_for_power() -> ! {
    let cpu = PerCpu::this();
    loop {
        if cpu.vcpu.power.load(Acquire) == power::ON_PENDING {
            run(cpu);
        }
        insn::wfi();
        while irq::take(cpu) {}
    }
}

fn run(cpu: &PerCpu) -> ! {
    reset_el1();
    let vcpu = &cpu.vcpu;
    ELR_EL2.set(vcpu.entry.load(Relaxed));
    SPSR_EL2.set(SPSR_RESET);
    vcpu.direct.store(false, Relaxed);
    set_trap(Trap::NONE);
    vcpu.power.store(power::ON, Release);
    shortcuts::review_wait(cpu);
    vgic_cpu::evaluate(cpu);
    // No ISB: the exception return into the guest is a context synchronization
    // event (DDI 0487K.a, D1.4.1).
    // SAFETY: ELR and SPSR lead to EL1, and nothing on this stack is needed again.
    unsafe { el2_enter_guest(vcpu.context.load(Relaxed), cpu.stack_top) }
}

/// The EL1 and EL2 registers as PSCI promises them to a CPU that is turned on
/// (DEN0022F.b, 6.4).
fn reset_el1() {
    let (vttbr, vtcr) = machine().stage2;
    VTTBR_EL2.set(vttbr);
    VTCR_EL2.set(vtcr);
    VPIDR_EL2.set(MIDR_EL1.get());
    VMPIDR_EL2.set(MPIDR_EL1.get());
    controls::set_up();
    CNTVOFF_EL2.set(0);
    CNTKCTL_EL1.set(0);
    CNTV_CTL_EL0.set(0);
    CNTP_CTL_EL0.set(0);
    MDSCR_EL1.set(0);
    SCTLR_EL1.set(SCTLR_EL1_RESET);
    CPACR_EL1.set(0);
    // The TLBI is for the VMID that VTTBR_EL2 names, as of this ISB; its effect is
    // certain only after the DSB (DDI 0487K.a, D8.17.5), of this PE's own TLB.
    insn::isb();
    insn::tlbi_vmalle1();
    insn::dsb_nsh();
}

/// Sets which waits trap; routes interrupts as [`Vcpu::direct`] says.
pub fn set_trap(trap: Trap) {
    let direct = PerCpu::this().vcpu.direct.load(Relaxed);
    let mut hcr = HCR_GUEST;
    hcr |= if direct { 0 } else { HCR_INJECT };
    hcr |= if trap.wfi { HCR_TWI } else { 0 };
    if trap.wfe {
        hcr |= HCR_TWE;
        // ID_AA64MMFR1_EL1.TWED, bits 35:32.
        let delays = ID_AA64MMFR1_EL1.get() >> 32 & 0xf != 0;
        hcr |= if delays { HCR_TWED } else { 0 };
    }
    HCR_EL2.set(hcr);
    trace::choose_vectors(trace::is_on(), trap);
}

/// Which waits trap.
pub fn trap() -> Trap {
    let hcr = HCR_EL2.get();
    Trap {
        wfi: hcr & HCR_TWI != 0,
        wfe: hcr & HCR_TWE != 0,
    }
}

/// Sets whether interrupts go to the guest directly; the interrupt controller
/// is [`deliver`]'s.
pub fn set_direct(direct: bool) {
    let (cpu, trap) = (PerCpu::this(), trap());
    cpu.vcpu.direct.store(direct, SeqCst);
    shortcuts::review_wait(cpu);
    set_trap(trap);
}
