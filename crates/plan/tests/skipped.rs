// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which cells a plan has, and why some are skipped.

use plan::*;

fn plan(text: &str) -> Plan {
    Arguments::parse(text).unwrap().plan
}

fn machine() -> Machine {
    Machine {
        cpus: 4,
        wfxt: true,
        ecv: true,
        frequency: 1_000_000_000,
        hypervisor: true,
        caches: true,
        event_loses_irq: false,
    }
}

#[test]
fn reasons_name_the_remedy() {
    use SkipReason as R;
    for (reason, told) in [
        (R::StreamAlone, "use wait wfe, trap none"),
        (
            R::NoLimit,
            "use wait spin, yield, wfe, wfe-sev, wfet or poll-wfi",
        ),
        (R::NeverPolls, "use wake ipi"),
        (
            R::NothingTraps,
            "this wait does not execute that instruction",
        ),
        (R::ShapeNeedsBusy, "use wait busy"),
        (R::NoHypervisor, "use trap none, deliver direct"),
        (R::Unbounded, "use --event-stream-us 100, or wait wfet"),
        (
            R::StreamPeriod { nearest_us: 65 },
            "use --event-stream-us 65",
        ),
        (R::OneCpu, "use --cpus 2 or more"),
        (R::NoWfxt, "use wait wfe"),
        (R::LosesInterrupts, "use wake elide, or another CPU model"),
        (R::NoCaches, "use cache warm"),
        (
            R::Offline {
                key: "mask",
                cpu: 7,
                cpus: 4,
            },
            "mask: CPU 7 is not online; use CPUs 0 to 3, or --cpus",
        ),
        (R::NoPeriod, "use --gap-us 1000"),
        (
            R::OffsetToSelf { offset: 4, cpus: 2 },
            "offset: 4 maps a CPU onto itself on 2; use --offset 1",
        ),
        (R::NobodyToCall, "use --mask all"),
        (R::NobodyCalls, "use --cpulist 0"),
    ] {
        assert!(reason.to_string().contains(told), "{reason}");
    }
}

#[test]
fn what_came_with_the_defaults_is_left_out() {
    let shown = |text: &str| plan(text).cells(&machine()).count();
    assert_eq!(shown(""), 66);
    let bare = Machine {
        hypervisor: false,
        ..machine()
    };
    let cells: Vec<Cell> = Plan::default().cells(&bare).collect();
    assert!(!cells.is_empty());
    assert!(
        cells
            .iter()
            .all(|cell| cell.trap == Trap::None && cell.deliver == Deliver::Direct)
    );
}

#[test]
fn of_several_reasons_the_first_is_told() {
    let reason = |text: &str| {
        let plan = plan(&format!("{text} rouse.deliver=inject rouse.trap=none"));
        let machine = Machine {
            cpus: 2,
            ..machine()
        };
        let cell = plan.cells(&machine).next().unwrap();
        cell.skip_reason(&machine)
    };
    let offline = |key, cpu| Some(SkipReason::Offline { key, cpu, cpus: 2 });
    let storm = "rouse.workload=ipistorm rouse.wake=ipi rouse.wait=spin rouse.calls=mask";
    assert_eq!(
        reason(&format!("{storm} rouse.mask=3 rouse.cpulist=5")),
        offline("mask", 3)
    );
    assert_eq!(
        reason(&format!("{storm} rouse.mask=0 rouse.cpulist=5")),
        offline("cpulist", 5)
    );
    assert_eq!(
        reason(&format!("{storm} rouse.mask=0 rouse.cpulist=0")),
        Some(SkipReason::NobodyToCall)
    );
    assert_eq!(
        reason(&format!("{storm} rouse.mask=0 rouse.cpulist=none")),
        Some(SkipReason::NobodyCalls)
    );
    assert_eq!(
        reason(&format!("{storm} rouse.mask=0-1 rouse.cpulist=0")),
        None
    );
    assert_eq!(
        reason("rouse.workload=timer rouse.gap-us=0 rouse.cpulist=9 rouse.wait=wfi rouse.wake=ipi"),
        offline("cpulist", 9)
    );
}

#[test]
fn ranks_are_those_of_a_plan() {
    let mut cells: Vec<Cell> =
        plan("rouse.workload=ipi,pingpong rouse.gap-us=5,10 rouse.mask=1,2 rouse.wait=all")
            .cells(&machine())
            .collect();
    let sorted = cells.clone();
    cells.reverse();
    cells.sort_by_key(Cell::rank);
    assert!(cells == sorted);
    let rank = |key: &str, word: &str| {
        let mut cell = Cell::default();
        cell.set(key, word).unwrap();
        Info::find(key).unwrap().rank(&cell)
    };
    assert_eq!(
        [
            rank("gap-us", "7"),
            rank("trap", "wfe"),
            rank("mask", "0-3+6")
        ],
        [7, 2, 0x4f]
    );
    assert_eq!(rank("wait", "governor:menu"), 9);
}
