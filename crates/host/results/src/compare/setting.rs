// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds differences between runs other than differences in their code.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::clock::MOVED;
use crate::linux_idle;
use crate::merge::Run;
use crate::{Build, Results};

/// Names of the aspects that can differ.
pub const ASPECTS: [&str; 17] = [
    "board",
    "cpu",
    "cpus",
    "counter",
    "core-clock",
    "gic",
    "features",
    "firmware",
    "emulator",
    "parameters",
    "fidelity",
    "path",
    "idle",
    "loaded",
    "compiler",
    "tool",
    "iterations",
];

/// An aspect that differs between runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// One of [`ASPECTS`].
    pub aspect: &'static str,
    /// The name of the aspect, followed by the name of the setting.
    pub what: String,
    /// The values in A.
    pub a: String,
    /// The values in B.
    pub b: String,
}

impl Differs {
    /// Whether the aspect describes Linux as the guest.
    pub fn is_of_linux(&self) -> bool {
        self.aspect == "idle"
            || ["features linux", "features linux_hz"].contains(&self.what.as_str())
    }
}

/// A setting of a run: its aspect, its own name if the aspect has several settings, and its value as text.
type Setting = (&'static str, String, String);

/// Lists differences between the runs of A and B, or among the runs of one side. A run that lacks a setting, for
/// example because it comes from a log, counts as not differing in that setting.
pub fn differences(a: &[Run], b: &[Run]) -> Vec<Differs> {
    let settings = |runs: &[Run]| -> Vec<Setting> {
        runs.iter().flat_map(|run| settings(&run.results)).collect()
    };
    let (a, b) = (settings(a), settings(b));
    let mut names: Vec<(&'static str, &str)> = Vec::new();
    for (aspect, name, _) in a.iter().chain(&b) {
        if !names.contains(&(*aspect, name)) {
            names.push((aspect, name));
        }
    }
    let differs = names.into_iter().filter_map(|(aspect, name)| {
        let of = |side: &[Setting]| -> BTreeSet<String> {
            let here = side
                .iter()
                .filter(|known| (known.0, known.1.as_str()) == (aspect, name));
            here.map(|known| known.2.clone()).collect()
        };
        let (a, b) = (of(&a), of(&b));
        let all: Vec<&String> = a.union(&b).collect();
        let alike = match aspect {
            "core-clock" if name == AT_PASSES => is_one_clock(&all, MOVED),
            "core-clock" => is_one_clock(&all, BY_BOOT),
            _ => all.len() < 2,
        };
        let shown = |values: &BTreeSet<String>| match values.is_empty() {
            true => "not told".into(),
            false => values.iter().cloned().collect::<Vec<_>>().join(" or "),
        };
        (!alike && !a.is_empty() && !b.is_empty()).then(|| Differs {
            aspect,
            what: format!("{aspect} {name}").trim_end().to_owned(),
            a: shown(&a),
            b: shown(&b),
        })
    });
    differs.collect()
}

/// Name of the setting that has the core's clock, as read during the passes. One such reading is less accurate than the
/// reading at boot.
const AT_PASSES: &str = "at passes, Hz";

/// The largest relative difference between measurements of one clock in different boots.
const BY_BOOT: f64 = 1.0 / 500.0;

/// Whether `hertz` can be readings of one clock, which means that their relative difference is at most `share`.
fn is_one_clock(hertz: &[&String], share: f64) -> bool {
    let hertz = hertz.iter().filter_map(|text| text.parse::<u64>().ok());
    let (least, most) = hertz.fold((u64::MAX, 0), |(least, most), hertz| {
        (least.min(hertz), most.max(hertz))
    });
    most.saturating_sub(least) as f64 <= least as f64 * share
}

/// Lists the settings of a run, as far as they are known.
fn settings(results: &Results) -> Vec<Setting> {
    let machine = &results.machine;
    let number = |number: u64| match number {
        0 => String::new(),
        number => number.to_string(),
    };
    let mut settings: Vec<Setting> = Vec::new();
    let mut tell = |aspect, name: &str, text: String| {
        if !text.is_empty() {
            settings.push((aspect, name.to_owned(), text));
        }
    };
    tell("board", "", results.board.clone());
    tell("cpu", "", machine.cpu.clone());
    tell("cpu", "MIDR", machine.midr.clone());
    tell("cpus", "", number(machine.cpus));
    tell("counter", "Hz", number(machine.cntfrq_hz));
    tell("counter", "step, ticks", number(machine.counter_step));
    tell("core-clock", "Hz", number(machine.core_hz));
    let at_passes = results.core_hz_of_passes();
    tell("core-clock", AT_PASSES, number(at_passes.unwrap_or(0)));
    tell("gic", "", machine.gic.clone());
    tell("gic", "list registers", number(machine.list_registers));
    tell("firmware", "", machine.firmware.clone());
    tell("hypervisor", "", machine.hypervisor.clone());
    for cell in &results.cells {
        let of = match cell.what.linux_cpuidle {
            plan::LinuxCpuidle::Default => format!("under {}", cell.under),
            driver => format!("under {} with {driver}", cell.under),
        };
        let asked = format!("driver and governor, {of}");
        tell("idle", &asked, cell.idles_by.clone());
        let states: Vec<String> = cell.idle_states.iter().map(ToString::to_string).collect();
        let asked = format!("states, {of}");
        let states = match (states.is_empty(), cell.idles_by.is_empty()) {
            (true, false) => "none".into(),
            _ => states.join(", "),
        };
        tell("idle", &asked, states);
    }
    if results
        .cells
        .iter()
        .any(|cell| cell.what.workload.is_linux())
    {
        let hands_over = machine.handed_over.contains_key(linux_idle::GUEST);
        let loaded = if hands_over {
            "hand the turn over"
        } else {
            "as loaded"
        };
        tell("loaded", "waits by event", loaded.into());
    }
    if results
        .cells
        .iter()
        .any(|cell| cell.under.kvm_mode().is_some())
    {
        let loaded = match machine.handed_over.contains_key("host") {
            true => "hand the turn over",
            false => "as loaded",
        };
        tell("loaded", "waits by event of KVM's host", loaded.into());
    }
    machine
        .features
        .iter()
        .for_each(|(name, value)| tell("features", name, json_text(value)));
    match &machine.emulator {
        Some(emulator) => {
            let version = match emulator.exact.as_str() {
                "" => &emulator.version,
                exact => exact,
            };
            tell(
                "emulator",
                "",
                format!("{} {version} ({})", emulator.name, emulator.mode),
            );
            for (name, parameter) in &emulator.parameters {
                tell("parameters", name, parameter.value.clone());
            }
        }
        // A log does not show whether there was an emulator, but results with a board's name are not from a log.
        None if !results.board.is_empty() => tell("emulator", "", "none".into()),
        None => {}
    }
    let found = results
        .fidelity
        .iter()
        .filter(|(_, value)| value.is_boolean());
    found.for_each(|(name, value)| tell("fidelity", name, json_text(value)));
    let compiler = results.build.as_ref().map(Build::compiler_text);
    // A missing board name is not compared, but a missing compiler is, as `not told`.
    tell("compiler", "", compiler.unwrap_or("not told".into()));
    tell("tool", "", results.tool.clone());
    let asked = results.cells.iter().map(|cell| cell.iterations);
    let asked: BTreeSet<u64> = asked.filter(|&asked| asked > 0).collect();
    let asked: Vec<String> = asked.into_iter().map(number).collect();
    tell("iterations", "", asked.join(", "));
    settings
}

/// Returns the text of a JSON value.
fn json_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The order in which A's and B's runs started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The runs of both sides roughly alternate, so that slow changes affect both sides.
    Mixed,
    /// Most runs of one side come before most runs of the other side.
    Apart,
    /// The start time of a run is not known.
    Unknown,
}

/// The order is [`Order::Mixed`] if each side started first in at least this percentage of the pairs. A pair is one run
/// of A and one run of B.
const MIXED: usize = 25;

/// Returns in which order A's and B's runs started.
pub fn order_in_time(a: &[Run], b: &[Run]) -> Order {
    let times = |runs: &[Run]| -> Vec<String> {
        let times = runs.iter().map(|run| run.results.began.clone());
        times.collect()
    };
    let (a, b) = (times(a), times(b));
    if a.iter().chain(&b).any(String::is_empty) {
        return Order::Unknown;
    }
    // All times have the same time zone and format, so their texts sort by time.
    let before = a
        .iter()
        .flat_map(|a| b.iter().filter(move |b| a < *b))
        .count();
    let pairs = a.len() * b.len();
    match before.min(pairs - before) * 100 >= pairs * MIXED {
        true => Order::Mixed,
        false => Order::Apart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{results, results_in_cycles};

    fn run(results: Results) -> Run {
        Run::new("x", results)
    }

    fn differ(a: Results, b: Results) -> Vec<&'static str> {
        let differs = differences(&[run(a)], &[run(b)]);
        differs.iter().map(|differs| differs.aspect).collect()
    }

    /// Introduces one difference at a time, for every aspect.
    #[test]
    fn each_change_of_what_is_not_the_code_is_found() {
        type Change = fn(&mut Results);
        let changes: [(&str, Change); 13] = [
            ("board", |results| results.board = "other".into()),
            ("cpu", |results| results.machine.cpu = "other".into()),
            ("cpus", |results| results.machine.cpus = 64),
            ("counter", |results| results.machine.cntfrq_hz = 54),
            ("core-clock", |results| results.machine.core_hz /= 2),
            ("gic", |results| results.machine.gic = "v4".into()),
            ("features", |results| {
                drop(results.machine.features.insert("wfxt".into(), true.into()))
            }),
            ("firmware", |results| {
                results.machine.firmware = "acpi".into()
            }),
            ("emulator", |results| {
                results.machine.emulator.as_mut().unwrap().version = "25".into()
            }),
            ("parameters", |results| {
                let parameters = &mut results.machine.emulator.as_mut().unwrap().parameters;
                parameters.get_mut("memory").unwrap().value = "90 ns".into();
            }),
            ("fidelity", |results| {
                drop(results.fidelity.insert("wfe_halts".into(), false.into()))
            }),
            ("compiler", |results| {
                results.build.as_mut().unwrap().rustc = "1.96.0".into()
            }),
            ("tool", |results| results.tool = "rouse 0.0.0".into()),
        ];
        let known = || {
            let mut known = results_in_cycles();
            known.cells[1].iterations = 2000;
            known.machine.gic = "v3".into();
            known.machine.firmware = "fdt".into();
            known.machine.features.insert("wfxt".into(), false.into());
            known.fidelity.insert("wfe_halts".into(), true.into());
            known.build = Some(Build {
                rustc: "1.95.0".into(),
                ..Build::default()
            });
            known
        };
        assert!(differ(known(), known()).is_empty());
        for (aspect, change) in changes {
            let mut other = known();
            change(&mut other);
            assert_eq!(differ(known(), other), [aspect]);
            assert!(ASPECTS.contains(&aspect));
        }
        let mut other = known();
        other.cells[1].iterations = 24;
        assert_eq!(differ(known(), other), ["iterations"]);
        // Each boot measures the clock again, so small differences are ignored.
        let mut other = known();
        other.machine.core_hz += other.machine.core_hz / 1000;
        assert!(differ(known(), other).is_empty());
    }

    /// Small differences are also ignored for values in ticks, and for runs in which no clock was measured at boot.
    #[test]
    fn another_frequency_at_the_passes_is_named() {
        let at = |hz: u64| {
            let mut results = results();
            results.cells[1].pass_core_hz = vec![[hz, hz], [hz, hz + hz / 100]];
            results
        };
        assert!(differ(at(2_600_000_000), at(2_620_000_000)).is_empty());
        let found = differences(&[run(at(2_600_000_000))], &[run(at(2_400_000_000))]);
        assert_eq!(found[0].what, "core-clock at passes, Hz");
        assert_eq!(found[0].b, "2400000000");
        assert!(differ(at(2_600_000_000), results()).is_empty());
    }

    #[test]
    fn what_is_not_told_differs_from_nothing_and_no_emulator_from_one() {
        let mut log = results();
        log.board.clear();
        log.machine.cpu.clear();
        let mut run = results();
        run.machine.emulator = results_in_cycles().machine.emulator;
        assert!(differ(log, run.clone()).is_empty());
        assert_eq!(differ(results(), run), ["emulator"]);
        let mut built = results();
        built.build = Some(Build {
            rustc: "1.95.0".into(),
            ..Build::default()
        });
        assert_eq!(differ(built, results()), ["compiler"]);
        let mut unsure = results();
        unsure
            .fidelity
            .insert("wfe_halts".into(), "not-sure".into());
        let mut sure = results();
        sure.fidelity.insert("wfe_halts".into(), true.into());
        assert!(differ(unsure, sure).is_empty());
    }

    #[test]
    fn a_side_of_unlike_runs_is_found() {
        let mut other = results();
        other.machine.cpus = 8;
        let mixed = [run(results()), run(other)];
        let found = differences(&mixed, &[run(results())]);
        assert_eq!(found[0].what, "cpus");
        assert_eq!((found[0].a.as_str(), found[0].b.as_str()), ("2 or 8", "2"));
    }

    #[test]
    fn the_order_of_the_runs_is_known_by_when_they_began() {
        let at = |hour: u32| {
            let mut results = results();
            results.began = format!("2026-11-21T{hour:02}:00:00Z");
            run(results)
        };
        let side = |hours: &[u32]| -> Vec<Run> { hours.iter().copied().map(at).collect() };
        let order = |a: &[u32], b: &[u32]| order_in_time(&side(a), &side(b));
        assert_eq!(order(&[0, 3, 4, 7], &[1, 2, 5, 6]), Order::Mixed);
        assert_eq!(order(&[0, 1, 2], &[3, 4, 5]), Order::Apart);
        assert_eq!(order(&[3, 4, 5], &[0, 1, 2]), Order::Apart);
        let untold = [run(results())];
        assert_eq!(super::order_in_time(&untold, &side(&[1])), Order::Unknown);
    }
}
