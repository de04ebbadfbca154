// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use clap::Args;

use crate::options::JobArgs;

/// Options of `debug`.
#[derive(Args, Debug)]
pub struct DebugArgs {
    /// The plan.
    #[command(flatten)]
    pub job: JobArgs,
    /// TCP port for the debugger
    #[arg(long, value_name = "PORT", default_value_t = 1234)]
    pub port: u16,
}
