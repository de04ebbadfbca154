// SPDX-License-Identifier: MIT OR Apache-2.0
//! The structure of a flattened device tree (Devicetree Specification, release 0.4, chapter 5).
//!
//! The checks cover tokens, lengths and nesting, and nothing else: names may have any length and
//! spelling, as loaders and `dtc` write them.

use crate::{Error, Region};

/// Maximum nesting of nodes: deeper than in any machine's tree, and small enough for the stack of
/// EL2.
pub const MAX_DEPTH: usize = 16;

/// First word of a tree (5.2).
pub const MAGIC: u32 = 0xd00d_feed;
/// The supported version; other versions must be compatible with it (5.2).
const VERSION: u32 = 17;

/// Tokens of the structure (5.4.1).
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;

/// A tree. Iteration skips damaged parts of its structure.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    blob: &'a [u8],
    /// Offsets in `blob` at which the structure begins and ends.
    structure: usize,
    end: usize,
    strings: &'a [u8],
    reservations: &'a [u8],
}

/// Meaning of a token.
enum Item<'a> {
    Begin(&'a [u8]),
    End,
    /// Offset of the name in the strings, and the value.
    Property(usize, &'a [u8]),
    Nop,
    Last,
}

/// Returns big-endian cell `index` of `bytes`.
pub fn cell(bytes: &[u8], index: usize) -> Option<u32> {
    let at = index.checked_mul(4)?;
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

impl<'a> Tree<'a> {
    /// Returns the tree in `blob`, which must be entirely well-formed.
    ///
    /// # Errors
    /// Returns [`Error::Malformed`] with the offset, or [`Error::TooDeep`].
    pub fn new(blob: &'a [u8]) -> Result<Self, Error> {
        let tree = Self::as_far_as_it_goes(blob).ok_or(Error::Malformed(0))?;
        let field = |index| cell(blob, index).unwrap_or(0) as usize;
        let fits = |start: usize, size: usize| {
            let end = start.checked_add(size);
            end.is_some_and(|end| end <= blob.len())
        };
        // Fields 5 and 6: its version, and the oldest version that it is compatible with.
        if field(5) < VERSION as usize || field(6) > VERSION as usize {
            return Err(Error::Version(field(5) as u32, field(6) as u32));
        }
        for (at, start, size) in [
            (4, 0, field(1)),
            (8, field(2), field(9)),
            (12, field(3), field(8)),
        ] {
            if !fits(start, size) {
                return Err(Error::Malformed(at));
            }
        }
        tree.check_structure().map(|()| tree)
    }

    /// Returns the well-formed parts of the tree in `blob`; `None` if `blob` does not begin like a tree.
    pub fn as_far_as_it_goes(blob: &'a [u8]) -> Option<Self> {
        if cell(blob, 0)? != MAGIC {
            return None;
        }
        let field = |index| cell(blob, index).map(|field| (field as usize).min(blob.len()));
        let ends = |start: usize, size: usize| start.saturating_add(size).min(blob.len());
        let (structure, strings) = (field(2)?, field(3)?);
        let strings = &blob[strings..ends(strings, field(8)?)];
        // Excludes the last name if it has no terminator.
        let names = strings.iter().rposition(|&byte| byte == 0);
        Some(Self {
            blob,
            structure,
            end: ends(structure, field(9)?),
            strings: &strings[..names.map_or(0, |last| last + 1)],
            reservations: &blob[field(4)?..],
        })
    }

    /// Returns the regions of the memory reservation block (5.3), without the entry that ends the block.
    pub fn reservations(&self) -> impl Iterator<Item = Region> + 'a {
        let entries = self.reservations.chunks_exact(16).map(|entry| Region {
            base: read_number(&entry[..8]).unwrap_or(0),
            size: read_number(&entry[8..]).unwrap_or(0),
        });
        entries.take_while(|entry| entry.base != 0 || entry.size != 0)
    }

    /// Returns all nodes, each before its children; the root comes first.
    pub fn nodes(&self) -> Nodes<'a> {
        Nodes {
            tree: *self,
            at: self.structure,
            path: Path::default(),
            least: 0,
        }
    }

    /// Returns the node at `path`, from the root; the names in `path` may lack their unit addresses.
    pub fn find(&self, path: &str) -> Option<Node<'a>> {
        let names = path.split('/').filter(|name| !name.is_empty());
        let mut node = self.nodes().next()?;
        for name in names {
            let is =
                |child: &Node<'_>| child.name == name.as_bytes() || child.kind() == name.as_bytes();
            node = node.children().find(is)?;
        }
        Some(node)
    }

    /// Returns the node to which other nodes refer with `phandle` (2.3.3).
    pub fn by_phandle(&self, phandle: u32) -> Option<Node<'a>> {
        self.nodes().find(|node| node.phandle() == Some(phandle))
    }

    /// Checks that the structure is well-formed up to its end token.
    fn check_structure(&self) -> Result<(), Error> {
        let (mut at, mut depth, mut after_node) = (self.structure, 0, false);
        loop {
            let damaged = Error::Malformed(at);
            let (item, next) = self.item_at(at).ok_or(damaged)?;
            match item {
                // There is only one root.
                Item::Begin(_) if depth == 0 && after_node => return Err(damaged),
                Item::Begin(_) if depth > MAX_DEPTH => return Err(Error::TooDeep(MAX_DEPTH)),
                Item::Begin(_) => (depth, after_node) = (depth + 1, false),
                Item::End if depth == 0 => return Err(damaged),
                Item::End => (depth, after_node) = (depth - 1, true),
                // Properties come before the child nodes (5.4.2).
                Item::Property(name, _)
                    if depth == 0 || after_node || name >= self.strings.len() =>
                {
                    return Err(damaged);
                }
                Item::Last if depth == 0 && after_node => return Ok(()),
                Item::Last => return Err(damaged),
                Item::Property(..) | Item::Nop => {}
            }
            at = next;
        }
    }

    /// Like [`Self::item_at`], but guesses a damaged item, since the report of a refusal may need
    /// items after the damage. A checked tree has no damaged items.
    fn item_or_guess(&self, at: usize) -> Option<(Item<'a>, usize)> {
        let tokens = [PROPERTY, BEGIN_NODE, END_NODE].into_iter();
        let before = |next: usize| {
            self.item_at(next)
                .is_some_and(|(item, _)| self.is_likely(&item))
        };
        let seems = |token| {
            let (item, next) = self.item_of_token(token, at)?;
            (self.is_likely(&item) && before(next)).then_some((item, next))
        };
        let whole = |at: &usize| {
            let found = self.item_at(*at).map(|(item, _)| item);
            found.is_some_and(|item| {
                !matches!(item, Item::End | Item::Last) && self.is_likely(&item)
            })
        };
        let later = || (at + 4..self.end).step_by(4).find(whole);
        self.item_at(at)
            .or_else(|| tokens.clone().find_map(seems))
            .or_else(|| Some((Item::Nop, later()?)))
    }

    /// Whether `item` is probably an item, and not a part of something else.
    fn is_likely(&self, item: &Item<'_>) -> bool {
        match item {
            Item::Begin(name) => !name.is_empty() && name.iter().all(u8::is_ascii_graphic),
            Item::Property(0, _) => true,
            // A name is plausible if it begins where a string begins.
            Item::Property(name, _) => self.strings.get(name - 1) == Some(&0),
            Item::End | Item::Last => true,
            Item::Nop => false,
        }
    }

    /// Returns the item at offset `at`, and the offset of the next token.
    fn item_at(&self, at: usize) -> Option<(Item<'a>, usize)> {
        self.item_of_token(cell(self.blob.get(at..self.end)?, 0)?, at)
    }

    /// Returns the item of `token` at offset `at`, and the offset of the next token.
    fn item_of_token(&self, token: u32, at: usize) -> Option<(Item<'a>, usize)> {
        let rest = self.blob.get(at..self.end)?;
        let padded = |size: usize| size.checked_next_multiple_of(4)?.checked_add(at);
        match token {
            BEGIN_NODE => {
                let name = rest.get(4..)?;
                let name = &name[..name.iter().position(|&byte| byte == 0)?];
                Some((Item::Begin(name), padded(name.len() + 5)?))
            }
            END_NODE => Some((Item::End, at + 4)),
            PROPERTY => {
                let end = 12_usize.checked_add(cell(rest, 1)? as usize)?;
                let value = rest.get(12..end)?;
                Some((Item::Property(cell(rest, 2)? as usize, value), padded(end)?))
            }
            NOP => Some((Item::Nop, at + 4)),
            END => Some((Item::Last, at + 4)),
            _ => None,
        }
    }
}

