// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `soak`: boots in which all operations happen at random, until the time is up or a round fails.
//!
//! Each boot is a round with its own seed, and ends by itself after a number of wake-ups. The guest defines the
//! operations and the invariants (`guest-kernel-shim/trials/src/soak.rs`).

mod options;

pub use options::{SoakArgs, SoakMetric};

mod request;
mod summary;

use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use plan::Under;

use request::{Request, Round};
use running::boot::{Boots, Launch, Outcome, Ready, Show, TextFiles, Turns};
use running::emulator::Emulator;
use running::images::Built;
use running::verdict::{self, Failure};
use shell::folder::Folder;
use shell::log::Log;
use shell::progress::Progress;
use shell::side_by_side;
use shell::terminal::{print_lines, say};
use summary::{Done, Summary};

/// Runs `cargo xtask dev soak`.
pub fn run(args: &SoakArgs) -> Result<()> {
    let request = Request::new(args)?;
    let first = request.job(&request.round(0))?;
    first.board().qemu("soak")?;
    let folder = Folder::claim(args.out.as_deref(), &format!("{}-soak", first.board().name))?;
    let Ready { emulator, built } = Ready::make(&first)?;
    let ready = (&emulator, &built);
    let jobs = args.jobs.unwrap_or_else(|| first.emulators());
    let mut soak = Soak {
        log: folder.log()?,
        kept: TextFiles::new(&emulator.shown()),
        summary: Summary::new(&request, &emulator.shown()),
    };
    say!(
        "seeds from {}; Ctrl-C ends it and keeps the results so far",
        request.seed
    );
    let end = soak.run_rounds(&request, ready, jobs);
    soak.close(&request, end, folder)
}

enum End {
    /// The time is up, or no round has ended the soak so far.
    Time,
    /// A signal or the time limit ended the soak; no round failed.
    Cut(Failure),
    /// A round failed.
    Failed(Round, Failure),
}

/// The rounds so far.
struct Soak {
    log: Log,
    kept: TextFiles,
    summary: Summary,
}

struct Left {
    outcome: Outcome,
    kept: TextFiles,
    took: Duration,
}

impl Soak {
    /// Boots rounds, `jobs` at a time, until the time is up, and then lets the running rounds end. Boots at least one
    /// round.
    fn run_rounds(
        &mut self,
        request: &Request,
        ready: (&Emulator, &Built),
        jobs: NonZeroUsize,
    ) -> Result<End> {
        let start = Instant::now();
        let due = |&number: &usize| number == 0 || request.is_next_due(number, start.elapsed());
        let Self { log, kept, summary } = self;
        let turns = Turns::new(log);
        let mut end = Ok(End::Time);
        side_by_side::in_order(
            (0..).take_while(due),
            jobs,
            |place, number| {
                let round = request.round(number);
                let left = boot(request, &round, ready, turns.writer(place), number);
                (number, round, left)
            },
            |(number, round, left)| {
                // An error can't be lost here: writing to a `Log` never returns one.
                let _ = turns.next();
                let this = left.map(|left| {
                    kept.append(&left.kept);
                    summary.add(print_round(&round, number, &left));
                    end_of_round(round, left.outcome)
                });
                if matches!(this, Ok(End::Time)) {
                    return ControlFlow::Continue(());
                }
                // The first round that ends the soak gives the reason.
                if matches!(end, Ok(End::Time)) {
                    end = this;
                }
                ControlFlow::Break(())
            },
        );
        end
    }

    /// Writes the folder, and reports how the soak ended.
    fn close(mut self, request: &Request, end: Result<End>, mut folder: Folder) -> Result<()> {
        let again = |round: &Round| request.command(round);
        match &end {
            Ok(End::Failed(round, failure)) => {
                self.summary.violate(round, &failure.why, &again(round));
            }
            Ok(End::Time) => {}
            // A round that could not be booted is an interruption, not a violation.
            Ok(End::Cut(_)) | Err(_) => self.summary.set_interrupted(),
        }
        self.kept.write(&mut folder);
        folder.write("soak.json", &self.summary.to_json()?);
        let closed = folder.close(Some(&self.log));
        let place = &closed.place;
        say!("");
        print_lines(self.summary.lines());
        say!("summary: {place}");
        match end? {
            End::Time => closed.complete().map(drop),
            End::Cut(failure) => bail!("{}; no round failed until then", failure.told()),
            End::Failed(round, failure) => bail!(
                "{}; the console's log is {}; again: {}",
                failure.told(),
                self.log.place(place),
                again(&round)
            ),
        }
    }
}

/// Boots round `number`, alone or at the same time as other rounds.
fn boot(
    request: &Request,
    round: &Round,
    (emulator, built): (&Emulator, &Built),
    log: impl Write,
    number: usize,
) -> Result<Left> {
    let progress = Progress::new(format!("round {}: {round}", number + 1));
    let begun = Instant::now();
    let job = request.job(round)?;
    let mut boots = Boots::part(emulator, built, Show::Dumps, log);
    let outcome = boots.boot(Launch {
        variant: job.variant(),
        job: &job,
        title: round.to_string(),
        progress: progress.with_rate("wake-ups"),
        recorder: None,
    })?;
    Ok(Left {
        outcome,
        kept: boots.kept,
        took: begun.elapsed(),
    })
}

/// Prints the counts of a round, whether or not it ended normally.
fn print_round(round: &Round, number: usize, left: &Left) -> Done {
    let outcome = &left.outcome;
    let done = Done::new(round, left.took, outcome.console.collector.soak());
    say!("round {}: {round}: {done}", number + 1);
    if let Some(disturbed) = outcome.disturbed {
        say!("  {disturbed}");
    }
    done
}

/// Returns how a round ended the soak; [`End::Time`] if the round did not end it.
fn end_of_round(round: Round, mut outcome: Outcome) -> End {
    let records = std::mem::take(&mut outcome.console.collector).finish();
    let unfinished = !records.ended;
    match verdict::judge(&outcome, Under::Rouse, unfinished) {
        Some(failure) if failure.ends_all() => End::Cut(failure),
        Some(failure) => End::Failed(round, failure),
        None => End::Time,
    }
}
