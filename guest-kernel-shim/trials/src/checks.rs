// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the platform's duties to a guest: `rouse.check=all`, or the name of one check, with the
//! first traps and the first delivery of the plan. Each check tests what the Arm documents require,
//! and not what the hypervisor does, so it has to pass on the bare machine as well.

mod eviction;
mod faults;
mod firmware;
mod interrupts;
mod levels;
mod nesting;
mod outcome;
mod shared_cpu;

use core::fmt;

use plan::{CallFault, Deliver, Fault, GuestFault, MachineFault, Plan};

use self::outcome::Failure;

use guest_kernel_shim::features::features;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{hypervisor, output, percpu, workers};

/// A check: its name, its requirements, and its function.
struct Check {
    name: &'static str,
    cpus: usize,
    /// Whether the check needs a hypervisor that injects, because its interrupt has no physical
    /// counterpart.
    injected: bool,
    /// Whether the check needs a hypervisor, because an interrupt has to cause an exit.
    exits: bool,
    /// Whether the check needs FEAT_WFxT.
    timed: bool,
    /// Whether the check needs a neighbour.
    shared: bool,
    /// Why the check can't run with a GICv2.
    lacking: Option<&'static str>,
    run: fn() -> Result<(), Failure>,
}

const CHECKS: &[Check] = &[
    Check::new("sgi-self", 1, interrupts::sgi_to_self),
    Check::new("sgi-all-intids", 2, interrupts::every_sgi_to_another),
    Check::new("sgi-broadcast", 2, interrupts::broadcast_spares_the_sender),
    Check::new(
        "sgi-overflow",
        2,
        interrupts::more_than_there_are_list_registers,
    ),
    Check::new("priority-order", 1, interrupts::most_urgent_first),
    Check::new(
        "disabled-stays-pending",
        1,
        interrupts::disabled_stays_pending,
    ),
    Check::new("pending-withdrawn", 1, interrupts::pending_can_be_withdrawn),
    Check::if_inject("spi-routed", 2, interrupts::spi_goes_where_it_is_routed),
    Check::new("nested", 1, nesting::each_more_urgent),
    Check::new("nested-two-steps", 1, nesting::ended_and_active),
    Check::new("nested-set-active", 1, nesting::nested_set_active),
    Check::if_inject("nested-spis", 1, nesting::nested_spis),
    Check::new("timer", 1, interrupts::timer_again_and_again),
    Check::new("timer-taken-back", 1, interrupts::timer_taken_back),
    Check::new("timer-level", 1, levels::gone_with_the_level),
    Check::new("timer-level-unseen", 1, levels::gone_without_a_look),
    Check::new(
        "timer-level-disabled",
        1,
        levels::disabled_follows_the_level,
    ),
    Check::new("timer-level-held", 1, levels::held_over_the_end),
    Check::new("timer-level-set", 1, levels::latched_by_software),
    Check::new("timer-level-again", 1, levels::expired_before_the_end),
    Check::new("timer-level-two-steps", 1, levels::ended_in_two_steps),
    Check::new("timer-level-wfi", 1, levels::gone_from_a_later_wait),
    Check {
        lacking: Some("a GICv2 shows a CPU only its own PPIs"),
        ..Check::new("timer-level-seen", 2, levels::seen_from_another)
    },
    Check {
        lacking: Some("a GICv2 has no direct delivery"),
        ..Check::new("timer-level-turned", 1, levels::kept_over_delivery_switch)
    },
    Check::if_wfxt("timed-waits", interrupts::timed_waits_keep_their_deadline),
    Check::if_exits("exit-leaves-event", interrupts::exit_leaves_an_event),
    Check {
        shared: true,
        ..Check::if_exits(
            "neighbour-leaves-event",
            interrupts::exit_beside_a_neighbour,
        )
    },
    Check::new("wfi-masked", 1, interrupts::masked_interrupt_ends_wfi),
    Check::new("psci-version", 1, firmware::version_and_features),
    Check::new("psci-cpu-on-errors", 2, firmware::cpu_on_refuses),
    Check::new("psci-off-and-on", 2, firmware::off_and_on_again),
    Check::new("psci-off-active", 2, interrupts::off_while_active),
    Check::new("psci-suspend", 1, firmware::standby_returns),
    Check::new("smccc-unknown", 1, firmware::unknown_calls_are_refused),
    Check::new("undefined", 1, faults::undefined_instruction),
    Check::new("evict-keeps-memory", 2, eviction::keeps_memory),
    Check::new("hole", 1, faults::nothing_at_a_hole),
    Check::on_shared_cpu("neighbour-kept-apart", shared_cpu::neighbour_kept_apart),
];

impl Check {
    const fn new(name: &'static str, cpus: usize, run: fn() -> Result<(), Failure>) -> Self {
        Self {
            name,
            cpus,
            injected: false,
            exits: false,
            timed: false,
            shared: false,
            lacking: None,
            run,
        }
    }

