// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where it was measured, and what that place does not show.

use maud::{Markup, html};
use serde_json::Value;

use crate::report::merge::Run;
use crate::results::Results;

/// What the fidelity probes ask, in the words of the architecture.
const PROBES: [(&str, &str); 11] = [
    ("wfe_halts", "WFE halts the CPU"),
    ("wfet_halts", "WFET halts the CPU"),
    (
        "monitor_wakes_wfe",
        "a store to the monitored line, and nothing else, ends WFE",
    ),
    (
        "event_stream_period_ok",
        "the event stream ends WFE once per period",
    ),
    ("eret_sets_event", "ERET sets the event register"),
    ("sev_wakes_wfe", "SEV of another CPU ends WFE"),
    (
        "masked_irq_wakes_wfe",
        "an interrupt that is masked ends WFE",
    ),
    (
        "wfet_timeout_sets_event",
        "WFET that times out leaves the event register as the architecture says",
    ),
    ("counter_shared", "all CPUs read one counter"),
    ("counts_instructions", "the counter counts instructions"),
    ("pmu_counts_instructions", "the PMU counts instructions"),
];

/// The section.
pub fn section(runs: &[Run]) -> Markup {
    html! {
        section id="machine" {
            h2 { "The machine and its fidelity" }
            @for run in runs {
                @if runs.len() > 1 { h3 { (run.label) } }
                (lacks(&run.results))
                div.pair {
                    div.scroll { (description(&run.results)) }
                    div.scroll { (fidelity(&run.results)) }
                }
            }
        }
    }
}

/// What must be known before any number is believed.
fn lacks(results: &Results) -> Markup {
    let lacking = results
        .fidelity
        .iter()
        .filter(|(_, value)| **value == Value::Bool(false));
    let lacking: Vec<&str> = lacking.map(|(name, _)| asked(name)).collect();
    html! {
        @if !lacking.is_empty() {
            p.caution {
                b { "Not modelled here: " } (lacking.join("; ")) ". "
                "Cells that depend on these show the code's path, not what hardware would do."
            }
        }
        @if !results.fidelity.is_empty() && results.fidelity.values().all(|value| *value == Value::Bool(true)) {
            p { "Every probe found what the architecture promises." }
        }
        @if results.fidelity.is_empty() {
            p.caution { "No probe reported what this machine models." }
        }
    }
}

fn asked(name: &str) -> &str {
    let known = PROBES.iter().find(|(probe, _)| *probe == name);
    known.map_or(name, |(_, text)| text)
}

fn description(results: &Results) -> Markup {
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
    let emulator = match &machine.emulator {
        Some(emulator) => format!("{} {}, {}", emulator.name, emulator.version, emulator.mode),
        None => "none recorded".into(),
    };
    let gic = match machine.list_registers {
        0 => machine.gic.clone(),
        registers => format!("{}, {registers} list registers", machine.gic),
    };
    let features = machine
        .features
        .iter()
        .map(|(name, value)| feature(name, value));
    let features: Vec<String> = features.collect();
    let unit = match results.unit.as_str() {
        "" => "not recorded".to_owned(),
        unit => format!("{unit}: {}", results.unit_how),
    };
    let rows = [
        ("Board", or(&results.board)),
        ("CPU", format!("{}{midr}", or(&machine.cpu))),
        ("CPUs", machine.cpus.to_string()),
        ("Unit", unit),
        ("Counter", format!("{} MHz", machine.cntfrq_hz as f64 / 1e6)),
        ("GIC", or(&gic)),
        ("Emulator", emulator),
        ("Firmware", or(&machine.firmware)),
        ("Features", or(&features.join(", "))),
    ];
    html! {
        table.facts {
            @for (name, value) in rows {
                tr { th scope="row" { (name) } td { (value) } }
            }
        }
    }
}

fn feature(name: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => name.to_owned(),
        Value::Bool(false) => format!("no {name}"),
        Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    }
}

fn fidelity(results: &Results) -> Markup {
    html! {
        @if !results.fidelity.is_empty() {
            table.facts {
                thead { tr { th { "Probe" } th { "found" } th { "detail" } } }
                @for (name, value) in &results.fidelity {
                    @let (class, found) = found(value);
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

fn found(value: &Value) -> (&'static str, String) {
    match value {
        Value::Bool(true) => ("yes", "✓ yes".into()),
        Value::Bool(false) => ("no", "✗ no".into()),
        Value::String(text) => ("muted", text.replace('-', " ")),
        other => ("muted", other.to_string()),
    }
}
