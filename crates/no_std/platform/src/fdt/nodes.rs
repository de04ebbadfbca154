// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nodes of a device tree that describe a machine's devices, found in one walk: separate
//! searches would each walk a tree that is read without caches.

use crate::tree::{Node, Tree};
use crate::{Error, Watchdog, Watchdogs, name};

/// Controllers of GICv2 (bindings: arm,gic).
const VERSION_2: [&[u8]; 5] = [
    b"arm,gic-400",
    b"arm,cortex-a15-gic",
    b"arm,cortex-a7-gic",
    b"brcm,brahma-b15-gic",
    b"qcom,msm-qgic2",
];
/// Controllers of GICv1 (bindings: arm,gic).
const VERSION_1: [&[u8]; 3] = [b"arm,cortex-a9-gic", b"arm,pl390", b"qcom,msm-8660-qgic"];

/// The nodes of interest. If there are several of a kind, the first one in depth-first order counts.
pub struct Nodes<'a> {
    pub tree: Tree<'a>,
    /// A GICv3 or later.
    gic: Option<Node<'a>>,
    version2: Option<Node<'a>>,
    /// The error that names an unsupported controller, if the machine has one that is known.
    other_gic: Option<Error>,
    pub timer: Option<Node<'a>>,
    pub psci: Option<Node<'a>>,
    pub watchdogs: Watchdogs,
    pub chosen: Option<Node<'a>>,
    pub aliases: Option<Node<'a>>,
    pub hypervisor: Option<Node<'a>>,
    pub reserved_memory: Option<Node<'a>>,
    pub cpus: Option<Node<'a>>,
}

impl<'a> Nodes<'a> {
    pub fn from_tree(tree: Tree<'a>) -> Self {
        let mut nodes = Self {
            tree,
            gic: None,
            version2: None,
            other_gic: None,
            timer: None,
            psci: None,
            watchdogs: Watchdogs::default(),
            chosen: None,
            aliases: None,
            hypervisor: None,
            reserved_memory: None,
            cpus: None,
        };
        tree.nodes().for_each(|node| nodes.record_node(node));
        nodes
    }

    /// Returns the GIC's node; if there are several, the one of the latest version.
    pub fn gic(&self) -> Result<Node<'a>, Error> {
        let other = || self.other_gic.or_else(|| self.controller_error());
        let gic = self.gic.or(self.version2);
        gic.ok_or_else(|| other().unwrap_or(Error::NoNode("GICv3 (arm,gic-v3)")))
    }

    /// Whether [`Self::gic`] returns a GICv2.
    pub const fn is_version2(&self) -> bool {
        self.gic.is_none() && self.version2.is_some()
    }

    /// Names the machine's interrupt controller, to which the root node refers.
    fn controller_error(&self) -> Option<Error> {
        let parent = self.tree.find("/")?.cell("interrupt-parent")?;
        let controller = self.tree.by_phandle(parent)?;
        name(controller.strings("compatible").next()?).map(Error::Controller)
    }

    fn record_node(&mut self, node: Node<'a>) {
        if node.depth() == 1 {
            let known = match node.kind() {
                b"chosen" => Some(&mut self.chosen),
                b"aliases" => Some(&mut self.aliases),
                b"hypervisor" => Some(&mut self.hypervisor),
                b"reserved-memory" => Some(&mut self.reserved_memory),
                b"cpus" => Some(&mut self.cpus),
                _ => None,
            };
            if let Some(known) = known {
                known.get_or_insert(node);
            }
        }
        for name in node.strings("compatible") {
            let known = match name {
                b"arm,gic-v3" => &mut self.gic,
                // 32-bit trees use `arm,armv7-timer`, which lists the same interrupts.
                b"arm,armv8-timer" | b"arm,armv7-timer" => &mut self.timer,
                b"arm,psci-1.0" | b"arm,psci-0.2" => &mut self.psci,
                b"arm,sbsa-gwdt" => {
                    self.watchdogs.add(read_watchdog(node));
                    continue;
                }
                b"arm,gic-v5" => {
                    self.other_gic = Some(Error::GicV5);
                    continue;
                }
                name if VERSION_2.contains(&name) => &mut self.version2,
                name if VERSION_1.contains(&name) => {
                    self.other_gic.get_or_insert(Error::GicV1);
                    continue;
                }
                _ => continue,
            };
            if !node.is_off() {
                known.get_or_insert(node);
            } else if name == b"arm,gic-v3" || VERSION_2.contains(&name) {
                self.other_gic.get_or_insert(Error::GicOff);
            }
        }
    }
}

/// Reads a generic watchdog (bindings: arm,sbsa-gwdt); its control frame comes first. A watchdog
/// without a frame gets address 0.
fn read_watchdog(node: Node<'_>) -> Watchdog {
    Watchdog {
        control: node.regions().next().map_or(0, |frame| frame.base),
        // The secure side's watchdog is marked as disabled for us (bindings: arm/secure.txt).
        kept: node.is_off_or_below_off(),
    }
}
