// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a flattened device tree (Devicetree Specification, release 0.4).

mod devices;
mod nodes;

use arrayvec::ArrayVec;
use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};

use crate::{
    AFFINITY, Conduit, Cpu, Enable, Error, Firmware, Name, Platform, Region, Report, Room, name,
};
use devices::{gic, redistributors, timer, uart};
use nodes::{MAX_DEPTH, Nodes};

/// A property of `/chosen` that our own trees have where they tell what ACPI tables say,
/// and its value.
pub const DESCRIBED_BY: &str = "rouse,described-by";
pub const ACPI: &str = "acpi";

impl<'a> Platform<'a> {
    /// Reads the machine from the flattened device tree `blob`; its lists go into `room`.
    ///
    /// # Errors
    /// An [`Error`] that names the node and property that is missing or has
    /// another form than its binding requires.
    pub fn from_fdt(blob: &'a [u8], room: &'a mut Room) -> Result<Self, Error> {
        let fdt = Fdt::new(blob).map_err(|_| Error::Malformed)?;
        let nodes = Nodes::of(fdt);
        if nodes.deep {
            return Err(Error::TooDeep(MAX_DEPTH));
        }
        let psci = psci(&nodes)?;
        let timer = timer(&nodes)?;
        room.clear();
        cpus(fdt, room)?;
        redistributors(&nodes, room)?;
        let room: &Room = room;
        Ok(Self {
            cpus: &room.cpus,
            cpus_ignored: room.ignored,
            memory: memory(fdt)?,
            reserved: reserved(&nodes)?,
            gic: gic(&nodes, &timer, &room.redistributors)?,
            timer,
            uart: uart(&nodes),
            psci,
            bootargs: chosen(&nodes, "bootargs").unwrap_or(""),
            hypervisor: hypervisor(&nodes),
            described_by: match chosen(&nodes, DESCRIBED_BY) {
                Some(ACPI) => Firmware::Acpi,
                _ => Firmware::Fdt,
            },
            watchdogs: nodes.watchdogs,
        })
    }
}

impl<'a> Report<'a> {
    /// Reads what there is of it in the flattened device tree `blob`.
    #[must_use]
    pub fn from_fdt(blob: &'a [u8]) -> Self {
        let nodes = Fdt::new(blob).ok().map(Nodes::of);
        let nodes = nodes.as_ref();
        let bootargs = nodes.and_then(|nodes| chosen(nodes, "bootargs"));
        Self {
            uart: nodes.and_then(uart),
            psci: nodes.and_then(|nodes| psci(nodes).ok().flatten()),
            bootargs: bootargs.unwrap_or(""),
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

fn chosen<'a>(nodes: &Nodes<'a>, name: &str) -> Option<&'a str> {
    string(nodes.chosen?, name)
}

/// What the node is compatible with that hypervisors describe themselves by (Linux bindings:
/// arm/xen.txt, and Devicetree Specification, 2.3.1, for the property).
fn hypervisor(nodes: &Nodes<'_>) -> Option<Name> {
    let compatible = nodes.hypervisor?.property("compatible")?;
    name(compatible.value())
}

/// What the monitor's page of `vmm/` is compatible with: a name, and the version of what is in it.
pub const MONITOR: &str = "rouse,kvm-exits-2";
/// With whatever version.
const MONITORS: &str = "rouse,kvm-exits";

/// The page by which a monitor tells how often vCPUs were left, where the tree `blob` has one.
#[must_use]
pub fn monitor(blob: &[u8]) -> Option<Region> {
    let fdt = Fdt::new(blob).ok()?;
    regions(find_compatible(fdt.root(), &[MONITOR])?).next()
}

/// What such a page in the tree `blob` is compatible with if it is of another version than
/// [`MONITOR`]: the monitor is older than the guest, or newer.
#[must_use]
pub fn other_monitor(blob: &[u8]) -> Option<&str> {
    let mut children = Fdt::new(blob).ok()?.root().children();
    let found = children.find_map(|node| {
        let mut names = node.compatible()?;
        names.find(|name| name.starts_with(MONITORS))
    });
    found.filter(|name| *name != MONITOR)
}

fn psci(nodes: &Nodes<'_>) -> Result<Option<Conduit>, Error> {
    let Some(node) = nodes.psci else {
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

/// Whether a node is there and must not be used (Devicetree Specification 0.4, 2.3.4).
fn is_off(node: FdtNode<'_>) -> bool {
    matches!(string(node, "status"), Some("disabled" | "fail"))
}

fn cpus(fdt: Fdt<'_>, room: &mut Room) -> Result<(), Error> {
    let cpus = fdt.cpus().map_err(|_| Error::NoNode("cpus"))?;
    for cpu in cpus.cpus() {
        if is_off(*cpu) {
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
        let known = |other: &Cpu| other.mpidr == mpidr;
        if mpidr & !AFFINITY != 0 || room.cpus.iter().any(known) {
            return Err(reg);
        }
        let enable = enable(*cpu)?;
        room.add(Cpu { mpidr, enable });
    }
    if room.cpus.is_empty() {
        return Err(Error::NoNode("cpu"));
    }
    room.sort();
    Ok(())
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
        // The RAM of the secure side is described as well, for it, and disabled for us.
        if string(node, "device_type") == Some("memory") && !is_off(node) {
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

fn reserved(nodes: &Nodes<'_>) -> Result<ArrayVec<Region, 32>, Error> {
    let mut reserved = ArrayVec::new();
    // One that is not kept would be used.
    let mut keep = |region| {
        let error = Error::TooMany("reserved regions", 32);
        reserved.try_push(region).map_err(|_| error)
    };
    for entry in nodes.fdt.memory_reservations() {
        keep(Region {
            base: entry.address(),
            size: entry.size(),
        })?;
    }
    if let Some(node) = nodes.reserved_memory {
        for child in node.children() {
            regions(child).try_for_each(&mut keep)?;
        }
    }
    Ok(reserved)
}
