// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses the distributor and redistributors with any size, alignment and value, and raises interrupts in between.

use vgic::Bank;

use crate::bytes::Bytes;
use crate::gic::CPUS;
use crate::gic::machine::Machine;

/// Offsets of registers with an effect, so that most accesses reach one of them.
const OFFSETS: [u64; 20] = [
    0x000, 0x004, 0x008, 0x014, 0x040, 0x048, 0x080, 0x100, 0x180, 0x200, 0x280, 0x300, 0x380,
    0x400, 0x420, 0xc00, 0xc08, 0x6100, 0x62f8, 0xffe8,
];

/// Checks that no access by a guest makes the GIC panic, list an interrupt twice, or request maintenance for ever.
pub fn access(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut machine = Machine::new(1 + bytes.below(5));
    let one_register = machine.cpus[0].interface.count() == 1;
    while !bytes.is_empty() {
        step(&mut machine, &mut bytes);
        // The hypervisor refuses to run with one list register (`gic::Error::OneListRegister`).
        if !one_register {
            machine.maintenance();
        }
        assert_eq!(machine.listed_twice(), None);
    }
}

fn step(machine: &mut Machine, bytes: &mut Bytes<'_>) {
    let (what, by, of) = (bytes.u8(), bytes.below(CPUS), bytes.below(CPUS));
    match what % 8 {
        0 => drop(machine.acknowledge(by)),
        1 => machine.end(by, u32::from(bytes.u8())),
        2 => machine.inject(of, u32::from(bytes.u8() % 16)),
        3 => machine.drain(of),
        _ => {
            let near = bytes.choice(&OFFSETS) + u64::from(bytes.u8() & 0x1f);
            let offset = if what & 0x80 != 0 {
                u64::from(bytes.u32())
            } else {
                near
            };
            let size = 1 << (what >> 4 & 3);
            let write = (what & 8 != 0).then(|| bytes.u64());
            if what % 2 == 0 {
                machine.access_gicd(by, offset % 0x1_0000, size, write);
            } else {
                let frame = u64::from(what & 0x40) << 10;
                machine.access_gicr(by, of, (frame + offset) % 0x2_0000, size, write);
            }
        }
    }
}
