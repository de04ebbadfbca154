// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out through trials which features the machine models.

mod answer;
mod caches;
mod waits;
mod watch;

use arrayvec::ArrayVec;
use spin::once::Once;

pub use self::answer::Answer;
use crate::percpu::{self, PerCpu};
use crate::{clock, pmu, workers};

struct Trial {
    name: &'static str,
    /// Whether the trial needs a second CPU that acts.
    pair: bool,
    /// Name of an earlier trial: unless its answer is yes, this trial shows nothing.
    needs: Option<&'static str>,
    run: fn() -> Answer,
}

impl Trial {
    const fn new(name: &'static str, run: fn() -> Answer) -> Self {
        Self {
            name,
            pair: false,
            needs: None,
            run,
        }
    }

    const fn with_second_cpu(self) -> Self {
        Self { pair: true, ..self }
    }

    const fn needs(self, other: &'static str) -> Self {
        Self {
            needs: Some(other),
            ..self
        }
    }

    /// Runs the trial, given the earlier answers.
    fn find_answer(&self, before: &[Answer]) -> Answer {
        let known = TRIALS.iter().map(|trial| trial.name).zip(before);
        let mut needed = known.filter(|(name, _)| Some(*name) == self.needs);
        let missing = needed.find(|(_, answer)| !answer.is_yes());
        match missing {
            _ if self.pair && !waits::has_second_cpu() => Answer::NotRun("needs a second CPU"),
            Some((_, Answer::NotSure(_))) => {
                Answer::NotRun("it is not sure that the instruction waits here")
            }
            Some(_) => Answer::NotRun("the instruction does not wait here"),
            None => (self.run)(),
        }
    }
}

/// Name of the trial of caches.
pub const CACHES: &str = "caches_modelled";

/// Number of trials.
const COUNT: usize = 14;

/// Every trial, by its name in results.
const TRIALS: [Trial; COUNT] = {
    use Trial as T;
    const WFE: &str = "wfe_halts";
    const WFET: &str = "wfet_halts";
    [
        T::new(WFE, waits::wfe_halts),
        T::new("sev_wakes_wfe", waits::sev_wakes_wfe)
            .with_second_cpu()
            .needs(WFE),
        T::new("monitor_wakes_wfe", waits::monitor_wakes_wfe)
            .with_second_cpu()
            .needs(WFE),
        T::new("event_stream_period_ok", waits::event_stream_period_ok).needs(WFE),
        T::new(
            "el2_event_stream_period_ok",
            waits::el2_event_stream_period_ok,
        )
        .needs(WFE),
        T::new(WFET, waits::wfet_halts),
        T::new("wfet_timeout_sets_event", waits::wfet_timeout_sets_event).needs(WFET),
        T::new("eret_sets_event", waits::eret_sets_event).needs(WFE),
        T::new("masked_irq_wakes_wfe", waits::masked_irq_wakes_wfe)
            .with_second_cpu()
            .needs(WFE),
        T::new("counts_instructions", counts_instructions),
        T::new("cpus_run_at_once", cpus_run_at_once),
        T::new("counter_shared", counter_shared).with_second_cpu(),
        T::new("pmu_counts_instructions", pmu_counts_instructions),
        T::new(CACHES, caches::try_caches),
    ]
};

static ANSWERS: Once<ArrayVec<Answer, COUNT>> = Once::new();

/// Returns every trial's name and answer. The first call runs the trials, and has to come from the
/// first CPU while all other CPUs are parked.
pub fn answers() -> impl Iterator<Item = (&'static str, &'static Answer)> {
    let answers = ANSWERS.call_once(|| {
        let mut answers = ArrayVec::new();
        for trial in &TRIALS {
            let answer = trial.find_answer(&answers);
            answers.push(answer);
        }
        answers
    });
    TRIALS.iter().map(|trial| trial.name).zip(answers)
}

/// Whether the trial `name` ended with an answer other than yes, such as a doubtful one.
pub fn is_not_modelled(name: &str) -> bool {
    answers().any(|(trial, answer)| trial == name && !answer.is_yes())
}

fn counts_instructions() -> Answer {
    Answer::without_ticks(clock::counts_instructions())
}

/// Tests whether CPUs run at the same time. If the counter counts every instruction of the machine
/// and nothing else, they do not: with two CPUs running, it would count twice as fast.
fn cpus_run_at_once() -> Answer {
    Answer::without_ticks(!clock::counts_instructions())
}

/// Tests whether every CPU reads the same count: a CPU's reading has to lie between two readings of another CPU.
fn counter_shared() -> Answer {
    let before = clock::now();
    workers::run_on_2nd(|| PerCpu::this().note_time(clock::now()));
    workers::wait_for_second();
    let between = percpu::all()[1].noted_time();
    Answer::without_ticks(before <= between && between <= clock::now())
}

/// Tests whether the PMU counts instructions.
fn pmu_counts_instructions() -> Answer {
    Answer::without_ticks(pmu::counts_instructions())
}
