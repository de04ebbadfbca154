// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state from which samples are made: of each CPU, and of what CPUs do to each other.

use std::collections::BTreeSet;

use super::Tpidr;
use crate::clock::{Clock, Stretch};
use crate::{Counts, Exits, Sample};

/// A store or an interrupt for which another CPU may wait.
#[derive(Clone, Debug)]
pub struct Release {
    pub cpu: usize,
    /// The CPU's clock when the store or interrupt happened.
    pub clock: Clock,
    /// Number of instructions that all CPUs had executed by then.
    pub at: u64,
}

/// A sample that has begun.
#[derive(Clone, Debug)]
pub struct Open {
    /// Number of samples that had begun, including this one.
    pub number: u64,
    pub work: Counts,
    /// The CPUs that take part, by index.
    pub parties: BTreeSet<usize>,
    /// Counts of each CPU when the sample began.
    pub executed: Vec<Counts>,
    pub exits: Exits,
    pub halts: u64,
    pub value: Option<u64>,
    pub unclear: bool,
}

/// A period in which a CPU was stopped while another CPU released something.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Number of instructions that all CPUs had executed when it stopped.
    pub at: u64,
    /// Number of instructions that the CPU itself had executed when it continued.
    pub resumed: Counts,
    /// Number of instructions that all CPUs had executed when it continued.
    pub since: u64,
}

/// A sample that has been counted, with the stretches of its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its cell.
    pub cell: u64,
    /// The sample.
    pub sample: Sample,
    /// Stretches on its path, in order.
    pub path: Vec<Stretch>,
    /// Stretches of all CPUs, in order.
    pub work: Vec<Stretch>,
}

/// Known state of a CPU.
#[derive(Clone, Debug)]
pub struct CpuState {
    pub tpidr: Tpidr,
    /// Its affinity, if known.
    pub affinity: Option<u64>,
    pub clock: Clock,
    /// Number of instructions that it has executed.
    pub executed: Counts,
    /// Number of instructions that all CPUs had executed when it last stopped.
    pub stopped: u64,
    /// Its stops, in order, since it last looked for other CPUs' actions. Together they are its wait, which a
    /// hypervisor below may interrupt with a further stop.
    pub wait: Vec<Stop>,
    /// Whether it has not run since the first of the open samples began.
    pub unmet: bool,
    /// Whether it has looked for other CPUs' actions since it continued.
    pub looked: bool,
    /// Whether it has found the awaited release since it continued.
    pub linked: bool,
    /// The latest clock of another CPU that it has followed since its own last
    /// [`Release`].
    pub heard: Clock,
    pub open: Option<Open>,
    /// A sample that has ended and may be counted.
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

/// A sample that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub sample: Sample,
    pub path: Vec<Stretch>,
    pub work: Vec<Stretch>,
}
