// SPDX-License-Identifier: MIT OR Apache-2.0
//! ACPI tables as machines have them, as none should have them, and damaged; crates/test/fuzz has any bytes.

mod contradictions;
mod damage;
mod layouts;
mod missing;
mod table_contents;
mod tables;
mod watchdogs;
