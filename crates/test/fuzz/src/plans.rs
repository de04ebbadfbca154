// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads plans in the form of boot arguments.

use plan::{Arguments, Cell, Machine, Plan, Shard};

/// The largest number of combinations to expand, because the time grows with its square.
const MOST: usize = 200;

/// Checks a plan that can be parsed: its printed text must parse to an equal plan, its cells must be distinct, and
/// each cell must be in one shard.
pub fn read(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Arguments::parse(&text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(Arguments { plan, .. }) => {
            let printed = plan.to_string();
            let again = Arguments::parse(&printed).map(|arguments| arguments.plan);
            assert_eq!(again, Ok(plan.clone()), "{printed}");
            if plan.combinations() <= MOST {
                [false, true]
                    .into_iter()
                    .for_each(|linux| expand(&plan, linux));
            }
        }
    }
}

/// Expands the plan, and checks its cells. `linux` is true if Linux is the guest.
fn expand(plan: &Plan, linux: bool) {
    let machine = Machine {
        cpus: 2,
        ecv: false,
        linux,
        frequency: 62_500_000,
        ..Machine::COMPLETE
    };
    let part = |index, of| Plan {
        shard: Shard { index, of },
        ..plan.clone()
    };
    let cells: Vec<Cell> = part(1, 1).cells(&machine).collect();
    for (n, cell) in cells.iter().enumerate() {
        assert!(!cells[n + 1..].contains(cell), "{cell:?} twice");
        let reason = cell.skip_reason(&machine).map(|reason| reason.to_string());
        assert_ne!(reason.as_deref(), Some(""));
    }
    let parts: usize = (1..=3)
        .map(|index| part(index, 3).cells(&machine).count())
        .sum();
    assert_eq!(parts, cells.len());
}
