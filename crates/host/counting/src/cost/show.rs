// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of costs for the terminal.

use cost::Path;
use page::Column;
use page::document::Document;

use super::baseline::Against;
use super::costs::{Costs, Mode, PathCosts, guest_insns};
use super::scale;

/// Heading of the first table.
const HEADING: &str = "hypervisor, per pass; the guest's instructions of the pass, and of the same path on the bare machine";
/// Groups and titles for the counts in a tally, in the tally's order.
const COUNTS: [(&str, &str); 12] = [
    ("", "insns"),
    ("sysregs", "rd"),
    ("sysregs", "wr"),
    ("barriers", "dsb"),
    ("barriers", "isb"),
    ("barriers", "dmb"),
    ("exceptions", "in"),
    ("exceptions", "out"),
    ("memory", "ld"),
    ("memory", "st"),
    ("lines", "data"),
    ("lines", "code"),
];
/// Column group for the guest's instructions on a path, with and without the hypervisor.
const GUEST: &str = "guest's insns";
/// Text for the counts of a path that was not taken.
const NONE: &str = "-";

/// Returns the costs as a document. If there is a baseline, they are compared with it.
pub fn document(costs: &Costs, against: Option<&Against<'_>>) -> Document {
    let machine = format!("{}: {}, {}", costs.board, costs.emulator, costs.rustc);
    let mut document = Document::from(vec![machine, String::new(), HEADING.into()]);
    document.table(path_columns(costs));
    document.extend(skip_reasons(costs));
    document.extend(notes(costs));
    document.push(String::new());
    document.table(number_columns(costs));
    if !costs.scale.is_empty() {
        document.push(String::new());
        document.table(scale::table(&costs.scale));
    }
    if let Some(against) = against {
        document.push(String::new());
        document.extend(against.describe_changes());
    }
    document
}

/// Returns the rows to show: the rows under the hypervisor, in both modes.
fn rows_to_show(costs: &Costs) -> impl Iterator<Item = (Path, &PathCosts)> {
    Path::ALL.iter().flat_map(move |&path| {
        let modes = [Mode::Inject, Mode::Direct].into_iter();
        modes.filter_map(move |mode| Some((path, costs.row(path, mode)?)))
    })
}

/// Returns a table with a row for each path and mode.
fn path_columns(costs: &Costs) -> Vec<Column> {
    let rows: Vec<(Path, &PathCosts)> = rows_to_show(costs).collect();
    let words = |title, of: &dyn Fn(&(Path, &PathCosts)) -> String| {
        Column::words(title, rows.iter().map(of).collect())
    };
    let mut columns = vec![
        words("code path", &|(path, _)| path.name().into()),
        words("deliver", &|(_, row)| row.mode.name().into()),
    ];
    for (at, (group, title)) in COUNTS.into_iter().enumerate() {
        let texts = rows.iter().map(|(_, row)| match row.el2 {
            Some(el2) => el2.columns()[at].to_string(),
            None => NONE.into(),
        });
        columns.push(Column::numbers(group, title, texts.collect()));
    }
    let guest = |title, of: &dyn Fn(&(Path, &PathCosts)) -> String| {
        Column::numbers(GUEST, title, rows.iter().map(of).collect())
    };
    columns.push(guest("here", &|(_, row)| match row.el2 {
        Some(_) => guest_insns(Some(row)),
        None => NONE.into(),
    }));
    columns.push(guest("bare machine", &|(path, row)| match row.el2 {
        Some(_) => guest_insns(costs.row(*path, Mode::None)),
        None => NONE.into(),
    }));
    columns
}

/// Explains why some paths have no counts.
fn skip_reasons(costs: &Costs) -> impl Iterator<Item = String> {
    let skipped = rows_to_show(costs).filter(|(_, row)| row.el2.is_none());
    skipped.map(|(path, row)| {
        let why = row.skipped.as_deref().unwrap_or("not counted");
        format!("{} ({}): {why}", path.name(), row.mode.name())
    })
}

/// Returns the table of the single numbers.
fn number_columns(costs: &Costs) -> Vec<Column> {
    let values = costs.numbers.values().map(u64::to_string);
    vec![
        Column::numbers("", "number", values.collect()),
        Column::words("of", costs.numbers.keys().cloned().collect()),
    ]
}

/// Returns a note for each row whose passes have different counts.
fn notes(costs: &Costs) -> Vec<String> {
    let odd = costs
        .paths
        .iter()
        .filter(|row| row.agree != row.passes || row.set_aside != 0);
    let note = |row: &PathCosts| {
        format!(
            "{} ({}): {} of {} passes agree; {} took something else along and are left out",
            row.path,
            row.mode.name(),
            row.agree,
            row.passes,
            row.set_aside
        )
    };
    odd.map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::super::history;
    use super::*;

    #[test]
    fn every_count_is_shown_and_what_was_skipped_says_why() {
        let costs = history::read_baseline(&history::newest::<Costs>("virt").unwrap()).unwrap();
        let against = Against::new(&costs, &costs);
        let document = document(&costs, Some(&against));
        let text = document.csv().unwrap();
        for (path, row) in rows_to_show(&costs) {
            let counts = row
                .el2
                .map(|el2| el2.columns().map(|count| count.to_string()));
            let counts = counts.map_or([NONE; 12].join(","), |counts| counts.join(","));
            let part = format!("{},{},{counts},", path.name(), row.mode.name());
            assert!(text.contains(&part), "{part} in:\n{text}");
        }
        for (name, value) in &costs.numbers {
            assert!(
                text.contains(&value.to_string()) && text.contains(name),
                "{name}"
            );
        }
        let lines = document.terminal(None);
        for line in skip_reasons(&costs) {
            assert!(lines.contains(&line), "{line}");
        }
        assert!(
            skip_reasons(&costs).count() > 0 && lines.last().is_some_and(|line| line == "the same")
        );
    }
}
