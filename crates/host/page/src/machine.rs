// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine of the measurement, and its limits.

use std::collections::BTreeMap;

use maud::{Markup, html};
use results::merge::Run;
use results::{Build, Emulator, Parameter, Results};
use serde_json::Value;

use crate::clocks;
use crate::equal_runs::{merge_equal, run_labels};
use crate::scale::Scale;

/// The fidelity probes: the name of each, the subject that it tests, and whether a negative answer means that cells
/// differ from hardware.
const PROBES: [(&str, &str, bool); 14] = [
    ("wfe_halts", "WFE with an empty event register waits", true),
    ("wfet_halts", "WFET waits until its deadline", true),
    (
        "monitor_wakes_wfe",
        "WFE waits for a store to the monitored line, or for an event",
        true,
    ),
    (
        "event_stream_period_ok",
        "the event stream ends WFE once per period",
        true,
    ),
    (
        "el2_event_stream_period_ok",
        "the event stream of EL2 ends WFE once per period",
        true,
    ),
    (
        "eret_sets_event",
        "an exception return sets the event register",
        true,
    ),
    ("sev_wakes_wfe", "SEV of another CPU ends WFE", true),
    (
        "caches_modelled",
        "a load takes longer after its line was cleaned",
        true,
    ),
    ("counter_shared", "all CPUs read one counter", true),
    (
        "masked_irq_wakes_wfe",
        "a masked interrupt ends WFE, which it need not",
        false,
    ),
    (
        "wfet_timeout_sets_event",
        "WFET that ran into its deadline leaves the event register set",
        false,
    ),
    (
        "counts_instructions",
        "the counter counts instructions",
        false,
    ),
    (
        "cpus_run_at_once",
        "CPUs run at once, not one after another",
        true,
    ),
    (
        "pmu_counts_instructions",
        "the PMU can count instructions",
        false,
    ),
];

/// Returns the section about the machines of the runs.
pub fn machine_section(runs: &[Run]) -> Markup {
    html! {
        section id="machine" {
            h2 { "The machine and its fidelity" }
            @for (labels, text) in merge_equal(runs, run_machine) { (run_labels(&labels)) (text) }
        }
    }
}

fn run_machine(run: &Run) -> Markup {
    html! {
        (shortcomings(&run.results))
        div.pair {
            (describe_machine(&run.results))
            (list_findings(&run.results))
        }
        @if let Some(emulator) = &run.results.machine.emulator {
            (list_parameters(&emulator.parameters))
        }
    }
}

/// Lists the shortcomings that readers must know before they rely on a number.
fn shortcomings(results: &Results) -> Markup {
    let found = |wanted: &Value| -> Vec<&str> {
        let probes = results.fidelity.iter();
        let found = probes.filter(|(name, value)| *value == wanted && needs_warning(name));
        found.map(|(name, _)| asked(name)).collect()
    };
    let lacking = found(&Value::Bool(false));
    let unsure = found(&Value::from("not-sure"));
    html! {
        @if Scale::for_results(results).of_host {
            p.caution {
                b { "Times of an emulator: " }
                "its CPUs are threads of the host, so this is how that host behaves. Of such samples only \
                 minimum and median are shown."
            }
        }
        @if !lacking.is_empty() {
            p.caution {
                b { "Not modelled here: " } (lacking.join("; ")) ". "
                "Cells that depend on these show the code's path, not what hardware would do."
            }
        }
        @if !unsure.is_empty() {
            p.caution {
                b { "Not shown here, for or against: " } (unsure.join("; ")) ". "
                "Cells that depend on these are marked as if it were not modelled."
            }
        }
        @if results.fidelity.is_empty() {
            p.caution { "No probe reported what this machine models." }
        }
    }
}

/// Returns the subject of the fidelity probe `name`, in words. Unknown names stay unchanged.
pub fn asked(name: &str) -> &str {
    let known = PROBES.iter().find(|(probe, ..)| *probe == name);
    known.map_or(name, |(_, text, _)| text)
}

/// Replaces the probes' names in a text by their subjects.
pub(crate) fn replace_probe_names(text: &str) -> String {
    let mut probes: Vec<&str> = PROBES.iter().map(|(name, ..)| *name).collect();
    // A name may be part of a longer name, so longer names are replaced first.
    probes.sort_by_key(|name| usize::MAX - name.len());
    let put = |text: String, name: &str| text.replace(name, asked(name));
    probes.into_iter().fold(text.to_owned(), put)
}

/// Whether a negative answer of the fidelity probe `name` needs a warning.
fn needs_warning(name: &str) -> bool {
    let known = PROBES.iter().find(|(probe, ..)| *probe == name);
    known.is_none_or(|(.., matters)| *matters)
}

