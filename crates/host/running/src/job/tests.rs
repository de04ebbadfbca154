// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options, and the jobs or refusals that they result in.

mod linux;

use std::fs;

use plan::{Choice, Program};

use super::*;
use crate::images::Guest;
use shell::args::parse;
use shell::failure::{BadInput, is_bad_input};

fn job(options: &[&str]) -> Result<Job> {
    let args = parse(["run"].iter().chain(options));
    Job::of_run(&args.map_err(|error| BadInput::error(request::one_line(&error)))?)
}

#[test]
fn nothing_asked_for_is_the_default_matrix() {
    let job = job(&[]).unwrap();
    assert_eq!(job.unders, [Under::Rouse]);
    assert_eq!(
        job.load.boot_arguments(Variant::of(Choice::NONE)),
        Plan::default().to_string()
    );
}

#[test]
fn more_wake_ups_and_pauses_give_more_time() {
    let patience = |options: &[&str]| job(options).unwrap().limits.without_progress.as_secs();
    assert_eq!(patience(&[]), 240);
    assert_eq!(patience(&["--quick"]), 240);
    assert_eq!(patience(&["--iterations", "20000"]), 2400);
    let long = ["--gap-us", "20,1000000", "--time-limit", "9"];
    assert_eq!(patience(&long), 440);
    assert_eq!(patience(&["--timeout", "7", "--iterations", "20000"]), 7);
    let gem5 = ["--board", "gem5", "--metric", "cycles"];
    assert_eq!(patience(&gem5), 3600);
}

#[test]
fn a_run_of_more_than_a_day_needs_a_limit() {
    let long = [
        "--wait",
        "wfi",
        "--gap-us",
        "10000000",
        "--iterations",
        "1000000",
    ];
    let refused = job(&long).unwrap_err();
    let text = refused.to_string();
    assert!(shell::failure::is_bad_input(&refused), "{text}");
    assert!(
        text.contains("days") && text.contains("--time-limit"),
        "{text}"
    );
    assert!(job(&[&long[..], &["--time-limit", "9"]].concat()).is_ok());
    assert!(job(&[&long[..], &["--deadline", "9"]].concat()).is_ok());
    assert!(job(&[&long[..], &["--deadline", "90000"]].concat()).is_err());
    // Pauses in which every CPU halts take no time on an emulator that counts instructions.
    let seconds = |options: &[&str]| job(options).unwrap().all_seconds().unwrap().unwrap();
    let (expected, most) = seconds(&["--workload", "timer", "--wait", "wfi"]);
    assert!(
        expected < 10.0 && most > 60.0 * expected,
        "{expected} {most}"
    );
    let (spun, _) = seconds(&["--workload", "timer", "--wait", "spin"]);
    assert!(spun > 60.0 * expected, "{spun}");
}

#[test]
fn what_runs_under_none_of_several_is_refused_and_else_runs() {
    let under = |unders| job(&["--under", unders, "--deliver", "inject"]);
    let alone = under("none").unwrap_err().to_string();
    assert!(
        alone.starts_with("nothing of this can run under none: "),
        "{alone}"
    );
    let both = under("none,rouse").unwrap();
    assert_eq!(both.unders, [Under::None, Under::Rouse]);
    let bare = both.cells_of(both.variants().unwrap()[0]).unwrap();
    assert!(bare.iter().all(|cell| cell.skipped.is_some()));
}

#[test]
fn options_become_boot_arguments() {
    let options = [
        "--wait",
        "wfi,wfe,poll-wfi",
        "--poll-limit-us",
        "50",
        "--append",
        "x=1",
    ];
    let arguments = job(&options)
        .unwrap()
        .load
        .boot_arguments(Variant::of(Choice::NONE));
    assert!(
        arguments.starts_with("rouse.wait=wfi,wfe,poll-wfi "),
        "{arguments}"
    );
    assert!(arguments.ends_with(" x=1"), "{arguments}");
}

#[test]
fn the_program_that_the_boot_arguments_ask_for_is_packed() {
    for (append, program) in [
        ("x=1", Program::Measuring),
        ("rouse.fault=el2-panic", Program::Measuring),
        ("rouse.fault=guest-panic", Program::Trials),
        ("x=1 rouse.stress=9", Program::Trials),
    ] {
        let job = job(&["--append", append]).unwrap();
        let packed = job.load.packed();
        assert!(
            matches!(packed, Guest::Ours(packed) if packed == program),
            "{append}: {packed:?}"
        );
    }
}

