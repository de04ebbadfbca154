// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs from outside, at random. A target is a function of bytes, which must return: it panics where a promise to it
//! does not hold. Three things run it:
//!
//! - `cargo test`: every file of its corpus, then a fixed number of inputs made
//!   from those by [`short_run`], the same ones each time;
//! - libFuzzer, with a nightly toolchain (`libfuzzer/`);
//! - Miri, on a few inputs.
//!
//! [`gic`] is the model of the GIC specification; a target here and the property tests in `tests/gic` compare crate
//! `vgic` with it.

#![forbid(unsafe_code)]

mod acpi_tables;
mod bytes;
mod configuration;
mod description;
mod frames;
pub mod gic;
mod payload;
mod plans;
mod records;
pub mod short_run;
mod steps;
mod syndromes;
mod trees;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also the name of its corpus.
    pub name: &'static str,
    /// Reads the bytes.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "device-tree",
        run: trees::device_tree,
    },
    Target {
        name: "guest-tree",
        run: trees::guest_tree,
    },
    Target {
        name: "acpi",
        run: acpi_tables::read,
    },
    Target {
        name: "record",
        run: records::read,
    },
    Target {
        name: "plan",
        run: plans::read,
    },
    Target {
        name: "config",
        run: configuration::file,
    },
    Target {
        name: "uart",
        run: configuration::uart,
    },
    Target {
        name: "payload",
        run: payload::read,
    },
    Target {
        name: "sgi",
        run: syndromes::sgi,
    },
    Target {
        name: "syndrome",
        run: syndromes::syndrome,
    },
    Target {
        name: "frames",
        run: frames::access,
    },
    Target {
        name: "gic",
        run: steps::run,
    },
];

/// Runs the target called `name`.
///
/// # Panics
/// Panics if there is no such target, or if the target does.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target =
        target.unwrap_or_else(|| panic!("no target {name} in crates/test/fuzz/src/lib.rs"));
    (target.run)(data);
}
