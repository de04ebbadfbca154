// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of a device tree: interrupt controller, timer, console.

use super::interrupts::{Interrupts, interrupt_cells};
use super::nodes::Nodes;
use super::{in_chosen, registers_error};
use crate::claims::{Claims, FRAME, PAGE, Unfit};
use crate::tree::{Node, cell};
use crate::{Error, Gic, GicV2, MAX_CPUS, Region, Timer, Uart, UartKind};
use arrayvec::ArrayVec;

/// The smallest size of a redistributor: two frames (IHI 0069H, 12.10).
const REDISTRIBUTOR: u64 = 2 * FRAME;

/// Returns the error about `property` of the GIC's node.
const fn gic_error(property: &'static str) -> Error {
    Error::Property {
        node: "interrupt-controller",
        property,
    }
}

/// Claims the ranges of redistributor frames, and adds them to `ranges`.
pub fn claim_redistributors(
    node: Node<'_>,
    claims: &mut Claims<'_>,
    ranges: &mut ArrayVec<Region, MAX_CPUS>,
) -> Result<(), Error> {
    let count = node.cell("#redistributor-regions").unwrap_or(1) as usize;
    // The distributor's range comes first.
    for range in node.regions().skip(1).take(count.min(MAX_CPUS)) {
        if range.size < REDISTRIBUTOR {
            return Err(gic_error("reg"));
        }
        let unfit = |why| registers_error(&node, range.base, why);
        ranges.push(claims.claim(range, FRAME).map_err(unfit)?);
    }
    if count == 0 {
        return Err(gic_error("#redistributor-regions"));
    }
    if ranges.len() < count.min(MAX_CPUS) {
        return Err(gic_error("reg"));
    }
    Ok(())
}

/// Claims the distributor and, in a GICv2, the CPU interfaces.
pub fn claim_distributor(
    nodes: &Nodes<'_>,
    claims: &mut Claims<'_>,
) -> Result<(Region, Option<GicV2>), Error> {
    let node = nodes.gic()?;
    if nodes.is_version2() {
        return read_gicv2(node, claims);
    }
    let distributor = node.regions().next().filter(|first| first.size >= FRAME);
    let distributor = distributor.ok_or(gic_error("reg"))?;
    let unfit = |why| registers_error(&node, distributor.base, why);
    let distributor = claims.claim(distributor, FRAME).map_err(unfit)?;
    Ok((distributor, None))
}

/// The registers of a GICv2 (bindings: arm,gic): GICD, GICC, GICH and GICV, or the first two.
///
/// Trees give sizes from 0x100 to 0x2_0000 bytes for the same registers, and some of these ranges overlap
/// the next registers. So a size only tells whether the second page of GICC and GICV, with which
/// interrupts end in two steps, is described, and whether each page may be repeated ([`GicV2::REPEATED`]).
fn read_gicv2(node: Node<'_>, claims: &mut Claims<'_>) -> Result<(Region, Option<GicV2>), Error> {
    /// Bytes of GICC without its second page (IHI 0048B, 4.1.3).
    const LEAST: u64 = 0x100;
    let mut regions = node.regions();
    let mut next = |most: u64| {
        let described = regions.next().filter(|region| region.size >= LEAST);
        let Region { base, size } = described.ok_or(gic_error("reg"))?;
        let size = match size {
            0x2_0000.. if most > PAGE => GicV2::REPEATED,
            _ => size.clamp(PAGE, most),
        };
        let unfit = |why| registers_error(&node, base, why);
        claims.claim(Region { base, size }, PAGE).map_err(unfit)
    };
    let (distributor, gicc) = (next(PAGE)?, next(2 * PAGE)?);
    let virt = match node.regions().count() {
        2 => None,
        _ => Some([next(PAGE)?, next(2 * PAGE)?]),
    };
    Ok((distributor, Some(GicV2 { gicc, virt })))
}

