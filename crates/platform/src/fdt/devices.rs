// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of a device tree: interrupt controller, timer, console.

use dtoolkit::fdt::FdtNode;
use dtoolkit::{Node, Property};

use super::nodes::Nodes;
use super::{cell, chosen, is_compatible, regions, string};
use crate::{Error, Gic, MAX_CPUS, Region, Room, Timer, Uart, UartKind};

/// PPIs start at this INTID and end before SPIs, at 32 (bindings: arm,gic-v3).
const PPIS: core::ops::Range<u32> = 16..32;
/// Size of a redistributor's frame, and the least that one has (IHI 0069H, 12.10).
const FRAME: u64 = 0x1_0000;
const REDISTRIBUTOR: u64 = 2 * FRAME;
/// INTID of entry `index` of an `interrupts` property in the GIC's binding, which
/// must be a PPI.
fn ppi(interrupts: &[u8], index: usize) -> Option<u32> {
    let intid = cell(interrupts, index * 3 + 1)?.checked_add(PPIS.start)?;
    (cell(interrupts, index * 3)? == 1 && PPIS.contains(&intid)).then_some(intid)
}

/// The GIC's node.
fn gic_node<'a>(nodes: &Nodes<'a>) -> Result<FdtNode<'a>, Error> {
    nodes.gic.ok_or(match nodes.older_gic {
        true => Error::GicV2,
        false => Error::NoNode("GICv3 (arm,gic-v3)"),
    })
}

/// What is wrong with it.
const fn gic_error(property: &'static str) -> Error {
    Error::Property {
        node: "interrupt-controller",
        property,
    }
}

/// The ranges of redistributor frames.
pub fn redistributors(nodes: &Nodes<'_>, room: &mut Room) -> Result<(), Error> {
    let node = gic_node(nodes)?;
    let count = node
        .property("#redistributor-regions")
        .and_then(|count| cell(count.value(), 0))
        .unwrap_or(1) as usize;
    // The distributor comes first.
    let frames = regions(node).skip(1).take(count.min(MAX_CPUS));
    room.redistributors.extend(frames);
    let mut found = room.redistributors.iter();
    if found.len() == 0 || found.any(|one| one.size < REDISTRIBUTOR) {
        return Err(gic_error("reg"));
    }
    Ok(())
}

/// The GIC, with these ranges of redistributor frames.
pub fn gic<'a>(nodes: &Nodes<'_>, timer: &Timer, frames: &'a [Region]) -> Result<Gic<'a>, Error> {
    let node = gic_node(nodes)?;
    let error = gic_error;
    let distributor = regions(node).next().ok_or(error("reg"))?;
    let stride = node.property("redistributor-stride").map(|stride| {
        let value = stride.value();
        let stride = u64::from(cell(value, 0)?) << 32 | u64::from(cell(value, 1)?);
        (stride >= REDISTRIBUTOR && stride.is_multiple_of(FRAME)).then_some(stride)
    });
    let maintenance = match node.property("interrupts") {
        Some(interrupts) => ppi(interrupts.value(), 0),
        // What the Base System Architecture names (DEN0094C, 3.6).
        None => Some(25),
    };
    Ok(Gic {
        distributor,
        redistributors: frames,
        stride: match stride {
            Some(stride) => Some(stride.ok_or(error("redistributor-stride"))?),
            None => None,
        },
        maintenance: maintenance
            .filter(|intid| !timer.has(*intid))
            .ok_or(error("interrupts"))?,
    })
}

pub fn timer(nodes: &Nodes<'_>) -> Result<Timer, Error> {
    let node = nodes.timer.ok_or(Error::NoNode("timer"))?;
    let error = Error::Property {
        node: "timer",
        property: "interrupts",
    };
    let interrupts = node.property("interrupts").ok_or(error)?;
    let entry = |index| ppi(interrupts.value(), index).ok_or(error);
    // Binding order: secure physical, non-secure physical, virtual, hypervisor.
    let (phys, virt) = (entry(1)?, entry(2)?);
    // Machines without EL2 end the list here.
    let hyp = match cell(interrupts.value(), 9) {
        Some(_) => Some(entry(3)?),
        None => None,
    };
    if phys == virt || hyp.is_some_and(|hyp| hyp == phys || hyp == virt) {
        return Err(error);
    }
    Ok(Timer { virt, phys, hyp })
}

pub fn uart(nodes: &Nodes<'_>) -> Option<Uart> {
    let path = chosen(nodes, "stdout-path")?;
    let path = path.split(':').next()?;
    let node = if path.starts_with('/') {
        nodes.fdt.find_node(path)?
    } else {
        nodes.fdt.find_node(string(nodes.aliases?, path)?)?
    };
    let base = regions(node).next()?.base;
    if is_compatible(&node, &["arm,pl011", "arm,sbsa-uart"]) {
        return Some(Uart {
            kind: UartKind::Pl011,
            base,
        });
    }
    if is_compatible(&node, &["ns16550a", "ns16550", "snps,dw-apb-uart"]) {
        let number = |name| {
            node.property(name)
                .and_then(|property| cell(property.value(), 0))
        };
        let shift = number("reg-shift").unwrap_or(0);
        let width = number("reg-io-width").unwrap_or(1);
        // Others are not known, and would be written to wrong addresses.
        let known = shift <= 4 && matches!(width, 1 | 4);
        let kind = UartKind::Ns16550 {
            shift: shift as u8,
            width: width as u8,
        };
        return known.then_some(Uart { kind, base });
    }
    None
}
