// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments written, read and refused, and what is said of words, in tables that
//! were written down apart from the code.

use plan::*;

fn plan(text: &str) -> Plan {
    Arguments::parse(text).unwrap().plan
}

fn refused(text: &str) -> String {
    Arguments::parse(text).unwrap_err().to_string()
}

#[test]
fn a_plan_reads_back() {
    for text in [
        "",
        "console=x rouse.wait=wfi,poll-wfi rouse.poll-limit-us=10,200 rouse.trap=all",
        "rouse.workload=all rouse.mask=0-3+6,0x4f,all,none rouse.idle-poll=none,1 rouse.groups=1,16",
        "rouse.stages=off rouse.iterations=77 rouse.shard=3/7 rouse.raw rouse.compact rouse.cycles",
        "rouse.event-loses-irq rouse.wait=governor:fixed,busy",
    ] {
        let plan = plan(text);
        let printed = plan.to_string();
        let again = Arguments::parse(&printed).map(|arguments| arguments.plan);
        assert_eq!(again, Ok(plan), "{printed}");
    }
    assert_eq!(plan(""), Plan::default());
    assert_eq!(Plan::default().to_string(), "rouse.max-iterations=2000");
    for text in [
        "rouse.iterations=2000",
        "rouse.max-iterations=7 rouse.cell-ms=0",
    ] {
        let plan = plan(text);
        assert_eq!(plan.to_string(), text);
        assert_eq!(plan.settle, text.contains("max"));
    }
    assert_eq!(
        plan("rouse.trap=both,none rouse.shard=2/3 rouse.raw").to_string(),
        "rouse.trap=both,none rouse.max-iterations=2000 rouse.shard=2/3 rouse.raw"
    );
}

#[test]
fn switches_have_no_value() {
    type Read = fn(&Plan) -> bool;
    let switches: [(&str, Read); 4] = [
        ("compact", |plan| plan.compact),
        ("raw", |plan| plan.raw),
        ("cycles", |plan| plan.cycles),
        ("event-loses-irq", |plan| plan.event_loses_irq),
    ];
    for (key, is_on) in switches {
        assert!(!is_on(&Plan::default()));
        let on = plan(&format!("rouse.{key}"));
        assert!(is_on(&on) && on.to_string().ends_with(&format!(" rouse.{key}")));
        for (other, is_on) in switches {
            assert_eq!(is_on(&on), other == key);
        }
        assert_eq!(Plan::default().set(key, "1"), Err(Error::NoValue(key)));
    }
}

#[test]
fn arguments_beside_the_plan_are_read_once() {
    let text = "root=/dev/vda rouse.check=timer rouse.cost=all rouse.fault=sgi-lost rouse.hostile=power \
                rouse.seed=7 rouse.soak=20000 rouse.stress=18446744073709551615 rouse.survey rouse.options \
                rouse.uart=pl011,0x9000000 rouse.wait=wfi";
    let read = Arguments::parse(text).unwrap();
    assert_eq!(
        read,
        Arguments {
            plan: plan("rouse.wait=wfi"),
            check: Some("timer"),
            cost: Some("all"),
            fault: Some(Fault::SgiLost),
            hostile: Some("power"),
            seed: Some(7),
            soak: Some(20_000),
            stress: Some(u64::MAX),
            survey: true,
            options: true,
            uart: Some("pl011,0x9000000"),
        }
    );
    assert_eq!(
        Arguments::parse("quiet rouse_x=1 xrouse.y"),
        Ok(Arguments::default())
    );
    // The first counts, of the plan the last.
    let twice =
        Arguments::parse("rouse.seed=1 rouse.seed=2 rouse.wait=wfi rouse.wait=wfe").unwrap();
    assert_eq!((twice.seed, twice.plan), (Some(1), plan("rouse.wait=wfe")));
}

