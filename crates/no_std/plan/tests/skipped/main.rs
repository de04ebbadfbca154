// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which cells a plan has, and why some are skipped.

mod boots;
mod neighbours;

use plan::*;

fn plan(text: &str) -> Plan {
    Arguments::parse(text).unwrap().plan
}

const MACHINE: Machine = Machine::COMPLETE;

#[test]
fn reasons_name_the_remedy() {
    use SkipReason as R;
    for (reason, told) in [
        (R::OtherGuest { linux: false }, "use --guest debian"),
        (R::OtherGuest { linux: true }, "or leave --guest out"),
        (R::StreamAlone, "use wait wfe, trap none"),
        (
            R::NoLimit,
            "use wait spin, yield, wfe, wfe-sev, wfet or poll-wfi",
        ),
        (R::NeverPolls, "use wake ipi"),
        (
            R::NothingTraps(Trap::Wfe),
            "executes no WFE; use wait wfe, wfet or poll-wfi, or trap none",
        ),
        (
            R::NothingTraps(Trap::Wfi),
            "executes no WFI; use wait wfi or poll-wfi, or trap none",
        ),
        (
            R::NothingTraps(Trap::Both),
            "executes neither WFI nor WFE; use trap none",
        ),
        (R::ShapeNeedsBusy, "use wait busy"),
        (R::NoHypervisor, "use trap none, deliver direct"),
        (R::Unbounded, "use --event-stream-us 100, or wait wfet"),
        (
            R::StreamPeriod { nearest_us: 65 },
            "use --event-stream-us 65",
        ),
        (R::OneCpu, "use --cpus 2 or more"),
        (R::NoLse, "use atomics llsc"),
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
        (R::NoTarget, "use --mask all"),
        (R::NoCaller, "use --cpulist 0"),
        (R::NoiseTakesTurns, "use --metric time"),
        (R::NoNeighbour(plan::Under::Kvm), "use --under rouse"),
        (R::NeighbourInjects, "use deliver inject"),
        (R::YieldsForEver, "use --slice-us 4000"),
        (R::NoBystander, "use workload pingpong"),
        (
            R::FewBystanders {
                noise: Noise::Sgi,
                cpus: 4,
            },
            "noise: for sgi too few CPUs take no part in what is measured; use --cpus 4 or more",
        ),
    ] {
        assert!(reason.to_string().contains(told), "{reason}");
    }
}

