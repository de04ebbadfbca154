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
        event_loses_irq: false,
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
    for text in [
        "rouse.iterations=2000",
        "rouse.max-iterations=7 rouse.cell-ms=0",
    ] {
        let plan = Plan::parse(text).unwrap();
        assert_eq!(plan.to_string(), text);
        assert_eq!(plan.settle, text.contains("max"));
    }
}

#[test]
fn switches_have_no_value_and_read_back() {
    type Switch = fn(&Plan) -> bool;
    let switches: [(&str, Switch); 3] = [
        ("compact", |plan| plan.compact),
        ("raw", |plan| plan.raw),
        ("cycles", |plan| plan.cycles),
    ];
    for (key, is_on) in switches {
        assert!(!is_on(&Plan::default()));
        let plan = Plan::parse(&format!("rouse.{key}")).unwrap();
        assert!(is_on(&plan) && plan.to_string().ends_with(&format!(" rouse.{key}")));
        assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
        assert_eq!(Plan::default().set(key, "1"), Err(Error::NoValue(key)));
    }
}

#[test]
fn errors_name_the_remedy() {
    let error = |text| Plan::parse(text).unwrap_err().to_string();
    assert!(error("rouse.wait=wfx").contains("there is no `wfx`; use all, busy, spin"));
    assert!(error("rouse.wiat=wfi").contains("`wiat`"));
    assert!(error("rouse.gap-us=99999999").contains("the nearest is 10000000"));
    assert!(error("rouse.poll-limit-us=0").contains("the nearest is 1"));
    assert!(error("rouse.iterations=").contains("not a number"));
    for many in ["1e20", "100000000000000000000", "5000000000"] {
        let error = Plan::parse(&format!("rouse.iterations={many}"))
            .map_err(|error| error.to_string())
            .unwrap_err();
        assert!(error.ends_with("the nearest is 1000000000"), "{error}");
    }
    assert!(error("rouse.iterations=2.5e2").contains("the nearest is 250"));
    assert!(error("rouse.iterations=-1").contains("the nearest is 4"));
    assert!(error("rouse.iterations=many").ends_with("to 1000000000; use one"));
}

