// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots of a measured Linux.

use super::*;

/// The header of an arm64 Image, without code.
fn kernel() -> tempfile::NamedTempFile {
    let mut image = [0; 64];
    image[56..60].copy_from_slice(b"ARM\x64");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), image).unwrap();
    file
}

#[test]
fn boots_to_a_checkpoint_serve_all_measurements() {
    let kernel = kernel();
    let kernel = kernel.path().to_str().unwrap();
    let arguments = |more: &[&str], seed| {
        let job = job(&[&["--board", "gem5", "--guest", kernel][..], more].concat()).unwrap();
        let variant = job.variant();
        job.load.checkpoint_arguments(Variant { seed, ..variant })
    };
    let pipe = ["--workload", "linux-pipe", "--append", "quiet"];
    let [boot, rest] = arguments(&pipe, 1);
    assert!(
        boot.contains("rouse.checkpoint") && boot.contains("quiet"),
        "{boot}"
    );
    assert!(rest.contains("rouse.workload=linux-pipe") && rest.contains("rouse.seed=1"));
    assert!(
        rest.contains("rouse.cycles") && !rest.contains("checkpoint"),
        "{rest}"
    );
    let other = [
        "--workload",
        "linux-timer",
        "--trap",
        "wfi",
        "--append",
        "quiet",
    ];
    let [again, different] = arguments(&other, 2);
    assert_eq!(boot, again);
    assert!(different.contains("rouse.seed=2") && different != rest);
    // These options change the boot.
    let neighbour = [&pipe[..], &["--neighbour", "work"]].concat();
    assert!(arguments(&neighbour, 1)[0].contains("rouse.neighbour=work"));
    let nohlt = [&pipe[..], &["--linux-cpuidle", "nohlt"]].concat();
    assert!(arguments(&nohlt, 1)[0].contains("nohlt"));
}

#[test]
fn a_boot_for_each_way_in_which_linux_idles() {
    let kernel = kernel();
    let kernel = kernel.path().to_str().unwrap();
    let ways = "default,nohlt,off,haltpoll,governor:menu";
    let options = ["--guest", kernel, "--workload", "linux-pipe"];
    let named = [&options[..], &["--linux-cpuidle", ways]].concat();
    let linux = job(&named).unwrap();
    let told = |variant: &Variant| {
        linux
            .load
            .boot_arguments(*variant)
            .split(" nokaslr")
            .next()
            .unwrap()
            .rsplit_once("max-iterations=2000")
            .unwrap()
            .1
            .trim()
            .to_owned()
    };
    let variants = linux.variants().unwrap();
    assert_eq!(
        variants.iter().map(told).collect::<Vec<_>>(),
        [
            "",
            "nohlt",
            "cpuidle.off=1",
            "cpuidle.governor=haltpoll cpuidle_haltpoll.force=1",
            "cpuidle.governor=menu rouse.guest-states=100:200",
        ]
    );
    assert_eq!(
        variants[4].to_string(),
        "under rouse, linux-cpuidle governor:menu"
    );
    // Our own guest has no such setting.
    let own = job(&["--linux-cpuidle", ways, "--wait", "wfi"]).unwrap_err();
    assert!(
        own.to_string().contains("use --workload linux-pipe"),
        "{own}"
    );
}

#[test]
fn a_measured_linux_boots_on_simulated_cores_under_kvm_and_not_under_bao() {
    let file = kernel();
    let kernel = ["--board", "gem5", "--guest", file.path().to_str().unwrap()];
    let on_gem5 = |more: &[&str]| job(&[&kernel, more].concat());
    let pipe = ["--workload", "linux-pipe", "--under"];
    assert!(on_gem5(&[&pipe[..], &["kvm-nvhe"]].concat()).is_ok());
    for refused in [&[&pipe[..], &["bao"]].concat()[..], &["--under", "kvm"]] {
        let error = format!("{:#}", on_gem5(refused).unwrap_err());
        assert!(
            error.contains("on gem5 it does not run this guest"),
            "{error}"
        );
    }
}
