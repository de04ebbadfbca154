// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lays out the cells of a workload in rows and columns. Each way in which the wake-up arrives has a column, and each
//! combination of everything else that varies has a row.

use plan::{DIMENSIONS, Info, Show, Trap, Wait, Wake};
use results::Cell;

use super::layout::{
    Across, HOST_POLL, LIMIT, Layout, NAMED, Name, SHAPE, distinct_texts, fullest_layer_first,
    value_text, value_title,
};
use super::merging::{ANY, ANY_TRAP, merge_equal_rows};
use super::{answer, words};
use crate::columns::{COARSE, FEWER, MARK, MOVED};
use crate::scale::Scale;

/// Maximum number of columns of numbers.
const COLUMNS: usize = 4;

/// A row.
#[derive(Debug)]
pub struct Row<'r> {
    /// The row's name except for the trap.
    pub what: String,
    /// The trap, or [`ANY_TRAP`] if all traps cost the same.
    pub trap: String,
    /// Values of the swept dimensions, or [`ANY`].
    pub swept: Vec<String>,
    /// The cell of each column.
    pub cells: Vec<Option<&'r Cell>>,
    /// The cells' texts.
    pub texts: Vec<String>,
    /// Marks of the row's cells, which other lines explain.
    pub marks: Vec<&'static str>,
    /// Further cells that the row represents, from rows that cost the same.
    pub others: Vec<&'r Cell>,
}

