// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sentences with the comparisons that matter most to readers.

use std::collections::BTreeMap;

use plan::{Deliver, Shape, Trap, Under, Wait, Wake, Workload};
use results::{Cell, Results};

use super::merging::ANY;
use super::rows::Rows;
use super::{rows, words};
use crate::columns::MARK;
use crate::scale::{Scale, cell_operation};
use crate::{knee, path};

/// Returns the sentences about the table `rows`.
pub fn table_sentences(rows: &Rows<'_>, results: &Results, scale: Scale) -> Vec<String> {
    let unit = scale.unit_of_cells(results, &rows.cells);
    // If values are times of a host's threads, ratios between them are only noise.
    if scale.of_host {
        return Vec::new();
    }
    let caught = poll_limit_sentences(rows, scale, unit);
    if !caught.is_empty() {
        return caught;
    }
    // If another dimension is swept, the first two cells found may differ in more than the wait.
    let special = match rows.differs_only_in_wakeups() {
        true => [
            delivery_sentence(rows, scale, unit),
            polling_sentence(rows, scale, unit),
            trapping_sentence(rows, scale),
        ],
        false => [None, None, None],
    };
    let special = special.into_iter().flatten();
    let special: Vec<String> = match compared_under(rows) {
        Some(under) if under != rows.cells[0].under => special
            .map(|text| format!("Under {under}: {}", uncapitalized(&text)))
            .collect(),
        _ => special.collect(),
    };
    let added = added_costs(rows, scale, unit);
    if !special.is_empty() {
        return special.into_iter().chain(added).collect();
    }
    if !added.is_empty() {
        return added;
    }
    let extremes = extremes_sentence(rows, scale, unit).into_iter();
    let timer = early_timer_sentence(rows, scale, unit);
    extremes.chain(timer).chain(knee_sentence(rows)).collect()
}

/// Maximum number of cells that a sentence names.
const NAMED: usize = 3;

/// Returns sentences on the cost that each hypervisor adds to the cells of the bare machine.
fn added_costs(rows: &Rows<'_>, scale: Scale, unit: &str) -> Vec<String> {
    let figure = |cell: &Cell| {
        let stats = cell.stats_with_median()?;
        Some((stats.p50, Some(stats.bounds())))
    };
    let mut unders: BTreeMap<Under, Vec<Addition<'_>>> = BTreeMap::new();
    let cells = rows.cells.iter();
    for cell in cells.filter(|cell| cell.under != Under::None) {
        let floor = rows
            .cells
            .iter()
            .find(|floor| cell.has_bare_machine_twin(floor));
        let Some((floor, own)) = floor.and_then(|floor| figure(floor).zip(figure(cell))) else {
            continue;
        };
        let shown = scale.for_cell(cell).show_difference(own, floor);
        unders.entry(cell.under).or_default().push(Addition {
            cell,
            ticks: i128::from(own.0) - i128::from(floor.0),
            shown: shown.trim_start_matches('+').to_owned(),
            floor: scale.show_figure(floor),
        });
    }
    // With only a few cells of pingpong, another sentence already covers them.
    let is_few = unders.values().all(|additions| additions.len() <= NAMED);
    if is_few && rows.cells[0].what.workload == Workload::Pingpong {
        return Vec::new();
    }
    let sentences = unders.into_iter().map(|(under, additions)| {
        let each = match additions.len() {
            ..=NAMED => {
                let each = additions.iter().map(Addition::addition_text);
                each.collect::<Vec<_>>().join(", ")
            }
            _ => addition_ranges(&additions).join("; "),
        };
        let table = rows.cells[0].table_key();
        format!("{table}: {under} adds, in {unit}, {each}.")
    });
    sentences.collect()
}

/// The difference between a cell and the same cell on the bare machine.
struct Addition<'r> {
    cell: &'r Cell,
    ticks: i128,
    shown: String,
    floor: String,
}

