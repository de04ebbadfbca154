// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dimensions: everything that distinguishes one cell from another, declared once.
//!
//! An entry has the dimension's values, its default, when it applies, what contradicts it, and its
//! name in options, records, results and charts. The neutral value is the first default value
//! unless the entry names another. Options, boot arguments, the product of the lists, records,
//! results, columns and charts follow from the table, which has two parts: `common` and `system`.

mod common;
mod derive;
mod info;
mod system;

pub use info::{Info, Place, Show, ValueKind};

use core::fmt;

use crate::text::Error;
use crate::value::{Dimension, Value};
use crate::words::*;
use crate::{CommandName, Completion, CpuSet, Hz, Pair, SkipReason, States, Wait};
use common::common_and;
use derive::{dimensions, is_text, or};
use system::system;

/// Longest limit or gap, in microseconds: ten seconds.
const MAX_US: u32 = 10_000_000;

/// Longest slice, in microseconds: a tenth of a second. Other CPUs may have to wait for the end of a slice.
const MAX_SLICE_US: u32 = 100_000;

system! { common_and }

/// The dimensions, ordered by how slowly their values change from cell to cell, the slowest first.
pub(crate) const SLOWEST_FIRST: [usize; COUNT] = {
    let mut order = [0; COUNT];
    let mut n = 0;
    while n < COUNT {
        let mut at = n;
        while at > 0 && TURNS[order[at - 1]] > TURNS[n] {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = n;
        n += 1;
    }
    order
};
