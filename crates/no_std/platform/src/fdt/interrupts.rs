// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts of a node: PPIs of the GIC (Devicetree Specification, 2.4; bindings: arm,gic-v3).

use crate::tree::{Node, Tree, cell};

/// INTIDs of PPIs, from 16 up to SPIs, which start at 32.
const PPIS: core::ops::Range<u32> = 16..32;
/// Value of an interrupt's first cell for a PPI.
const PPI: u32 = 1;

/// Returns how many cells a GIC interrupt has.
pub fn interrupt_cells(gic: &Node<'_>) -> Option<usize> {
    let cells = gic.cell("#interrupt-cells")? as usize;
    (3..=8).contains(&cells).then_some(cells)
}

/// The interrupts of one node.
pub struct Interrupts<'a> {
    tree: Tree<'a>,
    node: Node<'a>,
    gic: Node<'a>,
}

impl<'a> Interrupts<'a> {
    pub const fn new(node: Node<'a>, gic: Node<'a>, tree: Tree<'a>) -> Self {
        Self { tree, node, gic }
    }

    /// Returns the property that describes the interrupts, if any; `interrupts-extended` takes precedence (2.4.1.4).
    pub fn property(&self) -> Option<&'static str> {
        let properties = ["interrupts-extended", "interrupts"];
        let mut there = properties.into_iter();
        there.find(|name| self.node.property(name).is_some())
    }

    /// Returns the INTID of the interrupt with that name or, without names, of the interrupt at `index`. The inner
    /// value is `None` if there is no such interrupt; the outer value is `None` if the interrupt is not a PPI.
    pub fn ppi(&self, name: &str, index: usize) -> Option<Option<u32>> {
        let index = match self.node.property("interrupt-names") {
            None => Some(index),
            Some(_) => {
                let mut names = self.node.strings("interrupt-names");
                names.position(|other| other == name.as_bytes())
            }
        };
        let Some(index) = index else {
            return Some(None);
        };
        let entry = match self.property()? {
            "interrupts" => self.plain_entry(index),
            _ => self.extended_entry(index),
        };
        let Some(entry) = entry? else {
            return Some(None);
        };
        let intid = cell(entry, 1)?.checked_add(PPIS.start)?;
        (cell(entry, 0)? == PPI && PPIS.contains(&intid)).then_some(Some(intid))
    }

    /// Returns entry `index` of `interrupts`.
    fn plain_entry(&self, index: usize) -> Option<Option<&'a [u8]>> {
        let mut ancestor = Some(self.node);
        let parent = loop {
            match ancestor {
                Some(node) if node.cell("interrupt-parent").is_some() => {
                    break node.cell("interrupt-parent");
                }
                Some(node) => ancestor = node.parent(),
                None => break None,
            }
        };
        let width = 4 * self.cells_per_interrupt(parent)?;
        let value = self.node.property("interrupts")?;
        if !value.len().is_multiple_of(width) {
            return None;
        }
        Some(value.chunks_exact(width).nth(index))
    }

    /// Returns entry `index` of `interrupts-extended`; each entry follows its controller's phandle.
    fn extended_entry(&self, mut index: usize) -> Option<Option<&'a [u8]>> {
        let mut rest = self.node.property("interrupts-extended")?;
        while !rest.is_empty() {
            let controller = cell(rest, 0)?;
            let end = 4 + 4 * self.cells_per_interrupt(Some(controller))?;
            let entry = rest.get(4..end)?;
            if index == 0 {
                return Some(Some(entry));
            }
            (index, rest) = (index - 1, &rest[end..]);
        }
        Some(None)
    }

    /// Returns how many cells an interrupt has at `controller`. `None` or the GIC's phandle means the
    /// GIC.
    fn cells_per_interrupt(&self, controller: Option<u32>) -> Option<usize> {
        let other = controller.filter(|&other| self.gic.phandle() != Some(other));
        match other.and_then(|other| self.tree.by_phandle(other)) {
            Some(other) => {
                let cells = other.cell("#interrupt-cells")? as usize;
                (1..=8).contains(&cells).then_some(cells)
            }
            None => interrupt_cells(&self.gic),
        }
    }
}
