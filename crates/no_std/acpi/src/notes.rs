// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts from the tables that `Platform` does not hold, for printing at a machine's first boot.

use core::fmt;

use arrayvec::ArrayVec;

use platform::claims::MAX_ITS;

use crate::error::{Error, Table};

/// Defects that do not prevent the use of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerated {
    /// The first defect.
    pub first: Option<Error>,
    /// Number of defects.
    pub count: usize,
}

impl Tolerated {
    /// Starts without any defect.
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            count: 0,
        }
    }

    /// Records `checked` if it is a defect.
    pub(crate) fn note_defect(&mut self, checked: Result<(), Error>) {
        if let Err(defect) = checked {
            self.first.get_or_insert(defect);
            self.count += 1;
        }
    }
}

/// Facts from the tables that [`platform::Platform`] does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes {
    /// OEMID of the XSDT, unchanged.
    pub oem: [u8; 6],
    /// OEM Table ID of the XSDT, unchanged.
    pub oem_table: [u8; 8],
    /// Unused tables whose length or checksum is wrong.
    pub damaged: usize,
    /// GIC version of the GICD structure: 2 to 4, or 0, which tells software to look in the GIC.
    pub gic_version: u8,
    /// Whether the GIC is a GICv2.
    pub version2: bool,
    /// Whether the redistributors are described per CPU (GICC) rather than in ranges (GICR).
    pub redistributor_per_cpu: bool,
    /// Whether no CPU names a maintenance interrupt, so that the usual INTID is assumed.
    pub maintenance_assumed: bool,
    /// CPUs that are off and could be added at run time; they are not used.
    pub online_capable: usize,
    /// CPUs that are described but unusable, such as harvested cores.
    pub unusable: usize,
    /// CPUs in use that have a mailbox of the parking protocol.
    pub parked: usize,
    /// Physical addresses of the interrupt translation services.
    pub its: ArrayVec<u64, MAX_ITS>,
    /// Interrupt translation services beyond [`MAX_ITS`].
    pub its_ignored: usize,
    /// Harmless defects.
    pub tolerated: Tolerated,
    /// The table that names the console, and the console's interface type, even if the type is unknown.
    pub uart_type: Option<(Table, u8)>,
    /// The defect of the first table that should name a console but does not.
    pub wrong_console: Option<Error>,
    /// The first defect of the GTDT's platform timers; watchdogs after it are unknown.
    pub wrong_watchdogs: Option<Error>,
}

impl fmt::Display for Notes {
    /// Prints one line: who made the tables, and what is unusual about them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (oem, table) = (Text(&self.oem), Text(&self.oem_table));
        write!(f, "ACPI: {oem}/{table}, GIC v{}", self.gic_version)?;
        let form = match (self.version2, self.redistributor_per_cpu) {
            (true, _) => "a GICv2's CPU interfaces",
            (_, true) => "a redistributor named by each CPU",
            _ => "redistributors in ranges",
        };
        write!(f, ", {form}, {} ITS", self.its.len() + self.its_ignored)?;
        let counted = [
            (self.damaged, "other tables with a wrong checksum"),
            (self.unusable, "CPUs unusable"),
            (self.online_capable, "CPUs could be added"),
            (self.parked, "CPUs with a parking mailbox"),
        ];
        for (count, what) in counted {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.maintenance_assumed {
            write!(f, ", no maintenance interrupt named: 25 assumed")?;
        }
        if let Some(first) = self.tolerated.first {
            write!(
                f,
                ", {} defects let pass, the first: {first}",
                self.tolerated.count
            )?;
        }
        if let Some(error) = self.wrong_watchdogs {
            write!(f, ", watchdogs not all known: {error}")?;
        }
        if let Some(error) = self.wrong_console {
            write!(f, ", a console not used: {error}")?;
        }
        match self.uart_type {
            Some((table, interface)) => write!(f, ", {table} type {interface}"),
            None if self.wrong_console.is_some() => Ok(()),
            None => write!(f, ", neither SPCR nor DBG2"),
        }
    }
}

/// Characters of a padded identifier.
struct Text<'a>(&'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.trim_ascii_end();
        for &byte in text {
            let shown = if byte.is_ascii_graphic() { byte } else { b'.' };
            write!(f, "{}", char::from(shown))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_uncommon_is_said() {
        let mut notes = Notes {
            oem: *b"AMAZON",
            oem_table: *b"GRVTN003",
            damaged: 0,
            gic_version: 4,
            version2: false,
            redistributor_per_cpu: true,
            maintenance_assumed: false,
            online_capable: 0,
            unusable: 0,
            parked: 0,
            its: ArrayVec::from_iter([0xbc_0010_0000]),
            its_ignored: 0,
            tolerated: Tolerated::new(),
            uart_type: Some((Table::Spcr, 0)),
            wrong_console: None,
            wrong_watchdogs: None,
        };
        let usual = "ACPI: AMAZON/GRVTN003, GIC v4, a redistributor named by each CPU, 1 ITS";
        assert_eq!(notes.to_string(), format!("{usual}, SPCR type 0"));
        notes.oem = *b"A\0    ";
        notes.unusable = 3;
        notes.maintenance_assumed = true;
        notes.uart_type = None;
        let text = notes.to_string();
        assert!(text.starts_with("ACPI: A./GRVTN003"), "{text}");
        let uncommon =
            "3 CPUs unusable, no maintenance interrupt named: 25 assumed, neither SPCR nor DBG2";
        assert!(text.ends_with(uncommon), "{text}");
    }
}
