// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workloads, and what is counted while they run.

mod membarrier;
mod messaging;
mod pair;
mod seccomp_notify;
mod sleep;

use std::io;

use hist::Histogram;
use plan::{Cell, Workload};

use crate::counts::{self, Counts};
use crate::page::Page;
use crate::{clock, cpus, idle};

/// Time of all CPUs that have neighbours, ticks, by its name in records.
const CPU_TICKS: &str = "neighbour.ticks";

/// Samples that are made one after another.
pub struct SampleBlock<'b> {
    /// How many.
    pub count: u32,
    /// The CPUs that threads may run on.
    pub cpus: &'b [usize],
    page: Option<&'b Page>,
    /// Each CPU has a neighbour, which is counted.
    has_neighbours: bool,
    total: &'b mut Histogram,
    counts: &'b mut Counts,
    before: Counts,
    began: u64,
}

impl<'b> SampleBlock<'b> {
    /// One of `count` samples.
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
        }
    }

    /// Sets whether there are neighbours.
    pub fn beside(self, has_neighbours: bool) -> Self {
        Self {
            has_neighbours,
            ..self
        }
    }

    /// The first CPU, and another one where there is one.
    pub fn pair(&self) -> [usize; 2] {
        let first = self.cpus[0];
        [first, self.cpus.get(1).copied().unwrap_or(first)]
    }

    /// Begins the block: the first sample is next, and the warm-up is over.
    pub fn begin(&mut self) -> io::Result<()> {
        self.before = self.counted()?;
        self.began = clock::now();
        Ok(())
    }

    /// Takes a sample of so many ticks.
    #[inline]
    pub fn record(&mut self, ticks: u64) {
        self.total.record(ticks);
    }

    /// Ends the block after its last sample; returns the ticks of all samples together.
    pub fn end(&mut self) -> io::Result<u64> {
        let ticks = clock::now() - self.began;
        let after = self.counted()?;
        counts::add(self.counts, &self.before, &after);
        Ok(ticks)
    }

    /// Reads the counts of the kernel and of the level below. Reads the latter first at the end
    /// and last at the start, to keep the time of reading /proc out of the samples.
    fn counted(&self) -> io::Result<Counts> {
        let is_end = self.began != 0;
        let first = if is_end { self.below()? } else { Counts::new() };
        let mut all = counts::now()?;
        all.extend(idle::states());
        all.extend(if is_end { first } else { self.below()? });
        Ok(all)
    }

    /// Reads the hypervisor's counts: of the neighbours outermost, as that makes exits.
    fn below(&self) -> io::Result<Counts> {
        let is_end = self.began != 0;
        let counts = || self.page.map(Page::counts).unwrap_or_default();
        let first = if is_end { counts() } else { Counts::new() };
        let mut all = self.neighbours()?;
        all.extend(if is_end { first } else { counts() });
        Ok(all)
    }

    /// Reads the counts of the neighbours, if there are some.
    fn neighbours(&self) -> io::Result<Counts> {
        let Some(page) = self.page.filter(|_| self.has_neighbours) else {
            return Ok(Counts::new());
        };
        // A turn is counted when it ends, and that of a CPU that idles may have begun long ago.
        cpus::visit(self.cpus)?;
        let mut counts = page.neighbours();
        counts.insert(CPU_TICKS.into(), clock::now() * self.cpus.len() as u64);
        Ok(counts)
    }
}

/// Returns what the kernel lacks for a workload, if something.
pub fn lacking(workload: Workload) -> Option<String> {
    match workload {
        Workload::LinuxSeccompNotify => seccomp_notify::lacking(),
        Workload::LinuxMessaging => messaging::lacking(),
        _ => None,
    }
}

/// Runs a block of a cell; what its samples took together, ticks.
pub fn run(cell: &Cell, block: &mut SampleBlock<'_>) -> io::Result<u64> {
    match cell.workload {
        Workload::LinuxPipe => pair::by_pipes(block),
        Workload::LinuxFutex => pair::by_futexes(block),
        Workload::LinuxEventfd => pair::by_eventfds(block),
        Workload::LinuxMembarrier => membarrier::run(block),
        Workload::LinuxSeccompNotify => seccomp_notify::run(block),
        Workload::LinuxMessaging => messaging::run(block),
        Workload::LinuxTimer | Workload::LinuxIdle => sleep::run(block, cell.gap_us),
        _ => Err(io::Error::other("this workload is of Rouse's own guest")),
    }
}
