// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--timings`: prints, at the end of a command, the wall-clock time of each of its parts.
//!
//! Parts may be nested. Time counts for the innermost part, so that the parts add up to
//! the whole. Parallel boots are counted together, each with its own time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::terminal::note;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Finds the emulator and asks it for its version.
    Emulator,
    /// Cargo, which builds the images or finds nothing to build.
    Cargo,
    /// Reads the built files and assembles the image.
    Pack,
    /// The emulator, from its start to its end.
    Boots,
    /// Reads records, and finds the path.
    Records,
    /// Writes results, spreadsheet and page.
    Written,
    /// Shows the table.
    Shown,
}

impl Part {
    const ALL: [Self; 7] = [
        Self::Emulator,
        Self::Cargo,
        Self::Pack,
        Self::Boots,
        Self::Records,
        Self::Written,
        Self::Shown,
    ];

    const fn description(self) -> &'static str {
        match self {
            Self::Emulator => "to find the emulator",
            Self::Cargo => "Cargo: to build the images, or to see that they are built",
            Self::Pack => "to read what was built and to pack it",
            Self::Boots => "the emulator, from its start to its end",
            Self::Records => "to make results of what the guest sent",
            Self::Written => "to write results, spreadsheet and page",
            Self::Shown => "to show the table",
        }
    }
}

/// Time of each part so far.
static TAKEN: Mutex<Vec<(Part, Duration)>> = Mutex::new(Vec::new());

thread_local! {
    /// Time of the parts nested in this thread's current part.
    static INSIDE: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

/// Does `work`, and counts its time for `part`.
pub fn time_part<T>(part: Part, work: impl FnOnce() -> T) -> T {
    let outside = INSIDE.replace(Duration::ZERO);
    let begun = Instant::now();
    let done = work();
    let whole = begun.elapsed();
    let own = whole.saturating_sub(INSIDE.get());
    INSIDE.set(outside + whole);
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    taken.push((part, own));
    done
}

/// Prints the time of a command that began at `begun`, part by part.
pub fn tell(begun: Instant) {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    time_lines(&taken, begun.elapsed())
        .iter()
        .for_each(|line| note!("{line}"));
}

fn time_lines(taken: &[(Part, Duration)], whole: Duration) -> Vec<String> {
    let line = |took: Duration, about: &str| format!("{:>8.3} s  {about}", took.as_secs_f64());
    let mut lines = vec![String::from("timings, by the clock:")];
    let mut known = Duration::ZERO;
    for part in Part::ALL {
        let of_part = taken.iter().filter(|(other, _)| *other == part);
        let each: Vec<Duration> = of_part.map(|&(_, took)| took).collect();
        let took: Duration = each.iter().sum();
        known += took;
        let times = match each.len() {
            0 => continue,
            1 => String::new(),
            times => format!(", {times} times"),
        };
        lines.push(line(took, &format!("{}{times}", part.description())));
    }
    // Parallel boots together take more time than the clock shows.
    let rest = whole.saturating_sub(known);
    lines.push(line(rest, "everything else"));
    lines.push(line(whole, "from command to end"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn time_within_a_part_is_that_of_the_inner_one() {
        let tick = Duration::from_millis(30);
        time_part(Part::Written, || {
            time_part(Part::Shown, || thread::sleep(tick));
        });
        let taken = TAKEN.lock().unwrap();
        let of = |wanted: Part| taken.iter().find(|(part, _)| *part == wanted).unwrap().1;
        // The outer part may have taken additional time, but it has not slept.
        assert!(of(Part::Shown) >= tick && taken[0].0 == Part::Shown);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        let second = Duration::from_secs(1);
        let taken = [
            (Part::Boots, second),
            (Part::Boots, second),
            (Part::Cargo, second),
        ];
        let lines = time_lines(&taken, 4 * second);
        assert_eq!(
            lines[1],
            "   1.000 s  Cargo: to build the images, or to see that they are built"
        );
        assert_eq!(
            lines[2],
            "   2.000 s  the emulator, from its start to its end, 2 times"
        );
        assert_eq!(lines[3], "   1.000 s  everything else");
        assert_eq!(lines[4], "   4.000 s  from command to end");
    }
}