impl Addition<'_> {
    /// Describes how the cell waits, for a sentence that already names the trap.
    fn wait_text(&self) -> String {
        let poll = match self.cell.what.host_poll_us {
            0 => String::new(),
            limit => format!(", EL2 polls {limit} us"),
        };
        words::receivers_text(self.cell).to_owned() + &words::wait_text(self.cell, true) + &poll
    }

    fn addition_text(&self) -> String {
        let Self {
            cell, shown, floor, ..
        } = self;
        let direct = match cell.what.deliver {
            Deliver::Direct => ", direct",
            Deliver::Inject => "",
        };
        let name = words::wait_text(cell, false) + &words::trap_text(cell, false) + direct;
        format!("{shown} to the bare machine's {floor} ({name})")
    }
}

/// Returns a text for each way of waking, with the smallest and the largest addition, and how their cells wait.
fn addition_ranges(additions: &[Addition<'_>]) -> Vec<String> {
    let mut ways: Vec<(String, Vec<&Addition<'_>>)> = Vec::new();
    let sent = additions
        .iter()
        .filter(|one| one.cell.what.shape != Shape::Dry);
    for one in sent {
        let trapped = match words::trap_text(one.cell, true).as_str() {
            "" => "",
            _ => ", trapped",
        };
        let way = words::arrival_text(one.cell).to_owned() + trapped;
        match ways.iter_mut().find(|(other, _)| *other == way) {
            Some((_, all)) => all.push(one),
            None => ways.push((way, vec![one])),
        }
    }
    let shown = ways.into_iter().filter_map(|(way, all)| {
        let least = all.iter().min_by_key(|one| one.ticks)?;
        let most = all.iter().rev().max_by_key(|one| one.ticks)?;
        Some(match least.ticks == most.ticks {
            true => format!("{way}: {}", least.shown),
            false => format!(
                "{way}: {} ({}) to {} ({})",
                least.shown,
                least.wait_text(),
                most.shown,
                most.wait_text()
            ),
        })
    });
    shown.collect()
}

/// Names the value of a sweep after which further increases have less effect.
fn knee_sentence(rows: &Rows<'_>) -> Option<String> {
    let (info, points) = rows.sole_sweep()?;
    let at = knee::find_knee(&points)?;
    Some(format!("Knee of the curve over --{}: {at}.", info.key))
}

/// Smallest ratio of two medians that a sentence mentions.
const FAR: f64 = 1.05;

/// Makes the first letter lower-case, for a sentence after a colon.
pub fn uncapitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// Returns the hypervisor for which the sentences compare polls and traps: Rouse, or else the first one that injects
/// interrupts.
fn compared_under(rows: &Rows<'_>) -> Option<Under> {
    let injects = rows
        .cells
        .iter()
        .filter(|cell| cell.what.deliver == Deliver::Inject);
    let mut unders = injects.map(|cell| cell.under);
    let first = unders.next()?;
    Some(unders.find(|under| *under == Under::Rouse).unwrap_or(first))
}

/// Returns the first cell with wait `wait`, trap `trap`, wake-ups `wake`, and injected interrupts.
fn find_cell<'r>(rows: &Rows<'r>, wait: Wait, trap: Trap, wake: Wake) -> Option<&'r Cell> {
    find_delivered(rows, Deliver::Inject, wait, trap, wake)
}

fn find_delivered<'r>(
    rows: &Rows<'r>,
    deliver: Deliver,
    wait: Wait,
    trap: Trap,
    wake: Wake,
) -> Option<&'r Cell> {
    let under = compared_under(rows);
    let mut cells = rows.cells.iter();
    let found = cells.find(|cell| {
        let what = &cell.what;
        (what.wait, what.trap, what.wake) == (wait, trap, wake)
            && what.deliver == deliver
            && what.host_poll_us == 0
            && words::receivers_text(cell).is_empty()
            && Some(cell.under) == under
    });
    found.copied()
}

/// Returns the mark of a figure that depends on a property that the machine does not model.
fn star_mark(cell: &Cell) -> &'static str {
    match cell.not_modelled.is_empty() {
        true => "",
        false => MARK,
    }
}

fn nonzero_median(cell: &Cell) -> Option<u64> {
    let stats = cell.stats_with_median();
    stats.map(|stats| stats.p50).filter(|median| *median > 0)
}

