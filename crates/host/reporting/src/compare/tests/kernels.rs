// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests comparisons of two kernels: their descriptions, and verdicts with a mark for unlike sides.

use results::{Critical, IdleState};

use super::*;

/// Six runs of a kernel that idles by `driver` and `governor`, with the work and the path of a sample.
fn kernel(driver: &str, governor: &str, work: u64, path: u64) -> Vec<Results> {
    let one = |number: u64| {
        let mut results = insns(work + 16 * number);
        let features = [("linux", "6.12.107".into()), ("linux_hz", 250.into())];
        let features = features.map(|(name, value)| (name.to_owned(), value));
        results.machine.features = features.into();
        let cell = &mut results.cells[0];
        cell.what.workload = Workload::LinuxPipe;
        cell.idles_by = format!("{driver}/{governor}");
        let median = Stats {
            count: 1000,
            p50: path + number,
            ..Stats::default()
        };
        cell.critical = Some(Critical {
            samples: 1000,
            path: median,
            net: median,
            ..Critical::default()
        });
        results
    };
    (0..6).map(one).collect()
}

/// Returns runs of a kernel with the driver `arm_poll_idle`, on a machine that runs one CPU at a time. Compared with a
/// kernel without the driver, a sample has more work and a shorter path.
fn patched(governor: &str) -> Vec<Results> {
    let mut runs = kernel("arm_poll_idle", governor, 11_300, 5900);
    for results in &mut runs {
        let cell = &mut results.cells[0];
        let state = |name: &str, us| IdleState {
            name: name.into(),
            latency_us: us,
            residency_us: us,
        };
        cell.idle_states = vec![state("WFE", 0), state("WFI", 100)];
        cell.not_modelled = vec!["cpus_run_at_once".into()];
    }
    runs
}

fn text(a: &[Results], b: &[Results]) -> String {
    as_shown("A --with B", a, b, false, None).unwrap().0
}

#[test]
fn a_verdict_on_one_side_with_a_star_is_marked() {
    let text = text(&kernel("none", "menu", 10_800, 6600), &patched("menu"));
    assert!(
        text.contains("worse (p 0.009) *") || text.contains(") *"),
        "{text}"
    );
    let note = "* One side alone depends on what is true of cores, but not of this machine (CPUs run at once, not one after another)";
    assert!(text.contains(note), "{text}");
    let path = "On the path alone, which is what a wake-up takes where CPUs run at once: 1 better (-10.6 to -10.6 %).";
    assert!(text.contains(path), "{text}");
    assert!(!text.contains("more than one thing"), "{text}");
    for kernel in [
        "Linux 6.12.107, HZ 250, driver none, governor menu\n",
        "driver arm_poll_idle, governor menu, states WFE 0/0, WFI 100/100 (exit latency/residency, us)",
    ] {
        assert!(text.contains(kernel), "{kernel}\n{text}");
    }
}

#[test]
fn several_differences_of_kernels_come_first() {
    let text = text(&kernel("none", "menu", 10_800, 6600), &patched("teo"));
    let first = "A and B differ in more than one thing (cpuidle driver, governor)";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn equal_kernels_have_no_mark() {
    let text = text(&patched("menu"), &patched("menu"));
    assert!(
        !text.contains("One side alone") && !text.contains("On the path"),
        "{text}"
    );
}

#[test]
fn the_first_boots_are_shown_without_a_verdict() {
    let lines = first_look(&insns(1000), &insns(500), 7);
    assert_eq!(
        lines,
        [
            "B against A after one boot of each, of 7; not tested yet:",
            "  pingpong: WFI: -50.0 %"
        ]
    );
    assert!(first_look(&insns(1000), &insns(1000), 7)[1].ends_with(": equal"));
    let mut other = insns(1000);
    other.cells[0].what.workload = Workload::Ipi;
    assert_eq!(first_look(&insns(1000), &other, 7), [""; 0]);
}
