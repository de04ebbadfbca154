// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a flattened device tree (Devicetree Specification, release 0.4).

use arrayvec::ArrayVec;
use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};

use crate::{
    Conduit, Cpu, Enable, Error, Firmware, Gic, MAX_CPUS, Platform, Region, Report, Timer, Uart,
    UartKind,
};

/// PPIs start at this INTID, SPIs at 32 (bindings: arm,gic-v3).
const PPI_BASE: u32 = 16;

impl<'a> Platform<'a> {
    /// Reads the machine from the flattened device tree `blob`.
    ///
    /// # Errors
    /// An [`Error`] that names the node and property that is missing or has
    /// another form than its binding requires.
    pub fn from_fdt(blob: &'a [u8]) -> Result<Self, Error> {
        let fdt = Fdt::new(blob).map_err(|_| Error::Malformed)?;
        let psci = psci(fdt)?;
        let (cpus, cpus_ignored) = cpus(fdt)?;
        Ok(Self {
            cpus,
            cpus_ignored,
            memory: memory(fdt)?,
            reserved: reserved(fdt),
            gic: gic(fdt)?,
            timer: timer(fdt)?,
            uart: uart(fdt),
            psci,
            bootargs: chosen(fdt, "bootargs").unwrap_or(""),
            described_by: Firmware::Fdt,
        })
    }
}

impl Report {
    /// Reads what there is of it in the flattened device tree `blob`.
    #[must_use]
    pub fn from_fdt(blob: &[u8]) -> Self {
        let fdt = Fdt::new(blob).ok();
        Self {
            uart: fdt.and_then(uart),
            psci: fdt.and_then(|fdt| psci(fdt).ok().flatten()),
        }
    }
}

/// Whether one of the node's `compatible` strings is in `names`.
fn is_compatible(node: &FdtNode<'_>, names: &[&str]) -> bool {
    node.compatible()
        .is_some_and(|mut list| list.any(|name| names.contains(&name)))
}

/// First node, depth first, that is compatible with one of `names`.
fn find_compatible<'a>(node: FdtNode<'a>, names: &[&str]) -> Option<FdtNode<'a>> {
    if is_compatible(&node, names) {
        return Some(node);
    }
    node.children()
        .find_map(|child| find_compatible(child, names))
}

/// Big-endian cell `index` of a property's value.
fn cell(value: &[u8], index: usize) -> Option<u32> {
    let bytes = value.get(index * 4..index * 4 + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The regions of a node's `reg`.
fn regions<'a>(node: FdtNode<'a>) -> impl Iterator<Item = Region> + 'a {
    node.reg()
        .ok()
        .flatten()
        .into_iter()
        .flatten()
        .filter_map(|reg| {
            Some(Region {
                base: reg.address().ok()?,
                size: reg.size().ok()?,
            })
        })
}

fn string<'a>(node: FdtNode<'a>, name: &str) -> Option<&'a str> {
    node.property(name)?.value_as::<&'a str>().ok()
}

fn chosen<'a>(fdt: Fdt<'a>, name: &str) -> Option<&'a str> {
    string(fdt.find_node("/chosen")?, name)
}

fn psci(fdt: Fdt<'_>) -> Result<Option<Conduit>, Error> {
    let names = ["arm,psci-1.0", "arm,psci-0.2"];
    let Some(node) = find_compatible(fdt.root(), &names) else {
        return Ok(None);
    };
    match string(node, "method") {
        Some("smc") => Ok(Some(Conduit::Smc)),
        Some("hvc") => Ok(Some(Conduit::Hvc)),
        _ => Err(Error::Property {
            node: "psci",
            property: "method",
        }),
    }
}

fn cpus(fdt: Fdt<'_>) -> Result<(ArrayVec<Cpu, MAX_CPUS>, usize), Error> {
    let cpus = fdt.cpus().map_err(|_| Error::NoNode("cpus"))?;
    let mut found = ArrayVec::new();
    let mut ignored = 0;
    for cpu in cpus.cpus() {
        if matches!(string(*cpu, "status"), Some("disabled" | "fail")) {
            continue;
        }
        let reg = Error::Property {
            node: "cpu",
            property: "reg",
        };
        let mpidr = cpu.property("reg").ok_or(reg)?;
        let mpidr = match mpidr.value().len() {
            4 => u64::from(cell(mpidr.value(), 0).ok_or(reg)?),
            8 => {
                let high = cell(mpidr.value(), 0).ok_or(reg)?;
                let low = cell(mpidr.value(), 1).ok_or(reg)?;
                u64::from(high) << 32 | u64::from(low)
            }
            _ => return Err(reg),
        };
        let enable = enable(*cpu)?;
        if found.try_push(Cpu { mpidr, enable }).is_err() {
            ignored += 1;
        }
    }
    if found.is_empty() {
        return Err(Error::NoNode("cpu"));
    }
    Ok((found, ignored))
}

