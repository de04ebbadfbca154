// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes `docs/hypervisors.md` from the numbers, and formats its tables for a terminal.

use page::layer_costs::format_ratio;
use page::thousands;
use plan::{Under, Word};

use super::boots::{ComparedCell, ROWS};
use super::numbers::{Number, Numbers};
use page::document::Document;
use page::grid::Column;

/// The page, with placeholders for its tables.
const PAGE: &str = include_str!("page.md");
/// Lines around the block that `publish` writes into the page.
const BLOCK: [&str; 2] = [
    "<!-- cargo xtask dev publish: rows of results/neighbour.json -->\n",
    "<!-- until here -->\n",
];
/// Text in place of a missing cell.
const NOTHING: &str = "";
/// Text in place of a missing measurement of KVM's default.
const NOT_MEASURED: &str = "not measured";

/// The table's columns, from left to right, with their titles.
const UNDERS: [(Under, &str); 7] = [
    (Under::None, "none"),
    (Under::Rouse, "Rouse"),
    (Under::Bao, "Bao"),
    (Under::Xen, "Xen"),
    (Under::Kvm, "KVM (VHE)"),
    (Under::KvmNvhe, "KVM nVHE"),
    (Under::KvmProtected, "KVM protected"),
];

/// Returns the page of `numbers`. The block that `publish` wrote is taken from the current page `is`.
pub fn page(numbers: &Numbers, is: &str) -> String {
    let places = [
        ("{versions}", list_versions(numbers)),
        ("{table}", medians_table(numbers)),
        ("{own}", own_costs_table(numbers)),
        ("{exits}", exits_table(numbers)),
        ("{neighbour}", published_block(is)),
    ];
    let page = PAGE.to_owned();
    places.iter().fold(page, |page, (place, text)| {
        page.replace(place, text.trim_end())
    })
}

/// Returns the block that `publish` wrote into the page `is`; empty if there is none.
fn published_block(is: &str) -> String {
    let [begin, end] = BLOCK;
    let block = is
        .split_once(begin)
        .and_then(|(_, rest)| rest.split_once(end));
    block.map(|(block, _)| block.to_owned()).unwrap_or_default()
}

/// Returns the first table, which has the medians.
pub fn medians_table(numbers: &Numbers) -> String {
    markdown_table(
        "instructions",
        &|row, under| Some(thousands(numbers.number_at(row, under)?.p50)),
        &UNDERS,
    )
}

/// Returns the answer for a terminal: the comparison in words and the table of medians. In a wide terminal, the table
/// also has the instructions that each hypervisor adds to the bare machine's, and each median's ratio to Rouse's.
pub fn terminal_document(numbers: &Numbers) -> Document {
    let mut document = Document::default();
    document.extend(sentences(numbers));
    document.extend([String::new(), "instructions, medians".to_owned()]);
    let names = ROWS.iter().map(ComparedCell::short_name).collect();
    let mut columns = vec![Column::words("", names)];
    let mut further = Vec::new();
    let measured = |under: &Under| numbers.column_numbers(*under).next().is_some();
    let column =
        |group: &str, title: &str, under, of: &dyn Fn(&ComparedCell, &Number) -> Option<String>| {
            let texts = ROWS.iter().map(|row| {
                let number = numbers.number_at(row, under);
                number
                    .and_then(|number| of(row, number))
                    .unwrap_or("-".into())
            });
            Column::numbers(group, title, texts.collect())
        };
    for (under, _) in UNDERS.into_iter().filter(|(under, _)| measured(under)) {
        let median = column("", under.name(), under, &|_, number| {
            Some(thousands(number.p50))
        });
        // A narrow terminal shows only the best-known hypervisors.
        columns.push(match under {
            Under::KvmNvhe | Under::KvmProtected => median,
            Under::None | Under::Rouse | Under::Bao | Under::Xen | Under::Kvm => median.result(),
        });
        if under != Under::None {
            further.push(column("over none", under.name(), under, &|row, number| {
                cost_over_bare(numbers, row, number)
            }));
        }
    }
    for (under, _) in UNDERS.into_iter().filter(|(under, _)| measured(under)) {
        if !matches!(under, Under::None | Under::Rouse) {
            further.push(column("of rouse", under.name(), under, &|row, number| {
                ratio_to_rouse(numbers, row, number)
            }));
        }
    }
    document.table(columns.into_iter().chain(further).collect());
    let below = numbers.below.iter();
    document.extend(below.map(|(under, told)| format!("{under}: {told}")));
    document
}