#[test]
fn the_hypervisor_knows_the_names_and_leaves_the_values_to_the_guest() {
    let read = Arguments::<Names>::read("rouse.wait=wfx rouse.seed=5 rouse.shard=x");
    assert_eq!((read.0.seed, read.1), (Some(5), None));
    let (_, wrong) = Arguments::<Names>::read("rouse.wiat=wfi rouse.fault=x");
    assert!(
        wrong
            .unwrap()
            .to_string()
            .contains("the nearest is `rouse.wait`")
    );
    let (_, wrong) = Arguments::<Names>::read("rouse.fault=sgi-losst");
    assert!(
        wrong
            .unwrap()
            .to_string()
            .contains("the nearest is `sgi-lost`")
    );
}

#[test]
fn what_is_run_instead_is_no_measurement() {
    for (text, measures) in [
        ("", true),
        (
            "rouse.seed=1 rouse.survey rouse.fault=guest-hang rouse.uart=x rouse.wait=wfi",
            true,
        ),
        ("rouse.check=all", false),
        ("rouse.cost=all", false),
        ("rouse.hostile=all", false),
        ("rouse.soak=5", false),
        ("rouse.stress=5", false),
    ] {
        assert_eq!(
            Arguments::parse(text).unwrap().measures(),
            measures,
            "{text}"
        );
    }
}

#[test]
fn a_program_of_the_guest_runs_what_is_its_own() {
    for (text, program) in [
        ("", Program::Measuring),
        (
            "rouse.seed=1 rouse.survey rouse.wait=wfi",
            Program::Measuring,
        ),
        ("rouse.fault=el2-panic", Program::Measuring),
        ("rouse.fault=sgi-lost", Program::Measuring),
        ("rouse.fault=guest-hang", Program::Trials),
        ("rouse.fault=el2-panic-held", Program::Trials),
        ("rouse.check=all", Program::Trials),
        ("rouse.cost=all", Program::Trials),
        ("rouse.hostile=all rouse.seed=2", Program::Trials),
        ("rouse.soak=5 rouse.fault=soak-leak", Program::Trials),
        ("rouse.stress=5", Program::Trials),
    ] {
        let arguments = Arguments::parse(text).unwrap();
        assert_eq!(arguments.program(), program, "{text}");
        let (other, remedy) = match program {
            Program::Measuring => (Program::Trials, "add rouse.check"),
            Program::Trials => (Program::Measuring, "cargo xtask image --append"),
        };
        assert_eq!(arguments.fit(program), Ok(()), "{text}");
        let refused = arguments.fit(other).unwrap_err().to_string();
        assert!(refused.contains(remedy), "{refused}");
    }
}

#[test]
fn what_is_wrong_is_named_with_the_remedy() {
    for (text, told) in [
        (
            "rouse.wiat=wfi",
            "there is no boot argument `rouse.wiat`; the nearest is `rouse.wait`",
        ),
        ("rouse.fualt=sgi-lost", "the nearest is `rouse.fault`"),
        ("rouse.chek=all", "the nearest is `rouse.check`"),
        ("rouse.iteration=5", "the nearest is `rouse.iterations`"),
        ("rouse.cell-ms=3600001", "the nearest is 3600000"),
        ("rouse.max-iterations=3", "the nearest is 4"),
        (
            "rouse.fault=sgi-losst",
            "fault: there is no `sgi-losst`; the nearest is `sgi-lost`",
        ),
        ("rouse.fault=", "fault: there is no ``"),
        (
            "rouse.wait=wfx",
            "wait: there is no `wfx`; use all, busy, spin",
        ),
        ("rouse.wait=wfi,", "wait: there is no ``"),
        ("rouse.wait", "wait: there is no ``"),
        (
            "rouse.call-by=x",
            "use all, notify, resched, ipi, skip-newidle, sm-idle",
        ),
        (
            "rouse.gap-us=99999999",
            "`99999999` is not a number from 0 to 10000000; the nearest is 10000000",
        ),
        ("rouse.gap-us=-1", "the nearest is 0"),
        (
            "rouse.poll-limit-us=0",
            "not a number from 1 to 10000000; the nearest is 1",
        ),
        ("rouse.iterations=", "iterations: `` is not a number from 4"),
        (
            "rouse.seed=x",
            "seed: `x` is not a number from 0 to 18446744073709551615",
        ),
        ("rouse.soak=", "soak: `` is not a number"),
        ("rouse.stress=-1", "stress: `-1` is not a number"),
        (
            "rouse.check",
            "check: its value is missing; write rouse.check=VALUE",
        ),
        ("rouse.cost=", "cost: its value is missing"),
        ("rouse.hostile", "hostile: its value is missing"),
        ("rouse.uart", "uart: its value is missing"),
        (
            "rouse.survey=1",
            "survey: it has no value; leave out `=` and the rest",
        ),
        ("rouse.raw=1", "raw: it has no value"),
        (
            "rouse.mask=4-2",
            "mask: `4-2` is no set of CPUs; use all, none",
        ),
        (
            "rouse.shard=9/8",
            "shard: `9/8` is not a part I/N with I from 1 to N, N to 10000; the nearest is 8/8",
        ),
    ] {
        assert!(refused(text).contains(told), "{text}: {}", refused(text));
        // A word after it does not hide it, nor is what comes before it lost.
        let text = format!("rouse.seed=5 {text} rouse.trap=wfi rouse.xyz");
        let (arguments, wrong) = Arguments::<Plan>::read(&text);
        assert!(wrong.unwrap().to_string().contains(told));
        assert_eq!(arguments.plan.lists.trap.values.as_slice(), [Trap::Wfi]);
    }
    let many = |count: u32| {
        let values: Vec<String> = (1..=count).map(|value| value.to_string()).collect();
        format!("rouse.poll-limit-us={}", values.join(","))
    };
    assert_eq!(plan(&many(24)).lists.poll_limit_us.values.len(), 24);
    assert_eq!(refused(&many(25)), "poll-limit-us: more than 24 values");
}