fn enable(cpu: FdtNode<'_>) -> Result<Enable, Error> {
    match string(cpu, "enable-method") {
        Some("psci") => Ok(Enable::Psci),
        Some("spin-table") => {
            let error = Error::Property {
                node: "cpu",
                property: "cpu-release-addr",
            };
            let address = cpu.property("cpu-release-addr").ok_or(error)?;
            let value = address.value();
            match value.len() {
                8 => Ok(Enable::SpinTable(
                    address.value_as::<u64>().map_err(|_| error)?,
                )),
                4 => Ok(Enable::SpinTable(u64::from(cell(value, 0).ok_or(error)?))),
                _ => Err(error),
            }
        }
        // Without a method the CPU is either running or let in by the loader
        // together with the first one.
        None => Ok(Enable::Held),
        Some(_) => Err(Error::EnableMethod),
    }
}

fn memory(fdt: Fdt<'_>) -> Result<ArrayVec<Region, 16>, Error> {
    let mut memory = ArrayVec::new();
    let mut missing = Error::NoNode("memory");
    for node in fdt.root().children() {
        if string(node, "device_type") == Some("memory") {
            missing = Error::Property {
                node: "memory",
                property: "reg",
            };
            for region in regions(node).filter(|region| region.size > 0) {
                // More banks than fit are banks not used, which is no error.
                let _ = memory.try_push(region);
            }
        }
    }
    if memory.is_empty() {
        return Err(missing);
    }
    Ok(memory)
}

fn reserved(fdt: Fdt<'_>) -> ArrayVec<Region, 32> {
    let mut reserved = ArrayVec::new();
    for entry in fdt.memory_reservations() {
        let _ = reserved.try_push(Region {
            base: entry.address(),
            size: entry.size(),
        });
    }
    if let Some(node) = fdt.find_node("/reserved-memory") {
        for child in node.children() {
            for region in regions(child) {
                let _ = reserved.try_push(region);
            }
        }
    }
    reserved
}

/// INTID of entry `index` of an `interrupts` property in the GIC's binding.
fn intid(node: FdtNode<'_>, index: usize) -> Option<u32> {
    let interrupts = node.property("interrupts")?;
    let value = interrupts.value();
    let number = cell(value, index * 3 + 1)?;
    match cell(value, index * 3)? {
        0 => Some(32 + number),
        1 => Some(PPI_BASE + number),
        _ => None,
    }
}

fn gic(fdt: Fdt<'_>) -> Result<Gic, Error> {
    let node =
        find_compatible(fdt.root(), &["arm,gic-v3"]).ok_or(Error::NoNode("GICv3 (arm,gic-v3)"))?;
    let error = |property| Error::Property {
        node: "interrupt-controller",
        property,
    };
    let count = node
        .property("#redistributor-regions")
        .and_then(|count| cell(count.value(), 0))
        .unwrap_or(1) as usize;
    let mut frames = regions(node);
    let distributor = frames.next().ok_or(error("reg"))?;
    let redistributors: ArrayVec<Region, MAX_CPUS> = frames.take(count.min(MAX_CPUS)).collect();
    if redistributors.is_empty() {
        return Err(error("reg"));
    }
    let stride = node.property("redistributor-stride").and_then(|stride| {
        let value = stride.value();
        Some(u64::from(cell(value, 0)?) << 32 | u64::from(cell(value, 1)?))
    });
    Ok(Gic {
        distributor,
        redistributors,
        stride,
        // INTID 25 is what the Base System Architecture names (DEN0094C, 3.6).
        maintenance: intid(node, 0).unwrap_or(25),
    })
}

fn timer(fdt: Fdt<'_>) -> Result<Timer, Error> {
    let node = find_compatible(fdt.root(), &["arm,armv8-timer"]).ok_or(Error::NoNode("timer"))?;
    let entry = |index| {
        intid(node, index).ok_or(Error::Property {
            node: "timer",
            property: "interrupts",
        })
    };
    // Binding order: secure physical, non-secure physical, virtual, hypervisor.
    Ok(Timer {
        phys: entry(1)?,
        virt: entry(2)?,
        hyp: entry(3)?,
    })
}

fn uart(fdt: Fdt<'_>) -> Option<Uart> {
    let path = chosen(fdt, "stdout-path")?;
    let path = path.split(':').next()?;
    let node = if path.starts_with('/') {
        fdt.find_node(path)?
    } else {
        fdt.find_node(string(fdt.find_node("/aliases")?, path)?)?
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
        let kind = UartKind::Ns16550 {
            shift: number("reg-shift").unwrap_or(0) as u8,
            width: number("reg-io-width").unwrap_or(1) as u8,
        };
        return Some(Uart { kind, base });
    }
    None
}