/// Compares an injected interrupt with a direct one, for a CPU in WFI.
fn delivery_sentence(rows: &Rows<'_>, scale: Scale, unit: &str) -> Option<String> {
    let of = |deliver| find_delivered(rows, deliver, Wait::Wfi, Trap::None, Wake::Ipi);
    let (injected, direct) = (of(Deliver::Inject)?, of(Deliver::Direct)?);
    let more = nonzero_median(injected)?.checked_sub(nonzero_median(direct)?)?;
    let (what, operation) = match injected.what.workload.wakeups() {
        1 => ("An injected IPI", ""),
        _ => ("Injected IPIs", " a round trip"),
    };
    Some(format!(
        "{what} to a CPU in WFI: {} {unit}{operation} more than direct.",
        scale.show_value(more)
    ))
}

/// Compares a polled wake-up without an interrupt with a wake-up from a trapped WFI.
fn polling_sentence(rows: &Rows<'_>, scale: Scale, unit: &str) -> Option<String> {
    let polled = find_cell(rows, Wait::PollWfi, Trap::None, Wake::Elide)?;
    // If the poll ended before the wake-up, an IPI was sent, so the wake-up was not polled.
    if polled.sends_ipis() {
        return None;
    }
    let (trapped, name) = match find_cell(rows, Wait::Wfi, Trap::Wfi, Wake::Ipi) {
        Some(cell) => (cell, "a trapped WFI"),
        None => (find_cell(rows, Wait::Wfi, Trap::None, Wake::Ipi)?, "WFI"),
    };
    let (less, more) = (nonzero_median(polled)?, nonzero_median(trapped)?);
    let ipis = match polled.what.workload.wakeups() {
        1 => "an injected IPI",
        _ => "injected IPIs",
    };
    let sent = find_cell(rows, Wait::PollWfi, Trap::None, Wake::Ipi).and_then(nonzero_median);
    let sent = sent.map(|sent| {
        format!(
            " Polled with {ipis} all the same, it takes {}.",
            scale.show_value(sent)
        )
    });
    let star = star_mark(polled);
    Some(format!(
        "Polled without IPI, a {} takes {} {unit}{star}; with {ipis} out of {name} it takes {}: {:.1} times as many.{}",
        // Calls to all other CPUs have their own rows.
        match polled.what.workload {
            Workload::Ipi => "call to one CPU",
            _ => cell_operation(polled),
        },
        scale.show_value(less),
        scale.show_value(more),
        more as f64 / less as f64,
        sent.unwrap_or_default()
    ))
}

/// For each gap between wake-ups that has several poll limits, names the lowest limit whose poll catches the wake-up.
fn poll_limit_sentences(rows: &Rows<'_>, scale: Scale, unit: &str) -> Vec<String> {
    let sentences = cells_by_gap(rows).into_iter().filter_map(|(gap, cells)| {
        let shown =
            |cell: &Cell| Some((cell.what.poll_limit_us, scale.show_value(nonzero_median(cell)?) + star_mark(cell)));
        let [missed, caught] = cells_at_edge(&cells).map(|cell| cell.map(shown));
        // All these cells have the first cell's delivery and trap.
        let trap = match cells.first()?.what.trap {
            Trap::None => "",
            _ => ", trapped",
        };
        let begin = match gap {
            0 => format!("Without IPI{trap}: a poll"),
            _ => format!("Wake-ups {gap} us apart, without IPI{trap}: a poll"),
        };
        Some(match (caught, missed) {
            (Some(caught), Some(missed)) => {
                let ((limit, cost), (shorter, more)) = (caught?, missed?);
                format!(
                    "{begin} of {limit} us catches the wake-up ({cost} {unit}), one of {shorter} us misses it ({more}{}).",
                    caught_answer_note(cells_at_edge(&cells)[0])
                )
            }
            (Some(caught), None) => {
                let (limit, cost) = caught?;
                format!("{begin} of {limit} us, the shortest here, catches the wake-up ({cost} {unit}).")
            }
            (None, Some(missed)) => {
                let (limit, cost) = missed?;
                format!("{begin} of {limit} us, the longest here, ends before the wake-up ({cost} {unit}).")
            }
            (None, None) => return None,
        })
    });
    let sentences: Vec<String> = sentences.collect();
    let paused = cells_by_gap(rows).into_keys().any(|gap| gap > 0) && !sentences.is_empty();
    let free = "Polling during the gap is in no sample, so a longer limit looks free here.";
    sentences
        .into_iter()
        .chain(paused.then(|| free.to_owned()))
        .collect()
}

