// SPDX-License-Identifier: MIT OR Apache-2.0
//! All identification registers of AArch64 state: their encodings form one block, in which
//! unallocated encodings read as zero (DDI 0487K.a, C5.1.6).

/// Reads `S3_0_C0_C<m>_<op2>` for the named registers.
macro_rules! identification {
    ($($name:ident = $encoding:literal,)*) => {
        /// Reads every register; returns the names and values.
        pub fn registers() -> impl Iterator<Item = (&'static str, u64)> {
            let read: [(&'static str, fn() -> u64); _] = [$((stringify!($name), || {
                let value: u64;
                // SAFETY: reading an identification register has no effect.
                unsafe {
                    core::arch::asm!(concat!("mrs {0}, ", $encoding), out(reg) value,
                        options(nomem, nostack, preserves_flags));
                }
                value
            }),)*];
            read.into_iter().map(|(name, read)| (name, read()))
        }
    };
}

identification! {
    ID_AA64PFR0_EL1 = "S3_0_C0_C4_0",
    ID_AA64PFR1_EL1 = "S3_0_C0_C4_1",
    ID_AA64PFR2_EL1 = "S3_0_C0_C4_2",
    ID_AA64ZFR0_EL1 = "S3_0_C0_C4_4",
    ID_AA64SMFR0_EL1 = "S3_0_C0_C4_5",
    ID_AA64FPFR0_EL1 = "S3_0_C0_C4_7",
    ID_AA64DFR0_EL1 = "S3_0_C0_C5_0",
    ID_AA64DFR1_EL1 = "S3_0_C0_C5_1",
    ID_AA64DFR2_EL1 = "S3_0_C0_C5_2",
    ID_AA64AFR0_EL1 = "S3_0_C0_C5_4",
    ID_AA64AFR1_EL1 = "S3_0_C0_C5_5",
    ID_AA64ISAR0_EL1 = "S3_0_C0_C6_0",
    ID_AA64ISAR1_EL1 = "S3_0_C0_C6_1",
    ID_AA64ISAR2_EL1 = "S3_0_C0_C6_2",
    ID_AA64ISAR3_EL1 = "S3_0_C0_C6_3",
    ID_AA64MMFR0_EL1 = "S3_0_C0_C7_0",
    ID_AA64MMFR1_EL1 = "S3_0_C0_C7_1",
    ID_AA64MMFR2_EL1 = "S3_0_C0_C7_2",
    ID_AA64MMFR3_EL1 = "S3_0_C0_C7_3",
    ID_AA64MMFR4_EL1 = "S3_0_C0_C7_4",
}

/// Returns ID_AA64DFR0_EL1.PMUVer: 0 means no PMUv3, 15 an implementation-defined PMU.
#[must_use]
pub fn pmu_version() -> u64 {
    let features = registers().find(|(name, _)| *name == "ID_AA64DFR0_EL1");
    features.map_or(0, |(_, value)| value >> 8 & 0xf)
}

/// Whether the calling CPU has FEAT_RAS: ID_AA64PFR0_EL1.RAS, bits 31:28.
#[must_use]
pub fn has_ras() -> bool {
    let features = registers().find(|(name, _)| *name == "ID_AA64PFR0_EL1");
    features.is_some_and(|(_, value)| value >> 28 & 0xf != 0)
}

/// Whether the calling CPU has FEAT_LSE: ID_AA64ISAR0_EL1.Atomic, bits 23:20 (DDI 0487K.a,
/// D23.2.72).
#[must_use]
pub fn has_lse() -> bool {
    let features = registers().find(|(name, _)| *name == "ID_AA64ISAR0_EL1");
    features.is_some_and(|(_, value)| value >> 20 & 0xf != 0)
}
