// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the decoders of trapped accesses with a naive reading of the tables in Arm's documents.

use trap::abort::{self, Access};
use trap::esr::Esr;
use trap::esr::encoding;
use trap::inject::{exception_entry, external_abort_esr};
use trap::sgi::Sgi;
use trap::sysreg::SystemRegister;
use trap::wfx::{Kind, Wfx};

use crate::bytes::Bytes;

/// Returns bits `high` to `low` of `value`.
fn field(value: u64, high: u32, low: u32) -> u64 {
    (low..=high).fold(0, |field, bit| field | (value >> bit & 1) << (bit - low))
}

/// Decodes ICC_SGI1R_EL1 (IHI 0069H, 12.2), and checks for four CPUs whether the SGI targets them.
pub fn sgi(data: &[u8]) {
    let mut bytes = Bytes(data);
    let value = bytes.u64();
    let sender = bytes.u64() & 0xff_00ff_ffff;
    let sgi = Sgi::decode(value);
    assert_eq!(u64::from(sgi.intid), field(value, 27, 24));
    for _ in 0..4 {
        let near =
            field(value, 55, 48) << 32 | field(value, 39, 32) << 16 | field(value, 23, 16) << 8;
        let target =
            near ^ bytes.u64() & 0xff_00ff_ffff & if bytes.u8() & 1 == 0 { 0xff } else { u64::MAX };
        let expected = if field(value, 40, 40) == 1 {
            target != sender
        } else {
            // Bit n of the target list stands for Aff0 = 16 * RS + n.
            (0..16).any(|n| {
                let aff0 = 16 * field(value, 47, 44) + n;
                value >> n & 1 == 1 && target == near | aff0
            })
        };
        assert_eq!(
            sgi.targets(target, sender),
            expected,
            "{value:#x} {target:#x}"
        );
    }
}

/// Decodes ESR_EL2 and the registers that are read with it (DDI 0487K.a, D23.2.39).
pub fn syndrome(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (esr, hpfar, far) = (bytes.u64(), bytes.u64(), bytes.u64());
    assert_eq!(u64::from(Esr(esr).class()), field(esr, 31, 26));
    assert_eq!(u64::from(Esr(esr).iss()), field(esr, 24, 0));
    check_wait(esr);
    check_register(esr);
    check_data_abort(esr, bytes.u64());
    let page = field(hpfar, 43, 4) << 12;
    assert_eq!(abort::address(hpfar, far), page + far % 4096);
    check_entry(Esr(esr), bytes.u64(), bytes.u64(), bytes.u64());
}

fn check_wait(esr: u64) {
    let decoded = Wfx::decode(Esr(esr).iss());
    let kinds = [Kind::Wfi, Kind::Wfe, Kind::Wfit, Kind::Wfet];
    let ti = field(esr, 1, 0);
    assert_eq!(decoded.kind, kinds[ti as usize]);
    let known = ti >= 2 && field(esr, 2, 2) == 1;
    assert_eq!(
        decoded.deadline_register.map(u64::from),
        known.then(|| field(esr, 9, 5))
    );
}

fn check_register(esr: u64) {
    let decoded = SystemRegister::decode(Esr(esr).iss());
    let [op0, op2, op1, crn, crm] = [(21, 20), (19, 17), (16, 14), (13, 10), (4, 1)]
        .map(|(high, low)| field(esr, high, low) as u32);
    assert_eq!(decoded.encoding, encoding(op0, op1, crn, crm, op2));
    assert_eq!(u64::from(decoded.rt), field(esr, 9, 5));
    assert_eq!(decoded.read, field(esr, 0, 0) == 1);
}

fn check_data_abort(esr: u64, value: u64) {
    let decoded = Access::decode(Esr(esr));
    let described = field(esr, 24, 24) == 1 && field(esr, 7, 7) == 0 && field(esr, 5, 2) == 1;
    assert_eq!(decoded.is_some(), described);
    let Some(access) = decoded else { return };
    let size = 1_u32 << field(esr, 23, 22);
    assert_eq!((access.size, access.write), (size, field(esr, 6, 6) == 1));
    assert_eq!(u64::from(access.register), field(esr, 20, 16));
    let bytes = field(value, 8 * size - 1, 0);
    assert_eq!(access.stored(value), bytes);
    let negative = field(esr, 21, 21) == 1 && value >> (8 * size - 1) & 1 == 1;
    let above = u64::MAX.checked_shl(8 * size).unwrap_or(0);
    let extended = if negative { bytes | above } else { bytes };
    let kept = if field(esr, 15, 15) == 1 { 63 } else { 31 };
    // An 8-byte load can't have a W register as its destination.
    if size < 8 || kept == 63 {
        assert_eq!(access.loaded(value), field(extended, kept, 0));
    }
}

/// Checks that an exception injected into EL1 enters at one of its vectors, with all exceptions masked.
fn check_entry(esr: Esr, spsr: u64, vbar: u64, sctlr: u64) {
    let vbar = vbar & !0x7ff & u64::MAX >> 1;
    let entry = exception_entry(spsr, vbar, sctlr);
    assert!([0, 0x200, 0x400, 0x600].contains(&(entry.pc - vbar)));
    assert_eq!(field(entry.pstate, 9, 6), 0xf, "masked");
    assert_eq!(field(entry.pstate, 4, 0), 0b00101, "EL1h");
    let walks = [None, Some(0), Some(1), Some(2), Some(3)];
    for (from_el0, walk) in [false, true]
        .iter()
        .flat_map(|el| walks.map(|walk| (*el, walk)))
    {
        let given = Esr(external_abort_esr(esr, from_el0, walk));
        assert!([0x20, 0x21, 0x24, 0x25].contains(&given.class()));
        assert_eq!(given.class() & 1 == 0, from_el0);
        // The fault is an external abort, either on the access or on a translation table walk; for a walk, the fault
        // status code contains the level.
        let fault = walk.map_or(0x10, |level| 0x14 + u64::from(level));
        assert_eq!(field(given.0, 5, 0), fault);
    }
}
