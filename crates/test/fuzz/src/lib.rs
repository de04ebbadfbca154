// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random inputs from outside. A target is a function of bytes, which must return. It panics if a promise to it
//! does not hold. Three runners call it:
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
    target("device-tree", trees::device_tree),
    target("guest-tree", trees::guest_tree),
    target("acpi", acpi_tables::read),
    target("record", records::read),
    target("plan", plans::read),
    target("config", configuration::file),
    target("uart", configuration::uart),
    target("payload", payload::read),
    target("sgi", syndromes::sgi),
    target("syndrome", syndromes::syndrome),
    target("frames", frames::access),
    target("gic", steps::run),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

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
