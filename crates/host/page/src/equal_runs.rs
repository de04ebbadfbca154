// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges parts of the page that each run has, so that equal parts appear only once.

use maud::{Markup, html};
use results::merge::Run;

/// Calls `of` on each run. Returns the distinct results, each with the labels of the runs that have it. The labels
/// are left out if all runs have the same result.
pub fn merge_equal(runs: &[Run], of: impl Fn(&Run) -> Markup) -> Vec<(Vec<&str>, Markup)> {
    let mut parts: Vec<(Vec<&str>, Markup)> = Vec::new();
    for run in runs {
        let made = of(run);
        match parts.iter_mut().find(|(_, known)| known.0 == made.0) {
            Some((labels, _)) => labels.push(&run.label),
            None => parts.push((vec![&run.label], made)),
        }
    }
    if let [(labels, _)] = parts.as_mut_slice() {
        labels.clear();
    }
    parts
}

/// Names the runs that a part of the page is about, unless it is about all of them.
pub fn run_labels(labels: &[&str]) -> Markup {
    html! { @if !labels.is_empty() { p.runs { b { (labels.join(", ")) } } } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Results;

    #[test]
    fn what_is_equal_is_there_once_with_the_names_of_its_runs() {
        let run = |label: &str, board: &str| Run {
            label: label.into(),
            results: Results {
                board: board.into(),
                ..Results::default()
            },
            commands: Vec::new(),
        };
        let runs = [run("a", "virt"), run("b", "n1"), run("c", "virt")];
        let told = |runs: &[Run]| -> Vec<String> {
            let parts = merge_equal(runs, |run| html! { (run.results.board) });
            let parts = parts.into_iter();
            parts
                .map(|(labels, text)| format!("{}:{}", labels.join(","), text.0))
                .collect()
        };
        assert_eq!(told(&runs), ["a,c:virt", "b:n1"]);
        assert_eq!(told(&[run("a", "virt"), run("b", "virt")]), [":virt"]);
    }
}
