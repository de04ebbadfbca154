// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results as JSON, in the form that docs/governors.md describes.

use cpuidle::{FOREVER, State};
use serde::Serialize;

use super::Answer;
use super::ledger::Ledger;

/// Version of the format. Adding a field does not change the version.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    tool: String,
    trace: Source,
    latency_limit_us: Option<u64>,
    utilisation: u32,
    psd_ms: u32,
    tick_us: u64,
    tick_ns: u64,
    states: Vec<Described>,
    governors: Vec<GovernorRow>,
}

#[derive(Debug, Serialize)]
struct Source {
    source: String,
    intervals: usize,
    idle_ns: u64,
}

#[derive(Debug, Serialize)]
struct Described {
    name: &'static str,
    exit_latency_us: u64,
    target_residency_us: u64,
    power: u64,
    disabled: bool,
}

#[derive(Debug, Serialize)]
struct GovernorRow {
    governor: String,
    energy_percent: f64,
    awake_percent: f64,
    late_ns: Late,
    too_deep_percent: f64,
    too_shallow_percent: f64,
    choices: u64,
    timer_asked: u64,
    ticks: u64,
    states: Vec<Counts>,
}

#[derive(Debug, Serialize)]
struct Late {
    mean: f64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

#[derive(Debug, Serialize)]
struct Counts {
    name: &'static str,
    usage: u64,
    time_ns: u64,
    above: u64,
    below: u64,
}

impl Document {
    /// Creates the document of an answer.
    pub fn new(answer: &Answer) -> Self {
        let request = &answer.request;
        let (trace, setting) = (&request.trace, &request.setting);
        let table = &request.states.table;
        let limit_ns = Some(setting.latency_limit_ns).filter(|&limit| limit != FOREVER);
        let described = |(state, cost): (&State, &super::states::Cost)| Described {
            name: state.name,
            exit_latency_us: state.exit_latency_ns / 1000,
            target_residency_us: state.target_residency_ns / 1000,
            power: cost.power,
            disabled: !state.enabled,
        };
        let states = table.states();
        let idle_ns = trace.idle_ns();
        Self {
            schema: SCHEMA,
            tool: concat!("rouse ", env!("CARGO_PKG_VERSION")).into(),
            trace: Source {
                source: trace.source.clone(),
                intervals: trace.intervals.len(),
                idle_ns,
            },
            latency_limit_us: limit_ns.map(|limit_ns| limit_ns / 1000),
            utilisation: setting.utilisation,
            psd_ms: setting.psd_ms,
            tick_us: table.tick_ns() / 1000,
            tick_ns: table.tick_ns(),
            states: states
                .iter()
                .zip(&request.states.costs)
                .map(described)
                .collect(),
            governors: answer
                .rows()
                .map(|(name, ledger)| GovernorRow::new(name, ledger, states, idle_ns))
                .collect(),
        }
    }
}

impl GovernorRow {
    fn new(governor: String, ledger: &Ledger, states: &[State], idle_ns: u64) -> Self {
        let counts = |(index, state): (usize, &State)| {
            let tally = ledger.statistics.of(index);
            Counts {
                name: state.name,
                usage: tally.usage,
                time_ns: tally.time_ns,
                above: tally.above,
                below: tally.below,
            }
        };
        Self {
            governor,
            energy_percent: ledger.energy_percent(idle_ns),
            awake_percent: ledger.awake_percent(idle_ns),
            late_ns: Late {
                mean: ledger.mean(),
                p50: ledger.quantile(500),
                p90: ledger.quantile(900),
                p99: ledger.quantile(990),
                p999: ledger.quantile(999),
                max: ledger.quantile(1000),
            },
            too_deep_percent: ledger.too_deep_percent(),
            too_shallow_percent: ledger.too_shallow_percent(),
            choices: ledger.choices(),
            timer_asked: ledger.timer_asked,
            ticks: ledger.ticks,
            states: states.iter().enumerate().map(counts).collect(),
        }
    }
}