/// The starts of a node's ancestors, from the root on.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    depth: usize,
    at: [usize; MAX_DEPTH + 1],
}

/// An iterator over nodes, each before its children.
#[derive(Clone, Debug)]
pub struct Nodes<'a> {
    tree: Tree<'a>,
    at: usize,
    path: Path,
    /// The walk ends at a node less deep than this.
    least: usize,
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        loop {
            let (item, next) = self.tree.item_or_guess(self.at)?;
            self.at = next;
            let path = &mut self.path;
            match item {
                Item::Begin(name) => {
                    *path.at.get_mut(path.depth)? = next;
                    let node = Node {
                        tree: self.tree,
                        name,
                        path: *path,
                    };
                    path.depth += 1;
                    return Some(node);
                }
                Item::End => {
                    path.depth = path
                        .depth
                        .checked_sub(1)
                        .filter(|depth| *depth >= self.least)?;
                }
                Item::Last => return None,
                Item::Property(..) | Item::Nop => {}
            }
        }
    }
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    tree: Tree<'a>,
    /// The node's name, with the unit address.
    pub name: &'a [u8],
    path: Path,
}

impl<'a> Node<'a> {
    /// Returns the number of the node's ancestors.
    pub const fn depth(&self) -> usize {
        self.path.depth
    }