impl<'r> Row<'r> {
    fn new((what, trap, swept): Name, columns: usize) -> Self {
        Self {
            what,
            trap,
            swept,
            cells: vec![None; columns],
            texts: vec!["-".into(); columns],
            marks: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Returns the row's name, without swept values.
    pub fn name_without_sweeps(&self) -> String {
        let Self { what, trap, .. } = self;
        // The names omit a wait that all rows share, because it is named above the table.
        match (what.is_empty() || what.ends_with(": "), trap.as_str()) {
            (false, _) => format!("{what}{trap}"),
            (true, "") => format!("{what}not trapped"),
            (true, trap) => format!("{what}{}", trap.trim_start_matches(", ")),
        }
    }

    /// Returns the row's name with its marks.
    pub fn marked_name(&self) -> String {
        format!("{} {}", self.name_without_sweeps(), self.marks.concat())
            .trim_end()
            .to_owned()
    }

    /// Puts a cell into column `place`, and returns whether it fits. A column may get several cells with the same text,
    /// because the delivery makes no difference to wake-ups without an interrupt.
    fn put_cell(&mut self, place: usize, cell: &'r Cell, text: String) -> bool {
        for (mark, is) in [
            (MARK, !cell.not_modelled.is_empty()),
            (COARSE, cell.counter_coarse.is_some()),
            (FEWER, cell.ran_out_of_time()),
            (MOVED, cell.core_clock_moved.is_some()),
        ] {
            if is && !self.marks.contains(&mark) {
                self.marks.push(mark);
            }
        }
        if self.cells[place].is_some() {
            return self.texts[place] == text;
        }
        self.cells[place] = Some(cell);
        self.texts[place] = text;
        true
    }
}

/// Rows and columns.
#[derive(Debug)]
pub struct Rows<'r> {
    /// Titles of the columns.
    pub titles: Vec<String>,
    /// The rows, in the order of their first cells.
    pub rows: Vec<Row<'r>>,
    /// All cells.
    pub cells: Vec<&'r Cell>,
    /// Whether the texts of cells include exits.
    pub exits: bool,
    /// Whether two different cells would share a row and a column, so that one of them would be hidden.
    pub hidden: bool,
    /// Titles of the swept dimensions.
    pub swept: Vec<&'static str>,
    /// Titles of swept dimensions that make no difference to any row.
    without_effect: Vec<&'static str>,
    /// The parts of a cell's name that are in its column.
    pub across: Across,
    /// The wait that all rows share, if it is not in their names.
    pub wait: Option<String>,
    varied: Vec<&'static Info>,
}

impl<'r> Rows<'r> {
    /// Lays out the cells of a workload in the first layout that hides no cell and fits into `width`, or else in one
    /// column.
    pub fn lay_out_to_fit(cells: &[&'r Cell], scale: Scale, width: usize) -> Self {
        let layers = cells.iter().any(|cell| cell.under != cells[0].under);
        let layouts = Across::ALL.into_iter();
        let layouts = layouts.filter(|across| layers || *across != Across::Deliveries);
        let mut layouts = layouts.map(|across| Self::lay_out(cells, scale, across));
        let fitting = layouts
            .find(|rows| rows.width() <= width && !rows.hidden && rows.titles.len() <= COLUMNS);
        fitting.unwrap_or_else(|| Self::lay_out(cells, scale, Across::Nothing))
    }

    fn lay_out(cells: &[&'r Cell], scale: Scale, across: Across) -> Self {
        let layout = Layout::for_cells(cells, across);
        let titles = distinct_texts(cells, |cell| layout.column_title(cell));
        let mut has_exits = cells.iter().filter(|cell| cell.has_exit_counts());
        let exits = has_exits.any(|cell| exits_per_sample(cell) > 0.0);
        let mut rows: Vec<Row<'r>> = Vec::new();
        let mut hidden = false;
        for cell in fullest_layer_first(cells, across) {
            let name = layout.row_name(cell);
            let column = layout.column_title(cell);
            let place = titles.iter().position(|title| *title == column);
            let row = rows
                .iter()
                .position(|row| (&row.what, &row.trap, &row.swept) == (&name.0, &name.1, &name.2));
            let row = row.unwrap_or_else(|| {
                rows.push(Row::new(name, titles.len()));
                rows.len() - 1
            });
            let text = cell_text(cell, scale.for_cell(cell), exits);
            hidden |= !rows[row].put_cell(place.unwrap_or(0), cell, text);
        }
        let mut rows = merge_equal_rows(rows);
        let mut swept: Vec<_> = layout.swept.iter().map(|info| value_title(info)).collect();
        let without_effect = drop_equal_sweeps(&mut swept, &mut rows);
        Self {
            titles,
            rows,
            cells: cells.to_vec(),
            exits,
            hidden,
            across,
            swept,
            without_effect,
            wait: layout
                .one_wait
                .then(|| words::wait_text(cells[0], layout.is_swept_key(LIMIT))),
            varied: layout.varied,
        }
    }

    /// Returns the width of the widest line, in characters.
    pub fn width(&self) -> usize {
        let chars = |text: &str| text.chars().count();
        let names = self.rows.iter().map(|row| chars(&row.marked_name()));
        let names = names.chain([chars(self.names_title())]).max().unwrap_or(0);
        let names = if self.common_name().is_some() {
            0
        } else {
            names
        };
        let swept = self.swept.iter().enumerate().map(|(place, title)| {
            let texts = self.rows.iter().map(|row| chars(&row.swept[place]));
            texts.chain([chars(title)]).max().unwrap_or(0) + 2
        });
        let columns = self.titles.iter().enumerate().map(|(place, title)| {
            let texts = self.rows.iter().map(|row| chars(&row.texts[place]));
            texts.chain([chars(title)]).max().unwrap_or(0) + 2
        });
        names + swept.sum::<usize>() + columns.sum::<usize>()
    }

    /// Returns the name that all rows share, if they differ only in swept values.
    pub fn common_name(&self) -> Option<String> {
        let first = self.rows.first().filter(|_| !self.swept.is_empty())?;
        let same = self
            .rows
            .iter()
            .all(|row| row.marked_name() == first.marked_name());
        same.then(|| first.marked_name())
    }

    /// Returns the title of the column with the rows' names.
    pub fn names_title(&self) -> &'static str {
        match (&self.wait, self.across) {
            (Some(_), Across::Nothing) => "IPI: trap",
            (Some(_), _) => "trap",
            (None, _) if self.cells[0].what.workload.is_a_run() => "program",
            (None, _) => words::SUBJECT,
        }
    }

    /// Returns at most `most` rows: the rows that a sentence may name, and then the first of the remaining rows.
    pub fn first_rows(&self, most: usize) -> Vec<&Row<'r>> {
        let named = answer::nameable_cells(self);
        let is_named = |row: &Row<'_>| {
            let mut cells = row.cells.iter().flatten().chain(&row.others);
            cells.any(|cell| named.iter().any(|one| std::ptr::eq(*one, *cell)))
        };
        let (named, others): (Vec<usize>, Vec<usize>) =
            (0..self.rows.len()).partition(|place| is_named(&self.rows[*place]));
        let mut places: Vec<usize> = named.into_iter().chain(others).take(most).collect();
        places.sort_unstable();
        places.into_iter().map(|place| &self.rows[place]).collect()
    }

    /// Whether the cells differ only in the wait, the trap, the way of waking and the receivers.
    pub fn differs_only_in_wakeups(&self) -> bool {
        let is_named = |key| key != LIMIT && NAMED.contains(&key) || key == SHAPE;
        self.varied.iter().all(|info| is_named(info.key))
    }

    /// Explains the titles of swept columns, rows that name no receiver, rows for any trap, and cells that send IPIs in
    /// spite of the title `no IPI`.
    pub fn explain_rows(&self) -> Option<String> {
        let explained = [
            (HOST_POLL, "limit of the hypervisor's poll"),
            (LIMIT, "limit of the guest's poll"),
            ("gap-us", "time between wake-ups"),
            ("event-stream-us", "period of the event stream"),
        ];
        let shown = explained.into_iter().filter_map(|(key, what)| {
            let title = value_title(Info::find(key)?);
            let is_shown = self.swept.contains(&title);
            is_shown.then(|| format!("{title}: {what}"))
        });
        let is_varied = self.varied.iter().any(|info| info.key == SHAPE);
        let has_unnamed = self
            .cells
            .iter()
            .any(|cell| words::receivers_text(cell).is_empty());
        let receiver =
            (is_varied && has_unnamed).then(|| "no receiver named: to one CPU".to_owned());
        let mut elided = self
            .cells
            .iter()
            .filter(|cell| cell.what.wake == Wake::Elide);
        let missed = elided.any(|cell| cell.sends_ipis());
        let missed =
            missed.then(|| "no IPI: unless the poll ended before the wake-up came".to_owned());
        let names_limit = self.across.names_limit_above();
        let limit = names_limit.then(|| self.poll_limit_text()).flatten();
        let traps = self.any_trap_note();
        let shown = shown
            .chain(limit)
            .chain(receiver)
            .chain(missed)
            .chain(traps);
        let shown: Vec<String> = shown.collect();
        (!shown.is_empty()).then(|| format!("{}.", shown.join("; ")))
    }

