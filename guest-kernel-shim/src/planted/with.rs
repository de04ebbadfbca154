// SPDX-License-Identifier: MIT OR Apache-2.0
//! In an image for tests, `rouse.fault=NAME` makes something seem to be wrong while the guest measures.

use hist::Ratio;
use plan::{Arguments, CellFault, Error, Fault, PASSES};
use spin::once::Once;

use crate::pmu;

/// Factor by which a core seems faster after its clock has seemed to change.
const MOVED: u64 = 2;
/// [`CellFault::CoreDrifts`] makes a core faster: it executes 201 cycles in the time in which it executed 200 at
/// first.
const DRIFTS: u64 = 201;

/// The requested fault.
static ASKED: Once<CellFault> = Once::new();

/// Notes the fault in `arguments`.
pub fn read_arguments(arguments: &Arguments<'_>) -> Option<Error<'static>> {
    if let Some(Fault::Cell(fault)) = arguments.fault {
        ASKED.call_once(|| fault);
    }
    None
}

fn is(fault: CellFault) -> bool {
    ASKED.get() == Some(&fault)
}

/// Returns the bits of the counter that seem to be 0.
pub fn hidden_bits() -> u64 {
    if is(CellFault::CounterCoarse) { 0xf } else { 0 }
}

/// Is called when pass `pass` of cell `id` begins; there are `count` cells. Makes the second pass
/// of the last cell endless.
pub fn at_pass(id: usize, count: usize, pass: u32) {
    if is(CellFault::CellHang) && (id, pass) == (count - 1, 1) {
        arch::insn::hang();
    }
}

/// Whether the core's clock is measured even where it has no meaning.
pub fn measures_always() -> bool {
    is(CellFault::CoreClockMoves) && pmu::is_present()
}

/// Returns how many times as fast the core seems to be after `passes`.
pub fn speed_factor(passes: usize) -> u64 {
    match measures_always() && passes >= PASSES as usize / 2 {
        true => MOVED,
        false => 1,
    }
}

/// Returns the apparent ratio of CPU `index`, at the `end` or at the start, for the true `ratio`.
pub fn apparent_ratio(index: usize, end: bool, ratio: Ratio) -> Ratio {
    let (times, of) = match index {
        0 => (1, 1),
        _ if is(CellFault::CoresDiffer) => (2, 1),
        1 if end && is(CellFault::CoreDrifts) => (DRIFTS, DRIFTS - 1),
        _ => (1, 1),
    };
    Ratio {
        wanted: ratio.wanted * times,
        read: ratio.read * of,
    }
}
