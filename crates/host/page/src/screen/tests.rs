// SPDX-License-Identifier: MIT OR Apache-2.0
mod layers;

use plan::{Wait, Workload};
use results::goldens::log_results;
use results::{Counts, Critical, Stats};

use super::*;

fn cell(words: &[(&'static str, &str)], p50: u64, net: u64, exits: u64) -> Cell {
    let mut what = plan::Cell {
        workload: Workload::Pingpong,
        ..plan::Cell::default()
    };
    for (key, word) in words {
        what.set(key, word).unwrap();
    }
    let stats = |p50| Stats {
        count: 1000,
        min: p50,
        p50,
        max: p50,
        ..Stats::default()
    };
    let critical = Critical {
        net: stats(net),
        path: stats(net),
        samples: 1000,
        exits: Counts::from([("sgi".into(), exits * 1000)]),
        ..Critical::default()
    };
    Cell {
        what,
        stats: Some(stats(p50)),
        critical: Some(critical),
        ..Cell::default()
    }
}

fn run(cells: Vec<Cell>) -> Results {
    let mut results = Results {
        unit: "insns".into(),
        board: "virt".into(),
        cells,
        ..Results::default()
    };
    results.machine.cpus = 2;
    results
}

fn shown(results: &Results) -> String {
    document(results, Rest::Elsewhere)
        .unwrap()
        .terminal(Some(WIDTH))
        .join("\n")
}

fn ways() -> Vec<Cell> {
    vec![
        cell(&[("wait", "wfi"), ("trap", "none")], 157, 97, 4),
        cell(
            &[("wait", "wfi"), ("trap", "none"), ("deliver", "direct")],
            81,
            39,
            0,
        ),
        cell(&[("wait", "wfi"), ("trap", "wfi")], 177, 91, 4),
        cell(
            &[
                ("wait", "poll-wfi"),
                ("poll-limit-us", "100"),
                ("trap", "none"),
                ("wake", "elide"),
            ],
            64,
            23,
            0,
        ),
        cell(
            &[
                ("wait", "poll-wfi"),
                ("poll-limit-us", "100"),
                ("trap", "wfi"),
                ("wake", "elide"),
            ],
            64,
            23,
            0,
        ),
    ]
}

#[test]
fn a_row_is_a_way_of_waiting_and_a_column_a_way_of_waking() {
    let text = shown(&run(ways()));
    let row = |begin: &str| {
        text.lines()
            .find(|line| line.starts_with(begin))
            .unwrap_or_else(|| panic!("{begin}\n{text}"))
    };
    assert!(
        row("how it waits").ends_with("IPI injected   IPI direct  no IPI, polled"),
        "{text}"
    );
    assert!(row("WFI  ").contains("157 (97) / 4  81 (39) / 0"), "{text}");
    assert!(row("WFI, trapped").contains("177 (91) / 4"), "{text}");
    assert!(
        row("polls 100 us, then WFI, any trap").ends_with("64 (23) / 0"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= WIDTH),
        "{text}"
    );
    assert!(text.lines().count() <= 22, "{text}");
}

#[test]
fn the_sentences_have_the_comparisons() {
    let text = shown(&run(ways())).replace('\n', " ");
    for part in [
        "takes 64 instructions; with injected IPIs out of a trapped WFI it takes 177: 2.8 times as many",
        "trapping WFI adds 20, but 6 fewer lie before the woken task",
        "All 5 cells",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_wake_up_without_an_interrupt_has_a_column_for_each_delivery_that_differs() {
    let mut cells = ways();
    cells.truncate(4);
    cells.remove(1);
    let mut direct = cells[2].clone();
    direct.what.set("deliver", "direct").unwrap();
    cells.push(direct.clone());
    assert!(!shown(&run(cells.clone())).contains("no IPI (direct)"));
    let last = cells.len() - 1;
    cells[last].stats.as_mut().unwrap().p50 = 60;
    assert!(shown(&run(cells)).contains("no IPI (direct)"));
}

#[test]
fn a_sweep_has_a_row_a_value_and_names_its_knee() {
    let points = [(10, 300), (20, 300), (50, 300), (100, 60), (200, 60)];
    let cells = points.map(|(limit, p50)| {
        cell(
            &[("wait", "poll-wfi"), ("poll-limit-us", &limit.to_string())],
            p50,
            20,
            0,
        )
    });
    let text = shown(&run(cells.to_vec()));
    for part in [
        "In all of them: polls, then WFI, not trapped.",
        "limit  IPI injected\n   10      300 (20)",
        "Knee of the curve over --poll-limit-us: 50.",
        "pingpong: least 60",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_sweep_of_limits_names_the_one_that_catches_the_wake_up_first() {
    let polled = |gap: u32, limit: u32, caught: bool| {
        let (gap, limit) = (gap.to_string(), limit.to_string());
        let words = [
            ("wait", "poll-wfi"),
            ("wake", "elide"),
            ("gap-us", gap.as_str()),
            ("poll-limit-us", limit.as_str()),
        ];
        let (p50, sent) = if caught { (64, 0) } else { (115, 1000) };
        let mut cell = cell(&words, p50, 23, 0);
        cell.ipis = Counts::from([("sent".into(), sent)]);
        cell
    };
    let mut cells = Vec::new();
    for (gap, catches) in [(20, 50), (100, 200), (500, 9999), (5, 10)] {
        cells.extend([10, 50, 200].map(|limit| polled(gap, limit, limit >= catches)));
    }
    let text = shown(&run(cells));
    let flat = text.replace('\n', " ");
    for part in [
        "20 us apart, without IPI: a poll of 50 us catches the wake-up (64 instructions), one of 10 us misses it (115: the answer, which comes at once, is still caught).",
        "100 us apart, without IPI: a poll of 200 us catches the wake-up (64 instructions), one of 50 us misses it (115: the answer, which comes at once, is still caught).",
        "500 us apart, without IPI: a poll of 200 us, the longest here, ends before the wake-up (115 instructions).",
        "5 us apart, without IPI: a poll of 10 us, the shortest here, catches the wake-up (64 instructions).",
    ] {
        assert!(flat.contains(part), "{part}\n{text}");
    }
    let (sentence, table) = (text.find("catches"), text.find("no IPI, polled"));
    assert!(sentence < table, "{text}");
}

#[test]
fn a_row_that_the_sentence_names_is_on_the_screen() {
    let cost = |gap: u32| if gap == 29 { 900 } else { 9 };
    let cells = (1..=30).map(|gap| {
        cell(
            &[("wait", "wfi"), ("gap-us", &gap.to_string())],
            cost(gap),
            5,
            0,
        )
    });
    let text = shown(&run(cells.collect()));
    assert!(text.contains("most 900"), "{text}");
    let row = text
        .lines()
        .any(|line| line.trim_start().starts_with("29 ") && line.contains("900"));
    assert!(row, "{text}");
    assert!(text.contains("and 6 more rows: --wide"), "{text}");
}

#[test]
fn a_table_larger_than_a_screen_counts_the_rows_that_are_left() {
    let of = |gap: u32| {
        let words = [("wait", "wfi"), ("gap-us", &gap.to_string())];
        cell(&words, 900 + u64::from(gap == 2), 5, 0)
    };
    let results = run((1..=30).map(of).collect());
    let text = shown(&results);
    assert!(
        text.contains("\n 24 ") && !text.contains("\n 25 "),
        "{text}"
    );
    assert!(text.contains("and 6 more rows: --wide"), "{text}");
    // If the table of all cells follows the screen, the screen refers to no other output.
    let text = document(&results, Rest::Below).unwrap();
    let text = text.terminal(None).join("\n");
    assert!(
        text.contains("and 6 more rows, below") && !text.contains("--wide"),
        "{text}"
    );
}

#[test]
fn times_of_a_hosts_threads_are_the_least_and_have_no_ratio() {
    let mut results = run(ways());
    results.unit = "ticks".into();
    results.machine.emulator = Some(results::Emulator {
        mode: "mttcg".into(),
        ..Default::default()
    });
    let text = shown(&results);
    assert!(text.contains("the least of each"), "{text}");
    assert!(!text.contains("times as many"), "{text}");
}

#[test]
fn a_run_beside_the_bare_machine_names_what_the_hypervisor_adds() {
    let mut cells = [19_383, 19_413].map(|p50| {
        let mut cell = cell(&[("wait", "wfi")], p50, 0, 0);
        cell.what.workload = Workload::LinuxPipe;
        cell
    });
    cells[0].under = plan::Under::None;
    cells[0].what = cells[1].what.on_bare_machine();
    let text = shown(&run(cells.to_vec())).replace('\n', " ");
    let sentence = "linux-pipe: rouse adds, in instructions, 30 to the bare machine's 19,383 (as Linux idles).";
    assert!(text.contains(sentence), "{text}");
    assert!(!text.contains("Least:"), "{text}");
}

#[test]
fn a_star_is_explained_and_what_is_lost_is_named() {
    let mut results = run(ways());
    results.cells[3].not_modelled = vec!["cpus_run_at_once".into()];
    results.damaged.push("cell 7".into());
    results.problems.push("line 3".into());
    results.cells.push(Cell {
        skipped: Some("one CPU only".into()),
        ..Cell::default()
    });
    let text = shown(&results).replace('\n', " ");
    for part in [
        "any trap *",
        "* the length of the code, not of the wait. On a core, unlike here: CPUs run at once",
        "damaged: cell 7",
        "console: line 3",
        "Skipped cells: 1",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn other_workloads_are_named_where_they_do_not_fit() {
    let mut cells = ways();
    for limit in 1..20 {
        let mut other = cell(
            &[("wait", "poll-wfi"), ("poll-limit-us", &limit.to_string())],
            limit,
            1,
            0,
        );
        other.what.workload = Workload::Ipi;
        cells.insert(0, other);
    }
    let text = shown(&run(cells));
    assert!(text.contains("All 24 cells, ipi too"), "{text}");
    assert!(
        text.contains("pingpong:") && !text.contains("\nipi:"),
        "{text}"
    );
}

#[test]
fn no_screen_is_wider_than_a_terminal() {
    let mut some = 0;
    for (name, results) in log_results() {
        let Some(document) = document(&results, Rest::Elsewhere) else {
            continue;
        };
        some += 1;
        for line in document.terminal(Some(WIDTH)) {
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
        }
    }
    assert!(some > 4, "{some}");
    assert_eq!(Wait::WAYS.len(), 9);
}

#[test]
fn each_trap_of_a_wait_with_two_instructions_has_its_row() {
    let traps = ["none", "wfi", "wfe", "both"];
    let polls = traps.iter().zip(0..).flat_map(|(trap, place)| {
        ["20", "50"].map(|host_poll| {
            let host_poll = if *trap == "none" { "0" } else { host_poll };
            let words = [
                ("wait", "poll-wfi"),
                ("poll-limit-us", "100"),
                ("host-poll-us", host_poll),
                ("trap", trap),
            ];
            cell(&words, 100 + place, 20, 2)
        })
    });
    let mut cells = ways();
    cells.extend(polls);
    let text = shown(&run(cells));
    for (row, cost) in [("WFI", 101), ("WFE", 102), ("both", 103)] {
        let named = format!("polls, then WFI, {row} trapped");
        let with_cost = |line: &&str| line.contains(&named) && line.contains(&cost.to_string());
        assert!(text.lines().any(|line| with_cost(&line)), "{row}:\n{text}");
    }
    // With the limits of polls in the rows' names, the table would be wider.
    let legend = "host: limit of the hypervisor's poll; polls for at most 100 us.";
    assert!(text.contains(legend), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= WIDTH),
        "{text}"
    );
}

#[test]
fn no_cell_is_hidden_by_another() {
    // Busy CPUs do not trap, so both cells have the same row and column.
    let mut cells = vec![
        cell(&[("wait", "busy"), ("trap", "none")], 149, 100, 4),
        cell(&[("wait", "busy"), ("trap", "wfi")], 150, 100, 4),
    ];
    assert!(document(&run(cells.clone()), Rest::Elsewhere).is_none());
    for cell in &mut cells {
        cell.what.workload = Workload::LinuxPipe;
    }
    let text = shown(&run(cells));
    assert!(text.contains("as Linux idles, WFI trapped"), "{text}");
}

#[test]
fn a_poll_that_ended_too_early_is_not_called_polled() {
    let mut cells = ways();
    cells[3].ipis.insert("sent".into(), 500);
    assert!(!shown(&run(cells)).contains("A polled wake-up"));
    // A cell that has one of several limits is not compared with a WFI either.
    let mut cells = ways();
    for limit in ["10", "200"] {
        let mut other = cells[3].clone();
        other.what.set("poll-limit-us", limit).unwrap();
        cells.push(other);
    }
    assert!(!shown(&run(cells)).contains("A polled wake-up"));
}

#[test]
fn marks_notes_and_the_limits_of_governors_are_not_lost() {
    let mut results = run(ways());
    results.cells[0].counter_coarse = Some(0.5);
    results.cells[0].what.set("wait", "governor:menu").unwrap();
    results.notes.push("the machine was busy".into());
    let text = shown(&results).replace('\n', " ");
    for part in [
        "governor menu ^",
        "a governor begins to learn",
        "note: the machine was busy",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn more_columns_than_fit_become_rows() {
    let mut cells = ways();
    for cell in cells.clone() {
        cells.push(Cell {
            under: plan::Under::None,
            ..cell
        });
    }
    let text = shown(&run(cells));
    assert!(text.contains("none: WFI, trapped"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= WIDTH),
        "{text}"
    );
}

#[test]
fn a_value_that_makes_no_difference_is_any() {
    let of = |gap: &str, limit: &str, cost| {
        let words = [
            ("wait", "poll-wfi"),
            ("wake", "elide"),
            ("gap-us", gap),
            ("poll-limit-us", limit),
        ];
        cell(&words, cost, 5, 0)
    };
    let cells = |last| {
        vec![
            of("5", "10", 64),
            of("5", "100", 64),
            of("50", "10", 112),
            of("50", "100", last),
        ]
    };
    let rows = |text: &str| {
        let rows = text.lines().filter(|line| line.contains(" (5)"));
        let rows = rows.map(|row| row.split_whitespace().take(3).collect::<Vec<_>>().join(" "));
        rows.collect::<Vec<_>>()
    };
    let text = shown(&run(cells(65)));
    assert_eq!(
        rows(&text),
        ["5 any 64", "50 10 112", "50 100 65"],
        "{text}"
    );
    // The legend explains the title `limit`, which is too short to be clear.
    assert!(text.contains("limit: limit of the guest's poll;"), "{text}");
    // If the limit has no effect, it has no column.
    let text = shown(&run(cells(112)));
    assert_eq!(rows(&text), ["5 64 (5)", "50 112 (5)"], "{text}");
    assert!(text.contains("any limit"), "{text}");
}

#[test]
fn a_timer_that_wakes_earlier_out_of_a_trap_is_explained() {
    let timer = |trap, cost| {
        let words = [("workload", "linux-timer"), ("trap", trap)];
        let mut cell = cell(&words, cost, 0, 1);
        cell.unit = results::VIRTUAL.into();
        cell
    };
    let text = shown(&run(vec![timer("none", 5400), timer("wfi", 4950)]));
    assert!(text.contains("timer wakes 450"), "{text}");
    for trapped in [4950, 5400] {
        let text = shown(&run(vec![timer("none", 4950), timer("wfi", trapped)]));
        assert!(!text.contains("timer wakes"), "{text}");
    }
}

#[test]
fn any_value_is_each_value_also_where_the_trap_makes_a_difference_at_one() {
    let of = |trap, limit: &str, cost| {
        let words = [
            ("wait", "poll-wfi"),
            ("trap", trap),
            ("gap-us", "10"),
            ("poll-limit-us", limit),
        ];
        cell(&words, cost, 5, 0)
    };
    let cells = vec![
        of("none", "5", 115),
        of("none", "20", 64),
        of("none", "100", 64),
        of("wfi", "5", 112),
        of("wfi", "20", 64),
        of("wfi", "100", 64),
    ];
    let text = shown(&run(cells));
    assert!(!text.contains("any  "), "{text}");
    assert!(text.contains("any trap"), "{text}");
}
