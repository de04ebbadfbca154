// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every target with its corpus, and with a bounded number of inputs made from the corpus.

use std::path::Path;

use fuzz::{TARGETS, short_run};

fn target(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    // With these numbers, a target takes seconds.
    let made = match name {
        _ if cfg!(miri) => 2,
        "gic" | "gicv2" => 500,
        "device-tree" => 10_000,
        _ => 3000,
    };
    short_run::run(&corpus.join(name), made, target.run);
}

/// Defines a test for each target, so that the targets run in parallel and a failure names its target.
macro_rules! targets {
    ($($test:ident = $name:literal,)*) => {
        $(#[test] fn $test() { target($name); })*

        #[test]
        fn every_target_has_a_test_and_a_binary() {
            let names = [$($name),*];
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), names);
            let binaries = include_str!("../libfuzzer/Cargo.toml");
            for name in names {
                assert!(binaries.contains(&format!("name = \"{name}\"\n")), "{name}");
            }
        }
    };
}

targets! {
    device_tree = "device-tree",
    guest_tree = "guest-tree",
    acpi = "acpi",
    record = "record",
    plan = "plan",
    config = "config",
    uart = "uart",
    payload = "payload",
    sgi = "sgi",
    syndrome = "syndrome",
    frames = "frames",
    gic = "gic",
    frames_gicv2 = "frames-gicv2",
    gicv2 = "gicv2",
}
