// SPDX-License-Identifier: MIT OR Apache-2.0
//! `poll-limit`: the gain from polling, for each poll limit.

use anyhow::Result;
use plan::Under;

use super::outcome::{ByBoot, Chart, Claim, Outcome, Series, Table, Test, Way};
use super::runs::{Run, Runs};
use super::{Boot, Experiment, SEEDS};

pub const EXPERIMENT: Experiment = Experiment {
    name: "poll-limit",
    question: "how long should a CPU poll before it halts?",
    source: "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: \
             MLPerf BERT on m7g.16xlarge, queries per second",
    boots: &[
        // If no CPU polls, the wake-up must be an interrupt.
        Boot {
            label: "none",
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "io"),
                ("wait", "wfi"),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "ipi"),
                ("host-poll-us", "0"),
                ("completion", "other"),
                ("spread", "exponential"),
                ("device-us", "25,100,300"),
            ],
            iterations: 40,
            repeats: SEEDS,
        },
        Boot {
            label: "limits",
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "io"),
                ("wait", "poll-wfi"),
                ("trap", "wfi"),
                ("deliver", "inject"),
                ("wake", "elide"),
                ("host-poll-us", "0"),
                ("poll-limit-us", "10,25,50,100,125,150,200,300"),
                ("completion", "other"),
                ("spread", "exponential"),
                ("device-us", "25,100,300"),
            ],
            iterations: 40,
            repeats: SEEDS,
        },
    ],
    metric: None,
    conclude,
    comparable: "at which limit the gain ends, for waits whose lengths are known. Ours are drawn from exponential \
                 distributions: nearly all of those of 25 us on average end before every limit, seven of ten of \
                 those of 300 us outlast 100 us. A query of BERT is an unknown mix of waits and of work between them, \
                 so which column is like it is not known, and the gain depends on it. `Queries` are requests to a \
                 device that is simulated on the other CPU, one at a time on each, without work between them: \
                 the gain is that of two wake-ups per request.",
};

/// Mean lengths of waits, in microseconds.
const WAITS: [&str; 3] = ["25", "100", "300"];

/// Poll limits in us, and the source's queries per second. The limit 0 means no polling.
const PUBLISHED: [(&str, f64); 9] = [
    ("0", 5.87),
    ("10", 5.91),
    ("25", 5.96),
    ("50", 6.01),
    ("100", 6.06),
    ("125", 6.07),
    ("150", 6.06),
    ("200", 6.06),
    ("300", 6.06),
];

/// Largest accepted difference between a gain and the gain at 125 us, in per cent of the gain at 125 us.
const FLAT: f64 = 10.0;

/// Accepted deviation of our gain from the published one, in points.
const BAND: f64 = 2.0;

/// The smallest change that the source's figures can show, in per cent: one unit of their last digit.
const DIGIT: f64 = 0.17;

/// Requests per second by limit.
type Rates = [f64; PUBLISHED.len()];

/// Returns the requests per second for waits whose mean is `wait`.
fn rates(run: Run<'_>, wait: &str) -> Result<Rates> {
    let mut rates = Rates::default();
    for (rate, (limit, _)) in rates.iter_mut().zip(PUBLISHED) {
        let found = match limit {
            "0" => run.cell("none", &[("device-us", wait)])?,
            _ => run.cell("limits", &[("device-us", wait), ("poll-limit-us", limit)])?,
        };
        *rate = 1e6 / found.value_in_us(found.mean()).max(1e-9);
    }
    Ok(rates)
}

/// Returns the index in [`Rates`] that belongs to a limit.
fn limit_index(limit: &str) -> usize {
    let mut known = PUBLISHED.iter();
    known.position(|(other, _)| *other == limit).unwrap_or(0)
}

/// Returns the gain of `limit` over no polling, in per cent.
fn gain_over_no_polling(rates: &Rates, limit: &str) -> f64 {
    100.0 * (rates[limit_index(limit)] / rates[0] - 1.0)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut claims = Vec::new();
    let mut columns = Vec::new();
    for wait in WAITS {
        let rates = runs.by_boot(|run| rates(run, wait))?;
        claims.extend(claims_of(wait, &rates));
        columns.push(rates);
    }
    let titles = WAITS.map(|wait| format!("waits of {wait} us, %"));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(
        "Requests per second by poll limit (us), against no polling (median of the boots); published QPS of BERT",
        &[&titles[..], &["QPS", "QPS, %"]].concat(),
    );
    for (limit, published) in PUBLISHED {
        let gains = columns.iter().map(|rates| {
            format!(
                "{:+.2}",
                rates
                    .map(|rates| gain_over_no_polling(rates, limit))
                    .median()
            )
        });
        let there = 100.0 * (published / PUBLISHED[0].1 - 1.0);
        let there = [format!("{published:.2}"), format!("{there:+.2}")];
        table.add_row(limit, gains.chain(there).collect());
    }
    let series = [
        Series::Here(0, "waits of 25 us"),
        Series::Here(1, "100 us"),
        Series::Here(2, "300 us"),
        Series::Published(WAITS.len() + 1, "BERT"),
    ];
    let title = "Requests per second by poll limit, against no polling";
    let chart = Chart::curves_over_rows(&table, title, "poll limit, us", "gain, %", &series);
    Ok(Outcome {
        tables: vec![table],
        charts: vec![chart],
        claims,
        notes: vec![
            "the kernel of the source caps the limit at a sixteenth of its tick: at 250 Hz, 300 us \
             there are 250 us; ours are as named"
                .into(),
        ],
    })
}

/// Makes claims about the source's curve, from one column of our table.
fn claims_of(wait: &str, rates: &ByBoot<Rates>) -> Vec<Claim> {
    let at = |limit: &'static str| rates.map(|rates| rates[limit_index(limit)]);
    let gained = |limit: &'static str| rates.map(|rates| gain_over_no_polling(rates, limit));
    let worst = rates.map(|rates| rates[1..].iter().copied().fold(f64::MAX, f64::min));
    let tested = format!("waits of {wait} us");
    let rises = Test::Sign { way: Way::Rises };
    let size = Test::Size {
        expected: 100.0 * (6.06 / 5.87 - 1.0),
        band: BAND,
    };
    let claims = [
        Claim::new(
            "any limit is better than none: 5.87 to at least 5.91 QPS",
            rises,
            ("the worst limit", worst),
            ("no polling", at("0")),
        )
        .at_least(DIGIT)
        .with_reason("the gain is less than the last digit of the source: a wake-up is a small part of a wait, and a poll in vain gains nothing"),
        Claim::new(
            "more is better up to 100 us: 5.91 to 6.06 QPS",
            rises,
            ("100 us", at("100")),
            ("10 us", at("10")),
        )
        .at_least(DIGIT)
        .with_reason("the gain is less than the last digit of the source, or the draws differ by as much"),
        Claim::new(
            "100 us: 5.87 to 6.06 QPS",
            size,
            ("100 us", at("100")),
            ("no polling", at("0")),
        )
        .with_reason("the gain is that of a wake-up by the length of a wait, and these waits are not BERT's"),
        Claim::new(
            "beyond 125 us nothing is gained: 6.07 to 6.06 QPS",
            Test::Equality { band: FLAT },
            ("gain at 300 us", gained("300")),
            ("gain at 125 us", gained("125")),
        )
        .with_reason("waits that outlast 125 us are still caught by longer polls"),
    ];
    claims
        .map(|claim| claim.with_tested_part(tested.clone()))
        .into()
}
