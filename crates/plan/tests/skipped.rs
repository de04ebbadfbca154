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
        lse: true,
        ecv: true,
        linux: false,
        frequency: 1_000_000_000,
        under: plan::Under::Rouse,
        given: None,
        cpus_at_once: true,
        caches: true,
        event_loses_irq: false,
    }
}

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
        (R::LoopTakesTurns, "use --metric time"),
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
    let shown = |text: &str| plan(text).cells(&machine()).count();
    assert_eq!(shown(""), 66);
    let bare = Machine {
        under: plan::Under::None,
        given: None,
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
fn without_lse_what_was_asked_of_it_is_skipped() {
    let without = Machine {
        lse: false,
        ..machine()
    };
    let asked = plan("rouse.atomics=lse rouse.workload=pingpong");
    let count = asked.cells(&machine()).count();
    assert!(count > 0 && asked.cells(&without).count() == count);
    for cell in asked.cells(&machine()) {
        assert_eq!(cell.skip_reason(&machine()), None);
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

/// Why `noise` is not made in a plan of one cell, on so many CPUs.
fn silenced(noise: &str, cpus: usize, cpus_at_once: bool, workload: &str) -> Option<SkipReason> {
    let text = "rouse.wait=wfi rouse.trap=none rouse.deliver=inject rouse.wake=ipi";
    let plan = plan(&format!(
        "{text} rouse.workload={workload} rouse.noise={noise}"
    ));
    let machine = Machine {
        cpus,
        cpus_at_once,
        ..machine()
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
        .flat_map(|text| plan(text).cells(&machine()).collect::<Vec<_>>())
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
        let cell = plan.cells(&machine()).next().unwrap();
        (cell, plan.drawn(&cell))
    };
    let (open, drawn) =
        cell("rouse.arrival-us=20 rouse.gap-us=5 rouse.iterations=10 rouse.groups=3");
    assert!(open.is_open() && open.has_idle_time());
    assert_eq!((open.gap_us, open.spread), (0, Spread::Exponential));
    // The largest of four parts of ten, and the one that is no sample.
    assert_eq!(drawn, 3 * (3 + 1));
    let (closed, drawn) = cell("rouse.gap-us=5 rouse.service-us=7");
    assert!(!closed.is_open() && !closed.has_idle_time());
    assert_eq!((closed.gap_us, closed.service_us, drawn), (5, 7, 0));
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

/// Whether a cell with this table can be run depends on what else is asked for.
#[test]
fn tables_that_contradict_the_rest_are_skipped_by_name() {
    let why = |text: &str| {
        let common = "rouse.workload=pingpong rouse.wait=governor:teo rouse.deliver=inject";
        let plan = plan(&format!("{common} rouse.host-poll-us=0 {text}"));
        let cells: Vec<Cell> = plan.cells(&machine()).collect();
        assert_eq!(cells.len(), 1, "{text}");
        let reason = cells[0].skip_reason(&machine());
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
            "trap: this wait does not execute",
        ),
        (
            "rouse.states=wfi rouse.trap=wfe rouse.wake=ipi",
            "trap: this wait does not execute",
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

/// A CPU without a polling state waits for no event.
#[test]
fn a_table_without_poll_depends_on_no_event() {
    let cell = |states: &str| {
        let text =
            format!("rouse.wait=governor:menu rouse.states={states} rouse.event-stream-us=50");
        let plan = plan(&text);
        plan.cells(&machine()).next().unwrap()
    };
    let depends = |states: &str| cell(states).depends_on().collect::<Vec<_>>();
    assert_eq!(depends("poll+wfi"), ["wfe_halts", "monitor_wakes_wfe"]);
    assert_eq!(depends("wfi"), [""; 0]);
    let streams = ["poll+wfi", "wfi"].map(|states| cell(states).event_stream_us);
    assert_eq!(streams, [50, 0]);
}

/// A boot for each set of knobs has each cell once, and what can't run in the first.
#[test]
fn boots_with_other_knobs_share_the_cells() {
    let mut plan = Plan::default();
    plan.set("trap", "none,wfi,both").unwrap();
    plan.set("host-poll-us", "0,50").unwrap();
    plan.set("deliver", "inject,direct").unwrap();
    plan.set("host-poll", "fixed,adaptive").unwrap();
    let mut kvm = Machine {
        under: plan::Under::Kvm,
        ..machine()
    };
    let all: Vec<Cell> = plan.cells(&kvm).collect();
    let mut parts = Vec::new();
    for trap in [plan::Trap::None, plan::Trap::Wfi, plan::Trap::Both] {
        for host_poll_us in [0, 50] {
            kvm.given = Some(plan::Given {
                trap,
                host_poll_us,
                alone: false,
            });
            let part: Vec<Cell> = plan.cells(&kvm).collect();
            let first = trap == plan::Trap::None && host_poll_us == 0;
            for cell in &part {
                let runs = cell.skip_reason(&kvm).is_none();
                assert!(first || runs, "{cell:?}");
                assert!(!runs || (cell.trap, cell.host_poll_us) == (trap, host_poll_us));
                assert!(!runs || cell.deliver == plan::Deliver::Inject);
                assert!(
                    !runs || cell.host_poll_us == 0 || cell.host_poll == plan::HostPoll::Adaptive
                );
            }
            parts.extend(part);
        }
    }
    assert_eq!(parts.len(), all.len());
    assert!(all.iter().all(|cell| parts.contains(cell)));
}

/// Where there is one boot, it has every cell of which as much traps as the cell wants, and
/// says of the others why not.
#[test]
fn a_boot_alone_has_what_its_trap_makes_no_difference_to() {
    let mut plan = Plan::default();
    plan.set("workload", "pingpong").unwrap();
    plan.set("wait", "busy,wfe,wfi").unwrap();
    let cells = |plan: &Plan, trap| {
        let kvm = Machine {
            under: plan::Under::Kvm,
            given: Some(plan::Given {
                trap,
                host_poll_us: 0,
                alone: true,
            }),
            ..machine()
        };
        let cells = plan.cells(&kvm).map(|cell| {
            let trap = cell
                .skip_reason(&kvm)
                .map_or(format!("{}", cell.trap), |why| format!("{why}"));
            (cell.wait.to_string(), trap)
        });
        cells.collect::<std::collections::BTreeSet<_>>()
    };
    let pairs = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|&(wait, trap)| (wait.to_owned(), trap.to_owned()));
        pairs.collect::<std::collections::BTreeSet<_>>()
    };
    use plan::Trap;
    let trapped = pairs(&[("busy", "none"), ("wfe", "none"), ("wfi", "wfi")]);
    assert_eq!(cells(&plan, Trap::Wfi), trapped);
    let free = pairs(&[("busy", "none"), ("wfe", "none"), ("wfi", "none")]);
    assert_eq!(cells(&plan, Trap::None), free);
    // What was named and can't be had is told, once.
    plan.set("trap", "none,wfi").unwrap();
    let told = cells(&plan, Trap::Wfi);
    let mut skipped = told.difference(&trapped);
    assert!(skipped.any(|(wait, why)| wait == "wfi" && why.contains("kvm-arm.wfi_trap_policy")));
}

#[test]
fn a_loop_that_keeps_its_turn_is_skipped_where_cpus_take_turns() {
    let reason = |cpus_at_once| {
        let machine = Machine {
            linux: true,
            cpus_at_once,
            ..machine()
        };
        let plan = plan("rouse.workload=linux-membarrier rouse.trap=none");
        let cells: Vec<Cell> = plan.cells(&machine).collect();
        assert_eq!(cells.len(), 1);
        cells[0].skip_reason(&machine)
    };
    assert_eq!(reason(true), None);
    assert_eq!(reason(false), Some(SkipReason::LoopTakesTurns));
}

#[test]
fn neighbours_are_rouses_and_interrupts_end_their_turns() {
    use plan::Under;
    let reasons = |text: &str, under| {
        let machine = Machine { under, ..machine() };
        let plan = plan(&format!(
            "rouse.workload=pingpong rouse.gap-us=50 rouse.trap=none {text}"
        ));
        let cells = plan.cells(&machine).map(|cell| cell.skip_reason(&machine));
        cells.collect::<Vec<_>>()
    };
    let work = "rouse.wait=wfi rouse.neighbour=work";
    assert_eq!(reasons(work, Under::Rouse), [None]);
    for under in [Under::None, Under::Kvm, Under::Xen] {
        let all = reasons(work, under);
        let no_neighbour = Some(SkipReason::NoNeighbour(under));
        // On the bare machine delivery may stand against a cell as well.
        assert!(
            all.contains(&no_neighbour) && !all.contains(&None),
            "{all:?}"
        );
        // Those without one are there as ever.
        let both = reasons("rouse.wait=wfi rouse.neighbour=none,work", under);
        assert!(
            both.contains(&None) && both.contains(&no_neighbour),
            "{both:?}"
        );
    }
    let direct = format!("{work} rouse.deliver=inject,direct");
    assert_eq!(
        reasons(&direct, Under::Rouse),
        [None, Some(SkipReason::NeighbourInjects)]
    );
    // A yield ends by a slice.
    let yields =
        "rouse.wait=wfe rouse.trap=both rouse.wake=elide rouse.neighbour=work rouse.yield-on=wfe";
    assert_eq!(reasons(yields, Under::Rouse), [None]);
    assert_eq!(
        reasons(&format!("{yields} rouse.slice-us=0,20"), Under::Rouse),
        [Some(SkipReason::YieldsForEver), None]
    );
}

/// What says something of neighbours makes no cells where there are none, or where no WFE traps.
#[test]
fn slices_and_yields_apply_beside_neighbours() {
    let cells = |text: &str| {
        let plan = plan(&format!(
            "rouse.workload=pingpong rouse.wake=ipi rouse.deliver=inject {text}"
        ));
        let cells: Vec<Cell> = plan.cells(&machine()).collect();
        let words = cells
            .iter()
            .map(|cell| (cell.slice_us, cell.yield_on == YieldOn::Wfe));
        words.collect::<Vec<_>>()
    };
    let all = "rouse.slice-us=20,4000 rouse.yield-on=all";
    let wfi = "rouse.wait=wfi rouse.trap=wfi rouse.host-poll-us=0";
    assert_eq!(cells(&format!("{wfi} {all}")), [(0, false)]);
    assert_eq!(
        cells(&format!("{wfi} rouse.neighbour=work")),
        [(4000, false)]
    );
    assert_eq!(
        cells(&format!("{wfi} rouse.neighbour=work {all}")),
        [(20, false), (4000, false)]
    );
    let wfe = "rouse.wait=wfe rouse.trap=both rouse.neighbour=work rouse.slice-us=20";
    assert_eq!(
        cells(&format!("{wfe} rouse.yield-on=all")),
        [(20, false), (20, true)]
    );
}
