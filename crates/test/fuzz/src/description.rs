// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the guarantees that the parsers of machine descriptions give for every source.

use platform::claims::{END, FRAME};
use platform::{GicV2, Platform, Region, Uart, UartKind, carve};

/// Aff3, Aff2, Aff1 and Aff0 of MPIDR_EL1.
const AFFINITY: u64 = 0xff_00ff_ffff;
const PAGE: u64 = 4096;

/// Panics if `platform` breaks a guarantee.
pub fn check(platform: &Platform<'_>) {
    assert!(!platform.cpus.is_empty(), "no CPU");
    for (n, cpu) in platform.cpus.iter().enumerate() {
        assert_eq!(cpu.mpidr & !AFFINITY, 0, "not an affinity");
        let twice = platform.cpus[n + 1..]
            .iter()
            .any(|other| other.mpidr == cpu.mpidr);
        assert!(!twice, "two CPUs are {:#x}", cpu.mpidr);
    }
    check_interrupts(platform);
    let gic = &platform.gic;
    let is_version2 = gic.version2.is_some();
    assert!(
        is_version2 || !gic.redistributors.is_empty(),
        "no redistributor"
    );
    let few = platform.cpus.len() <= GicV2::MAX_CPUS && GicV2::alike(platform.cpus).is_none();
    assert!(!is_version2 || few, "more CPUs than a GICv2 tells apart");
    assert!(
        gic.stride
            .is_none_or(|stride| stride >= 0x2_0000 && stride % 0x1_0000 == 0)
    );
    platform.uart.iter().for_each(check_uart);
    check_registers(platform);
    check_watchdogs(platform);
    assert!(!platform.memory.is_empty(), "no RAM");
    check_free(&platform.memory, &platform.reserved);
}

/// Checks every watchdog that the hypervisor may access: its registers are outside RAM, and its register frame is a
/// page.
fn check_watchdogs(platform: &Platform<'_>) {
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

/// Checks that a driver can reach the UART's registers.
pub fn check_uart(uart: &Uart) {
    let mut align = 4;
    if let UartKind::Ns16550 { shift, width } = uart.kind {
        assert!(shift <= 4 && matches!(width, 1 | 4), "{shift} {width}");
        align = width.into();
    }
    assert!(
        uart.base > 0 && uart.base.is_multiple_of(align),
        "{uart:x?}"
    );
    assert!(
        uart.base.checked_add(PAGE).is_some_and(|end| end <= END),
        "{uart:x?}"
    );
}

/// Checks that each region mapped for a device belongs to no other device, and is within the address space.
fn check_registers(platform: &Platform<'_>) {
    let gic = &platform.gic;
    let (mut frames, mut size) = (vec![gic.distributor], FRAME);
    frames.extend(gic.redistributors);
    if let Some(version2) = gic.version2 {
        frames.extend(version2.registers());
        size = PAGE;
    }
    for frame in &frames {
        assert!(
            frame.base > 0 && frame.base.is_multiple_of(size),
            "{frame:x?}"
        );
        assert!(frame.size >= size, "{frame:x?}");
    }
    let uart = platform.uart.map(|uart| uart.registers());
    let all: Vec<Region> = frames.into_iter().chain(uart).collect();
    for (n, one) in all.iter().enumerate() {
        assert!(
            one.base.checked_add(one.size).is_some_and(|end| end <= END),
            "{one:x?}"
        );
        assert!(
            !platform.memory.iter().any(|bank| bank.overlaps(one)),
            "{one:x?}"
        );
        assert!(
            !all[n + 1..].iter().any(|other| other.overlaps(one)),
            "{one:x?}"
        );
    }
    assert!(platform.memory.iter().all(|bank| bank.end() <= END));
}

/// Checks that the interrupts are distinct PPIs, because EL2 keeps them in a bit map.
fn check_interrupts(platform: &Platform<'_>) {
    let timer = &platform.timer;
    let mut ppis = vec![timer.virt, timer.phys, platform.gic.maintenance];
    ppis.extend(timer.hyp);
    ppis.sort_unstable();
    let are_ppis = ppis.iter().all(|intid| (16..32).contains(intid));
    assert!(are_ppis, "not PPIs: {ppis:?}");
    assert!(ppis.windows(2).all(|pair| pair[0] != pair[1]), "{ppis:?}");
}

/// Checks that free memory is RAM and is not in use.
fn check_free(memory: &[Region], reserved: &[Region]) {
    let Some(free) = carve::largest_free(memory, reserved, PAGE) else {
        return;
    };
    let inside = |bank: &Region| bank.base <= free.base && free.end() <= bank.end();
    assert!(memory.iter().any(inside), "{free:?} is not RAM");
    let empty = |region: &&Region| region.size != 0;
    assert!(!reserved.iter().filter(empty).any(|one| one.overlaps(&free)));
    assert!(free.size > 0 && (free.base | free.size) % PAGE == 0);
}
