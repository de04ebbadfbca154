// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GICv2: the addresses of its CPU interfaces are in the GICC structures (5.2.12.14).
//!
//! Each CPU finds its own interface at the common address (IHI 0048B, 2.1), so all structures of CPUs in use
//! have to name the same ones.

use arrayvec::ArrayVec;
use platform::claims::PAGE;
use platform::{Claims, Cpu, GicV2, Region};

use crate::error::Error;
use crate::gic::{Described, GICD_BASE, MAINTENANCE, maintenance_intid};
use crate::madt::{GICC_BASE, GICC_GICH, GICC_GICV, GICC_MPIDR, Gicc, Madt, Structure};
use crate::view::View;

/// Whether a table that leaves the version open describes a GICv2: such a table has no redistributors, but has an
/// address of GICC. A GICv3 may have that address, too, for its legacy interface.
pub fn is_described(madt: &Madt<'_>) -> Result<bool, Error> {
    let has_ranges = madt
        .structures()
        .any(|structure| matches!(structure, Structure::Redistributors(_)));
    let mut has_interface = false;
    for cpu in enabled(madt) {
        let cpu = cpu?;
        if has_ranges || cpu.redistributor_base()? != 0 {
            return Ok(false);
        }
        has_interface |= cpu.0.u64(GICC_BASE)? != 0;
    }
    Ok(has_interface)
}

/// Reads a GICv2 with the distributor `gicd`. ACPI gives no sizes of registers: GICC and GICV have two pages, of which
/// the second ends interrupts in two steps, as in IHI 0048B, 4.1.3 and 5.5.
pub fn read(
    madt: &Madt<'_>,
    gicd: &View<'_>,
    version: u8,
    cpus: &[Cpu],
    claims: &mut Claims<'_>,
) -> Result<Described, Error> {
    check_cpus(madt, cpus)?;
    let (first, gicc) = common(madt, GICC_BASE)?;
    let (_, gich) = common(madt, GICC_GICH)?;
    let (_, gicv) = common(madt, GICC_GICV)?;
    let mut claim = |view: &View<'_>, field, base, pages| {
        let size = pages * PAGE;
        view.claim_at(field, Region { base, size }, PAGE, claims)
    };
    let distributor = claim(gicd, GICD_BASE, gicd.u64(GICD_BASE)?, 1)?;
    let gicc = claim(&first.0, GICC_BASE, gicc, 2)?;
    let virt = match (gich, gicv) {
        // The guest can run without GICH and GICV if there is no hypervisor; `Platform::lacks` refuses the hypervisor.
        (0, _) | (_, 0) => None,
        _ => Some([
            claim(&first.0, GICC_GICH, gich, 1)?,
            claim(&first.0, GICC_GICV, gicv, 2)?,
        ]),
    };
    let maintenance = maintenance_intid(madt)?;
    Ok(Described {
        distributor,
        version2: Some(GicV2 { gicc, virt }),
        stride: None,
        maintenance: maintenance.unwrap_or(MAINTENANCE),
        version,
        per_cpu: false,
        maintenance_assumed: maintenance.is_none(),
        its: ArrayVec::new(),
        its_ignored: 0,
    })
}

/// Iterates over the CPUs in use.
fn enabled<'t>(madt: &Madt<'t>) -> impl Iterator<Item = Result<Gicc<'t>, Error>> {
    madt.cpus().filter_map(|cpu| match cpu.is_enabled() {
        Ok(true) => Some(Ok(cpu)),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    })
}

/// Checks the number of CPUs, and that the driver can tell them apart by Aff1 and Aff0.
fn check_cpus(madt: &Madt<'_>, cpus: &[Cpu]) -> Result<(), Error> {
    let (too_many, alike) = (cpus.len() > GicV2::MAX_CPUS, GicV2::alike(cpus));
    let mut last = None;
    for cpu in enabled(madt) {
        let cpu = cpu?;
        let mpidr = cpu.mpidr()?;
        if alike == Some(mpidr) {
            let expected = "an Aff1 or Aff0 that no other CPU has, as the GIC is a GICv2";
            return Err(cpu.0.defect(GICC_MPIDR, expected, mpidr));
        }
        last = Some((cpu, mpidr));
    }
    match last.filter(|_| too_many) {
        Some((cpu, mpidr)) => {
            let expected = "no more than 8 CPUs, as the GIC is a GICv2";
            Err(cpu.0.defect(GICC_MPIDR, expected, mpidr))
        }
        None => Ok(()),
    }
}

/// Returns the address at `field`, on which all CPUs in use must agree, and the first of their structures.
fn common<'t>(madt: &Madt<'t>, field: usize) -> Result<(Gicc<'t>, u64), Error> {
    let mut first = None;
    for cpu in enabled(madt) {
        let cpu = cpu?;
        let base = cpu.0.u64(field)?;
        let (_, common) = *first.get_or_insert((cpu, base));
        if common != base {
            let expected = "the address of the CPUs before, as the GIC is a GICv2";
            return Err(cpu.0.defect(field, expected, base));
        }
    }
    first.ok_or_else(|| madt.missing_structure("a GICC structure of an enabled CPU"))
}
