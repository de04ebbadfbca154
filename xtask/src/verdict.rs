// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what was asked for happened.

use std::time::Duration;

use plan::Under;

use crate::boot::{Ending, Outcome};
use crate::cli::Metric;
use crate::results::Results;

/// What went wrong: in a word, as tests expect it, and in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of [`WORDS`].
    pub word: &'static str,
    /// The sentence.
    pub why: String,
}

/// The word of a run that did what it should.
pub const OK: &str = "ok";
/// What can come of a run.
pub const WORDS: [&str; 9] = [
    OK,
    CRASH,
    HANG,
    STOPPED,
    EXIT,
    REFUSED,
    DAMAGED,
    OTHER_UNIT,
    INTERRUPTED,
];
const CRASH: &str = "crash";
const HANG: &str = "hang";
const STOPPED: &str = "stopped-early";
const EXIT: &str = "exit-status";
const REFUSED: &str = "refused";
const DAMAGED: &str = "damaged";
const OTHER_UNIT: &str = "other-unit";
const INTERRUPTED: &str = "interrupted";

/// What is wrong with how a boot ended. `unfinished`: its last record is due.
pub fn judge(
    outcome: &Outcome,
    under: Under,
    timeout: Duration,
    unfinished: bool,
) -> Option<Failure> {
    let stage = outcome.console.last_stage();
    let (word, why) = match &outcome.ending {
        Ending::Interrupted => (INTERRUPTED, format!("interrupted; {stage}")),
        Ending::Crash => {
            let first = outcome.console.crash.first().map_or("", String::as_str);
            (CRASH, format!("crashed ({first}); {stage}"))
        }
        Ending::Refused(words) => (REFUSED, format!("the machine is refused: {words}")),
        Ending::Hang => {
            let seconds = timeout.as_secs();
            let why = format!("no end after {seconds} s; {stage}; --timeout gives it longer");
            (HANG, why)
        }
        Ending::Status(0) | Ending::Stopped(_) if unfinished => {
            let said = match &outcome.ending {
                Ending::Stopped(words) if !words.is_empty() => format!(" (its emulator: {words})"),
                _ => String::new(),
            };
            (STOPPED, format!("ended early{said}; {stage}"))
        }
        Ending::Status(0) | Ending::Stopped(_) => return None,
        Ending::Status(status) => (EXIT, format!("ended with exit status {status}; {stage}")),
    };
    let why = format!("under {under}: {why}");
    Some(Failure { word, why })
}

/// What is wrong with what a run measured, of which `metric` was asked for.
pub fn judge_results(results: &Results, metric: Metric) -> Option<Failure> {
    judge_records(results).or_else(|| judge_unit(results, metric))
}

/// Cycles are the guest's to find; where it can't, its values are something else.
fn judge_unit(results: &Results, metric: Metric) -> Option<Failure> {
    let missed = metric == Metric::Cycles && !matches!(results.unit.as_str(), "cycles" | "");
    missed.then(|| Failure {
        word: OTHER_UNIT,
        why: format!(
            "--metric cycles: the guest found no cycles and counted {}; its note says why",
            results.unit
        ),
    })
}

fn judge_records(results: &Results) -> Option<Failure> {
    let why = match (results.damaged.len(), results.problems.as_slice()) {
        (0, []) => return None,
        (0, [problem]) => format!("{problem}; run again"),
        (0, problems) => format!("{} and more; run again", problems[0]),
        (1, _) => "1 cell is damaged and not shown; run again".into(),
        (cells, _) => format!("{cells} cells are damaged and not shown; run again"),
    };
    Some(Failure { word: DAMAGED, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Console;

    fn word(ending: Ending, unfinished: bool) -> &'static str {
        let outcome = Outcome {
            ending,
            console: Console::default(),
            registers: Vec::new(),
            disturbed: None,
        };
        let patience = Duration::from_secs(1);
        let failure = judge(&outcome, Under::Rouse, patience, unfinished);
        failure.map_or(OK, |failure| failure.word)
    }

    #[test]
    fn only_a_finished_boot_is_well() {
        assert_eq!(word(Ending::Status(0), false), OK);
        assert_eq!(word(Ending::Stopped(String::new()), false), OK);
        assert_eq!(word(Ending::Status(0), true), STOPPED);
        assert_eq!(word(Ending::Stopped("bad option".into()), true), STOPPED);
        assert_eq!(word(Ending::Status(3), false), EXIT);
        assert_eq!(word(Ending::Hang, false), HANG);
        assert_eq!(word(Ending::Crash, true), CRASH);
        assert_eq!(word(Ending::Interrupted, true), INTERRUPTED);
    }

    #[test]
    fn damage_is_a_failure() {
        let mut results = Results::default();
        let judge_results = |results: &Results| judge_results(results, Metric::Insns);
        assert_eq!(judge_results(&results), None);
        results
            .problems
            .push("record 3 is missing or damaged".into());
        assert_eq!(judge_results(&results).unwrap().word, DAMAGED);
    }
    #[test]
    fn cycles_that_were_not_found_are_a_failure() {
        let mut results = Results::default();
        for (unit, metric, word) in [
            ("cycles", Metric::Cycles, None),
            ("ticks", Metric::Cycles, Some(OTHER_UNIT)),
            ("ticks", Metric::Time, None),
        ] {
            results.unit = unit.into();
            let failure = judge_results(&results, metric);
            assert_eq!(failure.map(|failure| failure.word), word);
        }
    }
}
