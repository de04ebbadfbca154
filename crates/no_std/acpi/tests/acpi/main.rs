// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests ACPI tables as machines have them, impossible and damaged; crates/test/fuzz has any bytes.

mod contradictions;
mod damage;
mod layouts;
mod missing;
mod table_contents;
mod tables;
mod watchdogs;
