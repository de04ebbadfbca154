// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the machine has and what it was found to model.

mod waits;

use aarch64_cpu::registers::{ID_AA64MMFR0_EL1, ID_AA64MMFR1_EL1, Readable};
use arch::regs::{ID_AA64ISAR2_EL1, PMCEID0_EL0};
use core::fmt;
use spin::once::Once;

use crate::clock;
use crate::percpu::{self, PerCpu};

/// Architecture features that a way of waiting may use.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// FEAT_WFxT: WFET and WFIT.
    pub wfxt: bool,
    /// FEAT_ECV: among others, slower event streams.
    pub ecv: bool,
    /// FEAT_VHE.
    pub vhe: bool,
    /// FEAT_FGT.
    pub fgt: bool,
    /// FEAT_TWED: delayed trapping of WFE.
    pub twed: bool,
}

impl Features {
    /// Their names and whether they are there.
    pub const fn list(&self) -> [(&'static str, bool); 5] {
        [
            ("wfxt", self.wfxt),
            ("ecv", self.ecv),
            ("vhe", self.vhe),
            ("fgt", self.fgt),
            ("twed", self.twed),
        ]
    }
}

static FEATURES: Once<Features> = Once::new();

/// The features of this machine, as the ID registers say (DDI 0487K.a, D23.2.66 on).
pub fn features() -> &'static Features {
    FEATURES.call_once(|| {
        let mmfr0 = ID_AA64MMFR0_EL1.get();
        let mmfr1 = ID_AA64MMFR1_EL1.get();
        Features {
            wfxt: ID_AA64ISAR2_EL1.get() & 0xf >= 2,
            ecv: mmfr0 >> 60 & 0xf != 0,
            fgt: mmfr0 >> 56 & 0xf != 0,
            vhe: mmfr1 >> 8 & 0xf != 0,
            twed: mmfr1 >> 32 & 0xf != 0,
        }
    })
}

/// What a trial showed.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Yes, no, or not tried.
    pub value: Option<bool>,
    /// How long the wait in question took, ticks.
    pub ticks: Option<u64>,
    /// Why it was not tried.
    pub why: &'static str,
}

impl Answer {
    const fn timed(value: bool, ticks: u64) -> Self {
        Self {
            value: Some(value),
            ticks: Some(ticks),
            why: "",
        }
    }

    const fn plain(value: bool) -> Self {
        Self {
            value: Some(value),
            ticks: None,
            why: "",
        }
    }

    const fn not_run(why: &'static str) -> Self {
        Self {
            value: None,
            ticks: None,
            why,
        }
    }
}

/// The detail of an answer: how long it took, or why there is none.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ticks {
            Some(ticks) => write!(f, "{} ns", clock::nanoseconds(ticks)),
            None => f.write_str(self.why),
        }
    }
}

/// A trial.
struct Trial {
    name: &'static str,
    /// It needs a second CPU that acts.
    pair: bool,
    run: fn() -> Answer,
}

const fn trial(name: &'static str, pair: bool, run: fn() -> Answer) -> Trial {
    Trial { name, pair, run }
}

/// Every trial, by the name that results give it.
const TRIALS: [Trial; 11] = [
    trial("wfe_halts", false, waits::wfe_halts),
    trial("sev_wakes_wfe", true, waits::sev_wakes_wfe),
    trial("monitor_wakes_wfe", true, waits::monitor_wakes_wfe),
    trial(
        "event_stream_period_ok",
        false,
        waits::event_stream_period_ok,
    ),
    trial("wfet_halts", false, waits::wfet_halts),
    trial(
        "wfet_timeout_sets_event",
        false,
        waits::wfet_timeout_sets_event,
    ),
    trial("eret_sets_event", false, waits::eret_sets_event),
    trial("masked_irq_wakes_wfe", true, waits::masked_irq_wakes_wfe),
    trial("counts_instructions", false, counts_instructions),
    trial("counter_shared", true, counter_shared),
    trial("pmu_counts_instructions", false, pmu_counts_instructions),
];

static ANSWERS: Once<[Answer; TRIALS.len()]> = Once::new();

/// Every trial's name and answer; tried the first time that somebody asks,
/// which has to be the first CPU, with the others parked.
pub fn answers() -> impl Iterator<Item = (&'static str, &'static Answer)> {
    let answers = ANSWERS.call_once(|| {
        TRIALS.map(|trial| {
            if trial.pair && !waits::has_second() {
                Answer::not_run("needs a second CPU")
            } else {
                (trial.run)()
            }
        })
    });
    TRIALS.iter().map(|trial| trial.name).zip(answers)
}

/// Whether the trial `name` was answered with no.
pub fn is_not_modelled(name: &str) -> bool {
    answers().any(|(trial, answer)| trial == name && answer.value == Some(false))
}

fn counts_instructions() -> Answer {
    Answer::plain(clock::counts_instructions())
}

/// Every CPU reads the same count: one CPU's reading lies between two of another.
fn counter_shared() -> Answer {
    use crate::crew;
    let before = clock::now();
    crew::on_second(|| PerCpu::this().note_time(clock::now()));
    crew::wait_for_second();
    let between = percpu::all()[1].noted_time();
    Answer::plain(before <= between && between <= clock::now())
}

/// The PMU has the event "instruction architecturally executed" (PMCEID0_EL0
/// bit 8; DDI 0487K.a, D14.11.3).
fn pmu_counts_instructions() -> Answer {
    Answer::plain(PMCEID0_EL0.get() >> 8 & 1 != 0)
}
