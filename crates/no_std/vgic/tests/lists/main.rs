// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests lists and the registers together: what each list register holds, and what reads of the
//! registers return meanwhile.

mod delivery;
mod private;
mod spis;
mod version2;

use std::cell::Cell;

use vgic::{Access, Asked, Bank, Distributor, ListRegister, Private, Redistributor, Vcpu};

const FIRST: Vcpu = Vcpu {
    number: 0,
    affinity: 0,
};
const PENDING: u64 = 0b01;
const ACTIVE: u64 = 0b10;

/// An access to the word at `offset`.
const fn word(offset: u64, write: Option<u64>) -> Access {
    let size = 4;
    Access {
        offset,
        size,
        write,
    }
}

fn read(distributor: &mut Distributor, offset: u64) -> u64 {
    distributor.access(word(offset, None)).0
}

fn write(distributor: &mut Distributor, offset: u64, value: u64) {
    let _ = distributor.access(word(offset, Some(value)));
}

/// Writes a word of `private`'s redistributor.
fn set(private: &Private, offset: u64, value: u32) {
    let frames = Redistributor {
        private,
        affinity: 0,
        number: 0,
        last: true,
        lines: 0,
    };
    let _ = frames.access(word(offset, Some(value.into())));
}

/// Some list registers, as ICH_LR<n>_EL2 and ICH_ELRSR_EL2 show them.
struct Registers {
    values: Vec<ListRegister>,
    asked: Asked,
    writes: usize,
    reads: Cell<usize>,
}

impl Registers {
    fn new(count: usize) -> Self {
        Self {
            values: vec![ListRegister::EMPTY; count],
            asked: Asked::default(),
            writes: 0,
            reads: Cell::new(0),
        }
    }

    /// INTIDs and states of the registers in use, by register.
    fn used(&self) -> Vec<(usize, u32, u64)> {
        let values = self.values.iter().enumerate();
        let used = values.filter(|(_, one)| one.is_pending() || one.is_active());
        used.map(|(n, one)| (n, one.intid(), one.0 >> 62)).collect()
    }

    /// INTIDs and priorities, by register.
    fn priorities(&self) -> Vec<(u32, u8)> {
        let values = self.values.iter();
        values.map(|one| (one.intid(), one.priority())).collect()
    }

    /// Lets the guest acknowledge the interrupt of register `n`.
    fn acknowledge(&mut self, n: usize) {
        self.values[n] = self.values[n].with_active().without_pending();
    }

    /// Lets the guest end the interrupt of register `n`; a request for a maintenance interrupt stays.
    fn end(&mut self, n: usize) {
        self.values[n].0 &= !(1 << 63);
    }
}

impl Bank for Registers {
    fn count(&self) -> usize {
        self.values.len()
    }

    fn empty(&self) -> u32 {
        let values = self.values.iter().enumerate();
        let empty = values.filter(|(_, one)| one.0 >> 62 == 0 && !one.has_ended());
        empty.fold(0, |bits, (n, _)| bits + (1 << n))
    }

    fn read(&self, n: usize) -> ListRegister {
        self.reads.set(self.reads.get() + 1);
        self.values[n]
    }

    fn write(&mut self, n: usize, value: ListRegister) {
        self.values[n] = value;
        self.writes += 1;
    }

    fn ask(&mut self, asked: Asked) {
        assert_ne!(self.asked, asked, "asked for what is so already");
        self.asked = asked;
    }
}

/// Returns a [`Private`] with INTIDs 0 to 31 enabled and forwarded.
fn private() -> Private {
    let private = Private::new();
    set(&private, 0x1_0100, u32::MAX);
    private.refresh(true);
    private
}
