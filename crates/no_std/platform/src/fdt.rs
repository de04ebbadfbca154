// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a flattened device tree (Devicetree Specification, release 0.4).

mod devices;
mod interrupts;
mod nodes;

use crate::claims::{Claims, Unfit};
use crate::tree::{Node, Tree, cell};
use crate::{
    AFFINITY, Conduit, Cpu, Enable, Error, Firmware, GicV2, MAX_BANKS, Name, Platform, Ram, Region,
    Report, Reserved, Room, name,
};
use devices::{claim_distributor, claim_redistributors, find_uart, read_gic, timer, usable_uart};
use nodes::Nodes;

/// A property of `/chosen`, and its value. Our own trees have the property if they were made from
/// ACPI tables.
pub const DESCRIBED_BY: &str = "rouse,described-by";
pub const ACPI: &str = "acpi";

impl<'a> Platform<'a> {
    /// Reads the machine from the flattened device tree `blob`; the machine's lists go into `room`.
    ///
    /// # Errors
    /// Returns an [`Error`] that names the node and property that is missing or does not have the form
    /// required by its binding.
    pub fn from_fdt(blob: &'a [u8], room: &'a mut Room) -> Result<Self, Error> {
        let tree = Tree::new(blob)?;
        let memory = read_memory(tree, room.end);
        // Missing RAM is reported last, since a boot loader may have written nothing else.
        let missing = memory.is_empty().then(|| no_memory(tree));
        let platform = Self::from_fdt_with_ram(blob, memory, room)?;
        missing.map_or(Ok(platform), Err)
    }

    /// Like [`Self::from_fdt`], for a machine with RAM `memory`; ignores the tree's RAM.
    ///
    /// # Errors
    /// Returns the errors of [`Self::from_fdt`].
    pub fn from_fdt_with_ram(
        blob: &'a [u8],
        memory: Ram,
        room: &'a mut Room,
    ) -> Result<Self, Error> {
        let tree = Tree::new(blob)?;
        let nodes = Nodes::from_tree(tree);
        let controller = nodes.gic()?;
        let psci = psci_conduit(&nodes)?;
        let timer = timer(&nodes)?;
        room.clear();
        let mut claims = Claims::new(&memory, room.end, &mut room.claimed);
        let registers_of_all = claim_distributor(&nodes, &mut claims)?;
        if registers_of_all.1.is_none() {
            claim_redistributors(controller, &mut claims, &mut room.redistributors)?;
        }
        let uart = match find_uart(&nodes) {
            Some((node, uart)) => {
                let unfit = |why| registers_error(&node, uart.base, why);
                let claimed = claims.claim(uart.registers(), uart.kind.alignment());
                claimed.map(|_| Some(uart)).map_err(unfit)?
            }
            None => None,
        };
        add_cpus(&nodes, room)?;
        let count = room.cpus.len() + room.ignored;
        if nodes.is_version2() {
            if count > GicV2::MAX_CPUS {
                return Err(Error::GicV2Cpus(count));
            }
            if let Some(mpidr) = GicV2::alike(&room.cpus) {
                return Err(Error::GicV2Clusters(mpidr));
            }
        }
        let room: &Room = room;
        Ok(Self {
            cpus: &room.cpus,
            cpus_ignored: room.ignored,
            memory,
            reserved: read_reserved(&nodes)?,
            gic: read_gic(&nodes, &timer, registers_of_all, &room.redistributors)?,
            timer,
            uart,
            psci,
            bootargs: in_chosen(&nodes, "bootargs").unwrap_or(""),
            hypervisor: hypervisor_name(&nodes),
            described_by: match in_chosen(&nodes, DESCRIBED_BY) {
                Some(ACPI) => Firmware::Acpi,
                _ => Firmware::Fdt,
            },
            watchdogs: nodes.watchdogs,
        })
    }
}

