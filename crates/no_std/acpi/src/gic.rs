// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupt controller: a GICv3 or GICv4 (5.2.12.14 to 5.2.12.18), or a GICv2 ([`crate::gicv2`]).

use arrayvec::ArrayVec;
use platform::claims::{FRAME, MAX_ITS};
use platform::{Claims, Cpu, GicV2, MAX_CPUS, Region};

use crate::error::Error;
use crate::gicv2;
use crate::madt::{GICC_MAINTENANCE, GICC_REDISTRIBUTOR, Gicc, Madt, Structure};
use crate::view::View;

/// Offsets of fields in the GICD, GICR and GIC ITS structures, in this order.
pub const GICD_BASE: usize = 8;
const GICD_VECTOR_BASE: usize = 16;
const GICD_VERSION: usize = 20;
const GICR_BASE: usize = 4;
const GICR_LENGTH: usize = 12;
const ITS_BASE: usize = 8;

/// Size of a redistributor of GICv3: two frames.
const GICV3_REDISTRIBUTOR: u64 = 2 * FRAME;
/// Size of a redistributor of GICv4: two further frames, for virtual LPIs.
const GICV4_REDISTRIBUTOR: u64 = 4 * FRAME;
/// Size of a translation service: a control frame and a translation frame.
const ITS: u64 = 2 * FRAME;
/// The maintenance interrupt according to the Base System Architecture (DEN0094C, 3.6), for
/// firmware that leaves it out.
pub const MAINTENANCE: u32 = 25;

/// The table's description of the interrupt controller, without the ranges of redistributors.
#[derive(Debug)]
pub struct Described {
    pub distributor: Region,
    pub version2: Option<GicV2>,
    pub stride: Option<u64>,
    pub maintenance: u32,
    pub version: u8,
    pub per_cpu: bool,
    pub maintenance_assumed: bool,
    pub its: ArrayVec<u64, MAX_ITS>,
    pub its_ignored: usize,
}

/// Reads the interrupt controller of a machine with CPUs `cpus`; its ranges of redistributors go into `ranges`.
pub fn read(
    madt: &Madt<'_>,
    cpus: &[Cpu],
    claims: &mut Claims<'_>,
    ranges: &mut ArrayVec<Region, MAX_CPUS>,
) -> Result<Described, Error> {
    let (gicd, version) = find_distributor(madt)?;
    if version == 2 || version == 0 && gicv2::is_described(madt)? {
        return gicv2::read(madt, &gicd, version, cpus, claims);
    }
    let base = gicd.u64(GICD_BASE)?;
    let distributor = gicd.claim_at(GICD_BASE, Region { base, size: FRAME }, FRAME, claims)?;
    let (its, its_ignored) = translation_services(madt, claims)?;
    add_gicr_ranges(madt, claims, ranges)?;
    let per_cpu = ranges.is_empty();
    let stride = if per_cpu {
        let size = match version {
            4 => GICV4_REDISTRIBUTOR,
            // GICv3, or no stated version: every version has these two frames, and only they are used.
            _ => GICV3_REDISTRIBUTOR,
        };
        // Each range is one redistributor, even if its GICR_TYPER announces that another one follows.
        add_gicc_frames(madt, claims, size, ranges)?;
        Some(size)
    } else {
        None
    };
    let maintenance = maintenance_intid(madt)?;
    Ok(Described {
        distributor,
        version2: None,
        stride,
        maintenance: maintenance.unwrap_or(MAINTENANCE),
        version,
        per_cpu,
        maintenance_assumed: maintenance.is_none(),
        its,
        its_ignored,
    })
}

/// Returns the only GICD structure and the GIC version that it states.
fn find_distributor<'t>(madt: &Madt<'t>) -> Result<(View<'t>, u8), Error> {
    let mut found = None;
    for structure in madt.structures() {
        let Structure::Distributor(gicd) = structure else {
            continue;
        };
        let version = gicd.u8(GICD_VERSION)?;
        if !matches!(version, 0 | 2..=4) {
            return Err(gicd.defect(
                GICD_VERSION,
                "GIC version 2 to 4, or 0 (unspecified)",
                version,
            ));
        }
        let vector = gicd.u32(GICD_VECTOR_BASE)?;
        if vector != 0 {
            return Err(gicd.defect(GICD_VECTOR_BASE, "System Vector Base 0", vector));
        }
        if found.is_some() {
            let base = gicd.u64(GICD_BASE)?;
            return Err(gicd.defect(GICD_BASE, "a single GICD structure", base));
        }
        found = Some((gicd, version));
    }
    found.ok_or_else(|| madt.missing_structure("a GICD structure"))
}

