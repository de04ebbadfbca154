// SPDX-License-Identifier: MIT OR Apache-2.0
//! The jobs, and their cells that are rows of the table.

use anyhow::Result;
use plan::{Shape, Trap, Under, Wait, Wake, Workload};
use request::PlanArgs;
use results::Cell;

use crate::Table;
use running::options::{JobArgs, Metric, Unders};

use running::job::Job;

pub const BOARD: &str = "virt";
/// Wake-ups per cell: medians of instructions need no more.
const ITERATIONS: u64 = 100;
/// How long a polling hypervisor polls, in microseconds: KVM's default.
const HOST_POLL_US: u32 = 500;

/// Boots that differ only in the level below: a name, the levels, and their deliveries, traps and polls.
struct Part {
    name: &'static str,
    unders: &'static [Under],
    lists: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 3] = [
    Part {
        name: "bare",
        unders: &[Under::None],
        lists: &[
            ("trap", "none"),
            ("deliver", "direct"),
            ("host-poll-us", "0"),
        ],
    },
    // All hypervisors that may poll follow the same rules.
    Part {
        name: "polling",
        unders: &[
            Under::Rouse,
            Under::Kvm,
            Under::KvmNvhe,
            Under::KvmProtected,
        ],
        lists: &[
            ("trap", "none,wfi"),
            ("deliver", "inject"),
            ("host-poll-us", "0,500"),
            ("host-poll", "adaptive"),
        ],
    },
    // Xen traps only WFI and WFE together.
    Part {
        name: "xen",
        unders: &[Under::Xen],
        lists: &[
            ("trap", "none,both"),
            ("deliver", "inject"),
            ("host-poll-us", "0"),
        ],
    },
];

/// Values that all jobs share. Every arm64 CPU can run the resulting image.
const COMMON: [(&str, &str); 5] = [
    ("workload", "ipi,pingpong"),
    ("shape", "self,one"),
    ("wait", "busy,wfi,poll-wfi"),
    ("wake", "ipi,elide"),
    ("atomics", "llsc"),
];

/// Returns the jobs for `unders`, each with its name.
pub fn jobs(unders: &[Under], args: &Table) -> Result<Vec<(&'static str, Job)>> {
    let mut jobs = Vec::new();
    for part in &PARTS {
        let of_part = part.unders.iter().filter(|under| unders.contains(under));
        let of_part: Vec<Under> = of_part.copied().collect();
        if of_part.is_empty() {
            continue;
        }
        let lists: Vec<_> = COMMON.iter().chain(part.lists).copied().collect();
        let mut of = JobArgs::on(BOARD);
        of.load.plan = PlanArgs::exactly(ITERATIONS, &lists);
        // The number of wake-ups is fixed, however long these take.
        of.load.plan.cell_ms = Some("0".into());
        of.metric = Some(Metric::Insns);
        of.host_kernel.clone_from(&args.host_kernel);
        of.host_kernel
            .take_if(|_| of_part.iter().all(|under| under.kvm_mode().is_none()));
        if of_part == [Under::Xen] {
            of.xen.clone_from(&args.xen);
        }
        of.under = Some(Unders::Named(of_part));
        jobs.push((part.name, Job::new(&of)?.within(&args.limits)));
    }
    Ok(jobs)
}

/// A row: the same cell under each hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedCell {
    /// Its title.
    pub name: &'static str,
    workload: Workload,
    shape: Shape,
    wait: Wait,
    wake: Wake,
    trapped: bool,
    host_polls: bool,
}

impl ComparedCell {
    const fn new(name: &'static str, workload: Workload, wait: Wait) -> Self {
        Self {
            name,
            workload,
            shape: Shape::One,
            wait,
            wake: Wake::Ipi,
            trapped: false,
            host_polls: false,
        }
    }

    const fn to_self(self) -> Self {
        Self {
            shape: Shape::Itself,
            ..self
        }
    }

    const fn trapped(self) -> Self {
        Self {
            trapped: true,
            ..self
        }
    }

    const fn host_polls(self) -> Self {
        Self {
            host_polls: true,
            ..self
        }
    }

    const fn elided(self) -> Self {
        Self {
            wake: Wake::Elide,
            ..self
        }
    }

    /// Whether `cell` is in this row. A trap of both WFI and WFE, as under Xen, counts as a trap of WFI.
    pub fn has(&self, cell: &Cell) -> bool {
        let what = &cell.what;
        let traps = match self.trapped {
            true => what.trap.wfi(),
            false => what.trap == Trap::None,
        };
        let polls = if self.host_polls { HOST_POLL_US } else { 0 };
        let words = (
            what.workload,
            what.shape,
            what.wait,
            what.wake,
            what.host_poll_us,
        );
        traps && words == (self.workload, self.shape, self.wait, self.wake, polls)
    }

    /// Returns the bare machine's row for a comparison: the same row, without traps or polls below the guest.
    pub fn floor(&self) -> Self {
        Self {
            trapped: false,
            host_polls: false,
            ..*self
        }
    }

    /// Whether the row has KVM's defaults: on arm64 with a GICv3, WFI traps, and `halt_poll_ns` is 500000 (Linux,
    /// arch/arm64/include/asm/kvm_host.h).
    pub const fn is_kvms_default(&self) -> bool {
        self.trapped && self.host_polls
    }

    /// Whether the row has the same words as `other`, whatever its name.
    pub fn is(&self, other: &Self) -> bool {
        Self {
            name: other.name,
            ..*self
        } == *other
    }
}

/// The rows, from top to bottom.
pub const ROWS: [ComparedCell; 12] = [
    ComparedCell::new("`ipi` to itself, busy", Workload::Ipi, Wait::Busy).to_self(),
    ComparedCell::new("`ipi` to one, busy", Workload::Ipi, Wait::Busy),
    ComparedCell::new("`ipi` to one, in WFI", Workload::Ipi, Wait::Wfi),
    ComparedCell::new(
        "`ipi` to one, in trapped WFI, no polling (KVM: `halt_poll_ns` 0)",
        Workload::Ipi,
        Wait::Wfi,
    )
    .trapped(),
    ComparedCell::new(
        "`ipi` to one, in trapped WFI, the hypervisor polls: KVM's default",
        Workload::Ipi,
        Wait::Wfi,
    )
    .trapped()
    .host_polls(),
    ComparedCell::new("`pingpong`, busy", Workload::Pingpong, Wait::Busy),
    ComparedCell::new("`pingpong` in WFI", Workload::Pingpong, Wait::Wfi),
    ComparedCell::new(
        "`pingpong` in trapped WFI, no polling (KVM: `halt_poll_ns` 0)",
        Workload::Pingpong,
        Wait::Wfi,
    )
    .trapped(),
    ComparedCell::new(
        "`pingpong` in trapped WFI, the hypervisor polls: KVM's default",
        Workload::Pingpong,
        Wait::Wfi,
    )
    .trapped()
    .host_polls(),
    ComparedCell::new(
        "`pingpong`, the guest polls, IPI",
        Workload::Pingpong,
        Wait::PollWfi,
    ),
    ComparedCell::new(
        "**`pingpong`, the guest polls, no IPI**",
        Workload::Pingpong,
        Wait::PollWfi,
    )
    .elided(),
    ComparedCell::new(
        "`pingpong`, the guest polls, no IPI, waits trap",
        Workload::Pingpong,
        Wait::PollWfi,
    )
    .elided()
    .trapped(),
];
