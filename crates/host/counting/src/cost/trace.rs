// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the trace of the recorder.

use anyhow::{Result, bail};
use cost::{Level, Path, TraceEntry};

/// A load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether it was a store.
    pub store: bool,
    /// Virtual address.
    pub address: u64,
    pub bytes: u64,
}

impl From<tarmac::Access> for Access {
    fn from(access: tarmac::Access) -> Self {
        Self {
            store: access.store,
            address: access.address,
            bytes: access.bytes,
        }
    }
}

/// An executed instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Exception level at which it was executed.
    pub level: Level,
    /// Its encoding.
    pub word: u32,
    pub pc: u64,
    /// Its loads and stores.
    pub accesses: Vec<Access>,
    /// Time of the commit, in ticks of a simulator. 0 if only instructions are counted.
    pub tick: u64,
}

impl Executed {
    /// Creates an instruction that has no accesses.
    pub const fn new(level: Level, word: u32, pc: u64, tick: u64) -> Self {
        Self {
            level,
            word,
            pc,
            accesses: Vec::new(),
            tick,
        }
    }
}

/// One pass of a path on one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub path: Path,
    pub cpu: u16,
    /// Executed instructions.
    pub steps: Vec<Executed>,
    /// Whether the recorder has omitted instructions of a loop.
    pub spun: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub windows: Vec<Window>,
    /// CPUs that reached EL1, each with the number of instructions that the CPU had executed by then.
    pub entered: Vec<(u16, u64)>,
}

impl Trace {
    /// Parses the bytes of a trace.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (entries, rest) = bytes.as_chunks::<{ TraceEntry::SIZE }>();
        let mut trace = Self::default();
        let mut left = 0;
        for &entry in entries {
            let Some(entry) = TraceEntry::from_bytes(entry) else {
                bail!("the recorder's trace is damaged: {entry:02x?} is not an entry");
            };
            trace.add_entry(entry, &mut left)?;
        }
        if left != 0 || !rest.is_empty() {
            bail!("the recorder's trace ends in the middle; is the disk full?");
        }
        Ok(trace)
    }

    fn add_entry(&mut self, entry: TraceEntry, left: &mut u64) -> Result<()> {
        let inside = *left != 0;
        *left = left.saturating_sub(1);
        match (entry, self.windows.last_mut()) {
            (TraceEntry::Window { path, cpu, count }, _) if !inside => {
                let Some(&path) = Path::ALL.get(usize::from(path)) else {
                    bail!("the recorder's trace has a path {path}, which is not known");
                };
                self.windows.push(Window {
                    path,
                    cpu,
                    steps: Vec::new(),
                    spun: false,
                });
                *left = count;
            }
            (TraceEntry::Entered { cpu, before }, _) if !inside => self.entered.push((cpu, before)),
            (TraceEntry::Executed { level, word, pc }, Some(window)) if inside => {
                window.steps.push(Executed::new(level, word, pc, 0));
            }
            (
                TraceEntry::Accessed {
                    store,
                    size,
                    address,
                },
                Some(window),
            ) if inside => {
                // An access before the first step belongs to the mark, which is not a step.
                if let Some(step) = window.steps.last_mut() {
                    step.accesses.push(Access {
                        store,
                        address,
                        bytes: 1 << size,
                    });
                }
            }
            (TraceEntry::LeftOut { .. }, Some(window)) if inside => window.spun = true,
            (entry, _) => bail!("the recorder's trace is damaged: {entry:?} is out of place"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_or_out_of_place_is_refused() {
        let window = TraceEntry::Window {
            path: 0,
            cpu: 1,
            count: 1,
        };
        let step = TraceEntry::Executed {
            level: Level::El2,
            word: 1,
            pc: 2,
        };
        let bytes = |entries: &[TraceEntry]| -> Vec<u8> {
            entries.iter().flat_map(|entry| entry.to_bytes()).collect()
        };
        let whole = bytes(&[window, step, window, step]);
        let trace = Trace::parse(&whole).unwrap();
        assert_eq!(trace.windows.len(), 2);
        assert_eq!(trace.windows[1].steps[0].pc, 2);
        assert!(Trace::parse(&whole[..17]).is_err());
        assert!(Trace::parse(&whole[..16]).is_err());
        assert!(Trace::parse(&bytes(&[step])).is_err());
        assert!(Trace::parse(&bytes(&[window, window])).is_err());
        assert!(Trace::parse(&[0xff; 16]).is_err());
    }
}