    /// Lists the traps that a row for any trap represents.
    fn any_trap_note(&self) -> Option<String> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.trap == ANY_TRAP)?;
        let mut traps: Vec<Trap> = self.cells.iter().map(|cell| cell.what.trap).collect();
        traps.sort_unstable();
        traps.dedup();
        let traps = traps.into_iter().map(|trap| match trap {
            Trap::None => "none",
            trap => words::trap_words(trap),
        });
        let traps: Vec<&str> = traps.collect();
        Some(format!("any trap: {}", traps.join(", ")))
    }

    /// Lists requested values that are the same in all cells.
    pub fn constants_text(&self) -> Option<String> {
        let first = self.cells[0];
        let same = DIMENSIONS.iter().filter(|info| {
            let varies = self.varied.iter().any(|other| other.key == info.key);
            let named = NAMED.contains(&info.key) || USUAL.contains(&info.key);
            !varies
                && !named
                && !first.dimension_text(info).is_empty()
                && !info.is_neutral(&first.what)
        });
        let same = same.map(|info| value_text(info, first));
        let above = self.wait.clone().into_iter().chain(self.common_name());
        let any = self.without_effect.iter();
        let any = any.map(|title| format!("{ANY} {title}"));
        let same: Vec<String> = above.chain(same).chain(any).collect();
        (!same.is_empty()).then(|| format!("In all of them: {}.", same.join(", ")))
    }

    /// Describes the limit of the guest's poll, if all polls have the same limit.
    fn poll_limit_text(&self) -> Option<String> {
        let info = Info::find(LIMIT)?;
        let mut polls = self
            .cells
            .iter()
            .filter(|cell| cell.what.wait == Wait::PollWfi);
        let first = polls.next()?;
        let is_constant = !self.varied.iter().any(|other| other.key == LIMIT);
        is_constant.then(|| format!("polls for at most {} us", first.dimension_text(info)))
    }

    /// Returns the swept dimension, and the medians by its values, if nothing else varies.
    pub fn sole_sweep(&self) -> Option<(&'static Info, Vec<(f64, f64)>)> {
        let [info] = self.varied.as_slice() else {
            return None;
        };
        let Show::Sweep { .. } = info.show else {
            return None;
        };
        let point = |cell: &&Cell| {
            Some((
                cell.dimension_text(info).parse().ok()?,
                cell.stats?.p50 as f64,
            ))
        };
        let mut points: Vec<(f64, f64)> = self.cells.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Some((info, points))
    }
}

/// Dimensions that are not mentioned if they are constant.
const USUAL: [&str; 3] = ["shape", "event-stream-us", "atomics"];

fn exits_per_sample(cell: &Cell) -> f64 {
    let causes = cell.exits_of_samples().keys();
    let each = causes.map(|cause| cell.exits_per_sample(cause));
    // The sum starts at 0, because the sum of an empty iterator would be -0.
    each.fold(0.0, |sum, exits| sum + exits)
}

/// Returns the exits per sample, rounded.
pub fn rounded_exits(cell: &Cell) -> f64 {
    (exits_per_sample(cell) * 100.0).round() / 100.0
}

/// Returns a cell's text: the median, the path in parentheses, and the exits.
fn cell_text(cell: &Cell, scale: Scale, exits: bool) -> String {
    let mut text = match (cell.stats, cell.stats_with_median()) {
        (Some(stats), _) if scale.of_host => scale.show_value(stats.min),
        (_, Some(stats)) => scale.show_percentile(stats.p50, stats.bounds()),
        _ => return "too few".into(),
    };
    if let Some(critical) = &cell.critical {
        text += &format!(" ({})", scale.show_value(critical.net.p50));
    }
    match (exits, cell.has_exit_counts()) {
        (true, true) => text += &format!(" / {}", rounded_exits(cell)),
        (true, false) => text += " / ?",
        (false, _) => {}
    }
    text
}

/// Removes the swept dimensions that make no difference to any row, and returns their titles.
fn drop_equal_sweeps(swept: &mut Vec<&'static str>, rows: &mut [Row<'_>]) -> Vec<&'static str> {
    let mut dropped = Vec::new();
    for place in (0..swept.len()).rev() {
        if rows.iter().all(|row| row.swept[place] == ANY) {
            dropped.push(swept.remove(place));
            for row in rows.iter_mut() {
                row.swept.remove(place);
            }
        }
    }
    dropped
}