/// Returns two sentences that compare the hypervisors: one about round trips out of trapped WFI, one about polled
/// ones.
fn sentences(numbers: &Numbers) -> impl Iterator<Item = String> {
    let sentence = |begin: &str, is: &dyn Fn(&ComparedCell) -> bool| {
        let row = ROWS.iter().find(|row| is(row))?;
        let each = UNDERS.into_iter().filter_map(|(under, _)| {
            let number = numbers.number_at(row, under)?;
            let times = ratio_to_rouse(numbers, row, number)
                .filter(|_| !matches!(under, Under::None | Under::Rouse));
            let times = times.map(|times| format!(" ({times})")).unwrap_or_default();
            Some(format!("{} {}{times}", under.name(), thousands(number.p50)))
        });
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| format!("{begin}: {}.", each.join(", ")))
    };
    let trapped = sentence(
        "A round trip by IPIs out of trapped WFI, in instructions",
        &ComparedCell::is_trapped_round_trip,
    );
    let polled = sentence(
        "One that the guest polls for, without IPIs",
        &ComparedCell::is_polled_round_trip,
    );
    trapped.into_iter().chain(polled)
}

fn cost_over_bare(numbers: &Numbers, row: &ComparedCell, number: &Number) -> Option<String> {
    Some(thousands(
        number.p50 - numbers.bare_machine_number(row)?.p50,
    ))
}

fn ratio_to_rouse(numbers: &Numbers, row: &ComparedCell, number: &Number) -> Option<String> {
    Some(format_ratio(
        number.p50 / numbers.number_at(row, Under::Rouse)?.p50,
    ))
}

/// Returns a table with the instructions that each hypervisor adds, and with each cell's ratio to Rouse's cell.
fn own_costs_table(numbers: &Numbers) -> String {
    let text = |row: &ComparedCell, under| {
        let number = numbers.number_at(row, under)?;
        let over = cost_over_bare(numbers, row, number)?;
        Some(match under {
            Under::Rouse => over,
            _ => format!("{over} ({})", ratio_to_rouse(numbers, row, number)?),
        })
    };
    markdown_table("instructions", &text, &UNDERS[1..])
}

/// Returns the table of the exits of a sample, by cause.
fn exits_table(numbers: &Numbers) -> String {
    let text = |row: &ComparedCell, under| {
        let Some(exits) = &numbers.number_at(row, under)?.exits else {
            return Some("?".into());
        };
        let each: Vec<String> = exits
            .iter()
            .map(|(cause, count)| format!("{cause} {count}"))
            .collect();
        Some(if each.is_empty() {
            "none".into()
        } else {
            each.join(", ")
        })
    };
    markdown_table("exits", &text, &UNDERS[1..])
}

fn list_versions(numbers: &Numbers) -> String {
    let mut lines = vec![
        format!("- emulator: {}", numbers.emulator),
        format!("- the guest's compiler: {}", numbers.compiler),
    ];
    for (under, title) in UNDERS {
        let told = numbers.below.get(under.name());
        lines.extend(told.map(|told| format!("- {title}: {told}")));
    }
    lines.join("\n")
}

/// Returns a table of all rows, with the columns `unders`.
fn markdown_table(
    of: &str,
    text: &dyn Fn(&ComparedCell, Under) -> Option<String>,
    unders: &[(Under, &str)],
) -> String {
    let titles: Vec<&str> = unders.iter().map(|(_, title)| *title).collect();
    let mut lines = vec![
        format!("| {of} | {} |", titles.join(" | ")),
        format!("|---|{}", "---:|".repeat(unders.len())),
    ];
    for row in &ROWS {
        let texts = unders.iter().map(|&(under, _)| {
            let lacking = row.is_kvms_default() && under.kvm_mode().is_some();
            let nothing = if lacking { NOT_MEASURED } else { NOTHING };
            text(row, under).unwrap_or(nothing.into())
        });
        let texts: Vec<String> = texts.collect();
        if texts.iter().any(|text| !text.is_empty()) {
            lines.push(format!("| {} | {} |", row.name, texts.join(" | ")));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::goldens::golden;
    use shell::places;

    #[test]
    fn golden_screens() {
        let kept = Numbers::read_file(&places::inside("docs/hypervisors.json")).unwrap();
        let document = terminal_document(&kept);
        let screens = [80, 120, 200].map(|width| {
            let lines = document.terminal(Some(width));
            assert!(
                lines.iter().all(|line| line.chars().count() <= width),
                "{lines:#?}"
            );
            format!("{width} columns\n\n{}\n\n", lines.join("\n"))
        });
        let path = "crates/host/hypervisors/tests/goldens/under-all.screens.txt";
        golden(&places::inside(path), &screens.concat());
    }

    #[test]
    fn each_mode_of_kvm_says_whether_its_default_was_measured() {
        let table = medians_table(&Numbers::default());
        let default = table.lines().filter(|line| line.contains("KVM's default"));
        let lacking: Vec<usize> = default
            .map(|line| line.matches(NOT_MEASURED).count())
            .collect();
        assert_eq!(lacking, [3, 3], "{table}");
        for row in ROWS.iter().filter(|row| row.is_kvms_default()) {
            assert!(row.name.contains("KVM's default"), "{}", row.name);
        }
        let halts = ROWS.iter().filter(|row| row.name.contains("halt_poll_ns"));
        assert_eq!(halts.count(), 2);
    }

    #[test]
    fn every_place_of_the_page_is_filled() {
        let page = page(&Numbers::default(), "");
        assert!(!page.contains('{') && !page.contains('}'), "{page}");
    }
}