#[test]
fn images_are_built_for_tests_where_the_boot_arguments_ask_for_something_of_them() {
    let planted = |options: &[&str]| {
        let planted = job(options).unwrap().load.planted();
        (planted.hypervisor, planted.guest)
    };
    for append in [
        "x=1",
        "rouse.fault=guest-panic",
        "rouse.soak=9 rouse.fault=soak-leak",
        "rouse.hostile=all",
        "rouse.cost=all rouse.neighbour=work",
    ] {
        assert_eq!(planted(&["--append", append]), (false, false), "{append}");
    }
    for append in [
        "rouse.fault=el2-panic",
        "rouse.fault=sgi-lost",
        "rouse.fault=spcr-short",
        "rouse.fault=ram-dirty",
        "rouse.soak=9 rouse.fault=soak-time-back",
        "rouse.cost=all rouse.floor",
        "rouse.hostile=all rouse.neighbour=work",
    ] {
        assert_eq!(planted(&["--append", append]), (true, false), "{append}");
    }
    let cells = planted(&["--append", "rouse.fault=cell-hang"]);
    assert_eq!(cells, (false, true));
    let options = ["--append", "rouse.check=all", "--neighbour", "work"];
    assert_eq!(planted(&options), (true, false));
    assert_eq!(planted(&["--neighbour", "work"]), (false, false));
}

#[test]
fn another_guest_is_told_what_was_given_and_nothing_else() {
    let mut image = [0; 64];
    image[56..60].copy_from_slice(b"ARM\x64");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), image).unwrap();
    let guest = ["--guest", file.path().to_str().unwrap()];
    let arguments = |more: &[&str]| {
        let job = job(&[&guest[..], more].concat());
        job.map(|job| job.load.boot_arguments(Variant::of(Choice::NONE)))
    };
    assert_eq!(arguments(&[]).unwrap(), "");
    assert_eq!(arguments(&["--append", "a  b"]).unwrap(), "a  b");
    // One CPU is enough here, although our own guest would have nothing to measure.
    assert_eq!(
        arguments(&["--survey", "--cpus", "1"]).unwrap(),
        "rouse.survey"
    );
    let measured = arguments(&["--workload", "linux-pipe", "--guest-args", "kaslr x"]).unwrap();
    assert!(
        measured.starts_with("rouse.workload=linux-pipe "),
        "{measured}"
    );
    assert!(
        measured.ends_with(
            " nokaslr randomize_kstack_offset=off panic=-1 loglevel=1 cryptomgr.notests kaslr x rouse.seed=1"
        ),
        "{measured}"
    );
    for (more, why) in [
        (&["--wait", "wfi"][..], "leave these options out"),
        (
            &["--append", "rouse.linux-soak=5", "--under", "rouse,kvm"],
            "under kvm there is nothing to audit",
        ),
        (
            &["--initrd", "/no/such/file", "--under", "xen"],
            "--initrd: /no/such/file can't be read",
        ),
        (
            &["--workload", "linux-pipe,pipe", "--trap", "wfe"],
            "nothing of this can run",
        ),
        (
            &[
                "--board",
                "gem5",
                "--metric",
                "cycles",
                "--expect-reset",
                "--under",
                "none",
            ],
            "use --under rouse",
        ),
    ] {
        let error = arguments(more).unwrap_err();
        assert!(is_bad_input(&error), "{error:#}");
        assert!(format!("{error:#}").contains(why), "{error:#}");
    }
}

