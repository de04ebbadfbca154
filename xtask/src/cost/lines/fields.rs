// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is where in a CPU's state, by the absolute symbols that the hypervisor's file has for that
//! (`hypervisor/src/cpu/layout.rs`).

use anyhow::{Context, Result};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};

/// What they begin with.
const PREFIX: &str = "per_cpu.";
/// The one behind the last field.
const END: &str = "end";

/// The fields of a CPU's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Bytes of all of it.
    pub size: u64,
    /// Offsets and names, sorted. Where an outer field begins with an inner one, the inner one is last.
    fields: Vec<(u64, String)>,
}

impl Fields {
    /// Those that `file` has symbols for.
    pub fn of(file: &ElfFile64<'_, object::Endianness>) -> Result<Self> {
        let symbols = file.symbols().filter_map(|symbol| {
            let name = symbol.name().ok()?.strip_prefix(PREFIX)?;
            Some((symbol.address(), name.to_owned()))
        });
        Self::new(symbols.collect())
            .context("the hypervisor's file does not say what its CPUs' state is")
    }

    fn new(mut fields: Vec<(u64, String)>) -> Option<Self> {
        fields.sort();
        let (size, _) = fields.pop_if(|(_, name)| name == END)?;
        Some(Self { size, fields })
    }

    /// What is at `offset`.
    pub fn at(&self, offset: u64) -> Option<String> {
        let after = self.fields.partition_point(|(begin, _)| *begin <= offset);
        let (begin, name) = self.fields.get(after.checked_sub(1)?)?;
        Some(super::names::behind(name, offset - begin))
    }
}

#[cfg(test)]
impl Fields {
    /// `size` bytes of fields of 8.
    pub fn planted(size: u64) -> Self {
        let fields = (0..size / 8).map(|n| (n * 8, format!("field{n}")));
        let end = (size, END.to_owned());
        Self::new(fields.chain([end]).collect()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_the_innermost_field_that_it_is_in() {
        let named = [
            (0, "top"),
            (0x40, "vcpu.list"),
            (0x40, "vcpu.list.straight"),
            (0x80, "end"),
        ];
        let named = named.map(|(offset, name)| (offset, name.to_owned()));
        let fields = Fields::new(named.to_vec()).unwrap();
        assert_eq!(fields.size, 0x80);
        let at = [0, 0x18, 0x40, 0x58].map(|offset| fields.at(offset).unwrap());
        assert_eq!(
            at,
            [
                "top",
                "top+0x18",
                "vcpu.list.straight",
                "vcpu.list.straight+0x18"
            ]
        );
        assert_eq!(Fields::new(named[..3].to_vec()), None);
    }
}
