// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logic of how an idle CPU waits.
//!
//! - [`request`]: the word through which CPUs wake each other, and when to omit the interrupt.
//! - [`poll`]: the timed conditional wait, the basis of every polling way of waiting.
//! - [`idle`]: the ways of waiting, on any CPU that is a [`target`].
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