fn describe_machine(results: &Results) -> Markup {
    let machine = &results.machine;
    let or = |text: &str| {
        if text.is_empty() {
            "not recorded".to_owned()
        } else {
            text.to_owned()
        }
    };
    let midr = match machine.midr.as_str() {
        "" => String::new(),
        midr => format!(" (MIDR_EL1 {midr})"),
    };
    let below = match machine.hypervisor.as_str() {
        "" => "none is named".to_owned(),
        name => name.to_owned(),
    };
    let ran_under = machine
        .below
        .iter()
        .map(|(under, told)| format!("{under}: {told}"));
    let ran_under = ran_under.collect::<Vec<_>>().join("; ");
    let emulator = match &machine.emulator {
        Some(emulator) => describe_emulator(emulator),
        None => "none recorded".into(),
    };
    let gic = match machine.list_registers {
        0 => machine.gic.clone(),
        registers => format!("{}, {registers} list registers", machine.gic),
    };
    let features = machine
        .features
        .iter()
        .map(|(name, value)| feature_text(name, value));
    let features: Vec<String> = features.collect();
    let unit = match results.unit.as_str() {
        "" => "not recorded".to_owned(),
        _ => format!(
            "{}: {}",
            Scale::for_results(results).unit_of_results(results),
            results.unit_how
        ),
    };
    let core = match machine.core_hz {
        0 => "clock not measured".into(),
        hertz => format!("{:.0} MHz, by its PMU", hertz as f64 / 1e6),
    };
    let build = results.build.as_ref();
    let compiler = build.map(Build::compiler_text).unwrap_or_default();
    let tree = build.map(Build::tree_text).unwrap_or_default();
    let mut rows = vec![
        ("Board", or(&results.board)),
        ("CPU", format!("{}{midr}", or(&machine.cpu))),
        ("CPUs", machine.cpus.to_string()),
        ("Unit", unit),
        ("Counter", machine.counter_text()),
        ("Core", core),
        ("GIC", or(&gic)),
        ("Emulator", emulator),
        ("Compiler", or(&compiler)),
        ("Tree", or(&tree)),
        ("Firmware", or(&machine.firmware)),
        ("Hypervisor below", below),
        ("Features", or(&features.join(", "))),
    ];
    let sums = build.map(Build::sums_text).unwrap_or_default();
    if !sums.is_empty() {
        rows.push(("Image", sums));
    }
    let clocks = clocks::clock_lines(results);
    if !clocks.is_empty() {
        rows.push(("Clocks of cores", clocks.join(". ")));
    }
    if !ran_under.is_empty() {
        rows.push(("Guests also ran under", ran_under));
    }
    html! {
        table.facts {
            @for (name, value) in rows {
                tr { th scope="row" { (name) } td { (value) } }
            }
        }
    }
}

/// Describes the emulator: its whole version text if that is known, or else its name and version number.
fn describe_emulator(emulator: &Emulator) -> String {
    let Emulator {
        name,
        version,
        exact,
        mode,
        ..
    } = emulator;
    match exact.as_str() {
        "" => format!("{name} {version}, {mode}"),
        exact => format!("{exact}, {mode}"),
    }
}

/// Lists the parameters chosen for a modelled machine, because the results depend on them.
fn list_parameters(parameters: &BTreeMap<String, Parameter>) -> Markup {
    html! {
        @if !parameters.is_empty() {
            details {
                summary { "Parameters of the model" span.muted { " (" (parameters.len()) ")" } }
                div.scroll {
                    table.facts {
                        thead { tr { th { "name" } th { "value" } th { "source" } } }
                        @for (name, Parameter { value, source }) in parameters {
                            tr { th scope="row" { (name) } td { (value) } td { (source) } }
                        }
                    }
                }
            }
        }
    }
}

fn feature_text(name: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => name.to_owned(),
        Value::Bool(false) => format!("no {name}"),
        Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    }
}

fn list_findings(results: &Results) -> Markup {
    html! {
        @if !results.fidelity.is_empty() {
            table.facts {
                thead { tr { th { "Probe" } th { "found" } th { "detail" } } }
                @for (name, value) in &results.fidelity {
                    @let (class, found) = finding_text(name, value);
                    tr {
                        th scope="row" title=(name) { (asked(name)) }
                        td class=(class) { (found) }
                        td.muted { (results.fidelity_details.get(name).map_or("", String::as_str)) }
                    }
                }
            }
        }
    }
}

fn finding_text(name: &str, value: &Value) -> (&'static str, String) {
    match value {
        Value::Bool(true) => ("yes", "✓ yes".into()),
        Value::Bool(false) if needs_warning(name) => ("no", "✗ no".into()),
        Value::Bool(false) => ("yes", "no".into()),
        Value::String(text) => ("muted", text.replace('-', " ")),
        other => ("muted", other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every probe that a guest reports has a row in the guide, and its subject is in [`PROBES`].
    #[test]
    fn every_probe_has_words() {
        let guide = include_str!("../../../../docs/fidelity.md");
        let rows = guide.lines().filter_map(|line| line.strip_prefix("| `"));
        let first = rows.filter_map(|row| row.split(" |").next());
        let names: Vec<&str> = first
            .flat_map(|names| names.split('`').step_by(2))
            .filter(|name| !name.is_empty())
            .collect();
        assert!(names.len() >= PROBES.len(), "{names:?}");
        for name in names {
            assert_ne!(asked(name), name);
        }
    }
}
