// SPDX-License-Identifier: MIT OR Apache-2.0
//! The distributor's registers, accessed as a guest does.

use super::*;

const FIRST: Vcpu = Vcpu {
    number: 0,
    affinity: 0,
};
const SECOND: Vcpu = Vcpu {
    number: 1,
    affinity: 0x100,
};

fn write(distributor: &mut Distributor, offset: u64, size: u32, value: u64) {
    let write = Some(value);
    let _ = distributor.access(Access {
        offset,
        size,
        write,
    });
}

fn read(distributor: &mut Distributor, offset: u64, size: u32) -> u64 {
    let access = Access {
        offset,
        size,
        write: None,
    };
    distributor.access(access).0
}

/// A distributor with SPI 40 enabled for affinity 0x100.
fn with_spi_40() -> Distributor {
    let mut distributor = Distributor::new(2);
    write(&mut distributor, 0x000, 4, 0b10);
    write(&mut distributor, 0x104, 4, 1 << 8);
    write(&mut distributor, 0x428, 1, 0xa0);
    write(&mut distributor, 0x6000 + 8 * 40, 8, 0x100);
    distributor
}

#[test]
fn a_pending_spi_goes_where_it_is_routed_once() {
    let mut distributor = with_spi_40();
    write(&mut distributor, 0x204, 4, 1 << 8);
    assert_eq!(distributor.take(FIRST), None);
    let spi = Spi {
        intid: 40,
        priority: 0xa0,
    };
    assert_eq!(distributor.take(SECOND), Some(spi));
    assert_eq!(distributor.take(SECOND), None);
}

#[test]
fn any_cpu_is_the_first_one() {
    let mut distributor = with_spi_40();
    write(&mut distributor, 0x6000 + 8 * 40, 8, ANY);
    write(&mut distributor, 0x040, 4, 40);
    assert_eq!(distributor.take(SECOND), None);
    assert!(distributor.take(FIRST).is_some());
}

#[test]
fn what_is_disabled_stays_pending() {
    let mut distributor = with_spi_40();
    write(&mut distributor, 0x000, 4, 0);
    write(&mut distributor, 0x204, 4, 1 << 8);
    assert_eq!(distributor.take(SECOND), None);
    assert_eq!(read(&mut distributor, 0x284, 4), 1 << 8);
    write(&mut distributor, 0x048, 4, 40);
    assert_eq!(read(&mut distributor, 0x204, 4), 0);
}

#[test]
fn control_shows_one_security_state_and_affinity_routing() {
    let mut distributor = Distributor::new(1);
    write(&mut distributor, 0, 4, u64::MAX);
    assert_eq!(read(&mut distributor, 0, 4), 0b101_0010);
    assert_eq!(read(&mut distributor, 4, 4) & 0x1f, 2);
    assert_eq!(read(&mut distributor, PIDR2_OFFSET, 4), 0x3b);
}

#[test]
fn private_interrupts_are_not_here() {
    let mut distributor = Distributor::new(1);
    for offset in [0x080, 0x100, 0x200, 0x300, 0x400, 0xc00, 0x6000] {
        write(&mut distributor, offset, 4, u64::from(u32::MAX));
        assert_eq!(read(&mut distributor, offset, 4), 0, "{offset:#x}");
    }
}

#[test]
fn routes_by_halves_and_configuration() {
    let mut distributor = Distributor::new(1);
    write(&mut distributor, 0x6000 + 8 * 33 + 4, 4, 0x12);
    write(&mut distributor, 0x6000 + 8 * 33, 4, 0x345);
    assert_eq!(read(&mut distributor, 0x6000 + 8 * 33, 8), 0x12_0000_0345);
    write(&mut distributor, 0xc08, 4, 0x8000_0002);
    assert_eq!(read(&mut distributor, 0xc08, 4), 0x8000_0002);
}

#[test]
fn no_access_panics() {
    let mut distributor = Distributor::new(1);
    for offset in (0..0x1_0000).step_by(if cfg!(miri) { 61 } else { 1 }) {
        for size in [1, 2, 4, 8] {
            write(&mut distributor, offset, size, u64::MAX);
            read(&mut distributor, offset, size);
        }
    }
}