/// Returns the addresses of the translation services, and how many more did not fit.
fn translation_services(
    madt: &Madt<'_>,
    claims: &mut Claims<'_>,
) -> Result<(ArrayVec<u64, MAX_ITS>, usize), Error> {
    let mut found = ArrayVec::new();
    let mut ignored = 0;
    for structure in madt.structures() {
        let Structure::Its(its) = structure else {
            continue;
        };
        let base = its.u64(ITS_BASE)?;
        if found.try_push(base).is_ok() {
            its.claim_at(ITS_BASE, Region { base, size: ITS }, FRAME, claims)?;
        } else {
            ignored += 1;
        }
    }
    Ok((found, ignored))
}

/// Adds the ranges of the GICR structures to `ranges`, which may stay empty.
fn add_gicr_ranges(
    madt: &Madt<'_>,
    claims: &mut Claims<'_>,
    ranges: &mut ArrayVec<Region, MAX_CPUS>,
) -> Result<(), Error> {
    for structure in madt.structures() {
        let Structure::Redistributors(gicr) = structure else {
            continue;
        };
        let base = gicr.u64(GICR_BASE)?;
        let length = gicr.u32(GICR_LENGTH)?;
        let size = u64::from(length);
        if size < GICV3_REDISTRIBUTOR || !size.is_multiple_of(FRAME) {
            let expected = "a multiple of 0x10000 and at least 0x20000";
            return Err(gicr.defect(GICR_LENGTH, expected, length));
        }
        // A range that does not fit would leave CPUs without a redistributor.
        if ranges.is_full() {
            return Err(gicr.defect(GICR_BASE, "no more than 512 GICR structures", base));
        }
        ranges.push(gicr.claim_at(GICR_BASE, Region { base, size }, FRAME, claims)?);
    }
    Ok(())
}

/// Adds the redistributors that the GICC structures of enabled CPUs name. The redistributors of
/// other CPUs are left out, because they may not even respond.
fn add_gicc_frames(
    madt: &Madt<'_>,
    claims: &mut Claims<'_>,
    size: u64,
    frames: &mut ArrayVec<Region, MAX_CPUS>,
) -> Result<(), Error> {
    for cpu in madt.cpus() {
        if frames.is_full() {
            break;
        }
        if cpu.is_enabled()? {
            frames.push(claim_gicc_frame(&cpu, claims, size)?);
        }
    }
    Ok(())
}

fn claim_gicc_frame(cpu: &Gicc<'_>, claims: &mut Claims<'_>, size: u64) -> Result<Region, Error> {
    let base = cpu.redistributor_base()?;
    if base == 0 {
        let expected = "a redistributor's address, as there is no GICR structure";
        return Err(cpu.0.defect(GICC_REDISTRIBUTOR, expected, base));
    }
    cpu.0
        .claim_at(GICC_REDISTRIBUTOR, Region { base, size }, FRAME, claims)
}

/// Returns the maintenance interrupt, on which all enabled CPUs must agree, or `None` if their
/// structures leave it out.
pub fn maintenance_intid(madt: &Madt<'_>) -> Result<Option<u32>, Error> {
    let mut common = None;
    for cpu in madt.cpus() {
        if !cpu.is_enabled()? {
            continue;
        }
        let named = cpu.maintenance_intid()?;
        if named != 0 {
            read_ppi(&cpu.0, GICC_MAINTENANCE)?;
        }
        if *common.get_or_insert(named) != named {
            let expected = "the maintenance interrupt of the CPUs before";
            return Err(cpu.0.defect(GICC_MAINTENANCE, expected, named));
        }
    }
    Ok(common.filter(|named| *named != 0))
}

/// Returns the interrupt number at `offset`, which must be a PPI's. (GICv3.1 has more PPIs from
/// INTID 1056 on, but the Base System Architecture uses none of them.)
pub fn read_ppi(view: &View<'_>, offset: usize) -> Result<u32, Error> {
    let intid = view.u32(offset)?;
    if !(16..32).contains(&intid) {
        return Err(view.defect(offset, "a PPI: INTID 16 to 31", intid));
    }
    Ok(intid)
}
