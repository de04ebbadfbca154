// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that the tasks of a workload share.

use platform::MAX_CPUS;

use crate::kernel::channel::Channel;

/// Senders of a group of `messaging`, and receivers.
pub const EACH: usize = 20;

/// The channels of the workloads that run on the executor: as many as 16 groups of
/// `messaging` need, and as the devices of `io`, two of each CPU.
pub static CHANNELS: [Channel; COUNT] = [const { Channel::new() }; COUNT];

/// How many there are.
const COUNT: usize = match 2 * MAX_CPUS > 16 * EACH {
    true => 2 * MAX_CPUS,
    false => 16 * EACH,
};