    /// Returns the node's name, without the unit address.
    pub fn kind(&self) -> &'a [u8] {
        let end = self.name.iter().position(|&byte| byte == b'@');
        &self.name[..end.unwrap_or(self.name.len())]
    }

    /// Returns the node's children, without their own children.
    pub fn children(&self) -> impl Iterator<Item = Self> + use<'a> {
        let mut path = self.path;
        path.depth += 1;
        let depth = path.depth;
        let inside = Nodes {
            tree: self.tree,
            at: self.first_property(),
            path,
            least: depth,
        };
        inside.filter(move |node| node.depth() == depth)
    }

    /// Returns the value of a property.
    pub fn property(&self, name: &str) -> Option<&'a [u8]> {
        let mut at = self.first_property();
        loop {
            let (item, next) = self.tree.item_or_guess(at)?;
            match item {
                Item::Property(offset, value) => {
                    let found = self.tree.strings.get(offset..).unwrap_or(&[]);
                    if found
                        .strip_prefix(name.as_bytes())
                        .is_some_and(|rest| rest.first() == Some(&0))
                    {
                        return Some(value);
                    }
                }
                Item::Nop => {}
                _ => return None,
            }
            at = next;
        }
    }

    /// Returns the names of the node's properties.
    pub fn property_names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (tree, mut at) = (self.tree, self.first_property());
        core::iter::from_fn(move || {
            loop {
                let (item, next) = tree.item_or_guess(at)?;
                at = next;
                match item {
                    Item::Property(offset, _) => {
                        let name = tree.strings.get(offset..).unwrap_or(&[]);
                        return name.split(|&byte| byte == 0).next();
                    }
                    Item::Nop => {}
                    _ => return None,
                }
            }
        })
    }

    /// Returns a property's string, or the first one if it has several.
    pub fn string(&self, name: &str) -> Option<&'a str> {
        let text = self.property(name)?;
        let end = text.iter().position(|&byte| byte == 0);
        core::str::from_utf8(&text[..end.unwrap_or(text.len())]).ok()
    }

    /// Returns the strings of a property.
    pub fn strings(&self, name: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let value = self.property(name).unwrap_or(&[]);
        value
            .split(|&byte| byte == 0)
            .filter(|text| !text.is_empty())
    }

    /// Returns the value of a property that is a number of one cell.
    pub fn cell(&self, name: &str) -> Option<u32> {
        cell(self.property(name)?, 0)
    }

    /// Returns the number with which other nodes refer to this node.
    pub fn phandle(&self) -> Option<u32> {
        self.cell("phandle").or_else(|| self.cell("linux,phandle"))
    }

    /// Returns the node's parent.
    pub fn parent(&self) -> Option<Self> {
        let mut path = self.path;
        path.depth = path.depth.checked_sub(1)?;
        Some(Self {
            // No caller asks an ancestor for its name.
            name: &[],
            path,
            ..*self
        })
    }

    /// Whether the node must not be used: it has a `status` other than `okay` and `ok`, which Linux also
    /// accepts (2.3.4).
    pub fn is_off(&self) -> bool {
        self.property("status").is_some() && !matches!(self.string("status"), Some("okay" | "ok"))
    }

    /// Whether the node or one of its ancestors must not be used.
    pub fn is_off_or_below_off(&self) -> bool {
        core::iter::successors(Some(*self), Self::parent).any(|node| node.is_off())
    }

    /// Whether this CPU node has failed, or is disabled and not started through PSCI. With PSCI,
    /// `disabled` means that the CPU waits to be started (3.8.1).
    pub fn is_dead_cpu(&self) -> bool {
        match self.string("status") {
            Some("disabled") => self.string("enable-method") != Some("psci"),
            Some(status) => status == "fail" || status.starts_with("fail-"),
            None => false,
        }
    }

    /// Returns the regions of the node's `reg`, as its parent sees them; `None` if `reg` is malformed.
    pub fn local_regions(&self) -> Option<impl Iterator<Item = Region> + use<'a>> {
        let parent = self.parent()?;
        let (address, size) = (parent.address_cells(), parent.size_cells());
        let (reg, entry) = (self.property("reg")?, 4 * (address + size));
        let whole = entry > 0 && reg.len().is_multiple_of(entry);
        whole.then(|| {
            reg.chunks_exact(entry).filter_map(move |entry| {
                let (base, size) = entry.split_at(4 * address);
                let (base, size) = (read_number(base)?, read_number(size)?);
                Some(Region { base, size })
            })
        })
    }

    /// Returns the regions of the node's `reg`, as CPUs see them. The list ends at a region that they can't reach.
    pub fn regions(&self) -> impl Iterator<Item = Region> + use<'a> {
        let bus = self.parent();
        let regions = self.local_regions().into_iter().flatten();
        regions.map_while(move |region| {
            let base = bus?.to_cpu(region.base)?;
            Some(Region { base, ..region })
        })
    }

    /// Translates `address` on this bus to the address that CPUs see (2.3.8).
    fn to_cpu(self, mut address: u64) -> Option<u64> {
        let mut bus = self;
        while let Some(parent) = bus.parent() {
            let ranges = bus.property("ranges")?;
            if !ranges.is_empty() {
                let (child, size) = (4 * bus.address_cells(), 4 * bus.size_cells());
                let wide = 4 * parent.address_cells();
                let mut entries = ranges.chunks_exact((child + wide + size).max(1));
                address = entries.find_map(|entry| {
                    let offset = address.checked_sub(read_number(&entry[..child])?)?;
                    let inside = offset < read_number(&entry[child + wide..])?;
                    inside.then_some(read_number(&entry[child..child + wide])?.checked_add(offset)?)
                })?;
            }
            bus = parent;
        }
        Some(address)
    }

    /// Returns the numbers of cells of an address and of a size in the node's children (2.3.5);
    /// limited to 8, which is as invalid as 0.
    fn address_cells(&self) -> usize {
        self.cell("#address-cells").unwrap_or(2).min(8) as usize
    }

    fn size_cells(&self) -> usize {
        self.cell("#size-cells").unwrap_or(1).min(8) as usize
    }

    /// Returns the offset of the node's first property.
    const fn first_property(&self) -> usize {
        self.path.at[self.path.depth]
    }
}

/// Reads a number of several cells; `None` if it has more than 64 bits.
fn read_number(cells: &[u8]) -> Option<u64> {
    let (high, low) = cells.split_at(cells.len().saturating_sub(8));
    let fits = high.iter().all(|&byte| byte == 0);
    fits.then(|| {
        low.iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte))
    })
}
