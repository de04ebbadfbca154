// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans written, read, expanded and refused.

use crate::*;

fn machine() -> Machine {
    Machine {
        cpus: 2,
        wfxt: true,
        ecv: true,
        frequency: 1_000_000_000,
        hypervisor: true,
    }
}

#[test]
fn a_plan_reads_back() {
    let text = "console=x rouse.wait=wfi,poll-wfi rouse.poll-limit-us=10,200 rouse.trap=all";
    let plan = Plan::parse(text).unwrap();
    assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
    assert_eq!(
        Plan::parse(&Plan::default().to_string()),
        Ok(Plan::default())
    );
}

#[test]
fn errors_name_the_remedy() {
    let error = |text| Plan::parse(text).unwrap_err().to_string();
    assert!(error("rouse.wait=wfx").contains("there is no `wfx`; use all, busy, spin"));
    assert!(error("rouse.wiat=wfi").contains("`wiat`"));
    assert!(error("rouse.gap-us=99999999").contains("the nearest is 10000000"));
    assert!(error("rouse.poll-limit-us=0").contains("the nearest is 1"));
    assert!(error("rouse.iterations=").contains("not a number"));
}

#[test]
fn the_shards_are_the_whole() {
    let cells = |text: &str| -> Vec<Cell> {
        let plan = Plan::parse(text).unwrap();
        assert_eq!(Plan::parse(&plan.to_string()), Ok(plan.clone()));
        plan.cells(&machine()).collect()
    };
    let whole = cells("rouse.raw");
    let parts = ["rouse.shard=1/3", "rouse.shard=2/3", "rouse.shard=3/3"].map(cells);
    assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), whole.len());
    for (number, cell) in whole.iter().enumerate() {
        assert_eq!(parts[number % 3][number / 3], *cell);
    }
}

#[test]
fn no_part_of_the_whole_is_refused_with_the_nearest() {
    for (text, nearest) in [
        ("0/8", "1/8"),
        ("9/8", "8/8"),
        ("2", "1/1"),
        ("x/2", "1/2"),
        ("1/0", "1/1"),
        ("1/99999", "1/10000"),
        ("", "1/1"),
        ("01/8", "1/8"),
    ] {
        let mut plan = Plan::default();
        match plan.set("shard", text) {
            Ok(()) => assert_eq!(plan.shard.to_string(), nearest),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.ends_with(&format!("the nearest is {nearest}")),
                    "{error}"
                );
            }
        }
    }
    assert!(Plan::default().set("raw", "1").is_err());
}

#[test]
fn the_default_matrix_has_no_obstacle() {
    let plan = Plan::default();
    let cells: Vec<Cell> = plan.cells(&machine()).collect();
    assert!(cells.iter().all(|cell| cell.obstacle(&machine()).is_none()));
    assert!((50..80).contains(&cells.len()), "{}", cells.len());
    let trapped = cells.iter().filter(|cell| {
        cell.workload == Workload::Pingpong && cell.wait == Wait::Wfi && cell.trap == Trap::Wfi
    });
    assert_eq!(trapped.count(), 4);
}

#[test]
fn a_period_that_the_counter_cannot_make_is_named_with_the_nearest() {
    let plan = Plan::parse("rouse.wait=wfe rouse.event-stream-us=1000000").unwrap();
    let slow = Machine {
        ecv: false,
        ..machine()
    };
    let obstacle = plan.cells(&slow).next().unwrap().obstacle(&slow);
    assert_eq!(obstacle, Some(Obstacle::StreamPeriod { nearest_us: 65 }));
}

#[test]
fn a_wfe_without_bound_is_not_run() {
    let plan = Plan::parse("rouse.wait=wfe rouse.event-stream-us=0").unwrap();
    let machine = machine();
    let mut cells = plan.cells(&machine);
    assert!(cells.all(|cell| cell.obstacle(&machine) == Some(Obstacle::Unbounded)));
}

#[test]
fn dimensions_that_do_not_apply_do_not_multiply() {
    let plan = Plan::parse(
        "rouse.workload=pingpong rouse.wait=wfi,poll-wfi rouse.trap=none rouse.deliver=inject \
         rouse.wake=ipi rouse.poll-limit-us=10,20,30",
    )
    .unwrap();
    assert_eq!(plan.cells(&machine()).count(), 4);
}

#[test]
fn what_was_named_is_listed_though_it_cannot_run() {
    let plan = Plan::parse(
        "rouse.workload=pingpong rouse.wait=all rouse.trap=all rouse.wake=all rouse.deliver=all",
    )
    .unwrap();
    // Three waits may halt, two traps catch that, and then EL2 polls or not.
    let host_polls = 3 * 2 * 2 * 2;
    assert_eq!(plan.cells(&machine()).count(), 9 * 4 * 2 * 2 + host_polls);
}

#[test]
fn the_bare_machine_runs_what_needs_no_hypervisor() {
    let bare = Machine {
        hypervisor: false,
        ..machine()
    };
    let plan = Plan::default();
    assert!(plan.cells(&bare).count() > 10);
    assert!(
        plan.cells(&bare)
            .all(|cell| cell.trap == Trap::None && cell.deliver == Deliver::Direct)
    );
}

#[test]
fn shares_add_up() {
    for iterations in [4, 5, 6, 7, 2000] {
        let plan = Plan {
            iterations,
            ..Plan::default()
        };
        assert_eq!(
            (0..PASSES).map(|pass| plan.share(pass)).sum::<u32>(),
            iterations
        );
    }
}
