// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges the parts of the page that each run has, so that equal parts appear once.

use maud::{Markup, html};
use results::merge::Run;

/// Returns the distinct results of `of` on the runs, each with the names of the runs that have this result. There are
/// no names if all runs have it.
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

/// Names the runs that a part is about, unless the part is about all runs.
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
