// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges whether a run succeeded.

use std::collections::BTreeSet;

use abi::{End, Ended};
use foreign::Quoted;
use plan::{CommandName, Under};
use results::Results;

use crate::boot::{Ending, Outcome, Stall, places};
use crate::options::Metric;
use shell::interrupt::Signal;

/// A failure: a word by which tests identify it, and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One of [`WORDS`].
    pub word: &'static str,
    pub why: String,
}

impl Failure {
    /// Returns an option that can prevent the failure, and its effect. All verbs that boot a machine have this option.
    pub fn remedy(&self) -> Option<&'static str> {
        match self.word {
            HANG => Some("--timeout gives it longer without progress"),
            OUT_OF_TIME => Some("--time-limit gives it longer"),
            _ => None,
        }
    }

    /// Returns the sentence of the failure, followed by the remedy, for verbs that have the remedy's options.
    pub fn told(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{}; {remedy}", self.why),
            None => self.why.clone(),
        }
    }

    /// Adds the possible reasons why the program on Linux has written nothing.
    pub fn of_silent_linux(mut self) -> Self {
        // For a refusal, the console already has the reason.
        if self.word == REFUSED {
            return self;
        }
        if self.word == RESET {
            self.why += "; Linux does so after a panic (panic=-1)";
        }
        self.why += "; no record has come: without a console (console=, or the tree's stdout-path) the kernel has nowhere to \
                     write them, and its initial RAM disk needs CONFIG_BLK_DEV_INITRD and /proc, /sys, devtmpfs";
        self
    }

    /// Whether the whole command must end, because every further boot would fail in the same way.
    pub fn ends_all(&self) -> bool {
        matches!(self.word, INTERRUPTED | OUT_OF_TIME)
    }

    /// Returns the failure for an error that prevents all further boots.
    pub fn broken(error: &anyhow::Error) -> Self {
        Self {
            word: BROKEN,
            why: format!("{error:#}"),
        }
    }

    /// Returns the failure for a boot that can't be tried because something is missing on this computer.
    pub fn lacking(error: &anyhow::Error) -> Self {
        Self {
            word: LACKING,
            why: format!("{error:#}"),
        }
    }

    /// Whether the boots are complete, so that the failure concerns only the figures.
    pub fn is_about_figures(&self) -> bool {
        matches!(self.word, OTHER_UNIT | NOTHING | DAMAGED | PROGRAM)
    }

    /// Whether the failure concerns the request, and not the run.
    pub fn is_bad_input(&self) -> bool {
        self.word == LACKING
    }

    /// Returns the failure for a signal between two boots.
    pub fn interrupted(signal: Signal) -> Self {
        Self {
            word: INTERRUPTED,
            why: format!("interrupted by {signal}"),
        }
    }
}

/// The word of a successful run.
pub const OK: &str = "ok";
/// Words for all outcomes of a run.
pub const WORDS: [&str; 20] = [
    OK,
    CRASH,
    LATE,
    HANG,
    OUT_OF_TIME,
    STOPPED,
    DIED,
    BROKEN,
    LACKING,
    EXIT,
    REFUSED,
    DAMAGED,
    OTHER_UNIT,
    INTERRUPTED,
    RESET,
    NO_CPU,
    NO_RESET,
    NOTHING,
    UNWRITTEN,
    PROGRAM,
];
const CRASH: &str = "crash";
const LATE: &str = "deadline";
const HANG: &str = "hang";
const OUT_OF_TIME: &str = "time-limit";
const STOPPED: &str = "stopped-early";
const DIED: &str = "emulator-died";
const BROKEN: &str = "broken";
const LACKING: &str = "lacking";
const EXIT: &str = "exit-status";
const REFUSED: &str = "refused";
const DAMAGED: &str = "damaged";
const OTHER_UNIT: &str = "other-unit";
const INTERRUPTED: &str = "interrupted";
const RESET: &str = "reset";
const NO_CPU: &str = "no-cpu";
const NO_RESET: &str = "no-reset";
const NOTHING: &str = "nothing-measured";
const UNWRITTEN: &str = "unwritten";
/// A program in the guest failed.
const PROGRAM: &str = "program";

