// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two kernels (`--guest A,B`), or one kernel with and without `--with-args`. Boots the two alternately, and
//! then compares their results like those of any two runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};

use super::{ended, print_results};
use crate::boot::Show;
use crate::boot_cache::BootCache;
use crate::job::Job;
use crate::options::RunArgs;
use crate::session::{self, Session};
use guests::kernel::GivenArgs;
use reporting::compare;
use reporting::compare::CompareArgs;
use reporting::format::FormatArgs;
use results::compare::{ASPECTS, LEVEL};
use shell::failure::bad_input;
use shell::folder::Folder;
use shell::terminal::{note, say};
use significance::runs_needed;

/// Usual number of tested figures per cell: the median and the path of the samples, and counts that vary from boot to
/// boot.
const FIGURES: usize = 5;

/// Returns the two jobs, if the options name two kernels.
pub fn two_jobs(args: &RunArgs) -> Result<Option<[Job; 2]>> {
    let Some([a, b]) = split_sides(args)? else {
        if args.bisect.is_some() {
            bad_input!(
                "--bisect: it compares two kernels; name a good one and the tree: --guest GOOD,TREE"
            );
        }
        if args.again {
            bad_input!(
                "--again: only boots of two compared kernels are kept; leave it out, or name two: --guest A,B"
            );
        }
        return Ok(None);
    };
    if args.json.is_some() {
        bad_input!(
            "--json: there are two results here; leave it out, and see results.json of each folder"
        );
    }
    let job = |given: GivenArgs| {
        let mut args = args.clone();
        args.job.load.given = given;
        let mut job = Job::of_run(&args)?;
        if args.repeat.is_none() {
            job.repeat = boots_needed(&job)?;
            job.ends_in_a_day()?;
        }
        anyhow::Ok(job)
    };
    let mut jobs = [job(a)?, job(b)?];
    if !jobs[0].measures() || !jobs[0].load.measures_linux() {
        bad_input!(
            "--guest: two kernels are compared by what is measured on them; name a workload, like --workload linux-pipe"
        );
    }
    let before = BootCache::of_kernels(args.again);
    for job in &mut jobs {
        job.before = Some(Arc::clone(&before));
    }
    Ok(Some(jobs))
}

/// Returns how many boots of each side the two-sided test needs for all figures of the job's cells.
fn boots_needed(job: &Job) -> Result<usize> {
    let mut cells = 0;
    for &under in &job.unders {
        let machine = job.machine(under)?;
        let plan = job.load.plan.cells(&machine);
        cells += plan
            .filter(|cell| cell.skip_reason(&machine).is_none())
            .count();
    }
    Ok(runs_needed(FIGURES * cells, LEVEL))
}

/// Returns the options of each kernel, if the options name two.
fn split_sides(args: &RunArgs) -> Result<Option<[GivenArgs; 2]>> {
    let given = &args.job.load.given;
    // The name of a single file may contain a comma.
    let one_file = given
        .guest
        .as_deref()
        .is_some_and(|guest| Path::new(guest).exists());
    let names = given.guest.as_deref().filter(|_| !one_file);
    let names: Vec<&str> = names.unwrap_or_default().split(',').collect();
    let sides = match (&names[..], &args.with_args) {
        ([a, b], None) => build_sources(args, [*a, *b])?.map(|guest| GivenArgs {
            guest: Some(guest),
            ..given.clone()
        }),
        ([_], None) => return Ok(None),
        ([_], Some(with)) => {
            let mut b = given.clone();
            let all = given.guest_args.iter().chain([with]);
            b.guest_args = Some(all.cloned().collect::<Vec<_>>().join(" "));
            [given.clone(), b]
        }
        (_, Some(_)) => bad_input!(
            "--with-args: it compares a kernel with itself under further arguments; name one kernel by --guest"
        ),
        (names, None) => bad_input!(
            "--guest: {} kernels are named, and two are compared; name two",
            names.len()
        ),
    };
    Ok(Some(sides))
}

/// Builds whichever of the two kernels are given as sources. In a bisection, a kernel that can't be built is the
/// commit's fault, and not a mistake in the request.
fn build_sources(args: &RunArgs, names: [&str; 2]) -> Result<[String; 2]> {
    let images = kernels::images(names);
    match args.bisect {
        Some(_) => images.map_err(|error| anyhow!("{error:#}")),
        None => images,
    }
}

/// Measures both kernels, and compares them.
pub fn run(args: &RunArgs, jobs: &[Job; 2]) -> Result<()> {
    args.format.claim()?;
    let sessions = sessions(args, jobs)?;
    let places = sessions
        .each_ref()
        .map(|session| PathBuf::from(&session.place));
    for (name, session) in ["A", "B"].into_iter().zip(sessions) {
        say!("");
        say!("{name}:");
        print_results(&session, &FormatArgs::default())?;
        ended(session)?;
    }
    say!("");
    compare::told(&CompareArgs {
        format: args.format,
        fail_if_worse: args.bisect.clone(),
        // A bisection allows every difference between the runs, because both kernels ran on the same machine.
        allow: args.bisect.as_ref().map(|_| ASPECTS.join(",")),
        ..CompareArgs::of(places.into())
    })
}

/// Measures both kernels.
pub fn sessions(args: &RunArgs, jobs: &[Job; 2]) -> Result<[Session; 2]> {
    let folders = [folder(args, "a", &jobs[0])?, folder(args, "b", &jobs[1])?];
    let sessions = session::alternately(["A", "B"], jobs.each_ref(), folders, Show::Dumps)?;
    let reused = jobs[0].before.as_ref().and_then(|before| before.reused());
    if let Some((reused, boots)) = reused {
        note!("{reused} of {boots} boots are known from before; --again makes them");
    }
    Ok(sessions)
}

/// Returns the folder for one of the two kernels' results.
fn folder(args: &RunArgs, side: &str, job: &Job) -> Result<Folder> {
    let own = args.out.as_ref().map(|out| out.join(side));
    Folder::claim(own.as_deref(), &job.board().name)
}
