// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `run`: measure, show, judge.

use std::path::Path;

use anyhow::{Result, bail};

use crate::boot::Show;
use crate::cli::RunArgs;
use crate::folder::Folder;
use crate::job::Job;
use crate::output::Output;
use crate::terminal::say;
use crate::{report, session, table, terminal};

/// Does what `cargo xtask run` promises.
pub fn run(args: &RunArgs) -> Result<()> {
    let job = Job::new(&args.job)?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    let folder = Folder::claim(args.out.as_deref(), &job.board().name)?;
    // Where there may be no cells, the console is all that there is to see.
    let show = match job.measures() {
        true => Show::Dumps,
        false => Show::Console,
    };
    let session = session::run(&job, folder, show)?;
    let place = &session.place;
    if session.results.has_cells() {
        say!(
            "{}",
            table::lines(&session.results, terminal::width()).join("\n")
        );
    }
    say!("\nresults: {place}");
    if Path::new(place).join(report::PAGE).exists() {
        say!("report: {place}/{}", report::PAGE);
    }
    if let Some(failure) = session.failure {
        bail!("{}; the console's log is {}", failure.why, session.log);
    }
    match copy {
        Some(copy) => copy.write(&session.results.to_json()?),
        None => Ok(()),
    }
}
