// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use clap::Args;

use running::options::LimitArgs;
use crate::cost::costs::Mode;

/// Options of `asm`.
#[derive(Args, Debug)]
pub struct AsmArgs {
    /// The path, by its name in the table of `cost`
    pub path: String,
    /// Machine: a name of boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// How interrupts reach the guest; none is the bare machine
    #[arg(long, value_enum, default_value_t = Mode::Inject)]
    pub deliver: Mode,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
}
