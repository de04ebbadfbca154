// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets system registers of EL1 and EL0 that this guest may use: each gets a value, and must return it later.

use core::arch::asm;

use arch::insn;
use arch::regs::ICC_BPR1_EL1;

/// Declares [`NAMES`], and the functions that read and write a register by its number. The
/// registers after the semicolon belong to the interrupt controller; a GICv2 has them in memory.
macro_rules! registers {
    ($($name:literal $register:literal $bits:literal,)*; $($gic:ident $gic_bits:literal,)*) => {
        /// The names of the registers.
        const NAMES: &[&str] = &[$($name,)* $(stringify!($gic),)*];

        /// The bits of each register that get a value.
        const BITS: [u64; NAMES.len()] = [$($bits,)* $($gic_bits,)*];

        fn read_all() -> [u64; NAMES.len()] {
            [$({
                let value: u64;
                // SAFETY: reading the register changes nothing.
                // strict written-before-read: a value from reset is only kept, to be put back.
                unsafe { asm!(concat!("mrs {}, ", $register), out(reg) value, options(nostack)) };
                value
            },)* $($gic.get(),)*]
        }

        fn write_all(values: &[u64; NAMES.len()]) {
            let mut values = values.iter();
            $(
                let value = values.next().expect("as many as there are names");
                // SAFETY: interrupts are masked and no exception occurs, so nothing uses the register until it is
                // restored. Neither memory nor any translation that running code uses depends on the register, or
                // [`BITS`] has no bit of it, so that the register gets the value that it already has.
                // strict synchronised: the bits on which translation depends stay.
                unsafe { asm!(concat!("msr ", $register, ", {}"), in(reg) *value, options(nostack)) };
            )*
            $($gic.set(*values.next().expect("as many as there are names"));)*
        }
    };
}

registers! {
    "TPIDR_EL0" "tpidr_el0" 0xffff_ffff_ffff_ffff,
    "TPIDRRO_EL0" "tpidrro_el0" 0xffff_ffff_ffff_ffff,
    "CONTEXTIDR_EL1" "contextidr_el1" 0xffff_ffff,
    "PAR_EL1" "par_el1" 0x00ff_ffff_f000,
    "CSSELR_EL1" "csselr_el1" 0x2,
    "FAR_EL1" "far_el1" 0xffff_ffff_ffff_ffff,
    "ESR_EL1" "esr_el1" 0x01ff_ffff,
    "ELR_EL1" "elr_el1" 0xffff_ffff_fffc,
    "SPSR_EL1" "spsr_el1" 0xf000_0000,
    "SP_EL0" "sp_el0" 0xffff_ffff_ffff_fff0,
    "AFSR0_EL1" "afsr0_el1" 0xffff_ffff,
    "AFSR1_EL1" "afsr1_el1" 0xffff_ffff,
    "AMAIR_EL1" "amair_el1" 0xffff_ffff_ffff_ffff,
    "DBGBVR0_EL1" "dbgbvr0_el1" 0x0000_ffff_ffff_fffc,
    "DBGWVR0_EL1" "dbgwvr0_el1" 0x0000_ffff_ffff_fffc,
    "CNTP_CVAL_EL0" "cntp_cval_el0" 0xffff_ffff_ffff_ffff,
    "CNTV_CVAL_EL0" "cntv_cval_el0" 0x0,
    "MDSCR_EL1" "mdscr_el1" 0x1000,
    "CNTKCTL_EL1" "cntkctl_el1" 0x200,
    "DISR_EL1" "S3_0_C12_C1_1" 0x1ff_ffff,
    "PMUSERENR_EL0" "pmuserenr_el0" 0x5,
    "PMCNTENSET_EL0" "pmcntenset_el0" 0x0,
    "SCTLR_EL1" "sctlr_el1" 0x0,
    "TCR_EL1" "tcr_el1" 0x0,
    "TTBR0_EL1" "ttbr0_el1" 0x0,
    "TTBR1_EL1" "ttbr1_el1" 0x0,
    "MAIR_EL1" "mair_el1" 0x0,
    "CPACR_EL1" "cpacr_el1" 0x0,
    "VBAR_EL1" "vbar_el1" 0x0,
    "TPIDR_EL1" "tpidr_el1" 0x0,
    ;
    ICC_BPR1_EL1 0x7,
}

/// Gives a value to registers that no other code here ever sets: they are UNKNOWN after a reset
/// (DDI 0487K.a, D24.1.2.1).
fn reset_unused() {
    // SAFETY: nothing uses these registers, and the physical timer is off.
    unsafe {
        asm!(
            "msr contextidr_el1, xzr",
            "msr par_el1, xzr",
            "msr cntp_cval_el0, xzr",
            "isb",
            options(nostack, preserves_flags)
        );
    }
}

/// The original register values, and the values that the registers must keep.
pub struct System {
    before: [u64; NAMES.len()],
    put: [u64; NAMES.len()],
}

impl System {
    /// Gives each register a value, for round `round`.
    pub fn write_values(round: u64) -> Self {
        reset_unused();
        let before = read_all();
        let value =
            |n: usize| (round << 24 | 0xc5a3_0000_0000 | n as u64).rotate_left(3 * n as u32);
        let values = core::array::from_fn(|n| before[n] & !BITS[n] | value(n) & BITS[n]);
        write_all(&values);
        insn::isb();
        Self {
            before,
            put: read_all(),
        }
    }

    /// Whether each register still has its value; prints the first register that does not.
    pub fn is_unchanged(&self) -> bool {
        let now = read_all();
        let changed = (0..NAMES.len()).find(|&n| now[n] != self.put[n]);
        if let Some(n) = changed {
            guest_kernel_shim::output::print(format_args!(
                "{}: {:#x}, and was {:#x}",
                NAMES[n], now[n], self.put[n]
            ));
        }
        changed.is_none()
    }

    /// Restores the original register values.
    pub fn restore(self) {
        write_all(&self.before);
        insn::isb();
    }
}
