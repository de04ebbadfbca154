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

/// The strings that are added, and where each begins among them.
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
    /// Through release addresses, one for each CPU's number from this address on.
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
    /// Bytes of the strings before the added strings.
    strings: u32,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.to[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn word(&mut self, word: u32) {
        self.bytes(&word.to_be_bytes());
    }

    fn pairs(&mut self, pairs: &[[u64; 2]]) {
        for word in pairs.iter().flatten() {
            self.bytes(&word.to_be_bytes());
        }
    }

    fn pad(&mut self) {
        while !self.length.is_multiple_of(4) {
            self.bytes(&[0]);
        }
    }

    fn property(&mut self, name: u32, value: &[u8]) {
        self.word(PROPERTY);
        self.word(value.len() as u32);
        self.word(self.strings + name);
        self.bytes(value);
        self.pad();
    }

    fn put(&mut self, at: usize, word: u32) {
        self.to[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }
}

/// Writes `tree` with `changes` to `to`, and returns its size.
pub fn rewrite(tree: &[u8], to: &mut [u8], changes: &Changes) -> usize {
    let field = |at: usize| word(tree, at) as usize;
    let strings = &tree[field(STRINGS)..][..field(STRINGS_SIZE)];
    let mut out = Writer {
        to,
        length: 0,
        strings: strings.len() as u32,
    };
    out.bytes(&tree[..HEADER]);
    let reservations = out.length;
    let pairs = changes.reserved;
    for pair in pairs.iter().filter(|pair| pair[1] != 0) {
        out.pairs(&[*pair]);
    }
    out.pairs(&[[0, 0]]);
    let structure = out.length;
    nodes(tree, field(STRUCTURE), strings, &mut out, changes);
    let size = out.length - structure;
    let names = out.length;
    out.bytes(strings);
    out.bytes(ADDED);
    let all = out.length;
    // The header has sizes and offsets, in the order of the specification.
    out.put(4, all as u32);
    out.put(STRUCTURE, structure as u32);
    out.put(STRINGS, names as u32);
    out.put(16, reservations as u32);
    out.put(STRINGS_SIZE, (strings.len() + ADDED.len()) as u32);
    out.put(36, size as u32);
    all
}

/// Writes the nodes, which begin at `at`.
fn nodes(tree: &[u8], mut at: usize, strings: &[u8], out: &mut Writer<'_>, changes: &Changes) {
    let (mut depth, mut cpu, mut memory) = (0, None, false);
    loop {
        let token = word(tree, at);
        let start = at;
        at += 4;
        match token {
            BEGIN => {
                let name = text(tree, at);
                at = (at + name.len() + 1).next_multiple_of(4);
                out.bytes(&tree[start..at]);
                depth += 1;
                let number = name.strip_prefix(b"cpu@".as_slice());
                cpu = number.filter(|_| depth == 3).map(hexadecimal);
                if let Some(cpu) = cpu {
                    write_start(cpu, out, changes.start);
                }
                memory = depth == 2 && name.starts_with(b"memory@");
            }
            END => {
                depth -= 1;
                if depth == 0 {
                    if matches!(changes.start, Start::Psci) {
                        psci(out);
                    }
                    out.word(END);
                    out.word(9);
                    return;
                }
                (cpu, memory) = (None, false);
                out.word(END);
            }
            PROPERTY => {
                let length = word(tree, at) as usize;
                let name = text(strings, word(tree, at + 4) as usize);
                at = (at + 8 + length).next_multiple_of(4);
                let replaced = !matches!(changes.start, Start::Unchanged);
                match (name, changes.banks) {
                    (b"enable-method", _) if cpu.is_some() && replaced => {}
                    (b"reg", Some(banks)) if memory => {
                        out.word(PROPERTY);
                        out.word(32);
                        out.word(out.strings + REG);
                        out.pairs(&banks);
                    }
                    _ => out.bytes(&tree[start..at]),
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
        Start::Psci => out.property(ENABLE_METHOD, b"psci\0"),
        Start::SpinTable(base) => {
            out.property(ENABLE_METHOD, b"spin-table\0");
            out.property(RELEASE, &(base + 8 * number).to_be_bytes());
        }
    }
}

fn psci(out: &mut Writer<'_>) {
    out.word(BEGIN);
    out.bytes(b"psci\0");
    out.pad();
    out.property(COMPATIBLE, b"arm,psci-1.0\0");
    out.property(METHOD, b"smc\0");
    out.word(END);
}

/// Parses a node's unit address. The CPUs here have numbers below 16, which are also their
/// affinities.
fn hexadecimal(digits: &[u8]) -> u64 {
    let digits = core::str::from_utf8(digits).unwrap_or("");
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns the text at `at`, without the zero after it.
fn text(bytes: &[u8], at: usize) -> &[u8] {
    let rest = &bytes[at..];
    let end = rest.iter().position(|&byte| byte == 0);
    &rest[..end.unwrap_or(rest.len())]
}
