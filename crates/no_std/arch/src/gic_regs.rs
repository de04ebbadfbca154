// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system registers of a GICv3 CPU interface (IHI 0069H, 12.2 and 12.4).
//!
//! A GICv2 has none of them. So each access is also an entry in the table that [`crate::gicv2::adapt`]
//! reads: on a GICv2, `adapt` replaces the instruction with a branch to the code after the access's `4:`. That
//! code pushes the value and the register's number, and calls `gicv2_access`. This function preserves every
//! register and the flags, and calls the image's function ([`crate::gicv2::Access`]).

use crate::gicv2::WRITE;

/// One access, and its replacement.
macro_rules! access {
    ($instruction:expr) => {
        concat!(
            "2: ",
            $instruction,
            "\n3:\n",
            ".pushsection .text.gicv2, \"ax\"\n",
            "4: sub sp, sp, #32\n",
            "str {0}, [sp]\n",
            "str x30, [sp, #8]\n",
            "mov x30, #{number}\n",
            "str x30, [sp, #16]\n",
            "bl gicv2_access\n",
            "ldr x30, [sp, #8]\n",
            "ldr {0}, [sp]\n",
            "add sp, sp, #32\n",
            "b 3b\n",
            ".popsection\n",
            ".pushsection gicv2_sites, \"a\"\n",
            ".balign 4\n",
            ".long 2b - .\n",
            ".long 4b - .\n",
            ".popsection\n",
        )
    };
}

/// Declares registers with their encoding and access.
macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $encoding:literal, $($access:ident)+;)*) => {
        /// The registers, numbered for [`crate::gicv2::Access`]. List register n has the number
        /// [`LIST_REGISTERS`] + n.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Register { $($name),* }

        impl Register {
            /// Every register.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        $(
            $(#[$doc])*
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy)]
            pub struct $name;
            impl $name { $(registers!(@$access $name $encoding);)+ }
        )*
    };
    (@read $name:ident $encoding:literal) => {
        /// Reads the register.
        #[inline(always)]
        pub fn get(self) -> u64 {
            let value: u64;
            // SAFETY: this is a register read; if the register has a side effect (acknowledging an
            // interrupt), its documentation says so. On a GICv2, the code uses the stack below the
            // stack pointer, where this target keeps nothing (no red zone).
            unsafe {
                core::arch::asm!(access!(concat!("mrs {0}, ", $encoding)), out(reg) value,
                    number = const Register::$name as u32, options(nostack, preserves_flags));
            }
            value
        }
    };
    (@write $name:ident $encoding:literal) => {
        /// Writes the register; an ISB makes the write take effect for later instructions.
        #[inline(always)]
        pub fn set(self, value: u64) {
            // SAFETY: none of the registers of this file moves memory, the stack or the
            // translation of the running code. There is no `nomem`, so earlier stores stay before
            // the write. The stack is used as for a read.
            unsafe {
                core::arch::asm!(access!(concat!("msr ", $encoding, ", {0}")), in(reg) value,
                    number = const Register::$name as u32 | WRITE, options(nostack, preserves_flags));
            }
        }
    };
}

/// Number of list register 0.
pub const LIST_REGISTERS: u32 = 0x40;
const _: () = assert!(Register::ALL.len() <= LIST_REGISTERS as usize);

