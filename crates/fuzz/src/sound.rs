// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a description of a machine promises, whatever it was read from.

use platform::{Platform, Region, UartKind, carve};

/// Aff3, Aff2, Aff1 and Aff0 of MPIDR_EL1.
const AFFINITY: u64 = 0xff_00ff_ffff;
const PAGE: u64 = 4096;

/// Panics where `platform` breaks its promises.
pub fn check(platform: &Platform<'_>) {
    assert!(!platform.cpus.is_empty(), "no CPU");
    for (n, cpu) in platform.cpus.iter().enumerate() {
        assert_eq!(cpu.mpidr & !AFFINITY, 0, "not an affinity");
        let twice = platform.cpus[n + 1..]
            .iter()
            .any(|other| other.mpidr == cpu.mpidr);
        assert!(!twice, "two CPUs are {:#x}", cpu.mpidr);
    }
    interrupts(platform);
    let gic = &platform.gic;
    assert!(!gic.redistributors.is_empty(), "no redistributor");
    assert!(
        gic.stride
            .is_none_or(|stride| stride >= 0x2_0000 && stride % 0x1_0000 == 0)
    );
    if let Some(console) = platform.uart {
        uart(console.kind);
    }
    watchdogs(platform);
    assert!(!platform.memory.is_empty(), "no RAM");
    free(&platform.memory, &platform.reserved);
}

/// None that may be touched is in RAM, and its frame is a page.
fn watchdogs(platform: &Platform<'_>) {
    let found = &platform.watchdogs.found;
    for watchdog in found.iter().filter(|one| platform.why_not(one).is_none()) {
        let page = Region {
            base: watchdog.control,
            size: PAGE,
        };
        assert!(page.base.is_multiple_of(PAGE), "{page:?}");
        assert!(!platform.memory.iter().any(|bank| bank.overlaps(&page)));
    }
}

/// A driver can reach its registers.
pub fn uart(kind: UartKind) {
    if let UartKind::Ns16550 { shift, width } = kind {
        assert!(shift <= 4 && matches!(width, 1 | 4), "{shift} {width}");
    }
}

/// They are PPIs, each its own: EL2 has a bit map of them.
fn interrupts(platform: &Platform<'_>) {
    let timer = &platform.timer;
    let mut ppis = vec![timer.virt, timer.phys, platform.gic.maintenance];
    ppis.extend(timer.hyp);
    ppis.sort_unstable();
    let are_ppis = ppis.iter().all(|intid| (16..32).contains(intid));
    assert!(are_ppis, "not PPIs: {ppis:?}");
    assert!(ppis.windows(2).all(|pair| pair[0] != pair[1]), "{ppis:?}");
}

/// What is free is RAM, and not in use.
fn free(memory: &[Region], reserved: &[Region]) {
    let Some(free) = carve::largest_free(memory, reserved, PAGE) else {
        return;
    };
    let inside = |bank: &Region| bank.base <= free.base && free.end() <= bank.end();
    assert!(memory.iter().any(inside), "{free:?} is not RAM");
    let empty = |region: &&Region| region.size != 0;
    assert!(!reserved.iter().filter(empty).any(|one| one.overlaps(&free)));
    assert!(free.size > 0 && (free.base | free.size) % PAGE == 0);
}
