// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses a GICv2's distributor and CPU interface with any size, alignment and value, and sends SGIs in between.

use vgic::{Access, Bank};

use super::machine::Machine;
use super::spec::{CPUS, INTERFACES};
use crate::bytes::Bytes;
use crate::gic::machine::TIMERS;

/// Offsets of registers with an effect, so that most accesses reach one of them.
const OFFSETS: [u64; 20] = [
    0x000, 0x004, 0x008, 0x080, 0x084, 0x100, 0x104, 0x180, 0x184, 0x200, 0x280, 0x300, 0x380,
    0x400, 0x420, 0x800, 0x820, 0xc00, 0xf10, 0xf20,
];
/// Offsets of the CPU interface's registers.
const INTERFACE: [u64; 14] = [
    0x00, 0x04, 0x08, 0x0c, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x28, 0xd0, 0xfc, 0x1000,
];
/// Size in bytes of the distributor, and of the CPU interface.
const FRAME: u64 = 0x1000;
const GICC: u64 = 0x2000;

/// Checks that no access by a guest makes the GIC panic, breaks a list's invariant, or requests maintenance for ever.
pub fn access(data: &[u8]) {
    let mut bytes = Bytes(data);
    let mut machine = Machine::new(1 + bytes.below(5));
    let one_register = machine.cpus[0].interface.count() == 1;
    while !bytes.is_empty() {
        let step = step(&mut machine, &mut bytes);
        machine.take_timers();
        // The hypervisor refuses to run with one list register (`gic::Error::OneListRegister`).
        if !one_register {
            machine.maintenance();
        }
        machine.audit();
        if let (Some((by, access)), true) = (step, bytes.u8() % 4 == 0) {
            check_read(&mut machine, by, access);
        }
    }
}

/// Performs a step. Returns the distributor read to check after the step, if any.
fn step(machine: &mut Machine, bytes: &mut Bytes<'_>) -> Option<(usize, Access)> {
    let (what, by) = (bytes.u8(), bytes.below(CPUS));
    let size = 1 << (what >> 4 & 3);
    let write = (what & 8 != 0).then(|| bytes.u64());
    let near = u64::from(bytes.u8());
    let any = what & 0x80 != 0;
    match what % 8 {
        0 => machine.arrive(by, bytes.u32() % 16, bytes.choice(&INTERFACES)),
        1 => machine.send(by, bytes.u32().into()),
        2 => {
            let register = bytes.choice(&INTERFACE);
            let offset = if any {
                u64::from(bytes.u32()) % GICC
            } else {
                register
            };
            machine.emulate(by, offset, if any { size } else { 4 }, write);
        }
        3 => machine.set_line(by, bytes.choice(&TIMERS), any),
        _ => {
            let register = bytes.choice(&OFFSETS) + (near & 0x1f);
            let offset = if any {
                u64::from(bytes.u32()) % FRAME
            } else {
                register
            };
            let access = Access {
                offset,
                size,
                write,
            };
            let value = machine.access(by, access);
            assert!(write.is_none() || value == 0, "{access:x?} wrote and read");
            let write = None;
            return Some((by, Access { write, ..access }));
        }
    }
    None
}

/// Checks a read of the distributor: a second read returns an equal value, reads of its bytes agree where bytes can be
/// read, and the value is 0 for a size or alignment that the register does not support.
fn check_read(machine: &mut Machine, by: usize, access: Access) {
    let value = machine.access(by, access);
    assert_eq!(machine.access(by, access), value, "{access:x?}");
    let has_bytes = matches!(access.offset, 0x400..0x460 | 0x800..0x860 | 0xf10..0xf30);
    let is_aligned = access.offset.is_multiple_of(access.size.into());
    match access.size {
        1..=4 if has_bytes && is_aligned => {}
        4 if !has_bytes => return assert_eq!(value >> 32, 0, "{access:x?}"),
        _ => return assert_eq!(value, 0, "{access:x?}"),
    }
    let byte = |n| Access {
        offset: access.offset + n,
        size: 1,
        write: None,
    };
    let bytes = (0..u64::from(access.size)).map(|n| machine.access(by, byte(n)) << (8 * n));
    assert_eq!(bytes.sum::<u64>(), value, "{access:x?}");
}
