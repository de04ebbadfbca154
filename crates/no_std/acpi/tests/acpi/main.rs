// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests valid, contradictory and damaged ACPI tables; crates/test/fuzz tests arbitrary bytes.

mod contradictions;
mod damage;
mod gicv2;
mod layouts;
mod missing;
mod table_contents;
mod tables;
mod watchdogs;
