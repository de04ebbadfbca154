// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of words, in tables that were written down independently of the code.

use plan::*;

fn plan(text: &str) -> Plan {
    Arguments::parse(text).unwrap().plan
}

fn refused(text: &str) -> String {
    Arguments::parse(text).unwrap_err().to_string()
}

/// Returns the names of the waits for which the list `text` stands.
fn waits(text: &str) -> String {
    let plan = plan(&format!("rouse.wait={text}"));
    let waits = plan.lists.wait.values.iter();
    waits.map(|wait| wait.name()).collect::<Vec<_>>().join(" ")
}

#[test]
fn all_ways_of_waiting_are_not_the_governors() {
    let ways = "busy spin yield wfe wfe-sev wfet wfi poll-wfi haltpoll";
    let governors = "governor:menu governor:menu-6.14 governor:menu-6.2 governor:teo governor:teo-6.2 \
                     governor:teo-util-v6 governor:teo-util-6.5 governor:ladder governor:haltpoll \
                     governor:fixed";
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
        ("hz", "1000"),
        ("states", "poll+wfi:2:10+deep"),
        ("states", "arm_poll_idle:0"),
    ] {
        cell.set(key, word).unwrap();
        assert_eq!(cell.word(key).unwrap().to_string(), word);
    }
    assert_eq!(cell.wait, Wait::Governed(Governor::Teo62));
    // Words of older results, and the words that replace them in new results.
    for (word, now) in [("same", "100"), ("other", "0"), ("85", "85")] {
        cell.set("completion", word).unwrap();
        assert_eq!(cell.word("completion").unwrap().to_string(), now);
    }
    assert!(cell.word("iterations").is_none());
    for (key, word, told) in [
        ("wait", "wfx", "wait: there is no `wfx`"),
        ("poll-limit-us", "00", "not a number from 1"),
        ("gap-us", "10000001", "not a number"),
        ("gap-us", "20us", "write 20: the option's name has the unit"),
        ("gap-us", "us", "; use one"),
        ("gap-us", "2x0us", "; use one"),
        ("mask", "512", "not a set of CPUs"),
        (
            "states",
            "poll,wfi",
            "states: there is no state `poll,wfi`; use poll,",
        ),
        ("states", "wfi+poll", "states: `poll` comes after `wfi`"),
        (
            "completion",
            "101",
            "completion: `101` is not a number from 0 to 100",
        ),
        ("writes", "101", "not a number from 0 to 100"),
        (
            "hz",
            "99",
            "hz: there is no `99`; use all, 100, 250, 300, 1000",
        ),
        ("wiat", "wfi", "the nearest is `rouse.wait`"),
    ] {
        let error = cell.set(key, word).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

/// Returns the letters of the properties that `wait` has: Polls, Halts, uses Events, is Limited,
/// Keeps a limit, needs the Stream, needs WFxT (X), needs SEV (V).
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
        ("governor:menu-6.14", "PHE"),
        ("governor:menu-6.2", "PHE"),
        ("governor:teo", "PHE"),
        ("governor:teo-6.2", "PHE"),
        ("governor:teo-util-v6", "PHE"),
        ("governor:teo-util-6.5", "PHE"),
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
        // Only one CPU has to run.
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
    let tasks = [
        "ipistorm",
        "messaging",
        "pipe",
        "notify",
        "io",
        "timer",
        "idle",
        "frames",
    ];
    let alone = ["stream", "overshoot"];
    for workload in Workload::ALL {
        let name = workload.name();
        assert_eq!(workload.has_tasks(), tasks.contains(&name), "{name}");
        assert_eq!(workload.is_alone(), alone.contains(&name), "{name}");
        assert_eq!(workload.is_linux(), name.starts_with("linux-"), "{name}");
        assert_eq!(
            workload.has_groups(),
            ["messaging", "pipe", "notify"].contains(&name)
        );
        let period = match name {
            "timer" | "linux-timer" => Some(1000),
            "idle" | "linux-idle" => Some(10_000),
            "frames" => Some(16_667),
            _ => None,
        };
        assert_eq!(workload.period_us(), period);
        let is = |names: &str| names.split(' ').any(|one| one == name);
        let two = "pingpong pipe linux-pipe linux-futex linux-eventfd linux-seccomp-notify";
        let wakeups = [is(two), is("frames")].map(u32::from);
        assert_eq!(
            workload.wakeups(),
            1 + wakeups[0] + 2 * wakeups[1],
            "{name}"
        );
        let marked = "ipi pingpong ipistorm linux-pipe linux-futex linux-eventfd linux-membarrier linux-seccomp-notify linux-call";
        assert_eq!(workload.is_marked(), is(marked), "{name}");
        let waits =
            "messaging io timer idle frames stream overshoot linux-timer linux-idle linux-exec";
        assert_eq!(workload.has_idle_time(), is(waits), "{name}");
        assert_eq!(workload.median_hides_wake_ups(), is("messaging"), "{name}");
        let (learning, alone) = (10 * wakeups[1], u32::from(alone.contains(&name)));
        let unrecorded = (workload.learning(), workload.unrecorded());
        assert_eq!(unrecorded, (learning, learning + 1 - alone), "{name}");
        let times = match name {
            "linux-messaging" => 30,
            "linux-exec" => 1000,
            _ => 1,
        };
        assert_eq!(workload.is_a_run(), is("linux-exec"), "{name}");
        assert_eq!(workload.times_as_long(), times, "{name}");
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

/// The words of each dimension. Result files contain them forever.
#[test]
fn words_stay() {
    for (key, words) in [
        (
            "workload",
            "ipi pingpong ipistorm messaging pipe notify io timer idle frames stream overshoot linux-pipe \
             linux-futex linux-eventfd linux-membarrier linux-seccomp-notify linux-messaging linux-timer linux-idle linux-call linux-exec",
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
        ("completion", ""),
        ("psd-limit", "poll wfi"),
        ("wfi-barrier", "none dsb"),
        ("gap-us", ""),
        ("mask", ""),
        ("states", ""),
    ] {
        let info = Info::find(key).unwrap();
        assert_eq!(info.words.join(" "), words);
        // The help names them all.
        for word in info.words {
            assert!(info.help.contains(word), "{key}: {word}");
        }
        assert_eq!(info.kind == ValueKind::Words, !words.is_empty(), "{key}");
    }
    // The values of `hz` are words and numbers at once.
    let hz = Info::find("hz").unwrap();
    assert_eq!(hz.words, ["100", "250", "300", "1000"]);
    for word in hz.words {
        assert!(hz.help.contains(word), "{word}");
    }
    let wait = Info::find("wait").unwrap();
    let families =
        ["", "governor:"].map(|family| wait.family(family).collect::<Vec<_>>().join(" "));
    let ways = "busy spin yield wfe wfe-sev wfet wfi poll-wfi haltpoll";
    let governors =
        "menu menu-6.14 menu-6.2 teo teo-6.2 teo-util-v6 teo-util-6.5 ladder haltpoll fixed";
    assert_eq!(families, [ways, governors]);
    assert!(Info::find("waits").is_none());
    assert_eq!(
        Under::NAMES,
        [
            "rouse",
            "none",
            "xen",
            "bao",
            "kvm",
            "kvm-nvhe",
            "kvm-protected"
        ]
    );
    assert_eq!(Stages::NAMES, ["on", "off"]);
}