    const fn on_shared_cpu(name: &'static str, run: fn() -> Result<(), Failure>) -> Self {
        Self {
            shared: true,
            ..Self::if_inject(name, 1, run)
        }
    }

    const fn if_inject(name: &'static str, cpus: usize, run: fn() -> Result<(), Failure>) -> Self {
        Self {
            injected: true,
            ..Self::new(name, cpus, run)
        }
    }

    const fn if_exits(name: &'static str, run: fn() -> Result<(), Failure>) -> Self {
        Self {
            exits: true,
            ..Self::if_inject(name, 2, run)
        }
    }

    const fn if_wfxt(name: &'static str, run: fn() -> Result<(), Failure>) -> Self {
        Self {
            timed: true,
            ..Self::new(name, 1, run)
        }
    }

    /// Returns why the check can't be run.
    fn obstacle(&self, direct: bool) -> Option<&'static str> {
        if percpu::online().count() < self.cpus {
            Some("needs 2 CPUs")
        } else if self.injected && direct {
            Some("there is no physical interrupt for it")
        } else if self.exits && !hypervisor::exists() {
            Some("there is no hypervisor to exit to")
        } else if self.timed && !features().wfxt {
            Some("no FEAT_WFxT")
        } else if self.shared && !shared_cpu::can_have_neighbour() {
            Some("there is no neighbour")
        } else {
            self.lacking.filter(|_| platform().gic.version2.is_some())
        }
    }
}

/// The name of the check, as text that says where it failed.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Runs the check called `name`, or all; returns how many checks failed, or 1 if the name is unknown.
pub fn run(name: &str, plan: &Plan) -> u64 {
    let direct = hypervisor::exists() && plan.lists.deliver.values[0] == Deliver::Direct;
    if hypervisor::exists() {
        workers::set_pair_knobs(plan.lists.trap.values[0], plan.lists.deliver.values[0]);
    }
    levels::note_delivery(direct);
    let mut chosen = 0;
    let mut failed = 0;
    for check in CHECKS {
        if name != "all" && name != check.name {
            continue;
        }
        chosen += 1;
        if let Some(why) = check.obstacle(direct) {
            output::print(format_args!("check {check}: skipped: {why}"));
            continue;
        }
        match (check.run)() {
            Ok(()) => output::print(format_args!("check {check}: ok")),
            Err(why) => {
                failed += 1;
                output::print(format_args!("check {check}: FAILED: {why}"));
            }
        }
    }
    if chosen == 0 {
        output::print(format_args!("check {name}: there is no check of that name"));
        return 1;
    }
    output::print(format_args!("checks: {chosen} run, {failed} failed"));
    failed
}

/// Fails as `rouse.fault=` asks, to show what a failure looks like. Faults of the hypervisor happen
/// when the guest asks for a watch; before that, the delivery of interrupts is set as in the plan.
/// Returns only if nothing failed; the result is the exit status.
pub fn fail(fault: Fault, plan: &Plan) -> u64 {
    match fault {
        Fault::Guest(fault) => fail_guest(fault, plan),
        Fault::Machine(MachineFault::RamDirty) => faults::search_foreign_data(),
        Fault::Call(fault) => fail_hypervisor(fault, plan),
        // These faults need no trial, or belong to a soak.
        Fault::Firmware(_)
        | Fault::Machine(_)
        | Fault::Start(_)
        | Fault::Serror(_)
        | Fault::Audit(_)
        | Fault::Cell(_)
        | Fault::Soak(_) => {}
    }
    1
}

/// Makes this guest fail.
fn fail_guest(fault: GuestFault, plan: &Plan) {
    match fault {
        GuestFault::Panic => panic!("as asked by rouse.fault={fault}"),
        GuestFault::Abort => faults::read_unmapped(),
        GuestFault::Hang => loop {
            arch::insn::wfi();
        },
        GuestFault::HangMasked => {
            let lists = &plan.lists;
            workers::set_pair_knobs(lists.trap.values[0], lists.deliver.values[0]);
            workers::run_on_2nd(|| faults::hang_masked());
            faults::hang_masked();
        }
    }
}

/// Makes the hypervisor fail, if there is one.
fn fail_hypervisor(fault: CallFault, plan: &Plan) {
    if !hypervisor::exists() {
        output::print(format_args!("fault {fault}: needs the hypervisor below it"));
    } else if fault == CallFault::PanicEverywhere {
        workers::run_on_all(end_watch);
    } else {
        let lists = &plan.lists;
        workers::set_pair_knobs(lists.trap.values[0], lists.deliver.values[0]);
        end_watch();
    }
}

/// Asks EL2 to end its watch, although there is none.
fn end_watch() {
    let here = PerCpu::this() as *const PerCpu as u64 & !63;
    hypervisor::set_watch(here, 0);
}
