// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether a line of the console shows progress.
//!
//! A machine that hangs need not be silent: a guest may repeat a complaint, firmware
//! may retry the next boot for ever, and a watchdog may report the same stall with a new time. So a line counts only if
//! it has something new:
//!
//! - a record counts if its number is above the numbers of all earlier records, which a guest can't achieve by
//!   repetition. For a record `progress`, the work done must also have grown, because the guest sends this record
//!   whether or not there was progress;
//! - a boot stage counts if it is new;
//! - any other line counts if its words, without those that contain digits, were not printed before. A line that
//!   differs only in its numbers comes from a loop or a clock.
//!
//! A guest that is another kernel, and that prints nothing but changing numbers for minutes, needs a longer
//! `--timeout`.

use std::collections::HashSet;

use wire::Record;

/// Prefix of a boot stage.
const STAGE: &str = "rouse: stage ";
/// Number of lines to remember. If a console prints more different lines than this, they are noise, and further lines
/// do not count.
const MOST: usize = 20_000;

/// The records and lines that the console has printed so far.
#[derive(Debug, Default)]
pub struct Advance {
    /// Number of the next record.
    next: u64,
    /// Most work done so far.
    done: u64,
    said: HashSet<String>,
}

impl Advance {
    /// Returns whether a line of the console shows something new.
    pub fn is_new_line(&mut self, line: &str) -> bool {
        match Record::parse(line) {
            Ok(record) => self.is_new_record(&record),
            Err(wire::Damage::NotARecord) => self.has_new_words(line),
            // A damaged record may be an old one.
            Err(wire::Damage::Checksum | wire::Damage::Form) => false,
        }
    }

    fn is_new_record(&mut self, record: &Record<'_>) -> bool {
        if record.seq < self.next {
            return false;
        }
        self.next = record.seq + 1;
        if record.kind != "progress" {
            return true;
        }
        let done = record.number("done").unwrap_or(0);
        let more = done > self.done;
        self.done = self.done.max(done);
        more
    }

    fn has_new_words(&mut self, line: &str) -> bool {
        let words = match line.find(STAGE) {
            Some(at) => line[at..].to_owned(),
            None => plain_words(line),
        };
        self.said.len() < MOST && !words.is_empty() && self.said.insert(words)
    }
}

/// Returns the words of a line, without words that contain digits.
fn plain_words(line: &str) -> String {
    let words = line.split_whitespace();
    let plain = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    plain.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Line;

    fn record(seq: u64, kind: &str, done: u64) -> String {
        let line = Line::new(seq, kind).field("done", done);
        line.finish().unwrap().to_string()
    }

    #[test]
    fn records_count_by_their_number() {
        let mut advance = Advance::default();
        assert!(advance.is_new_line(&record(0, "boot", 0)));
        assert!(advance.is_new_line(&record(1, "machine", 0)));
        // The machine has started again.
        assert!(!advance.is_new_line(&record(0, "boot", 0)));
        assert!(!advance.is_new_line(&record(1, "machine", 0)));
        assert!(advance.is_new_line(&record(7, "note", 0)));
        // A damaged record does not count.
        assert!(!advance.is_new_line(&record(8, "note", 0).replace("note", "nose")));
    }

    #[test]
    fn progress_counts_by_what_is_done() {
        let mut advance = Advance::default();
        assert!(advance.is_new_line(&record(0, "progress", 3)));
        assert!(!advance.is_new_line(&record(1, "progress", 3)));
        assert!(!advance.is_new_line(&record(2, "progress", 2)));
        assert!(advance.is_new_line(&record(3, "progress", 4)));
    }

    #[test]
    fn what_is_said_again_with_other_numbers_does_not_count() {
        let mut advance = Advance::default();
        for (line, new) in [
            ("[    0.000000] Booting Linux on physical CPU 0x0", true),
            ("[    0.000000] Linux version 6.1.0", true),
            (
                "[   21.000000] rcu: rcu_sched self-detected stall on CPU",
                true,
            ),
            (
                "[   84.000000] rcu: rcu_sched self-detected stall on CPU",
                false,
            ),
            ("[   84.000001] rcu: 0-....: (21003 ticks this GP)", true),
            ("[  147.000001] rcu: 0-....: (36756 ticks this GP)", false),
            ("", false),
            ("rouse: stage cpus: 1 up", true),
            ("rouse: stage cpus: 2 up", true),
            ("rouse: stage cpus: 2 up", false),
        ] {
            assert_eq!(advance.is_new_line(line), new, "{line}");
        }
    }

    #[test]
    fn noise_counts_for_a_while_only() {
        let mut advance = Advance::default();
        let noise = (0..2 * MOST).map(|number| {
            let letter = |digit: usize| char::from(b'a' + (number / digit % 26) as u8);
            [1, 26, 676, 17_576].map(letter).iter().collect::<String>()
        });
        assert_eq!(noise.filter(|line| advance.is_new_line(line)).count(), MOST);
        assert!(advance.is_new_line(&record(0, "boot", 0)));
    }
}
