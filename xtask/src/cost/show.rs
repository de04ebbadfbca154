// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs as a table of text.

use cost::Path;

use super::costs::{Costs, Mode, Row, guest_insns};
use super::tally::Tally;

const HEAD: &str = "\
                     ────────────────hypervisor, per pass────────────────   guest's  same path
path         deliver insns  sysregs    barriers   exceptions  memory  lines   insns  bare machine
                            rd   wr  dsb isb dmb   in   out   ld  st data code";

/// The lines of the table.
pub fn table(costs: &Costs) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {}, {}",
        costs.board, costs.emulator, costs.rustc
    )];
    lines.push(String::new());
    lines.extend(HEAD.lines().map(str::to_owned));
    for &path in Path::ALL {
        for mode in [Mode::Inject, Mode::Direct] {
            if let Some(row) = costs.row(path, mode) {
                lines.push(line(path, row, costs.row(path, Mode::None)));
            }
        }
    }
    lines.extend(notes(costs));
    lines.push(String::new());
    let numbers = costs.numbers.iter();
    lines.extend(numbers.map(|(name, value)| format!("{value:>10}  {name}")));
    lines
}

fn line(path: Path, row: &Row, bare: Option<&Row>) -> String {
    let start = format!("{:<12} {:<7}", path.name(), row.mode.name());
    let Some(el2) = row.el2 else {
        let why = row.skipped.as_deref().unwrap_or("-");
        return format!("{start}     -  {why}");
    };
    format!(
        "{start}{} {:>9} {:>13}",
        hypervisor(&el2),
        guest_insns(Some(row)),
        guest_insns(bare)
    )
}

/// The columns under [`HEAD`].
fn hypervisor(el2: &Tally) -> String {
    const WIDTHS: [usize; 12] = [6, 4, 4, 4, 3, 3, 4, 5, 4, 3, 4, 4];
    let columns = el2.columns().into_iter().zip(WIDTHS);
    let columns: Vec<String> = columns
        .map(|(count, width)| format!("{count:>width$}"))
        .collect();
    columns.join(" ")
}

/// Rows whose passes did not all agree, which is worth knowing.
fn notes(costs: &Costs) -> Vec<String> {
    let odd = costs
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