#[test]
fn what_came_with_the_defaults_is_left_out() {
    let shown = |text: &str| plan(text).cells(&MACHINE).count();
    assert_eq!(shown(""), 66);
    let bare = Machine {
        under: plan::Under::None,
        given: None,
        ..MACHINE
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
fn without_lse_what_was_asked_of_it_is_skipped() {
    let without = Machine {
        lse: false,
        ..MACHINE
    };
    let asked = plan("rouse.atomics=lse rouse.workload=pingpong");
    let count = asked.cells(&MACHINE).count();
    assert!(count > 0 && asked.cells(&without).count() == count);
    for cell in asked.cells(&MACHINE) {
        assert_eq!(cell.skip_reason(&MACHINE), None);
        assert_eq!(cell.skip_reason(&without), Some(SkipReason::NoLse));
    }
    let other = plan("rouse.atomics=llsc rouse.workload=pingpong");
    assert!(
        other
            .cells(&without)
            .all(|cell| cell.skip_reason(&without).is_none())
    );
}

#[test]
fn of_several_reasons_the_first_is_told() {
    let reason = |text: &str| {
        let plan = plan(&format!("{text} rouse.deliver=inject rouse.trap=none"));
        let machine = Machine { cpus: 2, ..MACHINE };
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
        Some(SkipReason::NoTarget)
    );
    assert_eq!(
        reason(&format!("{storm} rouse.mask=0 rouse.cpulist=none")),
        Some(SkipReason::NoCaller)
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

/// Returns why a plan of one cell makes no `noise` on a machine with `cpus` CPUs.
fn silenced(noise: &str, cpus: usize, cpus_at_once: bool, workload: &str) -> Option<SkipReason> {
    let text = "rouse.wait=wfi rouse.trap=none rouse.deliver=inject rouse.wake=ipi";
    let plan = plan(&format!(
        "{text} rouse.workload={workload} rouse.noise={noise}"
    ));
    let machine = Machine {
        cpus,
        cpus_at_once,
        ..MACHINE
    };
    let cell = plan.cells(&machine).next().unwrap();
    cell.skip_reason(&machine)
}

#[test]
fn noise_takes_cpus_that_run_at_once_and_take_no_part() {
    let few = |noise, cpus| Some(SkipReason::FewBystanders { noise, cpus });
    assert_eq!(
        silenced("stream", 2, true, "pingpong"),
        few(Noise::Stream, 3)
    );
    assert_eq!(silenced("tlbi", 3, true, "pingpong"), None);
    assert_eq!(silenced("sgi", 3, true, "pingpong"), few(Noise::Sgi, 4));
    assert_eq!(silenced("sgi", 4, true, "pingpong"), None);
    assert_eq!(
        silenced("sgi", 2, true, "ipi rouse.shape=one"),
        few(Noise::Sgi, 4)
    );
    for workload in ["notify", "timer", "ipi rouse.shape=broadcast"] {
        assert_eq!(
            silenced("tlbi", 8, true, workload),
            Some(SkipReason::NoBystander)
        );
        assert_eq!(silenced("none", 8, true, workload), None);
    }
    assert_eq!(
        silenced("tlbi", 8, false, "pingpong"),
        Some(SkipReason::NoiseTakesTurns)
    );
    assert_eq!(silenced("none", 8, false, "pingpong"), None);
}

#[test]
fn every_cpu_measures_takes_part_or_stands_by() {
    let texts = ["rouse.workload=all rouse.shape=all rouse.wait=all rouse.noise=all"];
    for cell in texts
        .iter()
        .flat_map(|text| plan(text).cells(&MACHINE).collect::<Vec<_>>())
    {
        for cpus in 1..6 {
            let others = cell.members(cpus) + cell.bystanders(cpus);
            assert!(others < cpus && (others == cpus - 1 || cell.noise == Noise::None));
        }
    }
}

#[test]
fn an_open_loop_has_arrivals_in_place_of_pauses() {
    let cell = |text: &str| {
        let plan = plan(&format!("rouse.workload=notify rouse.wait=wfi {text}"));
        let cell = plan.cells(&MACHINE).next().unwrap();
        (cell, plan.drawn(&cell))
    };
    let (open, drawn) =
        cell("rouse.arrival-us=20 rouse.gap-us=5 rouse.iterations=10 rouse.groups=3");
    assert!(open.is_open() && open.has_idle_time());
    assert_eq!((open.gap_us, open.spread), (0, Spread::Exponential));
    // Ten requests in four passes are at most 3 in a pass; one more request is not a sample.
    assert_eq!(drawn, 3 * (3 + 1));
    let (closed, drawn) = cell("rouse.gap-us=5 rouse.service-us=7");
    assert!(!closed.is_open() && !closed.has_idle_time());
    assert_eq!((closed.gap_us, closed.service_us, drawn), (5, 7, 0));
}

#[test]
fn ranks_are_those_of_a_plan() {
    let mut cells: Vec<Cell> =
        plan("rouse.workload=ipi,pingpong rouse.gap-us=5,10 rouse.mask=1,2 rouse.wait=all")
            .cells(&MACHINE)
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
    // The last set of one CPU whose rank equals its bit mask, and the first whose rank does not.
    let large = [rank("mask", "53"), rank("mask", "54")];
    assert_eq!(large, [1 << 53, 55 << 54]);
}

#[test]
fn all_pairs_are_those_that_are_not_named() {
    let pairs = |pair: &str| {
        let common = "rouse.workload=pingpong rouse.wait=wfi rouse.trap=none rouse.wake=ipi";
        let plan = plan(&format!("{common} rouse.deliver=inject rouse.pair={pair}"));
        let machine = Machine { cpus: 3, ..MACHINE };
        let cells = plan.cells(&machine).map(|cell| cell.pair.to_string());
        cells.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(pairs("all"), "0,1 0,2 1,2");
    assert_eq!(pairs("0,2+all"), "0,2 0,1 1,2");
}

#[test]
fn on_the_bare_machine_nothing_traps_injects_or_polls() {
    let cell = Cell {
        trap: Trap::Wfi,
        deliver: Deliver::Inject,
        host_poll_us: 5,
        host_poll: HostPoll::Adaptive,
        hint: Hint::Tell,
        gap_us: 7,
        ..Cell::default()
    };
    let (trap, deliver) = (Trap::None, Deliver::Direct);
    let bare = Cell {
        trap,
        deliver,
        gap_us: 7,
        ..Cell::default()
    };
    assert_eq!(cell.on_bare_machine(), bare);
}

/// Whether a cell with a given table of states can run depends on its other dimensions.
#[test]
fn tables_that_contradict_the_rest_are_skipped_by_name() {
    let why = |text: &str| {
        let common = "rouse.workload=pingpong rouse.wait=governor:teo rouse.deliver=inject";
        let plan = plan(&format!("{common} rouse.host-poll-us=0 {text}"));
        let cells: Vec<Cell> = plan.cells(&MACHINE).collect();
        assert_eq!(cells.len(), 1, "{text}");
        let reason = cells[0].skip_reason(&MACHINE);
        reason.map_or(String::new(), |reason| reason.to_string())
    };
    for (text, told) in [
        (
            "rouse.states=poll+wfi+standby rouse.standby-us=1",
            "states: `standby` has a lower exit latency",
        ),
        (
            "rouse.states=standby rouse.standby-us=0",
            "another --standby-us",
        ),
        (
            "rouse.states=wfi rouse.wake=elide",
            "elide: this wait, or its table of states, never polls",
        ),
        (
            "rouse.states=poll+standby rouse.trap=wfi rouse.wake=ipi",
            "trap: this wait executes no WFI",
        ),
        (
            "rouse.states=wfi rouse.trap=wfe rouse.wake=ipi",
            "trap: this wait executes no WFE",
        ),
    ] {
        let text = match text.contains("wake") {
            true => text.to_owned(),
            false => format!("{text} rouse.wake=ipi rouse.trap=none"),
        };
        let text = match text.contains("trap") {
            true => text,
            false => format!("{text} rouse.trap=none"),
        };
        assert!(why(&text).contains(told), "{text}: {}", why(&text));
    }
    let runs = "rouse.states=arm_poll_idle:10 rouse.wake=elide rouse.trap=wfi rouse.standby-us=0";
    assert_eq!(why(runs), "");
}

/// A CPU without a polling state never waits for an event.
#[test]
fn a_table_without_poll_depends_on_no_event() {
    let cell = |states: &str| {
        let text =
            format!("rouse.wait=governor:menu rouse.states={states} rouse.event-stream-us=50");
        let plan = plan(&text);
        plan.cells(&MACHINE).next().unwrap()
    };
    let depends = |states: &str| cell(states).depends_on().collect::<Vec<_>>();
    assert_eq!(depends("poll+wfi"), ["wfe_halts", "monitor_wakes_wfe"]);
    assert_eq!(depends("wfi"), [""; 0]);
    let streams = ["poll+wfi", "wfi"].map(|states| cell(states).event_stream_us);
    assert_eq!(streams, [50, 0]);
}