#[test]
fn every_name_is_known_and_none_is_there_twice() {
    let names: Vec<&str> = keys().collect();
    for (n, key) in names.iter().enumerate() {
        assert!(!names[n + 1..].contains(key), "{key} twice");
        let unknown = refused(&format!("rouse.{key}x=1"));
        assert!(
            unknown.contains(&format!("the nearest is `rouse.{key}`")),
            "{unknown}"
        );
        // Whatever is wrong with this value, the name is known.
        let (_, wrong) =
            Arguments::<Plan>::read(Box::leak(format!("rouse.{key}=?").into_boxed_str()));
        assert!(!matches!(wrong, Some(Error::UnknownKey { .. })), "{key}");
    }
    assert_eq!(names.len(), COUNT + Plan::OTHERS.len() + 10);
}

#[test]
fn no_part_of_the_whole_is_refused_with_the_nearest() {
    for (text, nearest) in [
        ("1/1", "1/1"),
        ("3/8", "3/8"),
        ("8/8", "8/8"),
        ("10000/10000", "10000/10000"),
    ] {
        assert_eq!(
            plan(&format!("rouse.shard={text}")).shard.to_string(),
            nearest
        );
    }
    for (text, nearest) in [
        ("0/8", "1/8"),
        ("9/8", "8/8"),
        ("2", "1/1"),
        ("x/2", "1/2"),
        ("1/0", "1/1"),
        ("1/99999", "1/10000"),
        ("", "1/1"),
    ] {
        let error = refused(&format!("rouse.shard={text}"));
        assert!(
            error.ends_with(&format!("the nearest is {nearest}")),
            "{error}"
        );
    }
}

/// The waits of a list.
fn waits(text: &str) -> String {
    let plan = plan(&format!("rouse.wait={text}"));
    let waits = plan.lists.wait.values.iter();
    waits.map(|wait| wait.name()).collect::<Vec<_>>().join(" ")
}

