// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties that hold for every page, whatever its contents.

use results::samples::{results, results_in_cycles};
use results::{Cell, Results, Stage, Stats};

use super::*;
use crate::scale::Scale;
use plan::Wait;

fn run(label: &str, results: Results) -> Run {
    Run {
        label: label.into(),
        results,
        commands: vec!["cargo xtask run --wait 'a<b'".into()],
    }
}

/// Returns a run with data for every chart.
fn rich() -> Results {
    let mut all = results();
    all.cells.retain(|cell| cell.skipped.is_some());
    for (wait, limit, p50) in [
        (Wait::Wfi, 0, 400),
        (Wait::Wfe, 0, 90),
        (Wait::PollWfi, 10, 300),
        (Wait::PollWfi, 100, 80),
    ] {
        for gap in [0, 50] {
            all.cells.push(cell(wait, limit, gap, p50 + u64::from(gap)));
        }
    }
    all.fidelity.insert("wfe_halts".into(), false.into());
    all.fidelity.insert("wfet_halts".into(), "not-sure".into());
    all.damaged.push("cell 9 (pingpong)".into());
    all
}

fn cell(wait: Wait, limit: u32, gap: u32, p50: u64) -> Cell {
    let stats = Stats {
        count: 100,
        min: p50 - 2,
        p50,
        max: p50 * 9,
        ..Stats::default()
    };
    let part = Stats {
        p50: p50 / 3,
        ..stats
    };
    let plain = results::samples::measured_cell(wait, "insns", stats);
    Cell {
        what: plan::Cell {
            poll_limit_us: limit,
            gap_us: gap,
            ..plain.what
        },
        stages: vec![Stage {
            name: "kick".into(),
            stats: part,
        }],
        exits: [("wfi".into(), 200), ("sgi".into(), 200)].into(),
        residency: [("run".into(), 30), ("wfi".into(), 70)].into(),
        histograms: [("total".into(), vec![(p50 - 2, 1), (p50, 98), (p50 * 9, 1)])].into(),
        ..plain
    }
}