/// Judges the end of a boot. `unfinished` tells whether the boot's last record is missing.
pub fn judge(outcome: &Outcome, under: Under, unfinished: bool) -> Option<Failure> {
    let stage = outcome.console.last_stage();
    let (word, why) = match &outcome.ending {
        Ending::Interrupted(signal) => (INTERRUPTED, format!("interrupted by {signal}; {stage}")),
        Ending::Crash => {
            let first = outcome.console.crash.first().map_or("", String::as_str);
            (CRASH, format!("crashed ({first}); {stage}"))
        }
        Ending::Late(why) => (LATE, format!("the deadline is over: {why}")),
        Ending::Refused(words) => (REFUSED, format!("refused: {words}")),
        Ending::Hang(stall) => {
            let (shown, places) = (stall_text(stall), places::name_places(&outcome.registers));
            (HANG, format!("{shown}{places}; {stage}"))
        }
        Ending::OutOfTime => (OUT_OF_TIME, format!("the time limit is over; {stage}")),
        Ending::Died(how, words) if words.is_empty() => (
            DIED,
            format!("the emulator {how} and printed nothing; {stage}"),
        ),
        Ending::Died(how, words) => (DIED, format!("the emulator {how} ({words}); {stage}")),
        Ending::Guest(ended) if ended.how != End::Off => judge_end(ended),
        Ending::Status(0) | Ending::Off | Ending::Reset | Ending::Stopped(_) | Ending::Guest(_)
            if unfinished =>
        {
            let said = match &outcome.ending {
                Ending::Reset => " (the machine was reset)".into(),
                Ending::Stopped(words) if !words.is_empty() => format!(" (its emulator: {words})"),
                _ => String::new(),
            };
            (STOPPED, format!("ended early{said}; {stage}"))
        }
        Ending::Reset => (RESET, reset_text("the guest")),
        Ending::Status(0) | Ending::Off | Ending::Stopped(_) | Ending::Guest(_) => return None,
        Ending::Status(status) => (EXIT, format!("ended with exit status {status}; {stage}")),
    };
    let hint = match word {
        HANG | OUT_OF_TIME | RESET | NO_CPU | STOPPED => outcome.console.hint(),
        _ => String::new(),
    };
    let why = format!("under {under}: {why}{hint}");
    Some(Failure { word, why })
}

/// Describes how long there was no progress.
fn stall_text(stall: &Stall) -> String {
    let (own, wall) = (stall.own.as_secs(), stall.wall.as_secs());
    if wall <= own + 1 {
        return format!("no progress for {own} s");
    }
    format!("no progress for {own} s of the emulator's own time ({wall} s by the clock)")
}

/// Judges the end of a guest that did not turn the machine off.
fn judge_end(ended: &Ended) -> (&'static str, String) {
    let Ended { vcpu, mpidr, .. } = ended;
    let by = format!("vCPU {vcpu} (MPIDR {mpidr:#x})");
    match ended.how {
        End::NoCpu => (
            NO_CPU,
            format!("{by} has turned itself off, and was the last one on: nothing runs any more"),
        ),
        End::Stopped => (
            NO_CPU,
            format!(
                "the hypervisor has stopped {by}, whose exception vector faults itself and which was the last one on: nothing \
                 runs any more; the console has the vector and both syndromes"
            ),
        ),
        End::Off | End::Reset => (RESET, reset_text(&by)),
    }
}

fn reset_text(by: &str) -> String {
    format!("{by} has reset the machine; --expect-reset if it should")
}

/// Like [`judge`], for a guest that should reset the machine.
pub fn judge_reset(outcome: &Outcome, under: Under, judged: Option<Failure>) -> Option<Failure> {
    match &outcome.ending {
        Ending::Reset => None,
        Ending::Guest(ended) if ended.how == End::Reset => None,
        _ => judged.or_else(|| {
            Some(Failure {
                word: NO_RESET,
                why: format!("under {under}: --expect-reset: the guest has ended without a reset"),
            })
        }),
    }
}

/// Judges the results of a run that asked for `metric`.
pub fn judge_results(results: &Results, metric: Metric) -> Option<Failure> {
    judge_records(results)
        .or_else(|| judge_unit(results, metric))
        .or_else(|| judge_programs(results))
        .or_else(|| judge_cells(results))
}

/// Returns the failure for a folder that `lacks` files, because they could not be written.
pub fn unwritten(lacks: String) -> Failure {
    Failure {
        word: UNWRITTEN,
        why: format!("{lacks}; make room, or name a folder elsewhere by --out"),
    }
}

/// Returns a failure if a program in the guest did not start, or failed. The reason ends with the program's last line.
fn judge_programs(results: &Results) -> Option<Failure> {
    let cells = results.cells.iter();
    let failed = cells.filter(|cell| cell.what.command != CommandName::NONE);
    let reasons = failed.filter_map(|cell| {
        let printed = cell.program.as_ref().map_or("", |program| &program.output);
        let last = printed.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map_or(String::new(), |line| {
            format!(" (`{}`)", Quoted::new(line.trim()))
        });
        // All other reasons to skip a cell begin with the name of a dimension.
        let why = cell.skipped.as_ref()?;
        let failed = why.starts_with(&format!("{}: ", cell.what.command));
        failed.then(|| format!("under {}, {why}{last}", cell.under))
    });
    let reasons: Vec<String> = reasons.collect();
    let why = format!("a program failed: {}", reasons.join("; "));
    (!reasons.is_empty()).then_some(Failure { word: PROGRAM, why })
}

