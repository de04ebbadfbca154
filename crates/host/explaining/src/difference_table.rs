// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows the difference between two explanations, for a terminal, a mail or a page.

use anyhow::Result;
use foreign::Quoted;
use page::Column;
use page::document::Document;
use shell::failure::bad_input;

use crate::difference::{Change, Difference};
use crate::explanation::{Explained, ExplainedCell};
use crate::table::{TOP, add_notes, describe_events, thousands, with_sign};

/// Lists the dimensions in which compared cells of A and B differ.
pub fn differing_words(apart: &[[String; 3]]) -> Document {
    let side = |name, place: usize| {
        let words = apart.iter().map(|words| {
            let value = match words[place].as_str() {
                "" => "not used",
                value => value,
            };
            format!("{} {}", words[0], Quoted::new(value))
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| format!("{name} = {}", words.join(", ")))
    };
    let sides = [side("A", 1), side("B", 2)].into_iter().flatten();
    let mut lines: Vec<String> = sides.collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    Document::from(lines)
}

/// Returns the differences in the cells that both explanations have.
pub fn differences(both: [&Explained; 2], top: Option<usize>) -> Result<Document> {
    let mut document = Document::default();
    let [a, b] = both;
    if a.guest != b.guest {
        document.push(format!("A = {}", Quoted::new(&a.guest)));
        document.push(format!("B = {}", Quoted::new(&b.guest)));
        document.push(String::new());
    }
    let differences = Difference::compare_all(both);
    for one in &differences {
        add_difference(&mut document, one, top.unwrap_or(TOP));
        document.push(String::new());
    }
    let alone = |side: &str, cells: &[ExplainedCell], other: &Explained| -> Vec<String> {
        let alone = cells
            .iter()
            .filter(|cell| other.matching_cell(cell).is_none());
        alone
            .map(|cell| format!("note: only {side} has {}", cell.name()))
            .collect()
    };
    let alone = [alone("B", &b.cells, a), alone("A", &a.cells, b)].concat();
    document.extend(alone);
    if differences.is_empty() {
        bad_input!(
            "explain: A and B have no cell in common; name them with the same --workload and cells"
        );
    }
    add_notes(&mut document, &both);
    Ok(document)
}

fn add_difference(document: &mut Document, difference: &Difference<'_>, top: usize) {
    let [a, b] = difference.cells;
    document.push(format!(
        "{}: the path of the median sample has {} {} in A and {} in B, {}.",
        a.name(),
        thousands(a.path),
        a.counted_noun(),
        thousands(b.path),
        with_sign(difference.total())
    ));
    if [a, b].iter().any(|cell| cell.bookkeeping > 0) {
        let net = [a, b].map(|cell| thousands(cell.path.saturating_sub(cell.bookkeeping)));
        document.push(format!(
            "Without what the measurement adds, {} and {}, as other tables show it.",
            net[0], net[1]
        ));
    }
    if let Some(parts) = &difference.parts {
        let after = match parts.function.as_str() {
            "" => String::new(),
            function => format!(", in {function}"),
        };
        let begin = match parts.after {
            0 => format!("The paths part at once{after}:"),
            same => format!(
                "The first {} instructions are of the same functions. Then{after},",
                thousands(same)
            ),
        };
        document.push(format!("{begin} A {} and B {}.", parts.to[0], parts.to[1]));
    }
    if difference.changes.is_empty() {
        document.push(format!(
            "No function has more or fewer {}.",
            a.counted_noun()
        ));
        return;
    }
    let (shown, rest) = difference.split_largest(top);
    let mut rows: Vec<[String; 7]> = shown.into_iter().map(change_row).collect();
    let rest_is_shown = rest.is_empty();
    if !rest_is_shown {
        let sum = |side: usize| rest.iter().map(|one| one.counts[side]).sum();
        let counts = [sum(0), sum(1)];
        let [_, _, _, a, b, by, _] = change_row(&Change {
            function: Default::default(),
            level: 0,
            counts,
            off_path: [0, 0],
        });
        let others = format!("{} further functions", rest.len());
        let empty = String::new;
        rows.push([empty(), empty(), others, a, b, by, empty()]);
    }
    if let (many @ 1.., sum) = difference.alike {
        let all = format!("{many} functions alike");
        let (sum, empty) = (thousands(sum), String::new);
        rows.push([empty(), empty(), all, sum.clone(), sum, "0".into(), empty()]);
    }
    let column = |n: usize| rows.iter().map(|row| row[n].clone()).collect();
    document.table(vec![
        Column::words("level", column(0)),
        Column::words("code", column(1)),
        Column::words("function", column(2)).result(),
        Column::numbers("", "A", column(3)).result(),
        Column::numbers("", "B", column(4)).result(),
        Column::numbers("", "by", column(5)).result(),
        Column::words("", column(6)),
    ]);
    let levels = difference.levels.iter().map(|(level, [a, b])| {
        let (a, b) = (thousands(*a), thousands(*b));
        format!("EL{level} {a} in A and {b} in B")
    });
    document.push(format!(
        "Sum of all changes: {}. By level: {}.",
        with_sign(difference.changes.iter().map(Change::excess).sum()),
        levels.collect::<Vec<_>>().join(", ")
    ));
    let [in_a, in_b] = [a, b].map(describe_events);
    document.push(match in_a == in_b {
        true => format!("All CPUs, both: {in_a}."),
        false => format!("All CPUs: A: {in_a}. B: {in_b}."),
    });
    let unnamed = |change: &Change| matches!(change.kind(), "new" | "gone");
    if difference.changes.iter().any(unnamed) {
        document.push(
            "A function that is new or gone may have been renamed, or inlined into its caller."
                .into(),
        );
    }
    if !rest_is_shown {
        document.push(format!(
            "--top {} shows all changes.",
            difference.changes.len()
        ));
    }
}

fn change_row(change: &Change) -> [String; 7] {
    let (image, name) = &change.function;
    [
        format!("EL{}", change.level),
        image.clone(),
        name.clone(),
        thousands(change.counts[0]),
        thousands(change.counts[1]),
        with_sign(change.excess()),
        change.kind().into(),
    ]
}
