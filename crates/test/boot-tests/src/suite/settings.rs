// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb `test`.

use std::num::NonZeroUsize;

use clap::Args;

/// Options of `test`.
#[derive(Args, Debug)]
pub struct TestArgs {
    /// Only tests whose name contains this
    pub filter: Option<String>,
    /// Only the tests that boot
    #[arg(long, conflicts_with = "host_only")]
    pub target_only: bool,
    /// Only the tests of the host
    #[arg(long)]
    pub host_only: bool,
    /// Also run tests that can only end as they did before: model checks and pages that have passed, and unchanged boots
    /// in instruction mode
    #[arg(long, conflicts_with = "strict")]
    pub again: bool,
    /// How many tests run at a time [default: as many as this computer has CPUs]
    #[arg(long, value_name = "N", conflicts_with = "host_only", value_parser = running::options::at_least_one)]
    pub jobs: Option<NonZeroUsize>,
    /// At the end, show time and processor time of each test, or of the N longest, the longest first, and of each
    /// program with host tests
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1000000", conflicts_with_all = ["strict", "host_only"])]
    pub timings: Option<usize>,
    /// Instead: the tests that boot, with the rules of the architecture watched that an emulator does not enforce
    #[arg(long, conflicts_with_all = ["target_only", "host_only"])]
    pub strict: bool,
}
