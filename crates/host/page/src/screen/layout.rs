// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides which parts of a cell's name are in its row, and which are in its column.

use std::collections::BTreeMap;

use plan::{DIMENSIONS, Deliver, Info, Show, Under, Wait, Wake};
use results::{Cell, keys};

use super::words;

/// The parts of a cell's name that are in the title of its column. The cell's row has the remaining parts of the
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// The hypervisor and the way of waking.
    Layers,
    /// The hypervisor and the delivery. For wake-ups without an interrupt, the row has the way of waking.
    Deliveries,
    /// The way of waking.
    Arrivals,
    /// The way of waking. The names of rows are shorter, because the limits of polls are shown elsewhere.
    Short,
    /// None: there is only one column.
    Nothing,
}

impl Across {
    /// All layouts, from the one with the fewest rows to the one with the narrowest rows.
    pub const ALL: [Self; 5] = [
        Self::Layers,
        Self::Deliveries,
        Self::Arrivals,
        Self::Short,
        Self::Nothing,
    ];

    fn has_layers(self) -> bool {
        matches!(self, Self::Layers | Self::Deliveries)
    }

    /// Whether the limit of the guest's poll is named above the table if all polls share it.
    pub fn names_limit_above(self) -> bool {
        !matches!(self, Self::Layers | Self::Arrivals)
    }

    /// Whether the limit of the hypervisor's poll has a column of values.
    fn has_host_poll(self) -> bool {
        matches!(self, Self::Short | Self::Nothing)
    }
}

/// Key of the dimension that limits the guest's poll.
pub const LIMIT: &str = "poll-limit-us";
/// Key of the dimension that limits the hypervisor's poll.
pub const HOST_POLL: &str = "host-poll-us";

/// Key of the dimension that selects the receivers.
pub const SHAPE: &str = "shape";

/// Dimensions that a row or a column describes in its own words.
pub const NAMED: [&str; 8] = [
    "workload", "wait", "trap", "deliver", "wake", LIMIT, HOST_POLL, "command",
];

/// A row's name in three parts: everything but the trap, the trap, and the values of the swept dimensions.
pub type Name = (String, String, Vec<String>);

/// Which parts of a cell's name are in its row, and which are in its column.
pub struct Layout {
    across: Across,
    /// Whether the cells ran under different hypervisors.
    layers: bool,
    /// Whether the delivery makes a difference to wake-ups without an interrupt.
    deliveries: bool,
    pub varied: Vec<&'static Info>,
    /// Dimensions whose values have a column of their own.
    pub swept: Vec<&'static Info>,
    /// Whether all cells wait in the same way, which is then named above the table.
    pub one_wait: bool,
}

impl Layout {
    pub fn for_cells(cells: &[&Cell], across: Across) -> Self {
        let layers = cells.iter().any(|cell| cell.under != cells[0].under);
        let varied = DIMENSIONS.iter().filter(|info| varies(info, cells));
        let varied: Vec<&Info> = varied.collect();
        // The dimension that varies slowest in a plan becomes the first column.
        let swept = varied.iter().rev().copied();
        let swept =
            swept.filter(|info| is_swept(info) || across.has_host_poll() && info.key == HOST_POLL);
        let swept: Vec<&Info> = swept.collect();
        Self {
            across,
            layers,
            deliveries: delivery_matters(cells),
            one_wait: !swept.is_empty() && !varied.iter().any(|info| info.key == "wait"),
            varied,
            swept,
        }
    }

    /// Returns the way of waking.
    fn arrival_text(&self, cell: &Cell) -> String {
        match self.deliveries && cell.what.wake == Wake::Elide {
            true => format!("no IPI ({})", cell.what.deliver),
            false if self.across.has_host_poll() && cell.what.wake == Wake::Elide => {
                "no IPI".to_owned()
            }
            false => words::arrival_text(cell).to_owned(),
        }
    }

    pub fn column_title(&self, cell: &Cell) -> String {
        let under = cell.under;
        match (self.across, self.layers) {
            (Across::Nothing, _) => "median".to_owned(),
            (Across::Layers, true) => format!("{under}: {}", self.arrival_text(cell)),
            (Across::Deliveries, true) => match (under, cell.what.deliver) {
                // Without a hypervisor, there is only one way of delivery.
                (Under::None, _) => under.to_string(),
                (_, Deliver::Inject) => format!("{under}: inject"),
                (_, Deliver::Direct) => format!("{under}: direct"),
            },
            (_, _) => self.arrival_text(cell),
        }
    }