registers! {
    /// Acknowledges the highest-priority pending Group 1 interrupt; returns its INTID.
    ICC_IAR1_EL1 = "S3_0_C12_C12_0", read;
    /// Ends a Group 1 interrupt: drops its priority and, if EOImode is 0, deactivates it.
    ICC_EOIR1_EL1 = "S3_0_C12_C12_1", write;
    /// Deactivates an interrupt if EOImode is 1.
    ICC_DIR_EL1 = "S3_0_C12_C11_1", write;
    /// Sends a Group 1 SGI.
    ICC_SGI1R_EL1 = "S3_0_C12_C11_5", write;
    /// Running priority.
    ICC_RPR_EL1 = "S3_0_C12_C11_3", read;
    /// Priority mask.
    ICC_PMR_EL1 = "S3_0_C4_C6_0", read write;
    /// Binary point, Group 1.
    ICC_BPR1_EL1 = "S3_0_C12_C12_3", read write;
    /// Highest-priority pending Group 1 interrupt.
    ICC_HPPIR1_EL1 = "S3_0_C12_C12_2", read;
    /// CPU interface control: EOImode (bit 1), RSS (bit 18).
    ICC_CTLR_EL1 = "S3_0_C12_C12_4", read write;
    /// Group 0 enable.
    ICC_IGRPEN0_EL1 = "S3_0_C12_C12_6", read write;
    /// Group 1 enable.
    ICC_IGRPEN1_EL1 = "S3_0_C12_C12_7", read write;
    /// System-register enable at EL1.
    ICC_SRE_EL1 = "S3_0_C12_C12_5", read write;
    /// System-register enable at EL2: SRE (0), DFB (1), DIB (2), Enable for EL1 (3).
    ICC_SRE_EL2 = "S3_4_C12_C9_5", read write;

    /// Empty list registers, one bit each.
    ICH_ELRSR_EL2 = "S3_4_C12_C11_5", read;
    /// List registers with an EOI maintenance interrupt, one bit each.
    ICH_EISR_EL2 = "S3_4_C12_C11_3", read;
    /// Active priorities, Group 1, of the physical interface.
    ICC_AP1R0_EL1 = "S3_0_C12_C9_0", read write;
    /// Active priorities, Group 1.
    ICH_AP1R0_EL2 = "S3_4_C12_C9_0", read write;
    /// Active priorities, Group 0.
    ICH_AP0R0_EL2 = "S3_4_C12_C8_0", read write;
    /// Features of the virtual interface: ListRegs (4:0), PREbits (28:26), PRIbits (31:29).
    ICH_VTR_EL2 = "S3_4_C12_C11_1", read;
    /// Control of the virtual interface.
    ICH_HCR_EL2 = "S3_4_C12_C11_0", read write;
    /// The guest's settings of the virtual interface.
    ICH_VMCR_EL2 = "S3_4_C12_C11_7", read write;
    /// The guest's stage-2 map. On a GICv2, the map decides whether the guest has its CPU interface.
    VTTBR_EL2 = "S3_4_C2_C1_0", write;

    /// Active priorities, Group 0.
    ICC_AP0R0_EL1 = "S3_0_C12_C8_4", read write;
    /// Active priorities, Group 0, if there are 6 or 7 preemption bits.
    ICC_AP0R1_EL1 = "S3_0_C12_C8_5", write;
    /// Active priorities, Group 0, if there are 7 preemption bits.
    ICC_AP0R2_EL1 = "S3_0_C12_C8_6", write;
    /// Like ICC_AP0R2_EL1.
    ICC_AP0R3_EL1 = "S3_0_C12_C8_7", write;
    /// Like ICC_AP0R1_EL1, for Group 1.
    ICC_AP1R1_EL1 = "S3_0_C12_C9_1", write;
    /// Like ICC_AP0R2_EL1, for Group 1.
    ICC_AP1R2_EL1 = "S3_0_C12_C9_2", write;
    /// Like ICC_AP0R2_EL1, for Group 1.
    ICC_AP1R3_EL1 = "S3_0_C12_C9_3", write;
    /// Like ICC_AP0R1_EL1, for the guest's interface.
    ICH_AP0R1_EL2 = "S3_4_C12_C8_1", read write;
    /// Like ICC_AP0R2_EL1, for the guest's interface.
    ICH_AP0R2_EL2 = "S3_4_C12_C8_2", read write;
    /// Like ICH_AP0R2_EL2.
    ICH_AP0R3_EL2 = "S3_4_C12_C8_3", read write;
    /// Like ICH_AP0R1_EL2, for Group 1.
    ICH_AP1R1_EL2 = "S3_4_C12_C9_1", read write;
    /// Like ICH_AP0R2_EL2, for Group 1.
    ICH_AP1R2_EL2 = "S3_4_C12_C9_2", read write;
    /// Like ICH_AP0R2_EL2, for Group 1.
    ICH_AP1R3_EL2 = "S3_4_C12_C9_3", read write;
}

/// Reads list register `n`.
///
/// # Panics
/// Panics if `n` is 16 or more.
#[inline(always)]
pub fn ich_lr(n: usize) -> u64 {
    list_registers!(read n)
}

/// Writes list register `n`.
///
/// # Panics
/// Panics if `n` is 16 or more.
#[inline(always)]
pub fn set_ich_lr(n: usize, value: u64) {
    list_registers!(write n, value);
}

/// The instruction encodes the system register, so access by index needs a branch for each register.
macro_rules! list_registers {
    (read $n:expr) => {
        list_registers!(@each $n, read)
    };
    (write $n:expr, $value:expr) => {
        list_registers!(@each $n, write $value)
    };
    (@each $n:expr, $($access:tt)+) => {
        match $n {
            0 => list_registers!(@one 0, "S3_4_C12_C12_0", $($access)+),
            1 => list_registers!(@one 1, "S3_4_C12_C12_1", $($access)+),
            2 => list_registers!(@one 2, "S3_4_C12_C12_2", $($access)+),
            3 => list_registers!(@one 3, "S3_4_C12_C12_3", $($access)+),
            4 => list_registers!(@one 4, "S3_4_C12_C12_4", $($access)+),
            5 => list_registers!(@one 5, "S3_4_C12_C12_5", $($access)+),
            6 => list_registers!(@one 6, "S3_4_C12_C12_6", $($access)+),
            7 => list_registers!(@one 7, "S3_4_C12_C12_7", $($access)+),
            8 => list_registers!(@one 8, "S3_4_C12_C13_0", $($access)+),
            9 => list_registers!(@one 9, "S3_4_C12_C13_1", $($access)+),
            10 => list_registers!(@one 10, "S3_4_C12_C13_2", $($access)+),
            11 => list_registers!(@one 11, "S3_4_C12_C13_3", $($access)+),
            12 => list_registers!(@one 12, "S3_4_C12_C13_4", $($access)+),
            13 => list_registers!(@one 13, "S3_4_C12_C13_5", $($access)+),
            14 => list_registers!(@one 14, "S3_4_C12_C13_6", $($access)+),
            15 => list_registers!(@one 15, "S3_4_C12_C13_7", $($access)+),
            _ => unreachable!("the architecture has 16 list registers"),
        }
    };
    (@one $n:literal, $encoding:literal, read) => {{
        let value: u64;
        // SAFETY: this reads a list register, which has no side effect.
        unsafe {
            core::arch::asm!(access!(concat!("mrs {0}, ", $encoding)), out(reg) value,
                number = const LIST_REGISTERS + $n, options(nostack, preserves_flags));
        }
        value
    }};
    (@one $n:literal, $encoding:literal, write $value:expr) => {
        // SAFETY: this changes the virtual interrupts that the guest sees, but nothing that belongs to EL2.
        unsafe {
            core::arch::asm!(access!(concat!("msr ", $encoding, ", {0}")), in(reg) $value,
                number = const (LIST_REGISTERS + $n) | WRITE, options(nostack, preserves_flags));
        }
    };
}
use list_registers;
