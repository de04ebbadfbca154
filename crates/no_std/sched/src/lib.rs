// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's kernel as far as it is logic.
//!
//! [`list`] is how tasks and function calls cross from CPU to CPU without a
//! lock; [`timers`] keeps deadlines in order; [`load`] is how busy a CPU was
//! lately; [`random`] and [`spread`] make the times of simulated devices and those of requests, which
//! [`arrivals`] puts in order; [`balance`] is the search for work that a CPU does before it idles.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod balance;
pub mod list;
pub mod load;
pub mod random;
pub mod spread;
pub mod timers;
