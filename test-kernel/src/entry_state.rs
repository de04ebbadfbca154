// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares a CPU's state at entry with the expected state: the state that the boot protocols
//! promise (DEN0022F.b, 6.4; Linux, Documentation/arch/arm64/booting.rst), and the state of a
//! machine that no firmware or other kernel has used.

use core::fmt::Write;

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTPCT_EL0, CNTV_CTL_EL0, CNTVCT_EL0, CPACR_EL1, CurrentEL, DAIF, MIDR_EL1,
    MPIDR_EL1, Readable, SCTLR_EL1, Writeable,
};
use arch::regs::{
    CNTKCTL_EL1, ICC_HPPIR1_EL1, ICC_IGRPEN1_EL1, ICC_PMR_EL1, ICC_RPR_EL1, ICC_SRE_EL1, ISR_EL1,
    MDSCR_EL1, PMCNTENSET_EL0, PMCR_EL0,
};
use arch::{gic_cpu, insn};
use console::Port;
use gic::Redistributor;
use platform::Platform;

/// SCTLR_EL1: its RES1 bits, MMU and caches off.
const SCTLR: u64 = 0x30d0_0800;
/// The running priority of a CPU interface that handles no interrupt.
const IDLE: u64 = 0xff;
/// Value that [`pass_floating_point`] passes through a register.
const WORD: u64 = 0x3ff0_0000_0000_0000;

/// Checks values, and prints and counts the wrong values.
struct Look<'a> {
    out: &'a mut Port,
    number: usize,
    wrong: u32,
}

impl Look<'_> {
    /// Checks that `found` is `expected`.
    fn check(&mut self, name: &str, found: u64, expected: u64) {
        if found != expected {
            self.wrong += 1;
            let number = self.number;
            let _ = writeln!(
                self.out,
                "kernel: CPU {number} finds {name} {found:#x}, not {expected:#x}"
            );
        }
    }
}

/// Checks this CPU, which has index `number` in the device tree. The check changes the CPU's interface and traps, so it
/// can be done only once.
pub fn check_cpu(out: &mut Port, platform: &Platform<'_>, number: usize) {
    let mut look = Look {
        out,
        number,
        wrong: 0,
    };
    let affinity = platform.cpus.get(number).map_or(0, |cpu| cpu.mpidr);
    check_state(&mut look, affinity);
    check_timers(&mut look);
    check_interface(&mut look);
    check_interrupts(&mut look, platform, affinity);
    // EL1 may do the following without asking EL2.
    look.check("the trap of floating point", pass_floating_point(), WORD);
    // EL1 reads MDCR_EL2.HPMN as PMCR_EL0.N; MDCR_EL2 also has the traps of the performance monitors.
    PMCNTENSET_EL0.set(1);
    look.check(
        "event counters",
        u64::from(PMCR_EL0.get() >> 11 & 0x1f == 0),
        0,
    );
    let wrong = look.wrong;
    let midr = MIDR_EL1.get();
    let _ = writeln!(
        out,
        "kernel: CPU {number} has looked around: {wrong} wrong, MIDR_EL1 {midr:#x}"
    );
}

fn check_state(look: &mut Look<'_>, affinity: u64) {
    look.check("CurrentEL", CurrentEL.get(), 1 << 2);
    look.check("DAIF", DAIF.get(), 0xf << 6);
    look.check("SCTLR_EL1", SCTLR_EL1.get(), SCTLR);
    look.check("CPACR_EL1", CPACR_EL1.get(), 0);
    look.check("MDSCR_EL1", MDSCR_EL1.get(), 0);
    look.check("MPIDR_EL1", MPIDR_EL1.get() & platform::AFFINITY, affinity);
}

fn check_timers(look: &mut Look<'_>) {
    look.check("CNTV_CTL_EL0", CNTV_CTL_EL0.get() & 1, 0);
    look.check("CNTP_CTL_EL0", CNTP_CTL_EL0.get() & 1, 0);
    look.check("CNTKCTL_EL1", CNTKCTL_EL1.get(), 0);
    // The virtual counter has to equal the physical counter, on every CPU.
    let [before, within, after] = [
        || CNTPCT_EL0.get(),
        || CNTVCT_EL0.get(),
        || CNTPCT_EL0.get(),
    ]
    .map(|counter: fn() -> u64| {
        // The ISB keeps the read from being done early (DDI 0487K.a, D12.2.1).
        insn::isb();
        counter()
    });
    let is_within = (before..=after).contains(&within);
    look.check(
        "the virtual counter's offset",
        if is_within {
            0
        } else {
            before.wrapping_sub(within)
        },
        0,
    );
}

/// Checks that the CPU interface is off, and that no interrupt is pending.
fn check_interface(look: &mut Look<'_>) {
    ICC_SRE_EL1.set(7);
    insn::isb();
    look.check("ICC_PMR_EL1", ICC_PMR_EL1.get(), 0);
    look.check("ICC_IGRPEN1_EL1", ICC_IGRPEN1_EL1.get(), 0);
    gic_cpu::enable(false);
    look.check("ICC_RPR_EL1", ICC_RPR_EL1.get(), IDLE);
    look.check(
        "ICC_HPPIR1_EL1",
        ICC_HPPIR1_EL1.get(),
        u64::from(gic_cpu::SPURIOUS),
    );
    look.check("ISR_EL1", ISR_EL1.get(), 0);
}

/// Checks that none of this CPU's private interrupts is pending or active.
fn check_interrupts(look: &mut Look<'_>, platform: &Platform<'_>, affinity: u64) {
    /// Offsets of GICR_ISPENDR0 and GICR_ISACTIVER0 (IHI 0069H, 12.11).
    const PENDING: u64 = 0x1_0200;
    const ACTIVE: u64 = 0x1_0300;
    // SAFETY: the device tree says where the redistributor is, and the MMU is off.
    let Ok(found) = (unsafe { Redistributor::find(&platform.gic, affinity) }) else {
        look.check("redistributors", 0, 1);
        return;
    };
    let read = |offset: u64| {
        // SAFETY: as above; reading the register changes nothing.
        u64::from(unsafe { ((found.base() + offset) as *const u32).read_volatile() })
    };
    look.check("GICR_ISPENDR0", read(PENDING), 0);
    look.check("GICR_ISACTIVER0", read(ACTIVE), 0);
}

/// Passes [`WORD`] through a floating-point register.
fn pass_floating_point() -> u64 {
    // Sets FPEN.
    CPACR_EL1.set(3 << 20);
    insn::isb();
    let read: u64;
    // SAFETY: no other code here uses such a register, and EL1 may use these registers after the ISB.
    unsafe {
        core::arch::asm!(".arch_extension fp", "fmov d0, {0}", "fmov {1}, d0", in(reg) WORD,
            out(reg) read, options(nomem, nostack, preserves_flags));
    }
    read
}
