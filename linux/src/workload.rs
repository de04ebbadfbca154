// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workloads, and the counts taken while they run.

mod call;
pub mod exec;
mod membarrier;
mod messaging;
mod pair;
mod seccomp_notify;
mod sleep;
mod system_call;

use std::io;

use hist::Histogram;
use plan::{Cell, Workload};

use crate::counts::{self, Counts};
use crate::page::Page;
use crate::{clock, cpus, idle, sample};

/// Name of a count in records: the time of all CPUs that have neighbours, in ticks.
const CPU_TICKS: &str = "neighbour.ticks";

/// Wake-ups between the reading of the counters and the first sample. While the counters are read, a CPU is idle for a
/// long time, and a governor then predicts that the next few waits are long, too.
const SETTLE: u32 = 16;

/// Samples that are taken one after another.
pub struct SampleBlock<'b> {
    /// The number of samples.
    pub count: u32,
    /// The CPUs on which threads may run.
    pub cpus: &'b [usize],
    page: Option<&'b Page>,
    /// Whether each CPU has a neighbour, whose counts are read.
    has_neighbours: bool,
    total: &'b mut Histogram,
    counts: &'b mut Counts,
    before: Counts,
    began: u64,
    /// Number of wake-ups that are not samples, although the counters include them.
    settling: u32,
    /// The outcome of a program, for workloads that run one.
    pub outcome: exec::Outcome,
}

impl<'b> SampleBlock<'b> {
    /// Creates a block of `count` samples.
    pub fn new(
        count: u32,
        cpus: &'b [usize],
        page: Option<&'b Page>,
        total: &'b mut Histogram,
        counts: &'b mut Counts,
    ) -> Self {
        Self {
            count,
            cpus,
            page,
            has_neighbours: false,
            total,
            counts,
            before: Counts::new(),
            began: 0,
            settling: 0,
            outcome: exec::Outcome::default(),
        }
    }

    /// Sets whether there are neighbours.
    pub fn with_neighbours(self, has_neighbours: bool) -> Self {
        Self {
            has_neighbours,
            ..self
        }
    }

    /// Returns the first CPU and, if there is one, another CPU.
    pub fn cpu_pair(&self) -> [usize; 2] {
        let first = self.cpus[0];
        [first, self.cpus.get(1).copied().unwrap_or(first)]
    }

    /// Returns how many wake-ups the counters include.
    pub const fn wake_ups(&self) -> u32 {
        self.count + self.settling
    }

    /// Runs the rounds of a block: first a warm-up before the counters are read, then rounds that let the machine
    /// settle, and then rounds whose ticks are recorded. Calls `round` with the number of each.
    pub fn rounds(
        &mut self,
        warm_up: u32,
        mut round: impl FnMut(u32) -> io::Result<u64>,
    ) -> io::Result<u64> {
        let first = warm_up + SETTLE;
        for number in 0..first + self.count {
            if number == warm_up {
                self.begin_block()?;
                self.settling = SETTLE;
            }
            let ticks = round(number)?;
            if number >= first {
                self.record(ticks);
            }
        }
        self.end_block()
    }

    /// Begins the block, after the warm-up: reads the counters.
    pub fn begin_block(&mut self) -> io::Result<()> {
        self.began = 0;
        self.before = self.read_counts()?;
        self.began = clock::now();
        Ok(())
    }

    /// Records a sample of `ticks`.
    #[inline]
    pub fn record(&mut self, ticks: u64) {
        self.total.record(ticks);
        sample::is_counted();
    }

    /// Ends the block after its last sample. Returns the ticks since the counters were read.
    pub fn end_block(&mut self) -> io::Result<u64> {
        let ticks = clock::now() - self.began;
        let after = self.read_counts()?;
        counts::add(self.counts, &self.before, &after);
        Ok(ticks)
    }

    /// Reads the kernel's counts and the counts of the level below. The counts of the level below are read last at the
    /// start and first at the end, so that they exclude the reading of /proc.
    fn read_counts(&self) -> io::Result<Counts> {
        let is_end = self.began != 0;
        let first = if is_end {
            self.hypervisor_counts()?
        } else {
            Counts::new()
        };
        let mut all = counts::now()?;
        all.extend(idle::states());
        all.extend(if is_end {
            first
        } else {
            self.hypervisor_counts()?
        });
        Ok(all)
    }

    /// Reads the hypervisor's counts. The neighbours' counts are read first at the start and last at the end, since
    /// reading them causes exits.
    fn hypervisor_counts(&self) -> io::Result<Counts> {
        let is_end = self.began != 0;
        let counts = || self.page.map(Page::counts).unwrap_or_default();
        let first = if is_end { counts() } else { Counts::new() };
        let mut all = self.neighbours()?;
        all.extend(if is_end { first } else { counts() });
        Ok(all)
    }

    /// Reads the counts of the neighbours, if there are neighbours.
    fn neighbours(&self) -> io::Result<Counts> {
        let Some(page) = self.page.filter(|_| self.has_neighbours) else {
            return Ok(Counts::new());
        };
        // A neighbour's turn is counted when it ends, and on an idle CPU, the turn may have begun long ago.
        cpus::visit_each(self.cpus)?;
        let mut counts = page.neighbours();
        counts.insert(CPU_TICKS.into(), clock::now() * self.cpus.len() as u64);
        Ok(counts)
    }
}

/// If the kernel lacks something that a workload needs, returns what it is.
pub fn missing_need(cell: &Cell) -> Option<String> {
    match cell.workload {
        Workload::LinuxSeccompNotify => seccomp_notify::missing_need(),
        Workload::LinuxMessaging => messaging::missing_need(),
        Workload::LinuxCall => call::missing_need(),
        Workload::LinuxExec => exec::missing_need(cell),
        _ => None,
    }
}

/// Runs a block of a cell. Returns the ticks since the block's counters were read.
pub fn run(cell: &Cell, block: &mut SampleBlock<'_>) -> io::Result<u64> {
    match cell.workload {
        Workload::LinuxPipe => pair::by_pipes(block),
        Workload::LinuxFutex => pair::by_futexes(block),
        Workload::LinuxEventfd => pair::by_eventfds(block),
        Workload::LinuxMembarrier => membarrier::run(block),
        Workload::LinuxCall => call::run(block),
        Workload::LinuxExec => exec::run(block, cell),
        Workload::LinuxSeccompNotify => seccomp_notify::run(block),
        Workload::LinuxMessaging => messaging::run(block),
        Workload::LinuxTimer | Workload::LinuxIdle => sleep::run(block, cell.gap_us),
        _ => Err(io::Error::other("this workload is of Rouse's own guest")),
    }
}
