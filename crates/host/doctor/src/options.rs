// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use std::path::PathBuf;

use clap::Args;

/// Options of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Instead: whether Rouse can run on the machines that these device trees describe; a folder is searched for *.dtb
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    pub dtb: Vec<PathBuf>,
    /// Instead: the same by ACPI tables: what acpidump wrote, as text or with -b, or a folder of tables
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    pub acpi: Vec<PathBuf>,
    /// Instead: the boards, and what each models of its machine
    #[arg(long, conflicts_with_all = ["dtb", "acpi", "json"])]
    pub boards: bool,
    /// Write a list of file, ok, why and console to FILE; - is standard output, and the lines then go to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
