// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why a description is refused.

use core::fmt;

use platform::Region;

/// A table, with its section in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Root System Description Pointer (5.2.5).
    Rsdp,
    /// Extended System Description Table (5.2.8).
    Xsdt,
    /// Fixed ACPI Description Table (5.2.9).
    Fadt,
    /// Multiple APIC Description Table (5.2.12).
    Madt,
    /// Generic Timer Description Table (5.2.25).
    Gtdt,
    /// Serial Port Console Redirection Table (Microsoft's specification of it).
    Spcr,
    /// Debug Port Table 2 (Microsoft's specification of it).
    Dbg2,
    /// Any other table, with its signature.
    Other([u8; 4]),
}

impl Table {
    /// Returns the table whose signature is `signature` (5.2.6).
    pub(crate) const fn from_signature(signature: [u8; 4]) -> Self {
        match &signature {
            b"XSDT" => Self::Xsdt,
            b"FACP" => Self::Fadt,
            b"APIC" => Self::Madt,
            b"GTDT" => Self::Gtdt,
            b"SPCR" => Self::Spcr,
            b"DBG2" => Self::Dbg2,
            _ => Self::Other(signature),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsdp => f.write_str("RSDP"),
            Self::Xsdt => f.write_str("XSDT"),
            Self::Fadt => f.write_str("FADT (signature FACP)"),
            Self::Madt => f.write_str("MADT (signature APIC)"),
            Self::Gtdt => f.write_str("GTDT"),
            Self::Spcr => f.write_str("SPCR"),
            Self::Dbg2 => f.write_str("DBG2"),
            Self::Other(signature) => write!(f, "table '{}'", signature.escape_ascii()),
        }
    }
}

/// The reason why a description is refused: what is missing or wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The XSDT has no entry for this table.
    Missing(Table),
    /// A table, or the start of one, does not lie in readable memory.
    Unreadable {
        /// The table.
        table: Table,
        /// The table's physical address.
        address: u64,
        /// Number of bytes to be read at that address.
        length: usize,
    },
    /// A table has a wrong value.
    Defect {
        /// The table.
        table: Table,
        /// Offset in the table, in bytes.
        offset: usize,
        /// Description of the expected value.
        expected: &'static str,
        /// The actual value.
        found: u64,
    },
    /// The caller's description of the RAM can't be used.
    Ram {
        /// The region in question.
        region: Region,
        /// Description of the requirement.
        expected: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(table) => write!(f, "ACPI: no {table}"),
            Self::Unreadable {
                table,
                address,
                length,
            } => write!(
                f,
                "ACPI: {table}: {length} bytes at address {address:#x} are not readable memory"
            ),
            Self::Defect {
                table,
                offset,
                expected,
                found,
            } => write!(
                f,
                "ACPI: {table}: offset {offset:#x}: expected {expected}, found {found:#x}"
            ),
            Self::Ram { region, expected } => write!(
                f,
                "RAM: {:#x} bytes at {:#x}: expected {expected}",
                region.size, region.base
            ),
        }
    }
}

impl core::error::Error for Error {}
