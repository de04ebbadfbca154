// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs code that reads foreign data, with random inputs. A target is a function that takes bytes and must return. A
//! target panics if the tested code breaks a guarantee. Three runners call each target:
//!
//! - `cargo test`: with every file of the target's corpus, then with a fixed number of inputs that [`short_run`] makes
//!   from these files, the same inputs each time;
//! - libFuzzer, with a nightly toolchain (`libfuzzer/`);
//! - Miri, with a few inputs.
//!
//! [`gic`] has a model of the GIC specification; a target here and the property tests in `tests/gic` compare crate
//! `vgic` with this model. [`gicv2`] does the same for a GICv2.

#![forbid(unsafe_code)]

mod acpi_tables;
mod bytes;
mod configuration;
mod description;
mod frames;
pub mod gic;
pub mod gicv2;
mod payload;
mod plans;
mod records;
pub mod short_run;
mod steps;
mod syndromes;
mod trees;

/// A target for random inputs.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target and of its corpus.
    pub name: &'static str,
    /// The function that takes the bytes.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target("device-tree", trees::device_tree),
    target("guest-tree", trees::guest_tree),
    target("acpi", acpi_tables::read),
    target("record", records::read),
    target("plan", plans::read),
    target("config", configuration::read_file),
    target("uart", configuration::uart_name),
    target("payload", payload::read),
    target("sgi", syndromes::sgi),
    target("syndrome", syndromes::syndrome),
    target("frames", frames::access),
    target("gic", steps::run),
    target("frames-gicv2", gicv2::frames::access),
    target("gicv2", gicv2::steps::run),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Runs the target called `name`.
///
/// # Panics
/// Panics if there is no such target, or if the target panics.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target =
        target.unwrap_or_else(|| panic!("no target {name} in crates/test/fuzz/src/lib.rs"));
    (target.run)(data);
}
