// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tasks of a workload share.

use crate::kernel::channel::Channel;

/// Senders of a group of `messaging`, and receivers.
pub const EACH: usize = 20;

/// The channels of the workloads that run on the executor: as many as 16 groups of
/// `messaging` need.
pub static CHANNELS: [Channel; 16 * EACH] = [const { Channel::new() }; 16 * EACH];
