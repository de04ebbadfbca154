// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests how boot arguments are written, read and refused.

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
        "rouse.wait=governor:all rouse.hz=all rouse.states=wfi,arm_poll_idle:30,poll+wfi:1:9+standby+deep:500:3000",
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
    let switches: [(&str, Read); 5] = [
        ("compact", |plan| plan.compact),
        ("raw", |plan| plan.raw),
        ("cycles", |plan| plan.cycles),
        ("assume-caches", |plan| plan.assume_caches),
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
                rouse.seed=7 rouse.soak=20000 rouse.linux-soak=60 rouse.stress=18446744073709551615 rouse.survey rouse.leave=MPAM2_EL2 \
                rouse.keep-watchdogs rouse.options rouse.floor rouse.cost-brief rouse.cost-cold \
                 rouse.uart=pl011,0x9000000 rouse.under=kvm rouse.given-trap=wfi rouse.given-host-poll-us=9 \
                 rouse.deadline=600 rouse.cell-deadline=0 rouse.keep-cpu rouse.guest-states=100:200 rouse.wait=wfi";
    let read = Arguments::parse(text).unwrap();
    assert_eq!(
        read,
        Arguments {
            plan: plan("rouse.wait=wfi"),
            check: Some("timer"),
            cost: Some("all"),
            cost_brief: true,
            cost_cold: true,
            fault: Some(Fault::Call(CallFault::SgiLost)),
            hostile: Some("power"),
            seed: Some(7),
            soak: Some(20_000),
            linux_soak: Some(60),
            stress: Some(u64::MAX),
            survey: true,
            leave: Some("MPAM2_EL2"),
            keep_watchdogs: true,
            floor: true,
            options: true,
            deadline: Some(600),
            cell_deadline: Some(0),
            keep_cpu: true,
            guest_states: Some(GuestStates::standby()),
            uart: Some("pl011,0x9000000"),
            under: Some(Under::Kvm),
            given_trap: Some(Trap::Wfi),
            given_host_poll_us: Some(9),
            given_alone: false,
            checkpoint: false,
            core_mhz: None,
        }
    );
    assert_eq!(
        Arguments::parse("quiet rouse_x=1 xrouse.y"),
        Ok(Arguments::default())
    );
    // The first value of a name counts, but within the plan, the last value counts.
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
fn an_image_for_measurements_refuses_what_it_has_not() {
    type Image = fn(Planted) -> bool;
    let hypervisor: Image = |planted| planted.hypervisor;
    let guest: Image = |planted| planted.guest;
    fn refused(text: &str, image: Image) -> Option<String> {
        let (read, _) = Arguments::<Names>::read(text);
        let wrong = read.unplanted(image)?.to_string();
        let (what, remedy) =
            wrong.split_once(" is for tests, and this image is for measurements; ")?;
        assert!(remedy.starts_with("give the same arguments to `cargo xtask image --append`"));
        Some(what.to_owned())
    }
    for fault in Fault::ALL {
        let text = format!("rouse.fault={fault}");
        let refuses = [hypervisor, guest].map(|image| refused(&text, image));
        let of = fault.planted();
        let expected = [of.hypervisor, of.guest].map(|makes| makes.then(|| text.clone()));
        assert_eq!(refuses, expected, "{fault}");
    }
    let refused = |text| refused(text, hypervisor);
    assert_eq!(refused("rouse.floor").unwrap(), "rouse.floor");
    let beside = "rouse.hostile=all rouse.neighbour=work";
    assert_eq!(refused(beside).unwrap(), "rouse.neighbour");
    assert_eq!(refused("rouse.neighbour=work"), None);
    assert_eq!(refused("rouse.hostile=all"), None);
}

#[test]
fn the_hypervisor_reads_which_image_of_the_guest_is_meant() {
    let read = |text| {
        let (read, wrong) = Arguments::<Names>::read(text);
        (read.plan.atomics, wrong.map(|wrong| wrong.to_string()))
    };
    assert_eq!(read("rouse.wait=wfi"), (None, None));
    assert_eq!(read("rouse.atomics=lse"), (Some(Atomics::Lse), None));
    // Within the plan, the last value counts.
    let twice = read("rouse.atomics=lse rouse.atomics=llsc");
    assert_eq!(twice, (Some(Atomics::Llsc), None));
    for (text, told) in [
        ("llsc,lse", "more than a boot has"),
        ("all", "more than a boot has"),
        ("lsc", "the nearest is `llsc`"),
        ("", "the nearest is"),
    ] {
        let text = format!("rouse.atomics={text}");
        let (read, wrong) = Arguments::<Names>::read(&text);
        assert_eq!(read.plan.atomics, None, "{text}");
        assert!(wrong.unwrap().to_string().contains(told), "{text}");
    }
}

/// The hypervisor sets aside memory for the plan's largest neighbour, if the plan has one.
#[test]
fn the_hypervisor_reads_how_large_neighbours_are() {
    for (text, expected) in [
        ("", None),
        ("rouse.neighbour=none", None),
        ("rouse.neighbour=work", Some(0)),
        ("rouse.neighbour=none,cache:16,work", Some(16)),
        ("rouse.neighbour=cache", Some(256)),
        ("rouse.neighbour=all", Some(256)),
        ("rouse.neighbour=work,all", Some(256)),
        ("rouse.neighbour=none,cache:all", Some(4096)),
        ("rouse.neighbour=cache rouse.neighbour=work", Some(0)),
        ("rouse.neighbour=idle", None),
    ] {
        let (read, _) = Arguments::<Names>::read(text);
        assert_eq!(read.plan.neighbours, expected, "{text}");
        // The guest's full plan gives the same size.
        let plan = Arguments::parse(text).map(|parsed| parsed.plan);
        let most = plan.ok().and_then(|plan| {
            let there = plan.lists.neighbour.values.into_iter();
            let kib = there.filter(|one| one.is_there()).map(Neighbour::kib);
            kib.max()
        });
        assert_eq!(most, expected, "{text}");
    }
}

#[test]
fn an_image_runs_what_is_its_own_and_says_what_it_is() {
    use Atomics::{Llsc, Lse};
    let on = |text: &str, own, lse| {
        let mut plan = plan(text);
        let runs = plan.runs_on(own, lse);
        runs.map(|()| plan.lists.atomics.values.to_vec())
    };
    for (own, lse) in [(Llsc, false), (Llsc, true), (Lse, true)] {
        assert_eq!(on("", own, lse), Ok(vec![own]));
        assert_eq!(on("rouse.atomics=all", own, lse), Err(OtherImage::Several));
    }
    let (llsc, lse) = ("rouse.atomics=llsc", "rouse.atomics=lse");
    assert_eq!(on(llsc, Llsc, true), Ok(vec![Llsc]));
    assert_eq!(on(llsc, Lse, true), Err(OtherImage::Asked(Llsc)));
    assert_eq!(on(lse, Lse, true), Ok(vec![Lse]));
    // On a machine without LSE, the image skips every cell; on one with LSE, it refuses the plan.
    assert_eq!(on(lse, Llsc, false), Ok(vec![Lse]));
    assert_eq!(on(lse, Llsc, true), Err(OtherImage::Asked(Lse)));
    // Each boot gets one of the words that the host asks for.
    let both = plan("rouse.atomics=all rouse.wait=wfi");
    assert_eq!(both.atomics().collect::<Vec<_>>(), [Llsc, Lse]);
    let told = |plan: &Plan, linux| {
        let choices = plan.choices(linux).into_iter();
        choices
            .map(|choice| plan.chosen(choice).to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        told(&both, false),
        [
            "rouse.wait=wfi rouse.atomics=llsc rouse.max-iterations=2000",
            "rouse.wait=wfi rouse.atomics=lse rouse.max-iterations=2000",
        ]
    );
    let neither = "rouse.wait=wfi rouse.max-iterations=2000";
    assert_eq!(told(&plan("rouse.wait=wfi"), false), [neither]);
    // Linux has one image, and decides at its boot how it idles.
    assert_eq!(told(&both, true), [neither]);
    let idles = plan("rouse.linux-cpuidle=default,governor:teo");
    assert_eq!(
        told(&idles, true),
        [
            "rouse.linux-cpuidle=default rouse.max-iterations=2000",
            "rouse.linux-cpuidle=governor:teo rouse.max-iterations=2000",
        ]
    );
    assert_eq!(told(&idles, false).len(), 1);
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
        ("rouse.linux-soak=5", false),
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
        ("rouse.fault=secondary-silent", Program::Measuring),
        ("rouse.fault=guest-hang", Program::Trials),
        ("rouse.fault=el2-panic-held", Program::Trials),
        ("rouse.fault=sgi-lost", Program::Trials),
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
            "mask: `4-2` is not a set of CPUs; use all, none",
        ),
        (
            "rouse.shard=9/8",
            "shard: `9/8` is not a part I/N with I from 1 to N, N to 10000; the nearest is 8/8",
        ),
    ] {
        assert!(refused(text).contains(told), "{text}: {}", refused(text));
        // A later word does not hide the error, and earlier words are not lost.
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
        // Value `?` is wrong, but the name is known.
        let (_, wrong) =
            Arguments::<Plan>::read(Box::leak(format!("rouse.{key}=?").into_boxed_str()));
        assert!(!matches!(wrong, Some(Error::UnknownKey { .. })), "{key}");
    }
    assert_eq!(names.len(), COUNT + Plan::OTHERS.len() + 26);
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
