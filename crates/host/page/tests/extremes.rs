// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests files with extreme numbers: each file is either refused, or shown and compared without an overflow.

use proptest::prelude::*;
use results::compare::Comparison;
use results::merge::{self, Run};
use results::{Results, bounds, capture, samples};
use serde_json::Value;

/// Numbers at the edges of the permitted ranges and of the integer types.
const EXTREMES: [u64; 10] = [
    0,
    1,
    bounds::CPUS,
    bounds::MOST,
    bounds::MOST + 1,
    1 << 53,
    1 << 58,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Shows results in every way, and compares them with themselves and with the sample results.
fn show(results: Results) {
    let run = |label: &str, results: Results| Run {
        label: label.into(),
        results,
        commands: Vec::new(),
    };
    let both = vec![
        run("a", results.clone()),
        run("b", samples::results()),
        run("c", results),
    ];
    let runs = merge::join_sweeps(both);
    page::results_page(None, &runs);
    for run in &runs {
        page::table::output_document(&run.results);
    }
    let merged = merge::into_one(&runs);
    let _ = (results::csv(&merged), merged.to_json());
    for a in &runs {
        let (a, b) = (std::slice::from_ref(a), &runs[..]);
        let _ = Comparison::new(a, b, 0.05).cells_and_figures().count();
    }
}

/// Returns every number of `value`.
fn numbers(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Number(_) => vec![value],
        Value::Array(all) => all.iter_mut().flat_map(numbers).collect(),
        Value::Object(all) => all.values_mut().flat_map(numbers).collect(),
        _ => Vec::new(),
    }
}

/// Returns a file in which the numbers at indices `at` are replaced, and whether all new numbers were within bounds.
fn file(text: &str, at: &[(prop::sample::Index, usize)]) -> Result<Results, String> {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let mut all = numbers(&mut value);
    for (place, extreme) in at {
        let place = place.index(all.len());
        *all[place] = EXTREMES[*extreme].into();
    }
    // The version of the schema is not one of the numbers to replace.
    value["schema"] = 1.into();
    Results::read_json(&value.to_string(), ToString::to_string)
}

/// Returns a log in which numbers are replaced and the checksum of every line is recomputed.
fn log(at: &[(prop::sample::Index, usize)]) -> String {
    let mut lines: Vec<Vec<(String, String)>> = Vec::new();
    let whole = samples::lines();
    for line in &whole {
        let record = wire::Record::parse(line).unwrap();
        let fields = record.fields();
        lines.push(
            fields
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        );
    }
    let fields = lines.iter().map(Vec::len).sum::<usize>();
    for (place, extreme) in at {
        let place = place.index(fields);
        let (_, value) = lines.iter_mut().flatten().nth(place).unwrap();
        let extreme = EXTREMES[*extreme].to_string();
        match value.clone() {
            text if text.contains(':') => *value = format!("{extreme}:{extreme},{extreme}:1"),
            text if text.parse::<u64>().is_ok() => *value = extreme,
            _ => {}
        }
    }
    let texts = whole.iter().zip(&lines).map(|(line, fields)| {
        let record = wire::Record::parse(line).unwrap();
        let line = wire::Line::new(record.seq, record.kind);
        let line = fields
            .iter()
            .fold(line, |line, (key, value)| line.field(key, value));
        line.finish().unwrap().to_string()
    });
    texts.collect::<Vec<_>>().join("\n")
}

proptest! {
    #[test]
    fn a_file_at_its_extremes_is_refused_or_shown(
        at in prop::collection::vec((any::<prop::sample::Index>(), 0..EXTREMES.len()), 1..6),
        cpus in 0..EXTREMES.len(),
    ) {
        let mut sample = samples::results();
        sample.machine.cpus = EXTREMES[cpus].min(bounds::CPUS);
        if let Ok(results) = file(&sample.to_json().unwrap(), &at) {
            show(results);
        }
    }

    #[test]
    fn a_log_at_its_extremes_is_damaged_or_shown(
        at in prop::collection::vec((any::<prop::sample::Index>(), 0..EXTREMES.len()), 1..6),
    ) {
        if let Some(results) = capture::results(&log(&at)) {
            show(results);
        }
    }
}

/// Changes every number separately, so that none is left out by chance.
#[test]
fn each_number_of_a_log_above_the_bound_is_told() {
    let lines = samples::lines().join("\n");
    for (key, value) in [
        ("count", "4"),
        ("p50", "30"),
        ("cntfrq_hz", "1000000000"),
        ("exit.wfi", "8"),
    ] {
        let was = format!(" {key}={value}");
        let is = format!(" {key}={}", u64::MAX);
        let changed: Vec<String> = lines
            .lines()
            .map(|line| match line.rsplit_once(" #") {
                Some((text, _)) if text.contains(&was) => sealed(&text.replace(&was, &is)),
                _ => line.into(),
            })
            .collect();
        let results = capture::results(&changed.join("\n")).unwrap();
        let told = format!("is damaged: {key}: {} is above", u64::MAX);
        assert!(
            results
                .problems
                .iter()
                .any(|problem| problem.contains(&told)),
            "{:?}",
            results.problems
        );
    }
}

/// Returns a record with its checksum.
fn sealed(text: &str) -> String {
    let mut words = text.split(' ').skip(1);
    let (seq, kind) = (words.next().unwrap(), words.next().unwrap());
    let line = wire::Line::new(seq.parse().unwrap(), kind);
    let line = words.fold(line, |line, word| {
        let (key, value) = word.split_once('=').unwrap();
        line.field(key, wire::Unescape(value))
    });
    line.finish().unwrap().to_string()
}