    pub fn row_name(&self, cell: &Cell) -> Name {
        let swept = self
            .swept
            .iter()
            .map(|info| match cell.dimension_text(info).as_str() {
                "" => "-".into(),
                _ if !info.applies(&cell.what) => "-".into(),
                "0" if [LIMIT, HOST_POLL].contains(&info.key) => "-".into(),
                text => text.to_owned(),
            });
        let trap = words::trap_text(cell, self.is_swept_key(HOST_POLL));
        (self.wait_and_settings(cell), trap, swept.collect())
    }

    fn wait_and_settings(&self, cell: &Cell) -> String {
        let mut row = String::new();
        let others = self.varied.iter().filter(|info| !NAMED.contains(&info.key));
        for info in others.filter(|info| !is_swept(info)) {
            row = match info.key {
                SHAPE => words::receivers_text(cell).to_owned() + &row,
                _ => value_prefix(info, cell) + &row,
            };
        }
        if self.layers && !self.across.has_layers() {
            row += &format!("{}: ", cell.under);
        }
        if self.across == Across::Nothing {
            row += &format!("{}: ", self.arrival_text(cell));
        }
        if self.one_wait {
            return row;
        }
        row += &words::wait_text(
            cell,
            self.is_swept_key(LIMIT) || self.across.names_limit_above(),
        );
        match (self.across, cell.what.wake) {
            (Across::Deliveries, Wake::Elide) => row + ", no IPI",
            _ => row,
        }
    }

    pub fn is_swept_key(&self, key: &str) -> bool {
        self.swept.iter().any(|info| info.key == key)
    }
}

/// Whether the dimension has a column of values if it varies. The limit of the hypervisor's poll has none, because it
/// is part of the trap.
pub fn is_swept(info: &&Info) -> bool {
    matches!(info.show, Show::Sweep { .. }) && info.key != HOST_POLL
}

/// Whether the cells differ in the dimension, apart from differences that only follow from their way of waiting.
pub fn varies(info: &Info, cells: &[&Cell]) -> bool {
    if info.key == "wait" {
        return cells
            .iter()
            .any(|cell| cell.what.wait != cells[0].what.wait);
    }
    let mut firsts: Vec<(Wait, String)> = Vec::new();
    cells.iter().any(|cell| {
        let (wait, text) = (cell.what.wait, cell.dimension_text(info));
        match firsts.iter().find(|(other, _)| *other == wait) {
            Some((_, first)) => *first != text,
            None => {
                firsts.push((wait, text));
                false
            }
        }
    })
}

/// If a row compares hypervisors, moves the cells of the hypervisor that has the most cells to the front. So the rows
/// of this hypervisor include those of all others.
pub fn fullest_layer_first<'r>(cells: &[&'r Cell], across: Across) -> Vec<&'r Cell> {
    let mut cells = cells.to_vec();
    if across.has_layers() {
        let all = cells.clone();
        let of = |under| all.iter().filter(|cell| cell.under == under).count();
        cells.sort_by_key(|cell| std::cmp::Reverse(of(cell.under)));
    }
    cells
}

pub fn distinct_texts(cells: &[&Cell], of: impl Fn(&Cell) -> String) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for cell in cells {
        let text = of(cell);
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// Whether the delivery makes a difference to wake-ups without an interrupt.
fn delivery_matters(cells: &[&Cell]) -> bool {
    let mut medians = BTreeMap::new();
    let mut elided = cells.iter().filter(|cell| cell.what.wake == Wake::Elide);
    elided.any(|cell| {
        let others = keys().filter(|key| *key != "deliver");
        let others: Vec<_> = others.map(|key| cell.word(key)).collect();
        let median = cell.stats.map(|stats| stats.p50);
        *medians.entry(others).or_insert(median) != median
    })
}

/// Returns the title of a column of values.
pub fn value_title(info: &Info) -> &'static str {
    match info.show {
        Show::Sweep { column, .. } => column,
        _ => info.key,
    }
}

pub fn value_text(info: &Info, cell: &Cell) -> String {
    results::valued(info, &cell.dimension_text(info))
}

fn value_prefix(info: &Info, cell: &Cell) -> String {
    match cell.dimension_text(info).as_str() {
        "" => String::new(),
        _ => format!("{}, ", value_text(info, cell)),
    }
}
