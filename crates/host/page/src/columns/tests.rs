// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::scale::cell_operation;

fn measured(count: u64, value: u64) -> Cell {
    let stats = Stats {
        count,
        min: value,
        p50: value,
        p90: value,
        p99: value,
        p999: value,
        max: value,
        mean: value as f64,
    };
    results::samples::measured_cell(plan::Wait::Wfi, "insns", stats)
}

fn shown(cells: &[Cell]) -> Vec<(String, Vec<String>)> {
    let cells: Vec<&Cell> = cells.iter().collect();
    let scale = Scale::for_results(&results::samples::results());
    let columns = statistics_columns(&cells, scale);
    let text = |column: &Column| (column.title().to_owned(), column.texts().to_vec());
    columns.iter().map(text).collect()
}

#[test]
fn a_percentile_stands_only_where_samples_support_it() {
    for (count, titles) in [
        (19, "min max"),
        (20, "min p50 max"),
        (99, "min p50 max"),
        (100, "min p50 p90 max"),
        (1000, "min p50 p90 p99 max"),
        (9999, "min p50 p90 p99 max"),
        (10_000, "min p50 p90 p99 p99.9 max"),
    ] {
        let shown = shown(&[measured(count, 7)]);
        let found: Vec<&str> = shown.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(found.join(" "), titles, "{count} samples");
    }
    let both = shown(&[measured(1000, 7), measured(24, 8)]);
    assert_eq!(both[3], ("p99".into(), vec!["7".into(), TOO_FEW.into()]));
}

#[test]
fn a_percentile_is_shown_with_the_width_of_its_bucket() {
    let among_others = |value| {
        let mut cell = measured(24, value);
        let stats = cell.stats.as_mut().unwrap();
        (stats.min, stats.max) = (1, 1 << 30);
        cell
    };
    let cells = [20_589, 20_576, 1023].map(among_others);
    let p50 = ["20,592±16", "20,592±16", "1,023"].map(String::from);
    assert_eq!(shown(&cells)[1], ("p50".into(), p50.to_vec()));
    // All samples are equal.
    let cells = [20_589, 20_576, 1023].map(|value| measured(24, value));
    let p50 = ["20,589", "20,576", "1,023"].map(String::from);
    assert_eq!(shown(&cells)[1], ("p50".into(), p50.to_vec()));
}

#[test]
fn where_the_median_is_blind_the_mean_stands() {
    let mut cell = measured(24, 888);
    cell.what.workload = plan::Workload::Messaging;
    assert_eq!(shown(&[cell])[0].0, "mean");
    assert_ne!(shown(&[measured(24, 888)])[0].0, "mean");
    let coarse = Cell {
        counter_coarse: Some(0.1),
        ..measured(24, 160)
    };
    assert_eq!(shown(&[coarse])[0].0, "mean");
}

#[test]
fn the_load_and_the_noise_stand_where_there_are_any() {
    let titles = |columns: Vec<Column>| -> Vec<(String, Vec<String>)> {
        let text = |column: &Column| (column.title().to_owned(), column.texts().to_vec());
        columns.iter().map(text).collect()
    };
    let plain = measured(10, 7);
    assert!(load_columns(&[&plain]).is_empty() && noise_column(&[&plain]).is_none());
    let group = |counts: &[(&str, u64)]| -> results::Counts {
        let counts = counts.iter();
        counts
            .map(|(name, count)| ((*name).into(), *count))
            .collect()
    };
    let mut cell = measured(10, 7);
    let arrivals = [
        ("asked-ticks", 400),
        ("reached-ticks", 1000),
        ("longest-queue", 6),
    ];
    cell.counters.insert("arrivals".into(), group(&arrivals));
    cell.counters
        .insert("noise".into(), group(&[("rounds", 25)]));
    let expected = [("reached %", ["40.0", "·"]), ("queue", ["6", "·"])];
    let expected = expected.map(|(title, texts)| (title.into(), texts.map(String::from).to_vec()));
    assert_eq!(titles(load_columns(&[&cell, &plain])), expected);
    let rounds = titles(noise_column(&[&cell, &plain]).into_iter().collect());
    assert_eq!(rounds, [("rounds".into(), vec!["2.50".into(), "·".into()])]);
    // A block of one request has no interval between requests, and therefore no load.
    cell.counters.insert(
        "arrivals".into(),
        group(&[("asked-ticks", 0), ("reached-ticks", 0)]),
    );
    assert_eq!(cell.load_reached(), None);
}

#[test]
fn an_open_loop_has_a_table_and_a_unit_of_its_own() {
    let mut cell = measured(10, 7);
    cell.what.workload = plan::Workload::Notify;
    assert_eq!(
        (cell.table_key().as_str(), cell_operation(&cell)),
        ("notify", "request")
    );
    cell.what.arrival_us = 20;
    assert_eq!(
        (cell.table_key().as_str(), cell.operation_name().as_str()),
        ("notify, open loop", "notify, open loop one")
    );
    assert!(cell_operation(&cell).contains("meant to come"));
    let columns = limit_columns(&[&cell, &measured(10, 7)]);
    let columns: Vec<_> = columns
        .iter()
        .map(|column| (column.title(), column.texts().to_vec()))
        .collect();
    assert_eq!(columns, [("arrival", vec!["20".to_owned(), "-".into()])]);
}

/// The counted events are at the ends of blocks and not in samples, as in a storm whose calls are elided.
#[test]
fn what_the_ends_of_blocks_count_is_no_rate_of_samples() {
    let mut cell = measured(40, 7);
    let shown = |cell: &Cell| {
        let columns = columns_of_cells(&[cell], Scale::for_results(&results::samples::results()));
        let of_group = |column: &&Column| matches!(column.group(), "IPIs/op" | "guest/op");
        let texts = columns
            .iter()
            .filter(of_group)
            .map(|column| column.texts()[0].clone());
        texts.collect::<Vec<_>>().join(" ")
    };
    cell.ipis = Counts::from([("sent".into(), 128), ("elided".into(), 94)]);
    cell.wakes = Counts::from([("timeout".into(), 47)]);
    // Every wake-up is a sample.
    assert_eq!(shown(&cell), "3.20 2.35 · 1.18");
    cell.made = 47;
    assert_eq!(shown(&cell), "≤3.20 2 · 1");
}

#[test]
fn exits_are_a_count_only_where_something_counts_them() {
    let exits = |under| {
        let cell = Cell {
            under,
            ..measured(24, 7)
        };
        let columns = columns_of_cells(&[&cell], Scale::for_results(&results::samples::results()));
        let exits = columns.iter().filter(|column| column.group() == "exits/op");
        let texts: Vec<String> = exits.map(|column| column.texts()[0].clone()).collect();
        texts.join(" ")
    };
    assert_eq!(exits(Under::Rouse), "· · · · ·");
    assert_eq!(exits(Under::None), "- - - - -");
    assert_eq!(exits(Under::Kvm), "? ? ? ? ?");
}