#[test]
fn everything_that_was_measured_is_on_the_page() {
    let page = results_page(None, &[run("a", rich())]);
    for id in [
        "machine",
        "latency",
        "stages",
        "exits",
        "residency",
        "sweeps",
        "table",
        "skipped",
        "damaged",
        "reproduce",
    ] {
        assert!(page.contains(&format!(r#"<section id="{id}">"#)), "{id}");
    }
    for text in [
        "WFE with an empty event register waits",
        "Not shown here, for or against: </b>WFET waits until its deadline",
        "one CPU only",
        "cell 9 (pingpong)",
        "n = 100 each",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

/// Returns a run in cycles with data for every chart.
fn rich_in_cycles() -> Results {
    let insns = rich();
    let mut all = Results {
        cells: insns.cells,
        ..results_in_cycles()
    };
    for cell in &mut all.cells {
        cell.unit = "cycles".into();
        if let Some(stats) = &mut cell.stats {
            stats.p50 = 900_000 - 1000 * stats.p50;
        }
        cell.counters = [
            ("time".into(), [("sgi".into(), 50)].into()),
            ("stamped".into(), [("samples".into(), 1)].into()),
        ]
        .into();
        cell.stages.push(Stage {
            name: "traced".into(),
            stats: Stats {
                count: 1,
                ..Stats::default()
            },
        });
    }
    all
}

#[test]
fn no_chart_and_no_table_mixes_units() {
    let runs = [run("virt", rich()), run("gem5", rich_in_cycles())];
    let page = results_page(None, &runs);
    let figures: Vec<&str> = page.split("<figure>").skip(1).collect();
    let figures = figures
        .iter()
        .map(|rest| rest.split("</figure>").next().unwrap());
    let (mut insns, mut cycles) = (0, 0);
    for figure in figures {
        let units = ["instructions", "cycles"].map(|unit| figure.contains(unit));
        assert_ne!(units, [true, true], "{figure}");
        (insns, cycles) = (
            insns + usize::from(units[0]),
            cycles + usize::from(units[1]),
        );
        // Each figure has values of only one of the runs.
        let of = ["virt: ", "gem5: "].map(|label| figure.contains(label));
        assert_ne!(of, [true, true], "{figure}");
    }
    assert!(insns >= 3 && cycles >= 3, "{insns} {cycles}");
}

#[test]
fn the_same_cells_stand_side_by_side() {
    let runs = [run("virt", rich()), run("gem5", rich_in_cycles())];
    let page = results_page(None, &runs);
    let section = page.split(r#"<section id="machines">"#).nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    for text in [
        "virt: instructions",
        "gem5: cycles",
        "pairs of cells are in another order than by instructions (virt)",
        "8 cells; ratio to wfi",
    ] {
        assert!(section.contains(text), "{text} in {section}");
    }
    // The charts of the two runs have separate axes.
    for title in ["virt: pingpong", "gem5: pingpong"] {
        let chart = format!("<b>{title}</b> <span class=\"muted\">median");
        assert_eq!(page.matches(&chart).count(), 1, "{title}");
    }
    let alone = results_page(None, &runs[..1]);
    assert!(!alone.contains(r#"id="machines""#));
}

#[test]
fn a_model_shows_its_parameters_and_its_clock() {
    let page = results_page(None, &[run("gem5", results_in_cycles())]);
    for text in ["Parameters of the model", "60 ns", "chosen", "2600 MHz"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("Times of an emulator"));
}

#[test]
fn ticks_at_el2_are_not_shown_as_cycles() {
    // The run has 50 ticks of 104 cycles each, in one sample with two wake-ups.
    let mut results = rich_in_cycles();
    let page = results_page(None, &[run("gem5", results.clone())]);
    assert!(page.contains("mean cycles per wake-up at EL2") && page.contains("sgi: 2,600"));
    results.machine.core_hz = 0;
    let page = results_page(None, &[run("gem5", results)]);
    assert!(!page.contains("at EL2 by cause"));
}

#[test]
fn the_page_needs_nothing_else() {
    let page = results_page(None, &[run("a", rich()), run("b", results())]);
    for part in ["src=", "@import", "url(", "http:", "https:"] {
        assert!(!page.contains(part), "{part}");
    }
    // All links point into the page, and its only script is the one that its policy allows.
    assert_eq!(
        page.matches("href=").count(),
        page.matches("href=\"#").count()
    );
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains(&format!("<script>{SCRIPT}</script>")));
    assert!(page.contains(&content_policy()));
    let page = without_script(&page);
    for part in ["NaN", "inf\"", "inf "] {
        assert!(!page.contains(&format!("\"{part}")), "{part}");
    }
}

/// Removes the script, which is not part of the results.
fn without_script(page: &str) -> String {
    page.replace(SCRIPT, "")
}

#[test]
fn no_text_of_an_input_is_markup() {
    let mut results = rich();
    let evil = "<img src=x>\"'&";
    results.board = evil.into();
    results.notes.push(evil.into());
    results.damaged.push(evil.into());
    results.machine.cpu = evil.into();
    for cell in &mut results.cells {
        cell.unit = evil.into();
        cell.not_modelled.push(evil.into());
        cell.exits.insert(evil.into(), 5);
        cell.stages.push(Stage {
            name: evil.into(),
            stats: Stats::default(),
        });
    }
    let page = results_page(Some(evil), &[run(evil, results)]);
    assert!(!page.contains("<img"));
}

#[test]
fn nothing_and_nonsense_make_a_page() {
    let empty = Results::default();
    let mut zero = rich();
    for cell in &mut zero.cells {
        cell.stats = Some(Stats::default());
        cell.histograms.clear();
    }
    for results in [empty, zero] {
        let page = without_script(&results_page(None, &[run("a", results)]));
        assert!(page.ends_with("</html>") && !page.contains("NaN"));
    }
}

/// All pairs of 20 CPUs. The pair `slow` takes three times as long as the others.
fn of_pairs(slow: [usize; 2]) -> Results {
    let mut all = results();
    all.machine.cpus = 20;
    all.cells.clear();
    for pair in (plan::Pairs {
        cpus: 20,
        directed: true,
    })
    .sample(4096, 0)
    {
        let p50 = if pair.cpus() == slow { 300 } else { 100 };
        let mut cell = cell(Wait::Wfi, 0, 0, p50);
        cell.what.workload = plan::Workload::Ipi;
        cell.what.pair = pair;
        let affinity = |cpu: usize| format!("{:#x}", ((cpu / 10) << 8) | (cpu % 10));
        [cell.sender, cell.receiver] = pair.cpus().map(affinity);
        all.cells.push(cell);
    }
    all
}

#[test]
fn a_map_that_is_left_out_is_named_with_the_reason() {
    let mut results = of_pairs([5, 14]);
    let said = |results: &Results| {
        let lines = pairs::pair_lines(results, Scale::for_results(results)).join("\n");
        (lines, results_page(None, &[run("a", results.clone())]))
    };
    let few = |cell: &mut Cell| cell.stats.as_mut().unwrap().count = 19;
    results.cells[..7].iter_mut().for_each(few);
    let (lines, page) = said(&results);
    let some = "7 of 380 pairs are blank in the map, with less than 20 samples";
    assert!(
        lines.contains("373 of 380 pairs") && lines.contains(some),
        "{lines}"
    );
    assert!(page.contains(some) && page.contains("<rect class=\"heat"));
    results.cells.iter_mut().for_each(few);
    let (lines, page) = said(&results);
    let none = "no map, since none of 380 pairs has 20 samples";
    assert!(
        lines.contains(none) && lines.contains("--iterations 20"),
        "{lines}"
    );
    assert!(page.contains(none) && !page.contains("<rect class=\"heat"));
    results
        .cells
        .iter_mut()
        .for_each(|cell| cell.stats.as_mut().unwrap().count = 20);
    let (lines, page) = said(&results);
    assert!(
        !lines.contains("samples") && !page.contains("no map"),
        "{lines}"
    );
}

#[test]
fn a_slow_pair_is_at_its_place_of_the_map() {
    for [from, to] in [[5, 14], [14, 5], [19, 0]] {
        let results = of_pairs([from, to]);
        let lines = pairs::pair_lines(&results, Scale::for_results(&results)).join("\n");
        assert!(lines.contains("380 of 380 pairs"), "{lines}");
        assert!(
            lines.contains(&format!("farthest 300 ({from},{to})")),
            "{lines}"
        );
        assert!(
            lines.contains("differ up to Aff0: 180 pairs, 100 to 100"),
            "{lines}"
        );
        assert!(
            lines.contains("differ up to Aff1: 200 pairs, 100 to 300"),
            "{lines}"
        );
        let page = results_page(None, &[run("a", results)]);
        let side = (svg::WIDTH - 58.0) / 20.0;
        let (x, y) = (56.0 + to as f64 * side, 26.0 + from as f64 * side);
        let slow = format!(r#"<rect class="heat h6" x="{x:.1}" y="{y:.1}""#);
        assert_eq!(page.matches(&slow).count(), 1);
        // One match is the pair, and the other is the entry in the legend.
        assert_eq!(page.matches(r#"class="heat h6""#).count(), 2);
        assert!(page.contains(&format!("<title>{from} to {to}: 300, n = 100</title>")));
        // The other charts do not have a bar or a line for each pair.
        assert!(page.matches("<rect class=\"fill").count() < 100);
    }
}

/// Returns the section whose id is `id`, up to the next section.
fn of_section<'p>(page: &'p str, id: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!(r#"<section id="{id}">"#)).unwrap();
    rest.split(r#"<section id=""#).next().unwrap()
}

#[test]
fn every_cause_of_an_exit_has_a_column() {
    let mut all = rich();
    let causes = ["wfi", "sgi", "maintenance", "sysreg", "unheard-of"];
    for cell in &mut all.cells {
        cell.exits = causes.map(|cause| (cause.to_owned(), 300)).into();
    }
    let page = results_page(None, &[run("a", all)]);
    let exits = of_section(&page, "exits");
    for cause in causes {
        assert!(
            exits.contains(&format!("<th>{cause}</th>")),
            "{cause} in {exits}"
        );
    }
    // Each cause has 300 exits in 100 samples.
    assert!(exits.contains("<td>3</td><td>15</td>"), "{exits}");
    let page = results_page(None, &[run("a", rich())]);
    assert!(!of_section(&page, "exits").contains("<th>sysreg</th>"));
}

#[test]
fn where_it_goes_is_told_without_what_stamps_cost() {
    let mut all = rich();
    for cell in &mut all.cells {
        let work = |el1, el2| results::Work {
            el1,
            el2,
            ..results::Work::default()
        };
        let mut on_path = work(600, 300);
        on_path.bookkeeping.insert("clock".into(), 200);
        cell.critical = Some(results::Critical {
            samples: 10,
            on_path,
            work: work(1000, 400),
            ..results::Critical::default()
        });
    }
    let page = results_page(None, &[run("a", all)]);
    let stages = of_section(&page, "stages");
    let (_, figure) = stages.split_once("without stamps: mean").unwrap();
    let figure = figure.split("</figure>").next().unwrap();
    // The path has 60 instructions at EL1 and 30 at EL2, and 20 of them are bookkeeping. Another 50 are off the path.
    for part in ["EL1: 60<", "EL2: 30<", "beside the path: 50<", "140 / 70<"] {
        assert!(figure.contains(part), "{part} in {figure}");
    }
    assert!(!figure.contains("EL3"));
    let plain = results_page(None, &[run("a", rich())]);
    assert!(!of_section(&plain, "stages").contains("without stamps: mean"));
}