impl<'a> Report<'a> {
    /// Reads as much of the report as possible from the flattened device tree `blob`, even if the blob
    /// is damaged, for a machine whose physical addresses end at `end`.
    #[must_use]
    pub fn from_fdt(blob: &'a [u8], end: u64) -> Self {
        let nodes = Tree::as_far_as_it_goes(blob).map(Nodes::from_tree);
        let nodes = nodes.as_ref();
        let bootargs = nodes.and_then(|nodes| in_chosen(nodes, "bootargs"));
        Self {
            uart: nodes.and_then(|nodes| usable_uart(nodes, end, &read_memory(nodes.tree, end))),
            psci: nodes.and_then(|nodes| psci_conduit(nodes).ok().flatten()),
            // The blob may contain boot arguments to which its damaged structure does not lead.
            bootargs: bootargs.or_else(|| uart_argument(blob)).unwrap_or(""),
        }
    }
}

/// Returns the boot argument that names a UART, from anywhere in `blob`.
fn uart_argument(blob: &[u8]) -> Option<&str> {
    const KEY: &[u8] = b"rouse.uart=";
    let start = blob.windows(KEY.len()).position(|bytes| bytes == KEY)?;
    let rest = &blob[start..];
    let end = rest.iter().position(|byte| !byte.is_ascii_graphic());
    core::str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()
}

/// Returns the error about the registers of `node` at `base`.
fn registers_error(node: &Node<'_>, base: u64, why: Unfit) -> Error {
    let node = name(node.name).unwrap_or_default();
    Error::Registers { node, base, why }
}

fn in_chosen<'a>(nodes: &Nodes<'a>, name: &str) -> Option<&'a str> {
    nodes.chosen?.string(name)
}

/// Returns the `compatible` of the node with which hypervisors describe themselves (Linux bindings:
/// arm/xen.txt, and Devicetree Specification, 2.3.1, for the property).
fn hypervisor_name(nodes: &Nodes<'_>) -> Option<Name> {
    name(nodes.hypervisor?.property("compatible")?)
}

/// The `compatible` of the page that the monitor in `vmm/` provides: a name and the contents' version.
pub const MONITOR: &str = "rouse,kvm-exits-2";
/// The `compatible` of the monitor's page without its version.
const MONITORS: &str = "rouse,kvm-exits";

/// Returns the page in which a monitor reports how often vCPUs exited, if the tree `blob` has one.
#[must_use]
pub fn monitor(blob: &[u8]) -> Option<Region> {
    let mut nodes = Tree::new(blob).ok()?.nodes();
    let is = |node: &Node<'_>| {
        node.strings("compatible")
            .any(|name| name == MONITOR.as_bytes())
    };
    nodes.find(is)?.regions().next()
}

/// Returns the `compatible` of a monitor's page in the tree `blob` if its version differs from
/// [`MONITOR`]: the monitor is older or newer than the guest.
#[must_use]
pub fn other_monitor(blob: &[u8]) -> Option<&str> {
    let root = Tree::new(blob).ok()?.nodes().next()?;
    let found = root.children().find_map(|node| {
        let mut names = node.strings("compatible");
        names.find(|name| name.starts_with(MONITORS.as_bytes()))
    });
    core::str::from_utf8(found?)
        .ok()
        .filter(|name| *name != MONITOR)
}

fn psci_conduit(nodes: &Nodes<'_>) -> Result<Option<Conduit>, Error> {
    let Some(node) = nodes.psci else {
        return Ok(None);
    };
    match node.string("method") {
        Some("smc") => Ok(Some(Conduit::Smc)),
        Some("hvc") => Ok(Some(Conduit::Hvc)),
        _ => Err(Error::Property {
            node: "psci",
            property: "method",
        }),
    }
}

