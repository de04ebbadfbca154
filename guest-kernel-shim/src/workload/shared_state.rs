// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds state that the tasks of a workload share.

use platform::MAX_CPUS;

use crate::kernel::channel::Channel;

/// Number of senders in a `messaging` group; there are as many receivers.
pub const EACH: usize = 20;

/// The channels of the workloads that run on the executor: enough for 16 groups of `messaging`, and
/// for the devices of `io`, two for each CPU.
pub static CHANNELS: [Channel; COUNT] = [const { Channel::new() }; COUNT];

/// Number of channels.
const COUNT: usize = match 2 * MAX_CPUS > 16 * EACH {
    true => 2 * MAX_CPUS,
    false => 16 * EACH,
};