/// Returns a failure if cells were requested, but the guest skipped all of them.
fn judge_cells(results: &Results) -> Option<Failure> {
    let cells = &results.cells;
    let reasons: Option<BTreeSet<&str>> =
        cells.iter().map(|cell| cell.skipped.as_deref()).collect();
    let reasons = reasons.filter(|reasons| !reasons.is_empty())?;
    let reasons: Vec<&str> = reasons.into_iter().collect();
    let why = format!("no cell was measured: {}", reasons.join("; "));
    Some(Failure { word: NOTHING, why })
}

/// Returns a failure if the guest could not count cycles and its values therefore have another unit.
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
    use std::time::Duration;

    fn outcome(ending: Ending) -> Outcome {
        Outcome {
            ending,
            console: Console::default(),
            registers: Vec::new(),
            said: Vec::new(),
            disturbed: None,
            went: None,
        }
    }

    fn guest(how: End) -> Ending {
        Ending::Guest(Ended {
            how,
            vcpu: 1,
            mpidr: 1,
        })
    }

    #[test]
    fn a_reset_is_well_only_where_it_is_expected() {
        for (ending, plain, expected) in [
            (End::Off, OK, NO_RESET),
            (End::Reset, RESET, OK),
            (End::NoCpu, NO_CPU, NO_CPU),
            (End::Stopped, NO_CPU, NO_CPU),
        ]
        .map(|(how, plain, expected)| (guest(how), plain, expected))
        .into_iter()
        .chain([(Ending::Off, OK, NO_RESET), (Ending::Reset, RESET, OK)])
        {
            assert_eq!(word(ending.clone(), false), plain);
            let outcome = outcome(ending);
            let judged = judge(&outcome, Under::Rouse, false);
            let judged = judge_reset(&outcome, Under::Rouse, judged);
            assert_eq!(judged.map_or(OK, |failure| failure.word), expected);
        }
        // The failure names the vCPU that turned itself off or was stopped.
        for (how, blamed) in [
            (End::NoCpu, "vCPU 1 (MPIDR 0x1) has turned itself off"),
            (
                End::Stopped,
                "the hypervisor has stopped vCPU 1 (MPIDR 0x1), whose exception vector",
            ),
        ] {
            let why = judged(guest(how), false).unwrap().why;
            assert!(why.contains(blamed), "{why}");
        }
        // Rouse's own guest must print records, no matter how the machine ended.
        for ending in [guest(End::Off), Ending::Off, Ending::Reset] {
            assert_eq!(word(ending, true), STOPPED);
        }
    }

    fn judged(ending: Ending, unfinished: bool) -> Option<Failure> {
        judge(&outcome(ending), Under::Rouse, unfinished)
    }

    fn word(ending: Ending, unfinished: bool) -> &'static str {
        judged(ending, unfinished).map_or(OK, |failure| failure.word)
    }

    fn hang(wall: u64) -> Ending {
        Ending::Hang(Stall {
            own: Duration::from_secs(8),
            wall: Duration::from_secs(wall),
        })
    }

    #[test]
    fn only_a_finished_boot_is_well() {
        assert_eq!(word(Ending::Status(0), false), OK);
        assert_eq!(word(Ending::Stopped(String::new()), false), OK);
        assert_eq!(word(Ending::Status(0), true), STOPPED);
        assert_eq!(word(Ending::Stopped("bad option".into()), true), STOPPED);
        assert_eq!(word(Ending::Status(3), false), EXIT);
        assert_eq!(word(hang(8), false), HANG);
        assert_eq!(word(Ending::OutOfTime, false), OUT_OF_TIME);
        assert_eq!(word(Ending::Crash, true), CRASH);
        let died = || Ending::Died("was killed by SIGSEGV".into(), String::new());
        // Another kernel need not print records, but its emulator must not crash.
        assert_eq!(word(died(), false), DIED);
        let why = judged(died(), true).unwrap().why;
        assert!(
            why.contains("killed by SIGSEGV and printed nothing"),
            "{why}"
        );
    }

    #[test]
    fn a_hang_says_how_long_by_which_clock_and_what_would_have_helped() {
        let on_time = judged(hang(8), true).unwrap();
        assert!(on_time.why.contains("no progress for 8 s;"), "{on_time:?}");
        let starved = judged(hang(600), true).unwrap().told();
        assert!(starved.contains("8 s of the emulator's own time (600 s by the clock)"));
        assert!(starved.ends_with("--timeout gives it longer without progress"));
        // Verbs without the option do not mention it.
        assert!(!on_time.why.contains("--timeout"));
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
    fn cells_that_were_all_skipped_are_a_failure_that_says_why() {
        let skipped = |why: Option<&str>| results::Cell {
            skipped: why.map(str::to_owned),
            ..Default::default()
        };
        let mut results = Results {
            cells: vec![skipped(Some("no WFET")), skipped(Some("no WFET"))],
            ..Default::default()
        };
        let failure = judge_results(&results, Metric::Insns).unwrap();
        assert_eq!(failure.word, NOTHING);
        assert_eq!(failure.why, "no cell was measured: no WFET");
        results.cells.push(skipped(None));
        assert_eq!(judge_results(&results, Metric::Insns), None);
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
