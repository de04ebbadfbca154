// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses a trace line by line. The `csv` crate counts lines wrongly after comments, and no value in a trace needs
//! quotes.

use cpuidle::{FOREVER, Wake};

use super::super::text::quote_shortened;
use super::{COLUMNS, Interval, LONGEST_NS, wake_word};

/// Number of mandatory columns.
const REQUIRED: usize = 3;

/// Whether the first line of a text names columns of a trace. Also true for a text without lines.
pub fn is_trace(text: &str) -> bool {
    let mut lines = lines(text);
    lines
        .next()
        .is_none_or(|(_, titles)| titles.iter().any(|title| COLUMNS.contains(title)))
}

/// Parses the intervals in a text; an error describes the mistake and its place.
pub fn parse(text: &str) -> Result<Vec<Interval>, String> {
    let mut lines = lines(text);
    let header = lines.next().map_or(Vec::new(), |(_, header)| header);
    let places = find_columns(&header)?;
    let mut intervals = Vec::new();
    for (number, values) in lines {
        let interval = parse_interval(&values, header.len(), &places);
        intervals.push(interval.map_err(|why| format!("line {number}: {why}"))?);
    }
    if intervals.is_empty() {
        return Err("there is no interval in it; a line has duration_ns,next_timer_ns,wake".into());
    }
    Ok(intervals)
}

/// Returns the values of each line that is neither blank nor a comment, with the line's number.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().map(str::trim).zip(1..);
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(line, number)| (number, line.split(',').map(str::trim).collect()))
}

/// For each column in [`COLUMNS`], the index of its value in a line; `None` if the first line does not name the column.
type Places = [Option<usize>; COLUMNS.len()];

fn find_columns(header: &[&str]) -> Result<Places, String> {
    let mut places: Places = [None; COLUMNS.len()];
    for (place, &title) in header.iter().enumerate() {
        let Some(column) = COLUMNS.iter().position(|&column| column == title) else {
            let known = COLUMNS.join(", ");
            return Err(format!(
                "the first line names column {}; there are {known}",
                quote_shortened(title)
            ));
        };
        if places[column].replace(place).is_some() {
            return Err(format!("the first line names column `{title}` twice"));
        }
    }
    match places[..REQUIRED].iter().position(Option::is_none) {
        Some(column) => Err(format!(
            "the first line does not name column `{}`",
            COLUMNS[column]
        )),
        None => Ok(places),
    }
}

fn parse_interval(values: &[&str], columns: usize, places: &Places) -> Result<Interval, String> {
    if values.len() != columns {
        let count = values.len();
        return Err(format!(
            "{count} values, and the first line names {columns} columns"
        ));
    }
    let value = |column: usize| places[column].map_or("", |place| values[place]);
    let time = |column: usize, min: u64| parse_int(COLUMNS[column], value(column), min, LONGEST_NS);
    let interval = Interval {
        duration_ns: time(0, 1)?,
        next_timer_ns: match value(1) {
            "none" => FOREVER,
            _ => time(1, 0).map_err(|why| format!("{why}, or `none`"))?,
        },
        wake: parse_wake(value(2))?,
        busy_ns: if value(3).is_empty() { 0 } else { time(3, 0)? },
        utilisation: match value(4) {
            "" => None,
            text => Some(parse_int(COLUMNS[4], text, 0, 1024)? as u32),
        },
        io: match value(5) {
            "" | "0" => false,
            "1" => true,
            other => return Err(format!("io: {} is neither 0 nor 1", quote_shortened(other))),
        },
    };
    let (duration_ns, timer_ns) = (interval.duration_ns, interval.next_timer_ns);
    if interval.wake == Wake::Timer && timer_ns > duration_ns {
        let due = if timer_ns == FOREVER {
            "never".into()
        } else {
            format!("after {timer_ns} ns")
        };
        return Err(format!(
            "a timer can't end it after {duration_ns} ns: it is due {due}"
        ));
    }
    Ok(interval)
}

fn parse_int(column: &str, text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| {
        format!(
            "{column}: {} is not a number from {min} to {max}",
            quote_shortened(text)
        )
    })
}

fn parse_wake(text: &str) -> Result<Wake, String> {
    let mut wakes = [Wake::Timer, Wake::Request, Wake::Interrupt].into_iter();
    let wake = wakes.find(|&wake| wake_word(wake) == text);
    wake.ok_or_else(|| {
        format!(
            "wake: {} is not one of timer, request, interrupt",
            quote_shortened(text)
        )
    })
}

#[cfg(test)]
mod tests;
