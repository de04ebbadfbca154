// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `compare`: whether B is better or worse than A, cell by cell.

mod gate;
mod shown;

use anyhow::{Result, bail};
use results::compare::Comparison;

use crate::cli::CompareArgs;
use crate::failure::bad_input;
use crate::report::inputs::Input;
use crate::terminal::{self, note, say};
use gate::Gate;

/// Does what `cargo xtask compare` promises.
pub fn compare(args: &CompareArgs) -> Result<()> {
    let (lines, failure) = judge(args)?;
    say!("{}", lines.join("\n"));
    match failure {
        None => Ok(()),
        Some(why) => bail!("{why}; see the lines marked worse"),
    }
}

/// What is shown, and why B does not pass if it doesn't.
fn judge(args: &CompareArgs) -> Result<(Vec<String>, Option<String>)> {
    let gate = args.fail_if_worse.as_deref().map(Gate::parse).transpose()?;
    let (a, b) = (Input::read(&args.a)?, Input::read(&args.b)?);
    for input in [&a, &b] {
        input.complaints().for_each(|line| note!("warning: {line}"));
    }
    check_units(&a, &b)?;
    let comparison = Comparison::new(&a.results, &b.results);
    if comparison.pairs.is_empty() {
        bad_input!(
            "{} and {} have no cell in common; run both with the same options",
            a.shown,
            b.shown
        );
    }
    let failure = gate.and_then(|gate| gate.judge(&comparison));
    Ok((
        shown::lines(&comparison, &a, &b, terminal::width()),
        failure,
    ))
}

/// Instructions can't be compared with time, nor with cycles.
fn check_units(a: &Input, b: &Input) -> Result<()> {
    for input in [a, b] {
        let mut runs = input.results.runs.iter();
        if let Some(other) = runs.find(|run| run.unit != input.results.unit) {
            bad_input!(
                "{} is a report of runs that count {} and {}; name one of the runs",
                input.shown,
                named(&input.results.unit),
                named(&other.unit)
            );
        }
    }
    let (unit, other) = (&a.results.unit, &b.results.unit);
    if unit != other {
        bad_input!(
            "{} counts {}, {} counts {}, and no number of one is one of the other; run both with the same --metric, \
             or see how each orders the cells: cargo xtask report {} {}",
            a.shown,
            named(unit),
            b.shown,
            named(other),
            a.shown,
            b.shown
        );
    }
    if unit == "ticks" && a.results.machine.cntfrq_hz != b.results.machine.cntfrq_hz {
        bad_input!(
            "{} counts ticks of {} Hz, {} ticks of {} Hz; run both on the same CPU model",
            a.shown,
            a.results.machine.cntfrq_hz,
            b.shown,
            b.results.machine.cntfrq_hz
        );
    }
    Ok(())
}

fn named(unit: &str) -> &str {
    if unit.is_empty() {
        "something unknown"
    } else {
        unit
    }
}

#[cfg(test)]
mod tests;
