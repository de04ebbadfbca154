// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use std::path::PathBuf;

use clap::Args;

/// Options of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Instead, report whether Rouse can run on the machines that these device trees describe; a folder is searched for
    /// *.dtb
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    pub dtb: Vec<PathBuf>,
    /// Instead, report the same for ACPI tables: acpidump's output, as text or with -b, or a folder of tables
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    pub acpi: Vec<PathBuf>,
    /// Instead, list the boards, and what each models of its machine
    #[arg(long, conflicts_with_all = ["dtb", "acpi", "json"])]
    pub boards: bool,
    /// Write file, ok, why and console of each machine to FILE; - is standard output, and the lines then go to standard
    /// error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