#[test]
fn every_cell_is_found_once_whatever_does_not_apply() {
    for text in [
        "",
        "rouse.workload=pingpong rouse.wait=all rouse.trap=all rouse.host-poll-us=0,50 rouse.host-poll=all \
         rouse.hint=all rouse.poll-limit-us=10,20",
        "rouse.workload=all rouse.wait=wfi,poll-wfi,haltpoll rouse.wake=all rouse.gap-us=0,10",
        "rouse.workload=stream,overshoot,ipi rouse.wait=all rouse.trap=none,both rouse.event-stream-us=16,50 \
         rouse.poll-limit-us=5,10",
        "rouse.workload=ipistorm,io,messaging rouse.wait=wfi,governor:menu rouse.calls=all rouse.offset=1,3 \
         rouse.mask=0,1 rouse.call-by=all rouse.spread=all rouse.groups=1,2 rouse.wake=all",
    ] {
        let plan = Plan::parse(text).unwrap();
        let mut naive = Vec::new();
        for number in 0..plan.combinations() {
            let cell = plan.combination(number);
            let first = plan.first_of_its_kind(number, &cell);
            assert_eq!(first, !naive.contains(&cell), "{text}: {number}");
            if first {
                naive.push(cell);
            }
        }
    }
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
        ("99999999999999999999/8", "8/8"),
        ("1e3/8", "8/8"),
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
fn all_ways_of_waiting_are_not_the_governors() {
    fn waits(text: &str) -> Result<Vec<Wait>, Error<'_>> {
        Plan::parse(text).map(|plan| plan.wait.values.to_vec())
    }
    let governed = |wait: &Wait| wait.governed();
    let ways = waits("rouse.wait=all").unwrap();
    assert_eq!(ways.len(), 9);
    assert!(!ways.iter().any(governed));
    let governors = waits("rouse.wait=governor:all").unwrap();
    assert_eq!(governors.len(), 7);
    assert!(governors.iter().all(governed));
    let both = waits("rouse.wait=all,governor:all").unwrap();
    assert_eq!(both, Wait::ALL);
    assert_eq!(waits("rouse.wait=wfi,all").unwrap().len(), 9);
    for wrong in [
        "rouse.wait=governors:all",
        "rouse.wait=governor:",
        "rouse.wait=",
    ] {
        let told = waits(wrong).unwrap_err().to_string();
        assert!(told.contains("use all, busy"), "{told}");
        assert!(
            told.contains("haltpoll, governor:all, governor:menu, "),
            "{told}"
        );
    }
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
fn the_systems_are_dimensions_like_the_others() {
    let text = "rouse.workload=ipistorm,io rouse.wait=governor:fixed rouse.trap=none \
        rouse.deliver=inject rouse.wake=elide rouse.call-by=notify,resched rouse.offset=1,3 \
        rouse.psd-ms=0,3 rouse.mask=none,0-1 rouse.idle-poll=none,1";
    let plan = Plan::parse(text).unwrap();
    assert_eq!(Plan::parse(&plan.to_string()), Ok(plan.clone()));
    let cells: Vec<Cell> = plan.cells(&machine()).collect();
    // Calls of one CPU have an offset and no mask, I/O has neither.
    let of = |workload| cells.iter().filter(move |cell| cell.workload == workload);
    assert_eq!(of(Workload::Ipistorm).count(), 2 * 2 * 2);
    assert_eq!(of(Workload::Io).count(), 2 * 2);
    let first = of(Workload::Io).next().unwrap().system.to_string();
    assert_eq!(
        first,
        "device-us=20,spread=fixed,completion=same,psd-ms=0,standby-us=100,idle-poll=none"
    );
    assert!(cells.iter().all(|cell| cell.obstacle(&machine()).is_none()));
}

#[test]
fn bad_parameters_are_refused_by_name() {
    let error = |text| Plan::parse(text).unwrap_err().to_string();
    assert!(error("rouse.groups=0").contains("groups: `0` is not a number from 1 to 16"));
    assert!(error("rouse.psd-ms=1001").contains("the nearest is 1000"));
    assert!(error("rouse.cpulist=4-2").contains("cpulist: `4-2` is no set of CPUs"));
    assert!(error("rouse.call-by=x").contains("use all, notify, resched"));
    let refused = |text: &str| {
        let text = format!(
            "{text} rouse.wait=governor:fixed rouse.trap=none rouse.deliver=inject rouse.wake=elide"
        );
        let plan = Plan::parse(&text).unwrap();
        let cell = plan.cells(&machine()).next().unwrap();
        cell.obstacle(&machine()).unwrap().to_string()
    };
    for (text, told) in [
        ("rouse.workload=ipistorm rouse.offset=2", "offset: 2 maps"),
        (
            "rouse.workload=ipistorm rouse.cpulist=0+5",
            "cpulist: CPU 5 is not online",
        ),
        (
            "rouse.workload=ipistorm rouse.cpulist=none",
            "cpulist: nobody",
        ),
        (
            "rouse.workload=ipistorm rouse.calls=mask rouse.mask=0",
            "mask: a caller has nobody",
        ),
        (
            "rouse.workload=timer rouse.idle-poll=2",
            "idle-poll: CPU 2 is not online",
        ),
        (
            "rouse.workload=timer rouse.gap-us=0",
            "gap-us: this workload",
        ),
    ] {
        assert!(refused(text).contains(told), "{}", refused(text));
    }
}

/// A processor that counts slowly and has neither WFET nor long periods.
fn small() -> Machine {
    Machine {
        wfxt: false,
        ecv: false,
        frequency: 25_000_000,
        ..machine()
    }
}

fn waits_of(text: &str, machine: &Machine) -> Vec<(Wait, Option<Obstacle>)> {
    let plan = Plan::parse(text).unwrap();
    let cells = plan.cells(machine);
    cells
        .map(|cell| (cell.wait, cell.obstacle(machine)))
        .collect()
}

#[test]
fn what_one_cpu_does_alone_is_run_once_for_all_ways_to_wake() {
    let waits = waits_of("rouse.workload=stream", &machine());
    assert_eq!(waits, [(Wait::Wfe, None)]);
    let waits = waits_of("rouse.workload=overshoot", &machine());
    let sensible = [Wait::Spin, Wait::Wfe, Wait::Wfet, Wait::PollWfi];
    assert_eq!(waits, sensible.map(|wait| (wait, None)));
    let bare = Machine {
        hypervisor: false,
        cpus: 1,
        ..small()
    };
    for workload in ["stream", "overshoot"] {
        let plan = Plan::parse(&format!("rouse.workload={workload} rouse.wait=wfe")).unwrap();
        let cells: Vec<Cell> = plan.cells(&bare).collect();
        assert_eq!(cells.len(), 1);
        assert_eq!(cells[0].obstacle(&bare), None);
        assert_eq!(cells[0].deliver, Deliver::Direct);
    }
    // Delivery by name is both ways.
    let waits = waits_of("rouse.workload=stream rouse.deliver=all", &machine());
    assert_eq!(waits.len(), 2);
}

#[test]
fn only_wfe_waits_for_the_event_stream() {
    let text = "rouse.workload=stream rouse.wait=wfi,wfe,wfe-sev rouse.poll-limit-us=5,10";
    let waits = waits_of(text, &machine());
    let alone = Some(Obstacle::StreamAlone);
    let expected = [(Wait::Wfi, alone), (Wait::Wfe, None), (Wait::WfeSev, alone)];
    assert_eq!(waits, expected);
    let bare = Machine {
        hypervisor: false,
        ..machine()
    };
    assert_eq!(waits_of(text, &bare), expected);
    let waits = waits_of("rouse.workload=stream rouse.trap=wfe", &machine());
    assert_eq!(waits, [(Wait::Wfe, alone)]);
    let waits = waits_of("rouse.workload=stream rouse.event-stream-us=0", &machine());
    assert_eq!(waits, [(Wait::Wfe, Some(Obstacle::Unbounded))]);
    let told = Obstacle::StreamAlone.to_string();
    assert!(told.contains("use wait wfe, trap none"), "{told}");
}

#[test]
fn a_poll_without_a_fixed_limit_overshoots_nothing() {
    let text = "rouse.workload=overshoot rouse.trap=none rouse.wait=busy,wfi,haltpoll,\
                governor:menu,governor:fixed";
    let waits = waits_of(text, &machine());
    assert_eq!(waits.len(), 5);
    assert!(waits.iter().all(|one| one.1 == Some(Obstacle::NoLimit)));
    let waits = waits_of("rouse.workload=overshoot rouse.wait=wfet", &small());
    assert_eq!(waits, [(Wait::Wfet, Some(Obstacle::NoWfxt))]);
    // It never halts, so WFI has nothing to trap.
    let text = "rouse.workload=overshoot rouse.wait=poll-wfi rouse.trap=all";
    let traps: Vec<Option<Obstacle>> = waits_of(text, &machine())
        .into_iter()
        .map(|one| one.1)
        .collect();
    assert_eq!(traps, [None, Some(Obstacle::NothingTraps), None, None]);
}

#[test]
fn limits_and_periods_multiply_where_they_apply() {
    let text = "rouse.workload=stream,overshoot rouse.wait=spin,wfe rouse.trap=none \
                rouse.poll-limit-us=5,10,25 rouse.event-stream-us=25,100 rouse.gap-us=0,7";
    let plan = Plan::parse(text).unwrap();
    let machine = machine();
    let cells = plan.cells(&machine);
    let run: Vec<Cell> = cells
        .filter(|cell| cell.obstacle(&machine).is_none())
        .collect();
    let of = |workload, wait| {
        let of = |cell: &&Cell| (cell.workload, cell.wait) == (workload, wait);
        run.iter().filter(of).count()
    };
    assert_eq!(of(Workload::Stream, Wait::Wfe), 2);
    assert_eq!(of(Workload::Overshoot, Wait::Wfe), 3 * 2 * 2);
    assert_eq!(of(Workload::Overshoot, Wait::Spin), 3 * 2);
}

#[test]
fn a_stream_alone_needs_no_monitor() {
    let plan = Plan::parse("rouse.workload=stream,overshoot rouse.wait=wfe").unwrap();
    let needs: Vec<usize> = plan
        .cells(&machine())
        .map(|cell| cell.depends_on().len())
        .collect();
    assert_eq!(needs, [2, 3]);
}