#[test]
fn all_ways_of_waiting_are_not_the_governors() {
    let ways = "busy spin yield wfe wfe-sev wfet wfi poll-wfi haltpoll";
    let governors = "governor:menu governor:teo governor:teo-6.2 governor:teo-util governor:ladder \
                     governor:haltpoll governor:fixed";
    assert_eq!(waits("all"), ways);
    assert_eq!(waits("governor:all"), governors);
    assert_eq!(waits("all,governor:all"), format!("{ways} {governors}"));
    assert_eq!(
        waits("wfi,all"),
        "wfi busy spin yield wfe wfe-sev wfet poll-wfi haltpoll"
    );
    for wrong in ["governors:all", "governor:", "", "menu"] {
        let told = refused(&format!("rouse.wait={wrong}"));
        assert!(told.contains("use all, busy"), "{told}");
        assert!(
            told.contains("haltpoll, governor:all, governor:menu, "),
            "{told}"
        );
    }
}

#[test]
fn a_cell_reads_its_words_or_names_them() {
    let mut cell = Cell::default();
    for (key, word) in [
        ("wait", "governor:teo-6.2"),
        ("poll-limit-us", "0"),
        ("gap-us", "10000000"),
        ("mask", "0-3+6"),
        ("hint", "tell"),
        ("standby-us", "0"),
    ] {
        cell.set(key, word).unwrap();
        assert_eq!(cell.word(key).unwrap().to_string(), word);
    }
    assert_eq!(cell.wait, Wait::Governed(Governor::Teo62));
    assert!(cell.word("iterations").is_none());
    for (key, word, told) in [
        ("wait", "wfx", "wait: there is no `wfx`"),
        ("poll-limit-us", "00", "not a number from 1"),
        ("gap-us", "10000001", "not a number"),
        ("mask", "64", "no set of CPUs"),
        ("wiat", "wfi", "the nearest is `rouse.wait`"),
    ] {
        let error = cell.set(key, word).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

/// Names of what waits do, in the order of the letters: Polls, Halts, uses Events,
/// Limited, Keeps a limit, needs the Stream, needs WFxT (X), needs SEV (V).
fn traits(wait: Wait) -> String {
    let traits = [
        ('P', wait.polls()),
        ('H', wait.halts()),
        ('E', wait.uses_events()),
        ('L', wait.limited()),
        ('K', wait.keeps_a_limit()),
        ('S', wait.needs_stream()),
        ('X', wait.needs_wfxt()),
        ('V', wait.needs_sev()),
    ];
    let has = traits.into_iter().filter(|(_, has)| *has);
    has.map(|(letter, _)| letter).collect()
}

#[test]
fn waits_are_what_the_documentation_says() {
    let known = [
        ("busy", ""),
        ("spin", "PK"),
        ("yield", "PK"),
        ("wfe", "PEKS"),
        ("wfe-sev", "PEKSV"),
        ("wfet", "PEKX"),
        ("wfi", "H"),
        ("poll-wfi", "PHELK"),
        ("haltpoll", "PHEL"),
        ("governor:menu", "PHE"),
        ("governor:teo", "PHE"),
        ("governor:teo-6.2", "PHE"),
        ("governor:teo-util", "PHE"),
        ("governor:ladder", "PHE"),
        ("governor:haltpoll", "PHE"),
        ("governor:fixed", "PHEL"),
    ];
    assert_eq!(Wait::NAMES, known.map(|(name, _)| name));
    for (wait, (name, expected)) in Wait::ALL.iter().zip(known) {
        assert_eq!((wait.name(), traits(*wait).as_str()), (name, expected));
        assert_eq!(Wait::parse(name), Some(*wait));
        assert_eq!(wait.governor().is_some(), name.starts_with("governor:"));
        assert_eq!(wait.own_limit_us(), (name == "haltpoll").then_some(200));
    }
    assert_eq!(Wait::parse("governor:"), None);
}

#[test]
fn waits_depend_on_what_they_execute() {
    let needs = |wait: &str, workload| Wait::parse(wait).unwrap().depends_on(workload).join(" ");
    let pingpong = Workload::Pingpong;
    assert_eq!(needs("wfi", pingpong), "");
    for wait in ["busy", "spin", "yield"] {
        assert_eq!(needs(wait, pingpong), "cpus_run_at_once");
        // Nobody else has to run.
        assert_eq!(needs(wait, Workload::Overshoot), "");
    }
    assert_eq!(
        needs("wfe", pingpong),
        "wfe_halts monitor_wakes_wfe event_stream_period_ok"
    );
    assert_eq!(
        needs("wfe", Workload::Stream),
        "wfe_halts event_stream_period_ok"
    );
    assert_eq!(
        needs("wfe-sev", Workload::Stream),
        "wfe_halts sev_wakes_wfe event_stream_period_ok"
    );
    assert_eq!(needs("wfet", pingpong), "wfet_halts monitor_wakes_wfe");
    for wait in ["poll-wfi", "haltpoll", "governor:teo"] {
        assert_eq!(needs(wait, pingpong), "wfe_halts monitor_wakes_wfe");
    }
}

#[test]
fn words_of_other_dimensions_are_what_the_documentation_says() {
    let tasks = ["ipistorm", "messaging", "notify", "io", "timer", "idle"];
    let alone = ["stream", "overshoot"];
    for workload in Workload::ALL {
        let name = workload.name();
        assert_eq!(workload.has_tasks(), tasks.contains(&name), "{name}");
        assert_eq!(workload.is_alone(), alone.contains(&name), "{name}");
        assert_eq!(
            workload.has_groups(),
            ["messaging", "notify"].contains(&name)
        );
        let period = match name {
            "timer" => Some(1000),
            "idle" => Some(10_000),
            _ => None,
        };
        assert_eq!(workload.period_us(), period);
    }
    let traps = [
        (Trap::None, false, false),
        (Trap::Wfi, true, false),
        (Trap::Wfe, false, true),
        (Trap::Both, true, true),
    ];
    for (trap, wfi, wfe) in traps {
        assert_eq!((trap.wfi(), trap.wfe()), (wfi, wfe));
    }
    assert_eq!(
        Deliver::ALL
            .iter()
            .map(|one| one.is_direct())
            .collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(
        Wake::ALL.iter().map(|one| one.elides()).collect::<Vec<_>>(),
        [false, true]
    );
    let receivers: Vec<bool> = Shape::ALL.iter().map(|one| one.has_receiver()).collect();
    assert_eq!(receivers, [false, false, true, true]);
    assert_eq!(
        format!("{:>6}|{:<5}|{:>5}", Trap::Wfi, Wait::Wfe, Governor::Teo),
        "   wfi|wfe  |  teo"
    );
}

/// The words of each dimension, which files of results hold for ever.
#[test]
fn words_stay() {
    for (key, words) in [
        (
            "workload",
            "ipi pingpong ipistorm messaging notify io timer idle stream overshoot",
        ),
        ("shape", "dry self one broadcast"),
        ("trap", "none wfi wfe both"),
        ("deliver", "inject direct"),
        ("wake", "ipi elide"),
        ("host-poll", "fixed adaptive"),
        ("hint", "silent tell"),
        ("calls", "single mask all"),
        ("call-wait", "on off"),
        ("call-by", "notify resched ipi skip-newidle sm-idle"),
        ("spread", "fixed uniform exponential"),
        ("completion", "same other"),
        ("wfi-barrier", "none dsb"),
        ("gap-us", ""),
        ("mask", ""),
    ] {
        let info = Info::find(key).unwrap();
        assert_eq!(info.words.join(" "), words);
        // The help names them all.
        for word in info.words {
            assert!(info.help.contains(word), "{key}: {word}");
        }
        assert_eq!(info.kind == Kind::Words, !words.is_empty(), "{key}");
    }
    let wait = Info::find("wait").unwrap();
    let families =
        ["", "governor:"].map(|family| wait.family(family).collect::<Vec<_>>().join(" "));
    let ways = "busy spin yield wfe wfe-sev wfet wfi poll-wfi haltpoll";
    let governors = "menu teo teo-6.2 teo-util ladder haltpoll fixed";
    assert_eq!(families, [ways, governors]);
    assert!(Info::find("waits").is_none());
    assert_eq!(Under::NAMES, ["rouse", "none"]);
    assert_eq!(Stages::NAMES, ["on", "off"]);
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

fn machine() -> Machine {
    Machine {
        cpus: 4,
        wfxt: true,
        ecv: true,
        frequency: 1_000_000_000,
        hypervisor: true,
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
