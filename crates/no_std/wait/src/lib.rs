// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an idle CPU waits, as far as it is logic.
//!
//! - [`request`]: the word by which CPUs wake each other, and when an interrupt may be
//!   left out.
//! - [`poll`]: the timed conditional wait, of which every polling way of waiting is made.
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