/// Explains the cost of a round trip in which only one of the two wake-ups was missed. The poll for the answer was
/// caught, because the answer comes at once.
fn caught_answer_note(missed: Option<&Cell>) -> &'static str {
    let half = |cell: &&Cell| {
        let sent = cell.per_sample(&cell.ipis, "sent");
        cell.what.workload.wakeups() == 2 && (0.5..1.5).contains(&sent)
    };
    match missed.filter(half) {
        Some(_) => ": the answer, which comes at once, is still caught",
        None => "",
    }
}

/// Returns the polled cells for each gap between wake-ups that has several poll limits, sorted by limit.
fn cells_by_gap<'r>(rows: &Rows<'r>) -> BTreeMap<u32, Vec<&'r Cell>> {
    let polled = rows.cells.iter().filter(|cell| {
        let what = &cell.what;
        what.wait == Wait::PollWfi && what.wake == Wake::Elide && what.host_poll_us == 0
    });
    let mut gaps: BTreeMap<u32, Vec<&Cell>> = BTreeMap::new();
    for cell in polled {
        let (gap, limit) = (cell.what.gap_us, cell.what.poll_limit_us);
        let of_gap = gaps.entry(gap).or_default();
        if of_gap.iter().all(|other| other.what.poll_limit_us != limit) {
            of_gap.push(cell);
        }
    }
    gaps.retain(|_, cells| cells.len() > 1);
    for cells in gaps.values_mut() {
        cells.sort_by_key(|cell| cell.what.poll_limit_us);
    }
    gaps
}

/// Returns the cell of the highest limit that does not catch the wake-up, and the cell of the lowest limit that does.
fn cells_at_edge<'r>(cells: &[&'r Cell]) -> [Option<&'r Cell>; 2] {
    let is_caught = |cell: &&Cell| !cell.sends_ipis();
    let least = cells.iter().position(is_caught);
    let before = least.unwrap_or(cells.len()).checked_sub(1);
    [before, least].map(|place| place.map(|place| cells[place]))
}

/// Returns the cells that a sentence may name: the cells with the smallest and the largest median, and the cells next
/// to the limit at which polls begin to catch the wake-up.
pub fn nameable_cells<'r>(rows: &Rows<'r>) -> Vec<&'r Cell> {
    let cells = rows.rows.iter().flat_map(|row| row.cells.iter().flatten());
    let medians = cells.filter_map(|cell| Some((nonzero_median(cell)?, *cell)));
    let medians: Vec<(u64, &Cell)> = medians.collect();
    let least = medians.iter().min_by_key(|one| one.0);
    // Of equal medians, the first is taken.
    let highest = medians.iter().rev().max_by_key(|one| one.0);
    let extremes = least.into_iter().chain(highest).map(|one| one.1);
    let edges = cells_by_gap(rows)
        .into_values()
        .flat_map(|cells| cells_at_edge(&cells));
    extremes.chain(edges.flatten()).collect()
}

