// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contains the logic of the guest's kernel.
//!
//! [`list`] passes tasks and function calls from CPU to CPU without a lock; [`timers`] keeps
//! deadlines in order; [`load`] tracks how busy a CPU was recently; [`random`] and [`spread`]
//! generate the times of simulated devices and of requests, which [`arrivals`] puts in order;
//! [`balance`] searches for work before a CPU idles.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod balance;
pub mod list;
pub mod load;
pub mod random;
pub mod spread;
pub mod timers;