/// Returns the complete GIC, with the given registers.
pub fn read_gic<'a>(
    nodes: &Nodes<'_>,
    timer: &Timer,
    (distributor, version2): (Region, Option<GicV2>),
    frames: &'a [Region],
) -> Result<Gic<'a>, Error> {
    let node = nodes.gic()?;
    let stride = node.property("redistributor-stride").map(|value| {
        let stride = u64::from(cell(value, 0)?) << 32 | u64::from(cell(value, 1)?);
        (stride >= REDISTRIBUTOR && stride.is_multiple_of(FRAME)).then_some(stride)
    });
    let interrupts = Interrupts::new(node, node, nodes.tree);
    let maintenance = match interrupts.property() {
        // The node describes the interrupt.
        Some(property) => interrupts.ppi("", 0).flatten().ok_or(gic_error(property))?,
        // The INTID of the Base System Architecture (DEN0094C, 3.6).
        None => 25,
    };
    if timer.has(maintenance) {
        return Err(gic_error(interrupts.property().unwrap_or("interrupts")));
    }
    Ok(Gic {
        distributor,
        version2,
        redistributors: frames,
        stride: match stride {
            Some(stride) => Some(stride.ok_or(gic_error("redistributor-stride"))?),
            None => None,
        },
        maintenance,
    })
}

pub fn timer(nodes: &Nodes<'_>) -> Result<Timer, Error> {
    let gic = nodes.gic()?;
    interrupt_cells(&gic).ok_or(gic_error("#interrupt-cells"))?;
    let node = nodes.timer.ok_or(Error::NoNode("timer"))?;
    let interrupts = Interrupts::new(node, gic, nodes.tree);
    let error = Error::Property {
        node: "timer",
        property: interrupts.property().unwrap_or("interrupts"),
    };
    // Interrupts have the binding's names or, without names, its order (arm,arch_timer).
    let ppi = |name, index| interrupts.ppi(name, index).ok_or(error);
    let phys = ppi("phys", 1)?.ok_or(error)?;
    let virt = ppi("virt", 2)?.ok_or(error)?;
    // Machines without EL2 end the list here.
    let hyp = ppi("hyp-phys", 3)?;
    if phys == virt || hyp.is_some_and(|hyp| hyp == phys || hyp == virt) {
        return Err(error);
    }
    Ok(Timer { virt, phys, hyp })
}

/// Returns the console, if the tree names one of a known kind, and its node.
pub fn find_uart<'a>(nodes: &Nodes<'a>) -> Option<(Node<'a>, Uart)> {
    let path = in_chosen(nodes, "stdout-path").or_else(|| in_chosen(nodes, "linux,stdout-path"))?;
    let path = path.split(':').next()?;
    let node = match path.strip_prefix('/') {
        Some(path) => nodes.tree.find(path)?,
        None => nodes.tree.find(nodes.aliases?.string(path)?)?,
    };
    // The UART's clocks may be off; an access would then never complete.
    if node.is_off_or_below_off() {
        return None;
    }
    // No driver supports `big-endian` registers, or a `reg-offset` other than 0.
    if node.property("big-endian").is_some() || node.cell("reg-offset").is_some_and(|by| by != 0) {
        return None;
    }
    let base = node.regions().next()?.base;
    let shift = node.cell("reg-shift");
    let width = node.cell("reg-io-width");
    let mut names = node.strings("compatible");
    let kind = names.find_map(|name| UartKind::of(name, shift, width))?;
    Some((node, Uart { kind, base }))
}

/// Returns the console, if it can be used. The only forbidden place for its registers is RAM.
pub fn usable_uart(nodes: &Nodes<'_>, end: u64, ram: &[Region]) -> Option<Uart> {
    let (_, uart) = find_uart(nodes)?;
    let unfit = Unfit::check_region(uart.registers(), uart.kind.alignment(), end, ram);
    unfit.is_none().then_some(uart)
}
