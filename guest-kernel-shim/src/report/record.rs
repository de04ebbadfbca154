// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes one record: a line with a number.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use wire::Line;

use plan::Word;

use crate::{hypervisor, output};

/// Number of the next record.
pub static NEXT: AtomicU64 = AtomicU64::new(0);

/// Starts a record of `kind`.
pub fn record(kind: &str) -> Line {
    Line::new(NEXT.fetch_add(1, Relaxed), kind)
}

/// Writes a record. Fields are small enough to fit in a line. A field that does not fit is a bug in
/// this kernel, and is reported, because a silent gap in the numbers would puzzle the reader.
pub fn send_line(line: Line) {
    match line.finish() {
        Some(text) => output::print(format_args!("{text}")),
        None => output::print(format_args!(
            "rouse: a record of more than {} bytes was not written",
            wire::MAX_LINE
        )),
    }
}

/// Returns the name of the hypervisor that this guest runs under.
pub fn hypervisor_name() -> &'static str {
    hypervisor::hypervisor_below().name()
}