#[test]
fn what_can_not_be_is_refused_with_the_remedy() {
    for (options, remedy) in [
        (&["--wait", "wfx"][..], "use all, busy"),
        (&["--under", "zen"], "use all, rouse, none"),
        (&["--board", "no-such"], "use altra, gem5, graviton2"),
        (&["--survey", "--under", "none"], "use --under rouse"),
        (&["--xen-args", "sched=credit"], "add --under xen"),
        (&["--host-kernel", "x", "--under", "xen"], "add --under kvm"),
        (&["--preset", "graviton-like"], "use --board gem5"),
        (
            &["--board", "gem5", "--metric", "cycles", "--preset", "x"],
            "use graviton-like, plain",
        ),
        (
            &[
                "--board",
                "gem5",
                "--metric",
                "cycles",
                "--dtb",
                "Cargo.toml",
            ],
            "leave --dtb out",
        ),
        (
            &["--board", "gem5", "--metric", "cycles", "--boot", "nvme"],
            "use board virt-uefi",
        ),
        (&["--boot", "nvme"], "use board virt-uefi"),
        (&["--board", "altra", "--cpu", "max"], "use neoverse-n1"),
        (
            &["--board", "virt-uefi", "--cpus", "257"],
            "the nearest is 256",
        ),
        (&["--cpus", "513"], "the nearest is 512"),
        (&["--cpus", "1e20"], "the nearest is 512"),
        (&["--iterations", "1e20"], "the nearest is 1000000000"),
        (&["--dtb", "Cargo.toml"], "not a flattened device tree"),
        (&["--dtb", "."], "name a flattened device tree"),
        (&["--metric", "cycles"], "QEMU does not model them"),
        (&["--metric", "cycles"], "--metric insns, time"),
        (&["--iterations", "0"], "the nearest is 4"),
        (&["--shard", "9/8"], "the nearest is 8/8"),
        (&["--memory", "much"], "use for instance 64M"),
        (&["--memory", "64MM"], "use for instance 64M"),
        (
            &["--board", "virt-tfa", "--memory", "192M"],
            "use --memory 768M",
        ),
        (&["--dtb", "no-such.dtb"], "name a flattened device tree"),
        (&["--shard", "9999/9999"], "use fewer parts"),
        (&["--workload", "linux-pipe"], "use --guest debian"),
        (&["--guest", "/nonexistent"], "name an arm64 Image"),
        (&["--wait", "wfi", "--wake", "elide"], "use wake ipi"),
        (&["--under", "none", "--trap", "wfi"], "use trap none"),
        (
            &["--workload", "ipistorm", "--offset", "2"],
            "offset: 2 maps a CPU onto itself",
        ),
        (
            &["--workload", "ipistorm", "--cpulist", "0+3"],
            "cpulist: CPU 3 is not online",
        ),
        (
            &["--workload", "timer", "--gap-us", "0"],
            "use --gap-us 1000",
        ),
        (&["--groups", "17"], "the nearest is 16"),
        (&["--expect-reset"], "use it with --guest IMAGE"),
        (&["--numipi", "0"], "the nearest is 4"),
    ] {
        let error = job(options).unwrap_err();
        assert!(is_bad_input(&error), "{options:?}");
        assert!(format!("{error:#}").contains(remedy), "{error:#}");
    }
}

#[test]
fn a_boot_for_each_of_the_atomics_that_were_named() {
    use plan::Atomics::{Llsc, Lse};
    let variants = |options: &[&str]| {
        let variants = job(&[options, &["--wait", "wfi"]].concat()).unwrap();
        let both = variants.variants().unwrap().into_iter();
        both.map(|variant| (variant.under, variant.choice.atomics))
            .collect::<Vec<_>>()
    };
    let (rouse, none) = (Under::Rouse, Under::None);
    assert_eq!(variants(&[]), [(rouse, None)]);
    assert_eq!(variants(&["--atomics", "lse"]), [(rouse, Some(Lse))]);
    let all = [
        (rouse, Some(Llsc)),
        (rouse, Some(Lse)),
        (none, Some(Llsc)),
        (none, Some(Lse)),
    ];
    let options = ["--atomics", "all", "--under", "rouse,none"];
    assert_eq!(variants(&options), all);
    // Each boot gets the argument of its own atomics.
    let both = job(&["--atomics", "llsc,lse", "--wait", "wfi"]).unwrap();
    let told = |variant: Variant| both.load.boot_arguments(variant);
    let told: Vec<String> = both.variants().unwrap().into_iter().map(told).collect();
    assert!(told[0].contains("rouse.atomics=llsc ") && told[1].contains("rouse.atomics=lse "));
}

