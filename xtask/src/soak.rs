// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `soak`: boots in which everything happens at random, one after
//! another, until the time is over or something is wrong.
//!
//! Each boot is a round with a seed of its own, and ends by itself after a
//! number of wake-ups; what it does and what must hold all the while is the
//! guest's matter (`guest-kernel-shim/trials/soak.rs`).

mod request;
mod summary;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use plan::Under;

use crate::boot::{Boots, Launch, Outcome, Ready, Show};
use crate::cli::SoakArgs;
use crate::folder::Folder;
use crate::log::Log;
use crate::progress::Progress;
use crate::terminal::say;
use crate::verdict::{self, Failure};
use request::{Request, Round};
use summary::{Done, Summary};

/// Does what `cargo xtask soak` promises.
pub fn run(args: &SoakArgs) -> Result<()> {
    let request = Request::new(args)?;
    let first = request.job(&request.round(0))?;
    first.board().qemu("soak")?;
    let folder = Folder::claim(args.out.as_deref(), &format!("{}-soak", first.board().name))?;
    let Ready { emulator, built } = Ready::make(&first)?;
    let mut soak = Soak {
        boots: Boots::new(&emulator, &built, Show::Dumps, folder.log()?),
        summary: Summary::new(&request, &emulator.shown()),
    };
    say!(
        "seeds from {}; Ctrl-C ends it with what there is",
        request.seed
    );
    let end = soak.rounds(&request);
    soak.close(&request, end, folder)
}

/// How it ended.
enum End {
    /// The time is over.
    Time,
    /// By a signal, or the time limit; nothing was wrong.
    Cut(Failure),
    /// Something is wrong.
    Failed(Round, Failure),
}

/// The rounds so far.
struct Soak<'a> {
    boots: Boots<'a, Log>,
    summary: Summary,
}

impl Soak<'_> {
    /// Boots rounds until the minutes are over: the one in which they end is the
    /// last, and there is at least one.
    fn rounds(&mut self, request: &Request) -> Result<End> {
        let start = Instant::now();
        for number in 0.. {
            let round = request.round(number);
            let outcome = self.boot(request, &round, number)?;
            match self.judge(outcome) {
                Some(failure) if failure.ends_all() => return Ok(End::Cut(failure)),
                Some(failure) => return Ok(End::Failed(round, failure)),
                None => {}
            }
            if !request.goes_on(number + 1, start.elapsed()) {
                break;
            }
        }
        Ok(End::Time)
    }

    fn boot(&mut self, request: &Request, round: &Round, number: usize) -> Result<Outcome> {
        let progress = Progress::new(format!("round {}: {round}", number + 1));
        let begun = Instant::now();
        let job = request.job(round)?;
        let outcome = self.boots.boot(Launch {
            variant: job.variant(),
            job: &job,
            title: round.to_string(),
            progress: progress.with_rate("wake-ups"),
            recorder: None,
        })?;
        self.note(round, number, &outcome, begun.elapsed());
        Ok(outcome)
    }

    /// Notes a round, whole or not, and shows it.
    fn note(&mut self, round: &Round, number: usize, outcome: &Outcome, took: Duration) {
        let done = Done::new(round, took, outcome.console.collector.soak());
        say!("round {}: {round}: {done}", number + 1);
        if let Some(disturbed) = outcome.disturbed {
            say!("  {disturbed}");
        }
        self.summary.add(done);
    }

    fn judge(&mut self, mut outcome: Outcome) -> Option<Failure> {
        let records = std::mem::take(&mut outcome.console.collector).finish();
        let unfinished = !records.ended;
        verdict::judge(&outcome, Under::Rouse, unfinished)
    }

    /// Writes the folder, and says how it went.
    fn close(mut self, request: &Request, end: Result<End>, mut folder: Folder) -> Result<()> {
        let again = |round: &Round| request.command(round);
        match &end {
            Ok(End::Failed(round, failure)) => {
                self.summary.violate(round, &failure.why, &again(round));
            }
            Ok(End::Time) => {}
            // A round that could not be booted is no violation either.
            Ok(End::Cut(_)) | Err(_) => self.summary.interrupt(),
        }
        self.boots.kept.write(&mut folder);
        folder.write("soak.json", &self.summary.to_json()?);
        let closed = folder.close(Some(&self.boots.log));
        let place = &closed.place;
        say!("\n{}", self.summary.lines().join("\n"));
        say!("summary: {place}");
        match end? {
            End::Time => closed.complete().map(drop),
            End::Cut(failure) => bail!("{}; nothing was wrong until then", failure.told()),
            End::Failed(round, failure) => bail!(
                "{}; the console's log is {}; again: {}",
                failure.told(),
                self.boots.log.place(place),
                again(&round)
            ),
        }
    }
}
