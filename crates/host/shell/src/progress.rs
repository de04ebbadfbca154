// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows progress to people. On a terminal, one line shows all boots, and is rewritten. Elsewhere, each boot prints an
//! occasional line. In quiet mode, nothing is shown.

mod estimate;
mod in_place;
mod size;

pub use size::{Planned, expected, time};

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use estimate::Estimate;
use results::records::{BootProgress, Collector};

use crate::terminal::{self, step};
use in_place::Boot;

/// Interval between lines if they can't be rewritten, because the output is not a terminal.
const PLAIN: Duration = Duration::from_secs(10);
/// Interval between updates of a rewritten line.
const TERMINAL: Duration = Duration::from_millis(100);

/// The progress of one boot.
#[derive(Debug)]
pub struct Progress {
    title: String,
    /// Unit of the rate, if it is shown.
    unit: Option<&'static str>,
    start: Instant,
    shown: Option<Instant>,
    /// When the work began, and how much was already done.
    begun: Option<(Instant, u64)>,
    /// Estimate of the remaining time, where cells are measured.
    estimate: Option<Estimate>,
    /// The boot's cells and their time, if they are known before the boot.
    planned: Option<Planned>,
    /// The boot's part of the rewritten line.
    boot: Option<Boot>,
}

impl Progress {
    /// Starts the clock of a boot's progress.
    pub fn new(title: String) -> Self {
        Self {
            title,
            unit: None,
            start: Instant::now(),
            shown: None,
            begun: None,
            estimate: None,
            planned: None,
            boot: io::stderr().is_terminal().then(Boot::default),
        }
    }

    /// Also shows the rate, in `unit` per second.
    pub fn with_rate(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Describes the plan and its time, once the boot has reported the plan.
    pub fn with_plan(mut self, planned: Planned) -> Self {
        self.planned = Some(planned);
        self
    }

    /// Shows the finished share and the last cell, unless something was just shown.
    pub fn show(&mut self, collector: &Collector, stage: Option<&str>) {
        let BootProgress { done, of, .. } = collector.step;
        if of > 0 && self.begun.is_none() {
            self.begun = Some((Instant::now(), done));
        }
        self.follow_plan(collector);
        let interval = match self.boot {
            Some(_) => TERMINAL,
            None => PLAIN,
        };
        if terminal::is_quiet() || self.shown.unwrap_or(self.start).elapsed() < interval {
            return;
        }
        self.shown = Some(Instant::now());
        let what = match (of, stage) {
            (0, Some(stage)) => stage.split(':').next().unwrap_or(stage).to_owned(),
            (0, None) => "booting".into(),
            _ if done == 0 => self.describe_plan(collector).unwrap_or_default(),
            _ => self.last_cell(collector),
        };
        let rate = self.describe_rate(done).unwrap_or_default();
        let what = format!("{what}{rate}");
        let left = self.seconds_left(done, of);
        match &mut self.boot {
            Some(boot) => boot.show(&self.title, &what, (done, of), left),
            None => {
                let line = in_place::Line {
                    head: self.title.clone(),
                    done: (done, of),
                    what,
                    seconds: self.start.elapsed().as_secs(),
                    left,
                };
                step!("{line}");
            }
        }
    }

    /// Follows the steps of a plan, whether they are shown or not.
    fn follow_plan(&mut self, collector: &Collector) {
        let now = self.start.elapsed().as_secs_f64();
        if let (None, Some(plan)) = (&self.estimate, collector.plan()) {
            let settles = self.planned.as_ref().is_some_and(|planned| planned.settles);
            self.estimate = Some(Estimate::new(plan, settles, now));
            // A terminal's line shows the description until there is more to show.
            if self.boot.is_none()
                && let Some(described) = self.describe_plan(collector)
            {
                step!("{}: {described}", self.title);
            }
        }
        if let Some(estimate) = &mut self.estimate {
            estimate.note_progress(collector.step, now);
        }
    }

    /// Describes the plan, if its boot has reported it.
    fn describe_plan(&self, collector: &Collector) -> Option<String> {
        let planned = self.planned.as_ref()?;
        Some(planned.describe_plan(collector.plan()?))
    }

    /// Returns the name of the cell that was run last.
    fn last_cell(&self, collector: &Collector) -> String {
        let place = collector.step.done.checked_sub(1);
        let names = self.planned.as_ref().map(|planned| &planned.names);
        let name = names
            .zip(self.estimate.as_ref())
            .filter(|(names, estimate)| names.len() == estimate.number_of_cells())
            .zip(place)
            .and_then(|((names, estimate), place)| names.get(estimate.cell(place)?));
        name.unwrap_or(&collector.at).clone()
    }

    /// Returns the rate so far.
    fn describe_rate(&self, done: u64) -> Option<String> {
        let (unit, (begun, before)) = (self.unit?, self.begun?);
        let new = done.checked_sub(before).filter(|new| *new > 0)?;
        let rate = new as f64 / begun.elapsed().as_secs_f64();
        Some(format!(", {rate:.0} {unit}/s"))
    }

    /// Returns the remaining seconds. Without a plan, assumes the rate so
    /// far.
    fn seconds_left(&self, done: u64, of: u64) -> Option<u64> {
        if let Some(estimate) = &self.estimate {
            let left = estimate.seconds_left(self.start.elapsed().as_secs_f64())?;
            return Some(left.ceil() as u64);
        }
        let (begun, before) = self.begun?;
        let new = done.checked_sub(before).filter(|new| *new > 0)?;
        let per_part = begun.elapsed().as_secs_f64() / new as f64;
        Some((per_part * of.saturating_sub(done) as f64).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_what_was_done_since_it_began() {
        let mut progress = Progress::new("test".into()).with_rate("parts");
        progress.begun = Some((Instant::now() - Duration::from_secs(10), 100));
        assert_eq!(progress.describe_rate(100), None);
        assert_eq!(progress.describe_rate(300).unwrap(), ", 20 parts/s");
        assert_eq!(Progress::new("test".into()).describe_rate(300), None);
    }

    #[test]
    fn what_is_left_takes_as_long_as_the_rest() {
        let mut progress = Progress::new("test".into());
        assert_eq!(progress.seconds_left(3, 10), None);
        progress.begun = Some((Instant::now() - Duration::from_secs(9), 1));
        assert_eq!(progress.seconds_left(1, 10), None);
        assert_eq!(progress.seconds_left(4, 10), Some(19));
        assert_eq!(progress.seconds_left(10, 10), Some(0));
    }

    #[test]
    fn a_cell_has_the_name_that_the_plan_gave_it_in_every_pass() {
        let plan = results::records::Size {
            cells: 2,
            passes: plan::PASSES.into(),
            ..results::records::Size::default()
        };
        let names = ["gap 10 us", "gap 20 us"].map(str::to_owned);
        let mut progress = Progress::new("test".into()).with_plan(Planned {
            names: names.to_vec(),
            ..Planned::default()
        });
        progress.estimate = Some(Estimate::new(plan, true, 0.0));
        let mut collector = Collector::default();
        collector.at = "pingpong wfi".into();
        // The second pass runs the cells in reverse order.
        for (done, name) in [(1, 0), (2, 1), (3, 1), (4, 0)] {
            collector.step.done = done;
            assert_eq!(progress.last_cell(&collector), names[name], "{done}");
        }
        // The guest reports cells other than those that the host has planned.
        progress.estimate = Some(Estimate::new(Default::default(), true, 0.0));
        assert_eq!(progress.last_cell(&collector), "pingpong wfi");
    }
}
