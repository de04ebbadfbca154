// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --list`: lists the cells of each boot and their times. Builds and boots nothing.

use anyhow::Result;
use page::Column;
use page::document::Document;

use crate::job::{Job, PlannedCell, Seconds};
use reporting::format::FormatArgs;
use shell::progress;

/// Prints the boots of `jobs`, which run one after another.
pub fn list<'j>(jobs: impl IntoIterator<Item = &'j Job>, format: &FormatArgs) -> Result<()> {
    let mut all = Document::default();
    for job in jobs {
        all.append(document(job)?);
    }
    format.show_document(&all)
}

fn document(job: &Job) -> Result<Document> {
    let mut document = Document::default();
    let board = &job.board().name;
    let boots = job.variants()?;
    for &variant in &boots {
        let seconds = time_text(job.seconds_of_boot(variant)?);
        if !job.measures() {
            document.push(format!("{board} {variant}: nothing is measured"));
            continue;
        }
        let cells = job.cells_of(variant)?;
        let number = match cells.len() {
            1 => "1 cell".into(),
            number => format!("{number} cells"),
        };
        document.push(format!("{board} {variant}: {number}, {seconds}"));
        document.table(columns(&cells));
        document.push(String::new());
    }
    let times = match job.repeat {
        1 => String::new(),
        repeat => format!(", {repeat} times"),
    };
    let boots = match boots.len() {
        1 => "1 boot".into(),
        boots => format!("{boots} boots, {} at a time", job.jobs.get().min(boots)),
    };
    document.push(format!("{boots}{times}: {}", time_text(job.all_seconds()?)));
    Ok(document)
}

fn columns(cells: &[PlannedCell]) -> Vec<Column> {
    let texts = |of: &dyn Fn(&PlannedCell) -> String| cells.iter().map(of).collect();
    let mut columns = vec![Column::words("cell", texts(&|cell| cell.name.clone()))];
    let seconds = |of: fn(Seconds) -> f64| {
        texts(&|cell| match (&cell.skipped, cell.seconds) {
            (Some(_), _) => "-".into(),
            (None, Some(seconds)) => format!("{:.1}", of(seconds)),
            (None, None) => "?".into(),
        })
    };
    columns.push(Column::numbers(
        "seconds",
        "expected",
        seconds(|(expected, _)| expected),
    ));
    columns.push(Column::numbers(
        "seconds",
        "at most",
        seconds(|(_, most)| most),
    ));
    if cells.iter().any(|cell| cell.skipped.is_some()) {
        let why = texts(&|cell| cell.skipped.clone().unwrap_or_default());
        columns.push(Column::words("skipped", why));
    }
    columns
}

fn time_text(seconds: Option<Seconds>) -> String {
    match seconds {
        Some(seconds) => progress::expected(seconds),
        None => "how long is known after some cells".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RunArgs;
    use shell::args::parse;

    fn lines(line: &str) -> Vec<String> {
        let args: RunArgs = parse(line.split(' ')).unwrap();
        document(&Job::of_run(&args).unwrap())
            .unwrap()
            .terminal(None)
    }

    #[test]
    fn cells_of_each_boot_are_listed_with_their_time() {
        let lines = lines(
            "run --under none,rouse --workload pingpong --wait wfi,poll-wfi --trap none --deliver inject \
             --wake ipi --poll-limit-us 20,50 --gap-us 100 --jobs 2",
        );
        let text = lines.join("\n");
        // Names contain only the dimensions that vary, and are equal in both boots.
        for name in [
            "wfi ",
            "poll-wfi, poll-limit 20 us",
            "poll-wfi, poll-limit 50 us",
        ] {
            assert_eq!(
                text.matches(&format!("\n{name}")).count(),
                2,
                "{name}\n{text}"
            );
        }
        assert!(
            text.starts_with("virt under none: 3 cells, about "),
            "{text}"
        );
        assert!(
            text.contains("\nvirt under rouse: 3 cells, about "),
            "{text}"
        );
        assert!(text.contains("needs EL2"), "{text}");
        assert!(
            lines
                .last()
                .unwrap()
                .starts_with("2 boots, 2 at a time: about "),
            "{text}"
        );
    }
}
