// SPDX-License-Identifier: MIT OR Apache-2.0
//! The card as a table of text.

use cost::Path;

use super::card::{Card, Mode, Row};
use super::tally::Tally;

const HEAD: &str = "\
                     ────────────────hypervisor, per pass────────────────   guest's  same path
path         deliver insns  sysregs    barriers   exceptions  memory  lines   insns  bare machine
                            rd   wr  dsb isb dmb   in   out   ld  st data code";

/// The lines of the table.
pub fn table(card: &Card) -> Vec<String> {
    let mut lines = vec![format!("{}: {}, {}", card.board, card.emulator, card.rustc)];
    lines.push(String::new());
    lines.extend(HEAD.lines().map(str::to_owned));
    for &path in Path::ALL {
        for mode in [Mode::Inject, Mode::Direct] {
            if let Some(row) = card.row(path, mode) {
                lines.push(line(path, row, card.row(path, Mode::None)));
            }
        }
    }
    lines.extend(notes(card));
    lines.push(String::new());
    let numbers = card.numbers.iter();
    lines.extend(numbers.map(|(name, value)| format!("{value:>10}  {name}")));
    lines
}

fn line(path: Path, row: &Row, bare: Option<&Row>) -> String {
    let guest = |row: Option<&Row>| {
        let tally = row.and_then(|row| row.guest);
        tally.map_or("-".into(), |tally| tally.insns.to_string())
    };
    let start = format!("{:<12} {:<7}", path.name(), row.mode.name());
    let Some(el2) = row.el2 else {
        let why = row.skipped.as_deref().unwrap_or("-");
        return format!("{start}     -  {why}");
    };
    format!(
        "{start}{} {:>9} {:>13}",
        hypervisor(&el2),
        guest(Some(row)),
        guest(bare)
    )
}

fn hypervisor(el2: &Tally) -> String {
    format!(
        "{:>6} {:>4} {:>4} {:>4} {:>3} {:>3} {:>4} {:>5} {:>4} {:>3} {:>4} {:>4}",
        el2.insns,
        el2.reads,
        el2.writes,
        el2.dsb,
        el2.isb,
        el2.dmb,
        el2.entries,
        el2.returns,
        el2.loads,
        el2.stores,
        el2.lines,
        el2.code_lines,
    )
}

/// Rows whose passes did not all agree, which is worth knowing.
fn notes(card: &Card) -> Vec<String> {
    let odd = card
        .paths
        .iter()
        .filter(|row| row.agree != row.passes || row.set_aside != 0);
    let note = |row: &Row| {
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
