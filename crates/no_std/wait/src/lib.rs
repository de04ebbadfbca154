// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an idle CPU waits, as logic without machine instructions.
//!
//! - [`request`]: the word through which CPUs wake each other, and when to omit the interrupt.
//! - [`poll`]: the timed conditional wait, on which every polling way of waiting is based.
//! - [`idle`]: the ways in which a CPU waits, for any CPU that implements a [`target`].
//! - [`post`]: how a parked CPU gets work.
//! - [`governor`]: adapts the length of polls.
//! - [`stream`]: chooses the period of the event stream.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod governor;
pub mod idle;
pub mod poll;
pub mod post;
pub mod request;
pub mod stream;
pub mod target;
