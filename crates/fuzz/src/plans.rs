// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans as boot arguments.

use plan::{Cell, Machine, Plan, Shard};

/// The most combinations that are expanded here: it takes their square.
const MOST: usize = 200;

/// What can be read prints as what reads the same, and expands to cells, each
/// once, which the shards divide.
pub fn read(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Plan::parse(&text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(plan) => {
            let printed = plan.to_string();
            assert_eq!(Plan::parse(&printed), Ok(plan.clone()), "{printed}");
            if combinations(&plan) <= MOST {
                expand(&plan);
            }
        }
    }
}

fn combinations(plan: &Plan) -> usize {
    let lengths = [
        plan.workload.values.len(),
        plan.shape.values.len(),
        plan.gap_us.values.len(),
        plan.wait.values.len(),
        plan.trap.values.len(),
        plan.deliver.values.len(),
        plan.wake.values.len(),
        plan.poll_limit_us.values.len(),
        plan.host_poll_us.values.len(),
        plan.event_stream_us.values.len(),
        plan.host_poll.values.len(),
        plan.hint.values.len(),
    ];
    lengths.iter().product()
}

fn expand(plan: &Plan) {
    let machine = Machine {
        cpus: 2,
        wfxt: true,
        ecv: false,
        frequency: 62_500_000,
        hypervisor: true,
        event_loses_irq: false,
    };
    let part = |index, of| Plan {
        shard: Shard { index, of },
        ..plan.clone()
    };
    let cells: Vec<Cell> = part(1, 1).cells(&machine).collect();
    for (n, cell) in cells.iter().enumerate() {
        assert!(!cells[n + 1..].contains(cell), "{cell:?} twice");
        let obstacle = cell.obstacle(&machine).map(|obstacle| obstacle.to_string());
        assert_ne!(obstacle.as_deref(), Some(""));
    }
    let parts: usize = (1..=3)
        .map(|index| part(index, 3).cells(&machine).count())
        .sum();
    assert_eq!(parts, cells.len());
}
