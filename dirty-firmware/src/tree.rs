// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the device tree for the next image: QEMU's tree with this firmware's changes (Devicetree
//! Specification, release 0.4, chapter 5).

/// Tokens of the structure block.
const BEGIN: u32 = 1;
const END: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;

/// Bytes of the header, and the offsets of the fields that are used here.
const HEADER: usize = 40;
const STRUCTURE: usize = 8;
const STRINGS: usize = 12;
const STRINGS_SIZE: usize = 32;

/// The strings to add, and the offset of each among them.
const ADDED: &[u8] = b"enable-method\0cpu-release-addr\0method\0compatible\0reg\0";
const ENABLE_METHOD: u32 = 0;
const RELEASE: u32 = 14;
const METHOD: u32 = 31;
const COMPATIBLE: u32 = 38;
const REG: u32 = 49;

/// How CPUs are started.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// The value in QEMU's tree.
    Unchanged,
    /// Through PSCI, which this firmware serves.
    Psci,
    /// Through release addresses: a table at an address, indexed by the CPU's number.
    SpinTable(u64),
}

/// Changes to QEMU's tree.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// How CPUs are started.
    pub start: Start,
    /// RAM, as base and size, if it differs from the RAM of QEMU's tree.
    pub banks: Option<[[u64; 2]; 2]>,
    /// Reserved RAM, as base and size; size 0 means none.
    pub reserved: [[u64; 2]; 2],
}

/// A tree that is being written.
struct Writer<'a> {
    to: &'a mut [u8],
    length: usize,
    /// Bytes of the strings that precede the added strings.
    strings: u32,
}

impl Writer<'_> {
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.to[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn put_word(&mut self, word: u32) {
        self.put_bytes(&word.to_be_bytes());
    }

    fn put_pairs(&mut self, pairs: &[[u64; 2]]) {
        for word in pairs.iter().flatten() {
            self.put_bytes(&word.to_be_bytes());
        }
    }

    fn pad_to_word(&mut self) {
        while !self.length.is_multiple_of(4) {
            self.put_bytes(&[0]);
        }
    }

    fn put_property(&mut self, name: u32, value: &[u8]) {
        self.put_word(PROPERTY);
        self.put_word(value.len() as u32);
        self.put_word(self.strings + name);
        self.put_bytes(value);
        self.pad_to_word();
    }

    fn set_word(&mut self, at: usize, word: u32) {
        self.to[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }
}

/// Writes `tree` with `changes` to `to`, and returns the size of the new tree.
pub fn write_changed_tree(tree: &[u8], to: &mut [u8], changes: &Changes) -> usize {
    let field = |at: usize| word_at(tree, at) as usize;
    let strings = &tree[field(STRINGS)..][..field(STRINGS_SIZE)];
    let mut out = Writer {
        to,
        length: 0,
        strings: strings.len() as u32,
    };
    out.put_bytes(&tree[..HEADER]);
    let reservations = out.length;
    let pairs = changes.reserved;
    for pair in pairs.iter().filter(|pair| pair[1] != 0) {
        out.put_pairs(&[*pair]);
    }
    out.put_pairs(&[[0, 0]]);
    let structure = out.length;
    put_nodes(tree, field(STRUCTURE), strings, &mut out, changes);
    let size = out.length - structure;
    let names = out.length;
    out.put_bytes(strings);
    out.put_bytes(ADDED);
    let all = out.length;
    // The header has sizes and offsets, in the order of the specification.
    out.set_word(4, all as u32);
    out.set_word(STRUCTURE, structure as u32);
    out.set_word(STRINGS, names as u32);
    out.set_word(16, reservations as u32);
    out.set_word(STRINGS_SIZE, (strings.len() + ADDED.len()) as u32);
    out.set_word(36, size as u32);
    all
}

/// Writes the nodes, which begin at `at`.
fn put_nodes(tree: &[u8], mut at: usize, strings: &[u8], out: &mut Writer<'_>, changes: &Changes) {
    let (mut depth, mut cpu, mut memory) = (0, None, false);
    loop {
        let token = word_at(tree, at);
        let start = at;
        at += 4;
        match token {
            BEGIN => {
                let name = text_at(tree, at);
                at = (at + name.len() + 1).next_multiple_of(4);
                out.put_bytes(&tree[start..at]);
                depth += 1;
                let number = name.strip_prefix(b"cpu@".as_slice());
                cpu = number.filter(|_| depth == 3).map(parse_hexadecimal);
                if let Some(cpu) = cpu {
                    write_start(cpu, out, changes.start);
                }
                memory = depth == 2 && name.starts_with(b"memory@");
            }
            END => {
                depth -= 1;
                if depth == 0 {
                    if matches!(changes.start, Start::Psci) {
                        write_psci_node(out);
                    }
                    out.put_word(END);
                    out.put_word(9);
                    return;
                }
                (cpu, memory) = (None, false);
                out.put_word(END);
            }
            PROPERTY => {
                let length = word_at(tree, at) as usize;
                let name = text_at(strings, word_at(tree, at + 4) as usize);
                at = (at + 8 + length).next_multiple_of(4);
                let replaced = !matches!(changes.start, Start::Unchanged);
                match (name, changes.banks) {
                    (b"enable-method", _) if cpu.is_some() && replaced => {}
                    (b"reg", Some(banks)) if memory => {
                        out.put_word(PROPERTY);
                        out.put_word(32);
                        out.put_word(out.strings + REG);
                        out.put_pairs(&banks);
                    }
                    _ => out.put_bytes(&tree[start..at]),
                }
            }
            NOP => {}
            _ => return,
        }
    }
}

/// Writes the method by which CPU `number` is started, before the CPU's other properties.
fn write_start(number: u64, out: &mut Writer<'_>, start: Start) {
    match start {
        Start::Unchanged => {}
        Start::Psci => out.put_property(ENABLE_METHOD, b"psci\0"),
        Start::SpinTable(base) => {
            out.put_property(ENABLE_METHOD, b"spin-table\0");
            out.put_property(RELEASE, &(base + 8 * number).to_be_bytes());
        }
    }
}

fn write_psci_node(out: &mut Writer<'_>) {
    out.put_word(BEGIN);
    out.put_bytes(b"psci\0");
    out.pad_to_word();
    out.put_property(COMPATIBLE, b"arm,psci-1.0\0");
    out.put_property(METHOD, b"smc\0");
    out.put_word(END);
}

/// Parses a node's unit address. The CPUs here have numbers below 16, which are also their
/// affinities.
fn parse_hexadecimal(digits: &[u8]) -> u64 {
    let digits = core::str::from_utf8(digits).unwrap_or("");
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns the text at `at`, without the zero after it.
fn text_at(bytes: &[u8], at: usize) -> &[u8] {
    let rest = &bytes[at..];
    let end = rest.iter().position(|&byte| byte == 0);
    &rest[..end.unwrap_or(rest.len())]
}
