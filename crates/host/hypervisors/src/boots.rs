// SPDX-License-Identifier: MIT OR Apache-2.0
//! The jobs of the table of hypervisors, and the rows for which their cells are used.

use anyhow::Result;
use plan::{Shape, Trap, Under, Wait, Wake, Workload};
use request::PlanArgs;
use results::Cell;

use crate::Table;
use running::options::{JobArgs, Metric, Unders};

use running::job::Job;

pub const BOARD: &str = "virt";
/// Wake-ups of each cell: medians of instruction counts need no more.
const ITERATIONS: u64 = 100;
/// Longest time for which a hypervisor polls, if it polls, in microseconds. This is KVM's default.
const HOST_POLL_US: u32 = 500;

/// Boots that differ only in the hypervisor below the guest: their name, these hypervisors, and the values of
/// deliveries, traps and polls.
struct Part {
    name: &'static str,
    unders: &'static [Under],
    lists: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 4] = [
    Part {
        name: "bare",
        unders: &[Under::None],
        lists: &[
            ("trap", "none"),
            ("deliver", "direct"),
            ("host-poll-us", "0"),
        ],
    },
    // These hypervisors may poll, and all of them poll by the same rules.
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
    Part {
        name: "bao",
        unders: &[Under::Bao],
        lists: &[
            ("trap", "none"),
            ("deliver", "inject"),
            ("host-poll-us", "0"),
        ],
    },
    // Xen traps WFI and WFE together.
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

/// Values of dimensions that all jobs share. Every arm64 CPU can run the image without LSE atomics (`llsc`).
const COMMON: [(&str, &str); 5] = [
    ("workload", "ipi,pingpong"),
    ("shape", "self,one"),
    ("wait", "busy,wfi,poll-wfi"),
    ("wake", "ipi,elide"),
    ("atomics", "llsc"),
];

/// Returns the jobs for `unders`, each with its name.
pub fn boot_jobs(unders: &[Under], args: &Table) -> Result<Vec<(&'static str, Job)>> {
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
        // A cell has no time limit, because its number of wake-ups is fixed.
        of.load.plan.cell_ms = Some("0".into());
        of.metric = Some(Metric::Insns);
        of.host_kernel.clone_from(&args.host_kernel);
        of.host_kernel
            .take_if(|_| of_part.iter().all(|under| under.kvm_mode().is_none()));
        if of_part == [Under::Bao] {
            of.bao.clone_from(&args.bao);
        }
        if of_part == [Under::Xen] {
            of.xen.clone_from(&args.xen);
        }
        of.under = Some(Unders::Named(of_part));
        jobs.push((part.name, Job::new(&of)?.within(&args.limits)));
    }
    Ok(jobs)
}

/// A row of the table: the same cell on the bare machine and under each hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedCell {
    /// The row's title.
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

    const fn with_self_wakeup(self) -> Self {
        Self {
            shape: Shape::Itself,
            ..self
        }
    }

    const fn with_trap(self) -> Self {
        Self {
            trapped: true,
            ..self
        }
    }

    const fn with_host_poll(self) -> Self {
        Self {
            host_polls: true,
            ..self
        }
    }

    const fn without_interrupt(self) -> Self {
        Self {
            wake: Wake::Elide,
            ..self
        }
    }

    /// Whether `cell` belongs to this row. A trap of both WFI and WFE, as under Xen, counts as a trap of WFI.
    pub fn matches_cell(&self, cell: &Cell) -> bool {
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

    /// Returns the row whose cell on the bare machine is compared with this row. The returned row equals this
    /// row, except that nothing traps or polls below the guest.
    pub fn bare_machine_row(&self) -> Self {
        Self {
            trapped: false,
            host_polls: false,
            ..*self
        }
    }

    /// Whether the row has KVM's defaults. On arm64 with a GICv3, WFI traps, and `halt_poll_ns` is 500000 (Linux,
    /// arch/arm64/include/asm/kvm_host.h).
    pub const fn is_kvms_default(&self) -> bool {
        self.trapped && self.host_polls
    }

    /// Returns the row's name without marks, explanations and other hypervisors' defaults.
    pub fn short_name(&self) -> String {
        let name = self.name.replace(['`', '*'], "");
        let name = name.split([':', '(']).next().unwrap_or_default();
        let name = name
            .replace(", no polling", "")
            .replace(", the hypervisor polls", ", EL2 polls")
            .replace("the guest polls", "guest polls");
        name.trim_end().to_owned()
    }

    /// Whether the row is the round trip out of a trapped WFI, while nobody polls.
    pub fn is_trapped_round_trip(&self) -> bool {
        (self.workload, self.wait, self.trapped, self.host_polls)
            == (Workload::Pingpong, Wait::Wfi, true, false)
    }

    /// Whether the row is the round trip without interrupts and traps.
    pub fn is_polled_round_trip(&self) -> bool {
        (self.workload, self.wake, self.trapped) == (Workload::Pingpong, Wake::Elide, false)
    }

    /// Whether the row equals `other` in everything except its name.
    pub fn equals_but_for_name(&self, other: &Self) -> bool {
        Self {
            name: other.name,
            ..*self
        } == *other
    }
}

/// The rows, from the top of the table.
pub const ROWS: [ComparedCell; 12] = [
    ComparedCell::new("`ipi` to itself, busy", Workload::Ipi, Wait::Busy).with_self_wakeup(),
    ComparedCell::new("`ipi` to one, busy", Workload::Ipi, Wait::Busy),
    ComparedCell::new("`ipi` to one, in WFI", Workload::Ipi, Wait::Wfi),
    ComparedCell::new(
        "`ipi` to one, in trapped WFI, no polling (KVM: `halt_poll_ns` 0)",
        Workload::Ipi,
        Wait::Wfi,
    )
    .with_trap(),
    ComparedCell::new(
        "`ipi` to one, in trapped WFI, the hypervisor polls: KVM's default",
        Workload::Ipi,
        Wait::Wfi,
    )
    .with_trap()
    .with_host_poll(),
    ComparedCell::new("`pingpong`, busy", Workload::Pingpong, Wait::Busy),
    ComparedCell::new("`pingpong` in WFI", Workload::Pingpong, Wait::Wfi),
    ComparedCell::new(
        "`pingpong` in trapped WFI, no polling (KVM: `halt_poll_ns` 0)",
        Workload::Pingpong,
        Wait::Wfi,
    )
    .with_trap(),
    ComparedCell::new(
        "`pingpong` in trapped WFI, the hypervisor polls: KVM's default",
        Workload::Pingpong,
        Wait::Wfi,
    )
    .with_trap()
    .with_host_poll(),
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
    .without_interrupt(),
    ComparedCell::new(
        "`pingpong`, the guest polls, no IPI, WFI traps (Xen: WFE, too)",
        Workload::Pingpong,
        Wait::PollWfi,
    )
    .without_interrupt()
    .with_trap(),
];
