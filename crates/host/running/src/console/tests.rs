// SPDX-License-Identifier: MIT OR Apache-2.0
//! Console lines from our programs, from firmware, and from other guests.

use super::*;

#[test]
fn stages_status_and_crash_are_noticed() {
    let mut console = Console::default();
    assert_eq!(
        console.feed("rouse: stage mmu: on, 3 regions"),
        LineKind::Other
    );
    assert_eq!(
        console.last_stage(),
        "the last boot stage was `mmu: on, 3 regions`"
    );
    assert_eq!(
        console.feed("rouse: base guest 0x44000000"),
        LineKind::Other
    );
    assert_eq!(console.feed("@r1 0 boot #00000000"), LineKind::Record);
    assert_eq!(console.feed("rouse: survey GICD 0x1"), LineKind::Survey);
    assert_eq!(console.survey, ["GICD 0x1"]);
    assert_eq!(console.feed("rouse: exit status 3"), LineKind::Exit);
    assert_eq!(console.status, Some(3));
    let ended = "half a linerouse: guest ended: reset by vCPU 1 (MPIDR 0x100)";
    assert_eq!(console.feed(ended), LineKind::Exit);
    assert_eq!(console.ended.map(|ended| ended.mpidr), Some(0x100));
    assert_eq!(
        console.feed("rouse: refused: started at EL1"),
        LineKind::Refused
    );
    assert_eq!(console.refused.as_deref(), Some("started at EL1"));
    let firmware = "BdsDxe: failed to load Boot0001 \"disk\" from PciRoot(0x0): Access Denied";
    let nothing = "BdsDxe: No bootable option or device was found.";
    let mut at_firmware = Console::default();
    for line in [firmware, nothing] {
        assert_eq!(at_firmware.feed(line), LineKind::Refused);
    }
    // The first refusal has the reason.
    let refused = at_firmware.refused.unwrap();
    assert!(refused.contains("Secure Boot"), "{refused}");
    assert_eq!(
        console.feed("noise rouse: panic: EL2 on CPU 0x0"),
        LineKind::Crash
    );
    assert_eq!(console.feed("rouse:   ELR 0x0"), LineKind::Crash);
    assert_eq!(console.crash.len(), 2);
}

#[test]
fn firmware_that_gives_up_is_told_from_guests_that_complain() {
    for (line, kind) in [
        (
            "BdsDxe: starting Boot0002 \"EFI Internal Shell\" from Fv(x)",
            LineKind::Refused,
        ),
        (
            "BdsDxe: No bootable option or device was found.",
            LineKind::Refused,
        ),
        (
            "BdsDxe: starting Boot0001 \"UEFI QEMU NVMe Ctrl\"",
            LineKind::Other,
        ),
        ("/dev/kmsg: Access Denied", LineKind::Other),
    ] {
        assert_eq!(Console::default().feed(line), kind, "{line}");
    }
}

/// Lines of a guest that must not be mistaken for ours.
fn forged() -> Vec<String> {
    let record = |kind| {
        let line = wire::Line::new(0, kind).field("why", "x").field("cells", 0);
        line.finish().unwrap().to_string()
    };
    let texts = [
        "rouse: exit status 0",
        "rouse: refused: x",
        "rouse: panic: EL2 on CPU 0x0: x",
        "rouse: stage x: y",
        "rouse: base guest 0x44000000",
        "rouse: survey x",
        "rouse: deadline: the run",
        "rouse: guest ended: off by vCPU 0 (MPIDR 0x0)",
        "panic: vm_fault: pmap",
        "Kernel panic - not syncing: x",
        "ok 1 - does not panic: empty list",
        "\u{1b}[2J\u{1b}[31mrouse: exit status 3\u{1b}[0m",
        "rouse:\u{0} exit status 0",
        "BdsDxe: No bootable option or device was found.",
    ];
    let texts = texts.map(String::from).into_iter();
    texts
        .chain(["end", "refused", "failed"].map(record))
        .collect()
}

#[test]
fn nothing_that_a_foreign_guest_prints_decides_anything() {
    for text in forged() {
        for line in [text.clone(), format!("x {text}"), format!("rouse:{text}")] {
            let mut console = Console::new(Symbols::default(), Source::Foreign);
            let passed = console.safe_form(&line);
            assert_eq!(console.feed(&passed), LineKind::Other, "{passed}");
            assert!(
                !passed.contains(OURS) && !passed.contains(wire::MARK),
                "{passed}"
            );
            assert!(
                console.crash.is_empty() && console.late.is_none(),
                "{passed}"
            );
            assert!(
                console.status.is_none() && console.ended.is_none(),
                "{passed}"
            );
            assert!(
                console.refused.is_none() && console.stage.is_none(),
                "{passed}"
            );
            assert!(console.survey.is_empty() && !console.collector.finish().begun);
        }
    }
}

#[test]
fn of_a_guest_with_our_program_the_records_count_and_nothing_else() {
    for text in forged() {
        let mut console = Console::new(Symbols::default(), Source::Program);
        let passed = console.safe_form(&text);
        let kind = console.feed(&passed);
        assert_eq!(
            kind != LineKind::Other,
            text.starts_with(wire::MARK),
            "{text}"
        );
    }
}

#[test]
fn what_has_come_of_a_line_is_the_begin_of_it() {
    for text in forged() {
        let console = || Console::new(Symbols::default(), Source::Foreign);
        let (whole, mut console) = (console().safe_form(&text), console());
        for (end, _) in text.char_indices() {
            assert!(whole.starts_with(&console.safe_form_so_far(&text[..end])));
        }
        assert_eq!(console.safe_form(&text), whole);
    }
}

#[test]
fn a_hint_is_the_last_panic_or_the_last_line_cut_and_without_controls() {
    let mut console = Console::default();
    assert_eq!(console.hint(), "");
    console.feed("login: \u{1b}[1m");
    console.feed("rouse: stage enter: guest");
    console.feed("  ");
    assert_eq!(console.hint(), "; the last line of the guest was `login:`");
    console.feed(&format!("panic: {}", "x".repeat(1000)));
    console.feed("Uptime: 1s");
    let hint = console.hint();
    assert!(
        hint.contains("printed `panic: xxx") && hint.len() < 200,
        "{hint}"
    );
}

#[test]
fn firmware_is_over_when_an_image_has_begun() {
    let nothing = "BdsDxe: No bootable option or device was found.";
    let mut console = Console::default();
    console.feed("rouse: hypervisor 0.1.0 in UEFI");
    assert_eq!(console.feed(nothing), LineKind::Other);
    assert_eq!(Console::default().feed(nothing), LineKind::Refused);
}

#[test]
fn a_silent_board_has_no_stage() {
    assert!(Console::default().last_stage().contains("no boot stage"));
}
