// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one line of a terminal that all boots of this process share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::time;
use crate::terminal;

/// Running boots, in the order of their starts.
static BOOTS: Mutex<Vec<State>> = Mutex::new(Vec::new());

/// The last shown progress of a boot.
#[derive(Debug)]
struct State {
    id: u64,
    start: Instant,
    title: String,
    done: (u64, u64),
    left: Option<u64>,
}

/// A boot's part of the line, until it is dropped.
#[derive(Debug)]
pub struct Boot(u64);

impl Default for Boot {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        lock_boots().push(State {
            id,
            start: Instant::now(),
            title: String::new(),
            done: (0, 0),
            left: None,
        });
        Self(id)
    }
}

impl Boot {
    /// Shows this boot's progress, together with the progress of the other boots.
    pub fn show(&mut self, title: &str, what: &str, done: (u64, u64), left: Option<u64>) {
        let mut boots = lock_boots();
        if let Some(state) = boots.iter_mut().find(|state| state.id == self.0) {
            title.clone_into(&mut state.title);
            (state.done, state.left) = (done, left);
        }
        let line = make_line(&boots, what);
        // On some terminals, a character in the last column moves the cursor.
        let width = terminal::width_aside().map_or(79, |width| width.saturating_sub(1));
        terminal::rewrite_line(&line.fit_width(width));
    }
}

impl Drop for Boot {
    fn drop(&mut self) {
        lock_boots().retain(|state| state.id != self.0);
        terminal::clear_line();
    }
}

/// Locks the list of boots. Ignores poisoning, which can't leave the list in a bad state.
fn lock_boots() -> MutexGuard<'static, Vec<State>> {
    BOOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the line for `boots`; `what` is the current step of one of them.
fn make_line(boots: &[State], what: &str) -> Line {
    // A boot without a report has no title yet.
    let known: Vec<&State> = boots.iter().filter(|boot| !boot.title.is_empty()).collect();
    let titles: Vec<&str> = known.iter().map(|boot| boot.title.as_str()).collect();
    let head = match titles.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("{}, {} boots", common_words(all), all.len()),
    };
    let sum = |of: fn(&(u64, u64)) -> u64| known.iter().map(|boot| of(&boot.done)).sum();
    Line {
        head,
        done: (sum(|done| done.0), sum(|done| done.1)),
        what: what.into(),
        seconds: boots
            .iter()
            .map(|boot| boot.start.elapsed().as_secs())
            .max()
            .unwrap_or(0),
        left: known.iter().filter_map(|boot| boot.left).max(),
    }
}

/// Returns the words with which all titles begin.
fn common_words(titles: &[&str]) -> String {
    let words = |title: &str| -> Vec<String> {
        let words = title.split(' ').map(|word| word.trim_end_matches(','));
        words.map(str::to_owned).collect()
    };
    let Some((first, others)) = titles.split_first() else {
        return String::new();
    };
    let mut same = words(first);
    for other in others {
        let equal = same.iter().zip(words(other)).take_while(|(a, b)| *a == b);
        let equal = equal.count();
        same.truncate(equal);
    }
    // A word that only introduces the next one carries no information.
    while same.len() > 1
        && ["under", "part", "run", "atomics"].contains(&&**same.last().unwrap_or(&String::new()))
    {
        same.pop();
    }
    same.join(" ")
}

/// A line of progress.
#[derive(Debug)]
pub struct Line {
    pub head: String,
    /// Number of finished parts, and total number of parts.
    pub done: (u64, u64),
    /// The cell, or the stage of the boot.
    pub what: String,
    pub seconds: u64,
    /// Seconds left.
    pub left: Option<u64>,
}

impl Line {
    /// Returns the texts before and after the cell.
    fn texts_around_cell(&self) -> (String, String) {
        let done = match self.done {
            (_, 0) | (0, _) => String::new(),
            (done, of) => format!("{done}/{of} "),
        };
        let left = self.left.map(|left| format!(", about {} left", time(left)));
        let left = left.unwrap_or_default();
        (
            format!("{}: {done}", self.head),
            format!(", {} s{left}", self.seconds),
        )
    }

    /// Returns the line with at most `width` characters. Shortens the cell's text first.
    fn fit_width(&self, width: usize) -> String {
        let (before, after) = self.texts_around_cell();
        let count = |text: &str| text.chars().count();
        let room = width.saturating_sub(count(&before) + count(&after));
        cut(&format!("{before}{}{after}", cut(&self.what, room)), width)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.texts_around_cell();
        write!(f, "{before}{}{after}", self.what)
    }
}

/// Returns `text` with at most `width` characters.
fn cut(text: &str, width: usize) -> String {
    const MORE: &str = "...";
    match text.chars().nth(width) {
        None => text.into(),
        Some(_) => {
            let kept = text.chars().take(width.saturating_sub(MORE.len()));
            kept.chain(MORE.chars()).take(width).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(title: &str, done: u64, left: u64) -> State {
        State {
            id: 0,
            start: Instant::now(),
            title: title.into(),
            done: (done, 132),
            left: Some(left),
        }
    }

    #[test]
    fn boots_share_one_line() {
        let one = state("virt under rouse, part 1/2", 16, 9);
        let other = state("virt under rouse, part 2/2", 20, 12);
        let alone = make_line(std::slice::from_ref(&one), "wfi inject");
        assert_eq!(
            alone.to_string(),
            "virt under rouse, part 1/2: 16/132 wfi inject, 0 s, about 9 s left"
        );
        let both = make_line(&[one, other], "wfi inject");
        assert_eq!(
            both.to_string(),
            "virt under rouse, 2 boots: 36/264 wfi inject, 0 s, about 12 s left"
        );
        let of = common_words(&["virt under none", "virt under rouse, part 1/2"]);
        assert_eq!(of, "virt");
    }

    #[test]
    fn a_line_is_no_wider_than_the_terminal() {
        let line = make_line(
            &[state("virt under rouse", 16, 9)],
            "wfi inject, gap 100 us",
        );
        let whole = line.to_string();
        assert_eq!(line.fit_width(200), whole);
        for width in 0..whole.len() {
            let fitted = line.fit_width(width);
            assert!(fitted.chars().count() <= width, "{width}: {fitted}");
        }
        // If there is no room for both, the end of the name is cut, and not the time.
        let cut = line.fit_width(whole.len() - 8);
        assert_eq!(
            cut,
            "virt under rouse: 16/132 wfi inject,..., 0 s, about 9 s left"
        );
    }
}