/// Describes the cost of trapping WFI, and how much of that cost arises before the woken task runs.
fn trapping_sentence(rows: &Rows<'_>, scale: Scale) -> Option<String> {
    let trapped = find_cell(rows, Wait::Wfi, Trap::Wfi, Wake::Ipi)?;
    let plain = find_cell(rows, Wait::Wfi, Trap::None, Wake::Ipi)?;
    // Without paths, the sentence would only repeat numbers of the table.
    if !path::all_have_paths(&[trapped, plain]) {
        return None;
    }
    let (with, without) = (nonzero_median(trapped)?, nonzero_median(plain)?);
    let adds = match with.checked_sub(without) {
        Some(more) => format!(
            "Where IPIs are injected, trapping WFI adds {}",
            scale.show_value(more)
        ),
        None => format!(
            "Where IPIs are injected, trapping WFI saves {}",
            scale.show_value(without - with)
        ),
    };
    let direct = |trap| {
        nonzero_median(find_delivered(
            rows,
            Deliver::Direct,
            Wait::Wfi,
            trap,
            Wake::Ipi,
        )?)
    };
    let direct = match (direct(Trap::Wfi), direct(Trap::None)) {
        (Some(with), Some(without)) if with > without => {
            format!(
                " Where they are direct, it adds {}.",
                scale.show_value(with - without)
            )
        }
        _ => String::new(),
    };
    let net = |cell: &Cell| {
        cell.critical
            .as_ref()
            .map_or(0, |critical| critical.net.p50)
    };
    Some(match net(plain).checked_sub(net(trapped)) {
        Some(fewer @ 1..) => format!(
            "{adds}, but {fewer} fewer lie before the woken task: EL2 is entered already when the IPI comes.{direct}"
        ),
        _ => format!(
            "{adds}, {} of them before the woken task.{direct}",
            net(trapped) - net(plain)
        ),
    })
}

/// Explains why a timer wakes a CPU earlier if WFI is trapped.
fn early_timer_sentence(table: &Rows<'_>, scale: Scale, unit: &str) -> Option<String> {
    let of = |trap| {
        let mut cells = table.cells.iter().filter(|cell| {
            let what = &cell.what;
            (what.workload, what.trap, cell.under) == (Workload::LinuxTimer, trap, Under::Rouse)
        });
        cells.next().filter(|_| cells.next().is_none())
    };
    let (trapped, plain) = (of(Trap::Wfi)?, of(Trap::None)?);
    let figure = |cell: &Cell| Some((cell.stats_with_median()?.p50, Some(cell.stats?.bounds())));
    let (late, early) = (figure(plain)?, figure(trapped)?);
    if early.0 >= late.0 {
        return None;
    }
    let earlier = scale.for_cell(plain).show_difference(late, early);
    let exits = |cell: &Cell| rows::rounded_exits(cell);
    Some(format!(
        "With WFI trapped, the timer wakes {} {unit} earlier: EL2 waits in the guest's place, so that it is entered already when the \
         timer expires ({} exits, not {}).",
        earlier.trim_start_matches('+'),
        exits(trapped),
        exits(plain)
    ))
}

/// Names the cells with the smallest and the largest median.
fn extremes_sentence(rows: &Rows<'_>, scale: Scale, unit: &str) -> Option<String> {
    let all = rows.rows.iter().flat_map(|row| {
        let cells = row.cells.iter().zip(&rows.titles);
        // In cells without an interrupt, no CPU is woken.
        let is_sent = |cell: &Cell| cell.what.shape != Shape::Dry;
        let cells = cells.filter(move |(cell, _)| cell.is_none_or(is_sent));
        cells.filter_map(move |(cell, title)| {
            let swept = rows.swept.iter().zip(&row.swept);
            let swept = swept.filter(|(_, value)| ![ANY, "-"].contains(&value.as_str()));
            let swept = swept.map(|(title, value)| format!("; {title} {value} us"));
            let name = row.marked_name() + &swept.collect::<String>();
            let name = match rows.titles.len() {
                1 => name,
                _ => format!("{name}; {title}"),
            };
            Some((nonzero_median((*cell)?)?, name))
        })
    });
    let all: Vec<_> = all.collect();
    let least = all.iter().min_by_key(|(median, ..)| *median)?;
    let most = all.iter().max_by_key(|(median, ..)| *median)?;
    if (most.0 as f64) < least.0 as f64 * FAR {
        return None;
    }
    Some(format!(
        "{}: least {} {unit} ({}), most {} ({}), {:.1} times as many.",
        rows.cells[0].table_key(),
        scale.show_value(least.0),
        least.1,
        scale.show_value(most.0),
        most.1,
        most.0 as f64 / least.0 as f64
    ))
}
