// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nodes of a device tree that say what a machine has, found in one walk: each search would be a walk
//! of its own, of a tree that is read without caches.

use dtoolkit::Node;
use dtoolkit::fdt::{Fdt, FdtNode};

use super::{is_off, regions};
use crate::{Watchdog, Watchdogs};

/// How deep nodes are nested at most: more than in any machine's tree, and few
/// enough for the stack of EL2.
pub const MAX_DEPTH: usize = 16;

/// What is in place of a GICv3 (bindings: arm,gic).
const OLDER_GICS: [&str; 4] = [
    "arm,gic-400",
    "arm,cortex-a15-gic",
    "arm,cortex-a7-gic",
    "arm,cortex-a9-gic",
];

/// Those that are looked at. Of several of a kind the first one counts, depth first.
pub struct Nodes<'a> {
    pub fdt: Fdt<'a>,
    /// Nodes are nested deeper than [`MAX_DEPTH`]; those below were not looked at.
    pub deep: bool,
    pub gic: Option<FdtNode<'a>>,
    pub older_gic: bool,
    pub timer: Option<FdtNode<'a>>,
    pub psci: Option<FdtNode<'a>>,
    pub watchdogs: Watchdogs,
    pub chosen: Option<FdtNode<'a>>,
    pub aliases: Option<FdtNode<'a>>,
    pub hypervisor: Option<FdtNode<'a>>,
    pub reserved_memory: Option<FdtNode<'a>>,
}

impl<'a> Nodes<'a> {
    pub fn of(fdt: Fdt<'a>) -> Self {
        let mut nodes = Self {
            fdt,
            deep: false,
            gic: None,
            older_gic: false,
            timer: None,
            psci: None,
            watchdogs: Watchdogs::default(),
            chosen: None,
            aliases: None,
            hypervisor: None,
            reserved_memory: None,
        };
        nodes.walk(fdt.root(), 0);
        nodes
    }

    /// Looks at `node`, `depth` below the root, and at those in it.
    fn walk(&mut self, node: FdtNode<'a>, depth: usize) {
        self.look(node, depth);
        for child in node.children() {
            if depth == MAX_DEPTH {
                self.deep = true;
                return;
            }
            self.walk(child, depth + 1);
        }
    }

    fn look(&mut self, node: FdtNode<'a>, depth: usize) {
        if depth == 1 {
            let known = match node.name_without_address() {
                "chosen" => Some(&mut self.chosen),
                "aliases" => Some(&mut self.aliases),
                "hypervisor" => Some(&mut self.hypervisor),
                "reserved-memory" => Some(&mut self.reserved_memory),
                _ => None,
            };
            if let Some(known) = known {
                known.get_or_insert(node);
            }
        }
        for name in node.compatible().into_iter().flatten() {
            let known = match name {
                "arm,gic-v3" => &mut self.gic,
                "arm,armv8-timer" => &mut self.timer,
                "arm,psci-1.0" | "arm,psci-0.2" => &mut self.psci,
                "arm,sbsa-gwdt" => {
                    self.watchdogs.add(watchdog(node));
                    continue;
                }
                _ => {
                    self.older_gic |= OLDER_GICS.contains(&name);
                    continue;
                }
            };
            known.get_or_insert(node);
        }
    }
}

/// A generic watchdog (bindings: arm,sbsa-gwdt); its control frame comes first. One without
/// a frame has the address 0.
fn watchdog(node: FdtNode<'_>) -> Watchdog {
    Watchdog {
        control: regions(node).next().map_or(0, |frame| frame.base),
        // The secure side's is disabled for us (bindings: arm/secure.txt).
        kept: is_off(node),
    }
}
