// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `ipistorm`: CPUs call a function on other CPUs, as often and as fast as they can (A.
//! Blanchard's module of that name). A sample is a call: it lasts until the return or, without
//! waiting, until the next call can begin.
//!
//! The parameters of that module: `iterations` is `numipi`, `gap-us` is `delay`.

use plan::{Calls, Cell, CpuSet, Switch, Workload};

use crate::clock;
use crate::kernel::{Cpu, calls};
use crate::percpu::PerCpu;
use crate::workload::crowd;
use crate::workload::samples::{record, record_handler, rounds, sample_begins, sample_ends};

/// State of a CPU that makes calls.
struct Storm {
    me: usize,
    targets: CpuSet,
    /// The only target, if the CPU makes calls to a single CPU.
    single: Option<usize>,
    cpus: usize,
    waits: bool,
    count: u32,
    gap: u64,
}

/// Spawns the task of this CPU.
pub fn spawn(cell: &Cell, count: u32, gap: u64, cpu: &Cpu, cpus: usize) {
    let next = (cpu.index + cell.offset as usize) % cpus;
    let (targets, single) = match cell.calls {
        Calls::Mask => (cell.mask, None),
        Calls::All => (CpuSet::ALL, None),
        Calls::Single => (CpuSet::one(next), Some(next)),
    };
    let storm = Storm {
        me: cpu.index,
        targets,
        single,
        cpus,
        waits: cell.call_wait == Switch::On,
        count,
        gap,
    };
    crowd::note_begin();
    cpu.spawn(storm.run());
}

impl Storm {
    /// Returns the CPUs that this CPU calls.
    fn targets(&self) -> impl Iterator<Item = usize> + Clone {
        let me = self.me;
        self.targets.iter(self.cpus).filter(move |&cpu| cpu != me)
    }

    async fn run(self) {
        let me = PerCpu::this();
        for (n, recorded) in (0..).zip(rounds(Workload::Ipistorm, self.count)) {
            if self.gap != 0 {
                clock::pause(self.gap);
            }
            let start = sample_begins();
            self.call_targets(me, n);
            let began = self.waits.then(|| self.wait_for_calls());
            let ticks = sample_ends() - start;
            if recorded {
                record(ticks);
                if let Some(began) = began {
                    record_handler(began.saturating_sub(start));
                }
            }
        }
        self.wait_for_calls();
        crowd::note_end();
    }

    #[inline(always)]
    fn call_targets(&self, me: &PerCpu, n: u64) {
        match self.single {
            Some(to) => {
                calls::call_one(me, to, called_function, n);
            }
            None => calls::call_many(me, self.targets(), called_function, n),
        }
    }

    /// Waits for all calls, and returns the time at which the last of their functions began.
    fn wait_for_calls(&self) -> u64 {
        let began = |to| calls::call_between(self.me, to).wait();
        self.targets().map(began).max().unwrap_or(0)
    }
}

/// The called function, which does nothing.
fn called_function(_: &'static Cpu, _: u64) {}