fn add_cpus(nodes: &Nodes<'_>, room: &mut Room) -> Result<(), Error> {
    let cpus = nodes.cpus.ok_or(Error::NoNode("cpus"))?;
    for cpu in cpus
        .children()
        .filter(|node| is_cpu(node) && !node.is_dead_cpu())
    {
        let reg = Error::Property {
            node: "cpu",
            property: "reg",
        };
        let mpidr = cpu.property("reg").and_then(read_address).ok_or(reg)?;
        let known = |other: &Cpu| other.mpidr == mpidr;
        if mpidr & !AFFINITY != 0 {
            return Err(reg);
        }
        if room.cpus.iter().any(known) {
            return Err(Error::SharedMpidr(mpidr));
        }
        let enable = enable_method(cpu, room.end)?;
        room.add(Cpu { mpidr, enable });
    }
    if room.cpus.is_empty() {
        return Err(Error::NoNode("cpu"));
    }
    room.sort();
    Ok(())
}

/// Whether `node` is a CPU by its name or, as in Linux, by its type.
fn is_cpu(node: &Node<'_>) -> bool {
    node.kind() == b"cpu" || node.string("device_type") == Some("cpu")
}

/// Reads a number of one or two cells.
fn read_address(value: &[u8]) -> Option<u64> {
    let high = match value.len() {
        4 => return cell(value, 0).map(u64::from),
        8 => cell(value, 0)?,
        _ => return None,
    };
    Some(u64::from(high) << 32 | u64::from(cell(value, 1)?))
}

fn enable_method(cpu: Node<'_>, end: u64) -> Result<Enable, Error> {
    match cpu.string("enable-method") {
        Some("psci") => Ok(Enable::Psci),
        Some("spin-table") => {
            let release = cpu.property("cpu-release-addr").and_then(read_address);
            // Trees have 0 here if the loader has to write the address.
            let Some(release) = release.filter(|release| *release != 0) else {
                return Err(Error::NoReleaseAddress);
            };
            let word = Region {
                base: release,
                size: 8,
            };
            match Unfit::check_region(word, word.size, end, &[]) {
                Some(why) => Err(registers_error(&cpu, release, why)),
                None => Ok(Enable::SpinTable(release)),
            }
        }
        // Without a method, the CPU is already running, or entered the image together with the first CPU.
        None => Ok(Enable::Held),
        Some(_) => Err(Error::EnableMethod),
    }
}

/// Returns the nodes of RAM. The tree also describes the secure side's RAM, for that side, and
/// marks it as disabled for us.
fn memory_nodes(tree: Tree<'_>) -> impl Iterator<Item = Node<'_>> {
    let children = tree
        .nodes()
        .next()
        .into_iter()
        .flat_map(|root| root.children());
    children.filter(|node| node.string("device_type") == Some("memory") && !node.is_off())
}

/// Returns the RAM below `end`.
fn read_memory(tree: Tree<'_>, end: u64) -> Ram {
    let regions = memory_nodes(tree).flat_map(|node| node.regions());
    let below = regions
        .filter(|region| region.base < end)
        .map(|region| Region {
            base: region.base,
            size: region.size.min(end - region.base),
        });
    // Banks that do not fit stay unused, which is not an error.
    below
        .filter(|region| region.size > 0)
        .take(MAX_BANKS)
        .collect()
}

/// Returns the error that explains why there is no RAM.
fn no_memory(tree: Tree<'_>) -> Error {
    match memory_nodes(tree).next() {
        None => Error::NoNode("memory"),
        Some(_) => Error::Property {
            node: "memory",
            property: "reg",
        },
    }
}

fn read_reserved(nodes: &Nodes<'_>) -> Result<Reserved, Error> {
    let mut reserved: Reserved = nodes.tree.reservations().collect();
    let children = nodes
        .reserved_memory
        .into_iter()
        .flat_map(|node| node.children());
    // A region without `reg` has yet to be placed (reserved-memory binding).
    let placed = |node: &Node<'_>| node.property("reg").is_some() && !node.is_off();
    for node in children.filter(placed) {
        let regions = node.local_regions().ok_or(Error::Property {
            node: "reserved-memory",
            property: "reg",
        })?;
        regions.for_each(|region| reserved.keep(region));
    }
    Ok(reserved)
}
