// SPDX-License-Identifier: MIT OR Apache-2.0
//! How an idle CPU waits, as far as it is logic.
//!
//! [`request`] is the word through which CPUs wake each other and the rules by
//! which an interrupt may be left out; [`poll`] is the timed conditional wait
//! that every polling way of waiting is made of; [`idle`] has the ways of waiting,
//! on any CPU that is a [`target`]; [`post`] is how a parked CPU gets work; [`governor`] adapts how long is polled;
//! [`stream`] chooses the event stream's period.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod governor;
pub mod idle;
pub mod poll;
pub mod post;
pub mod request;
pub mod stream;
pub mod target;
