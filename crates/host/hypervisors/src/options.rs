// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use std::path::PathBuf;

use clap::Args;

use running::options::{LimitArgs, Unders};

/// Options of `hypervisors`.
#[derive(Args, Debug, Default)]
pub struct HypervisorsArgs {
    /// Some of them only: none, rouse, xen, kvm, kvm-nvhe, kvm-protected [default: all]
    #[arg(long, value_name = "LIST")]
    pub under: Option<Unders>,
    /// The kernel of KVM's host, an arm64 Image [default: Debian's, which is fetched once]
    #[arg(long, value_name = "IMAGE")]
    pub host_kernel: Option<PathBuf>,
    /// Xen, an arm64 Image [default: Debian's, which is fetched once]
    #[arg(long, value_name = "FILE")]
    pub xen: Option<PathBuf>,
    /// Keep the numbers in docs/hypervisors.json, and write docs/hypervisors.md and the README's first table anew; with --under, those columns alone
    #[arg(long)]
    pub save: bool,
    /// Instead: write both anew from docs/hypervisors.json
    #[arg(long, conflicts_with_all = ["under", "host_kernel", "xen", "save", "out"])]
    pub page: bool,
    /// Folder for the results; new or empty [default: target/runs/TIME-hypervisors]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
}
