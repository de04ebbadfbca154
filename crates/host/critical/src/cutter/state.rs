// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state from which samples are made: the state of each CPU, and the effects of CPUs on each other.

use std::collections::BTreeSet;

use super::Tpidr;
use crate::clock::{Clock, Stretch};
use crate::{Counts, Exits, Sample};

/// A store or an interrupt for which another CPU may be waiting.
#[derive(Clone, Debug)]
pub struct Release {
    pub cpu: usize,
    /// The clock of the CPU when the store or interrupt happened.
    pub clock: Clock,
    /// Number of instructions that all CPUs together had executed by that time.
    pub at: u64,
}

/// A sample that has begun but not ended.
#[derive(Clone, Debug)]
pub struct Open {
    /// The sample's number: how many samples had begun when it began, including itself.
    pub number: u64,
    pub work: Counts,
    /// The indices of the CPUs that take part in the sample.
    pub parties: BTreeSet<usize>,
    /// The instructions that each CPU had executed when the sample began.
    pub executed: Vec<Counts>,
    pub exits: Exits,
    pub halts: u64,
    pub value: Option<u64>,
    pub unclear: bool,
}

/// A period in which a CPU stood still while another CPU made a release.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Number of instructions that all CPUs together had executed when the CPU stopped.
    pub at: u64,
    /// Instructions that the CPU itself had executed when it continued.
    pub resumed: Counts,
    /// Number of instructions that all CPUs together had executed when the CPU continued.
    pub since: u64,
}

/// A sample that has been counted, with the stretches that were executed during the sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its cell.
    pub cell: u64,
    /// The sample.
    pub sample: Sample,
    /// The stretches on the sample's path, in order.
    pub path: Vec<Stretch>,
    /// The stretches of all CPUs, in order.
    pub work: Vec<Stretch>,
}

/// Known state of a CPU.
#[derive(Clone, Debug)]
pub struct CpuState {
    pub tpidr: Tpidr,
    /// Its affinity, if known.
    pub affinity: Option<u64>,
    pub clock: Clock,
    /// Instructions that the CPU has executed.
    pub executed: Counts,
    /// Number of instructions that all CPUs together had executed when the CPU last stopped.
    pub stopped: u64,
    /// The CPU's stops since it last looked for actions of other CPUs, in order. Together they are one wait. A
    /// hypervisor below the guest may divide a wait into several stops.
    pub wait: Vec<Stop>,
    /// Whether the CPU has not run since the oldest open sample began.
    pub unmet: bool,
    /// Whether the CPU has looked for actions of other CPUs since it continued.
    pub looked: bool,
    /// Whether the CPU, since it continued, has found the release that it waited for.
    pub linked: bool,
    /// The latest clock that this CPU has taken over from another CPU since its own last [`Release`].
    pub heard: Clock,
    pub open: Option<Open>,
    /// The CPU's sample that has ended and may still be counted.
    pub ended: Option<Ended>,
}

impl CpuState {
    /// Creates the state of a CPU that has executed nothing.
    pub fn new(tpidr: Tpidr) -> Self {
        Self {
            tpidr,
            affinity: None,
            clock: Clock::default(),
            executed: Counts::default(),
            stopped: 0,
            wait: Vec::new(),
            unmet: true,
            looked: false,
            linked: false,
            heard: Clock::default(),
            open: None,
            ended: None,
        }
    }
}

/// A sample that has ended but has not been counted.
#[derive(Clone, Debug)]
pub struct Ended {
    pub sample: Sample,
    pub path: Vec<Stretch>,
    pub work: Vec<Stretch>,
}