#[test]
fn many_cells_are_dealt_out_to_several_boots() {
    let parts = |options: &[&str]| {
        let variants = job(options).unwrap().variants().unwrap();
        let parts = variants.iter().map(|variant| variant.part.to_string());
        parts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(parts(&["--wait", "wfi"]), "1/1");
    assert_eq!(parts(&[]), "1/2 2/2");
    assert_eq!(parts(&["--metric", "time"]), "1/1");
    let all = [
        "--wait",
        "all",
        "--trap",
        "all",
        "--poll-limit-us",
        "10,20,50",
    ];
    assert_eq!(parts(&all), "1/3 2/3 3/3");
}

#[test]
fn only_images_that_boots_run_are_built() {
    let images = |options: &[&str]| {
        let needed = job(options).unwrap().needed_images();
        let needed: Vec<_> = needed.iter().map(ToString::to_string).collect();
        needed.join(" ")
    };
    assert_eq!(images(&[]), "lse");
    assert_eq!(images(&["--cpu", "cortex-a72"]), "llsc");
    assert_eq!(images(&["--atomics", "llsc"]), "llsc");
    assert_eq!(images(&["--atomics", "lse,llsc"]), "llsc lse");
    let without = ["--atomics", "lse,llsc", "--cpu", "cortex-a72"];
    assert_eq!(images(&without), "llsc");
}

#[test]
fn a_boot_for_each_setting_of_what_cells_can_not_turn() {
    let titles = |options: &[&str]| {
        let variants = job(options).unwrap().variants().unwrap();
        let titles: Vec<_> = variants.iter().map(Variant::to_string).collect();
        titles.join("; ")
    };
    let kvm = ["--under", "none,kvm", "--trap", "none,wfi"];
    assert_eq!(
        titles(&kvm),
        "under none; under kvm, trap none; under kvm, trap wfi"
    );
    // A wait that never halts has no cells if something is trapped.
    let busy = [&kvm[..], &["--wait", "busy"]].concat();
    assert_eq!(titles(&busy), "under none; under kvm, trap none");
    // KVM polls by its own rules.
    let polls = ["--host-poll-us", "0,50", "--host-poll", "adaptive"];
    let polls = [&kvm[..], &polls].concat();
    assert_eq!(
        titles(&polls),
        "under none; under kvm, trap none; under kvm, trap wfi; under kvm, trap wfi, host polls 50 us"
    );
    let xen = [
        "--under",
        "xen",
        "--trap",
        "none,wfi,both",
        "--wait",
        "wfi,poll-wfi",
    ];
    assert_eq!(
        titles(&xen),
        "under xen, trap none; under xen, trap wfi; under xen, trap both"
    );
    let both = ["--under", "kvm", "--trap", "wfi", "--atomics", "llsc,lse"];
    assert_eq!(
        titles(&both),
        "under kvm, atomics llsc, trap wfi; under kvm, atomics lse, trap wfi"
    );
}

#[test]
fn all_is_what_the_board_has_and_can_run_something() {
    let unders = |options: &[&str]| job(&[&["--under", "all"][..], options].concat());
    // Bao is available if the options name a checkout.
    let all = unders(&["--bao", "/bao"]).map(|job| job.unders);
    assert_eq!(all.unwrap(), Under::ALL);
    let trapped = unders(&["--trap", "wfi"]).unwrap().unders;
    assert!(!trapped.contains(&Under::None) && trapped.contains(&Under::Xen));
    let direct = unders(&["--deliver", "direct"]).unwrap().unders;
    assert_eq!(direct, [Under::Rouse, Under::None]);
    let gem5 = unders(&["--board", "gem5"]).unwrap().unders;
    assert_eq!(gem5, [Under::Rouse, Under::None]);
    let nothing = unders(&["--wait", "wfi", "--wake", "elide"]).unwrap_err();
    assert!(is_bad_input(&nothing), "{nothing:#}");
}

#[test]
fn which_image_runs_is_known_by_the_board() {
    use plan::Atomics::{Llsc, Lse};
    let image = |options: &[&str]| {
        let job = job(options).unwrap();
        job.image(job.variant())
    };
    assert_eq!(image(&[]), Lse);
    assert_eq!(image(&["--atomics", "llsc"]), Llsc);
    assert_eq!(image(&["--append", "rouse.atomics=llsc"]), Llsc);
    assert_eq!(image(&["--cpu", "cortex-a72"]), Llsc);
    assert_eq!(image(&["--cpu", "cortex-a72", "--atomics", "lse"]), Llsc);
    assert_eq!(image(&["--cpu", "neoverse-n1"]), Lse);
    let wrong = job(&["--append", "rouse.atomics=llsc,lse"]).unwrap_err();
    assert!(wrong.to_string().contains("use --atomics"), "{wrong}");
    let job = job(&["--cpu", "neoverse-n1"]).unwrap();
    assert_eq!(job.check_image(job.variant(), "lse"), None);
    let told = job.check_image(job.variant(), "llsc").unwrap();
    assert!(
        told.contains("`cpus.without_lse` of board virt for neoverse-n1"),
        "{told}"
    );
}

#[test]
fn an_emulator_is_not_asked_for_what_ends_it() {
    use plan::Atomics::{Llsc, Lse};
    let gem5 = |options: &[&str]| job(&[&["--board", "gem5"][..], options].concat());
    let minor = gem5(&[]).unwrap();
    assert_eq!(minor.variant().choice.atomics, Some(Llsc));
    assert_eq!(
        gem5(&["--atomics", "llsc"])
            .unwrap()
            .variants()
            .unwrap()
            .len(),
        1
    );
    for words in ["lse", "all"] {
        let refused = gem5(&["--atomics", words]).unwrap_err();
        assert!(is_bad_input(&refused) && refused.to_string().contains("use llsc"));
    }
    let other = gem5(&["--cpu", "o3", "--atomics", "lse"]).unwrap();
    assert_eq!(other.image(other.variant()), Lse);
}
