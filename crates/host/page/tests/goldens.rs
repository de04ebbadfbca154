// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the pages of the logs whose results are tested in crates/host/results. The page of a log stays the same unless
//! a reviewed change alters it.

use std::path::Path;

use results::goldens::{golden, logs_as_runs};
use results::merge::{self, Run};

/// Compares the page about `runs` with the file `name`.
fn page_of(name: &str, runs: &[Run]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let path = folder.join(format!("{name}.html"));
    golden(&path, &by_lines(&page::results_page(None, runs)));
}

/// Returns the page without style and script, and with one line per element, so that differences are readable.
fn by_lines(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, _) = rest.split_once("<script>").unwrap();
    format!("{head}{body}").replace("><", ">\n<") + "\n"
}

/// The logs whose pages are stored. Together, these pages have every section, class and column; the pages of other logs
/// would repeat them.
const KEPT: [&str; 4] = ["cut", "parts", "paths", "unders"];

#[test]
fn golden_pages() {
    let kept = logs_as_runs()
        .into_iter()
        .filter(|run| KEPT.contains(&run.label.as_str()));
    kept.for_each(|run| page_of(&run.label.clone(), &[run]));
}

/// Returns the texts between the tags of `page`.
fn texts(page: &str) -> String {
    let parts = by_lines(page);
    let texts = parts
        .split('<')
        .filter_map(|part| Some(part.split_once('>')?.1));
    texts.collect::<Vec<_>>().join(" ")
}

/// Puts runs of several logs on one page, and boots that repeat one measurement on another.
#[test]
fn no_page_shows_the_name_of_a_probe() {
    let several = merge::join_sweeps(logs_as_runs());
    let boots: Vec<Run> = (1..4)
        .flat_map(|number| {
            logs_as_runs().into_iter().take(1).map(move |run| Run {
                label: format!("boot {number}"),
                ..run
            })
        })
        .collect();
    let alone = logs_as_runs().into_iter().map(|run| vec![run]);
    for runs in alone.chain([several, boots]) {
        let text = texts(&page::results_page(None, &runs));
        for name in runs.iter().flat_map(|run| run.results.fidelity.keys()) {
            assert!(
                !text.contains(name.as_str()),
                "{name} in the page of {}",
                runs[0].label
            );
        }
    }
}

/// A page about boots that repeat one measurement shows the machine, the caveats and the commands only once.
#[test]
fn equal_boots_are_told_once() {
    let run = logs_as_runs()
        .into_iter()
        .find(|run| run.label == "paths")
        .unwrap();
    let boots: Vec<Run> = (1..7)
        .map(|number| Run {
            label: format!("boot {number}"),
            ..run.clone()
        })
        .collect();
    let page = page::results_page(None, &boots);
    assert!(page.contains("6 boots of the same cells"));
    for once in [
        "Not modelled here",
        "<th scope=\"row\">Board</th>",
        "cargo xtask report paths.log",
        "Measured cells",
    ] {
        assert!(page.matches(once).count() <= 1, "{once}");
    }
    let alone = page::results_page(None, &[run]);
    assert_eq!(
        page.matches("<figure>").count(),
        alone.matches("<figure>").count()
    );
}
