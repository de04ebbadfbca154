// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats every path of the cost card between two marks: `rouse.cost=all`, or the names of some
//! paths. This code counts nothing. The marks are for a recorder outside the guest (see crate
//! `cost`), so the marks enclose only code that other measurements run too.
//!
//! The CPUs must run at the same time: with one thread for all CPUs, the order in which that thread
//! runs them would decide when interrupts are delivered.

mod floor;
mod one_cpu;
mod pair;

use abi::{Info, KnobValue, Neighbour};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use cost::{Edge, Mark, Path};
use plan::{Deliver, Plan, Trap};
use platform::Conduit;
use spin::mutex::SpinMutex;

use guest_kernel_shim::{cache_eviction, hypervisor, machine, output, percpu, pmu, workers};

/// Number of passes of each path: fewer on simulated cores, and still fewer if caches are emptied before each pass.
const PASSES: u32 = 24;
const FEW: u32 = 8;
const FEWEST: u32 = 3;
/// Time for a CPU to reach its wait after it has reported that it is ready, in microseconds: other
/// threads may use its core first. A simulated core needs far less.
const SETTLE_US: u32 = 300;
const SHORT_US: u32 = 5;

static BRIEF: AtomicBool = AtomicBool::new(false);
static COLD: AtomicBool = AtomicBool::new(false);

/// Returns how often each path is measured.
fn pass_count() -> u32 {
    match (BRIEF.load(Relaxed), COLD.load(Relaxed)) {
        (false, _) => PASSES,
        (true, false) => FEW,
        (true, true) => FEWEST,
    }
}

/// Returns the time for a CPU to reach its wait, in microseconds.
fn settling_us() -> u32 {
    if BRIEF.load(Relaxed) {
        SHORT_US
    } else {
        SETTLE_US
    }
}

/// Empties caches and TLBs before a pass, if this is asked for.
#[inline(never)]
fn empty_caches() {
    if COLD.load(Relaxed) {
        cache_eviction::evict_wake_path(percpu::online().count());
        assert!(
            hypervisor::evict(abi::EVICT_TRANSLATIONS),
            "hypervisor: no TLBs"
        );
    }
}

/// Marks the beginning of path `PATH`, at the beginning of a cache line. A core fetches ahead of an instruction that
/// traps, and the cost of that depends on the instruction's position in its line, which the linker must not choose.
#[inline(always)]
fn mark_begin<const PATH: u8>() {
    // SAFETY: this only adds NOPs.
    unsafe { core::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
    mark_edge::<PATH, { Edge::Begin as u8 }>();
}

/// Marks the end of path `PATH`.
#[inline(always)]
fn mark_end<const PATH: u8>() {
    mark_edge::<PATH, { Edge::End as u8 }>();
}

#[inline(always)]
fn mark_edge<const PATH: u8, const EDGE: u8>() {
    // SAFETY: this writes the zero register. There is no `nomem`, so the code between two marks stays between them.
    unsafe {
        core::arch::asm!("movz xzr, #{}", const mark_immediate(PATH, EDGE),
            options(nostack, preserves_flags));
    }
}

const fn mark_immediate(path: u8, edge: u8) -> u16 {
    let edge = match edge {
        0 => Edge::Begin,
        _ => Edge::End,
    };
    let path = Path::ALL[path as usize];
    Mark { path, edge }.immediate()
}

/// A path, or several paths that are measured together.
struct Errand {
    paths: &'static [Path],
    /// The traps during the errand, if there is a hypervisor that injects.
    trap: Trap,
    run: fn(),
}

const ERRANDS: &[Errand] = &[
    Errand::new(&[Path::Hypercall], one_cpu::cost_hypercall),
    Errand::new(&[Path::Service], one_cpu::cost_service),
    Errand::new(&[Path::SgiSend, Path::SgiReceive], pair::cost_sgi),
    Errand::new(&[Path::DoorbellSend, Path::DoorbellReceive], pair::doorbell),
    Errand::new(&[Path::Broadcast], pair::cost_broadcast),
    Errand::trapping(&[Path::Wfi, Path::WfiSend], Trap::Wfi, pair::cost_wfi),
    Errand::trapping(&[Path::Switch], Trap::Wfi, pair::cost_switch),
    Errand::trapping(&[Path::Wfe], Trap::Wfe, one_cpu::cost_wfe),
    Errand::new(&[Path::Timer], one_cpu::cost_timer),
    Errand::new(&[Path::Maintenance], one_cpu::cost_maintenance),
    Errand::new(&[Path::Mmio], one_cpu::cost_mmio),
    Errand::new(&[Path::CpuOn, Path::CpuStart], pair::cost_cpu_on),
    Errand::new(&[Path::FloorCall], floor::cost_call),
    Errand::new(&[Path::FloorSend, Path::FloorReceive], floor::cost_sgi),
    Errand::trapping(&[Path::FloorWait], Trap::Wfi, floor::cost_wait),
    Errand::new(&[Path::FloorRead], floor::cost_read),
    Errand::new(&[Path::FloorStart], floor::cost_start),
];

impl Errand {
    const fn new(paths: &'static [Path], run: fn()) -> Self {
        Self::trapping(paths, Trap::None, run)
    }

    const fn trapping(paths: &'static [Path], trap: Trap, run: fn()) -> Self {
        Self { paths, trap, run }
    }

    /// Returns the reason not to run the errand: for instance, waits that do not trap would not end.
    fn obstacle(&self, deliver: Option<Deliver>) -> Option<&'static str> {
        let has = |path| self.paths.contains(&path);
        let injects = deliver == Some(Deliver::Inject);
        if percpu::online().count() < 2 && self.paths.len() > 1 {
            Some("needs 2 CPUs")
        } else if (has(Path::Hypercall) || has(Path::Service)) && deliver.is_none() {
            Some("no other CPU to call")
        } else if (has(Path::FloorWait) || has(Path::FloorStart)) && percpu::online().count() < 2 {
            Some("needs 2 CPUs")
        } else if has(Path::FloorStart) && machine::platform().psci != Some(Conduit::Smc) {
            Some("the vectors serve an SMC, and this machine is called by HVC")
        } else if has(Path::Wfe) && !injects {
            Some("not trapped, it waits for an event")
        } else if has(Path::Switch) && !injects {
            Some("a neighbour's turn ends by an interrupt that comes to EL2")
        } else if has(Path::Switch) && !can_have_neighbour() {
            Some("there is no neighbour; add rouse.neighbour=work")
        } else if has(Path::Maintenance) && !injects {
            Some("no list registers are used")
        } else if self.paths.iter().any(|path| path.is_floor()) {
            floor::obstacle(injects, COLD.load(Relaxed))
        } else {
            None
        }
    }
}

/// Measures the paths that `which` names, with the first delivery of the plan: few passes if `brief` is set, and each
/// pass after emptying caches and TLBs if `cold` is set.
pub fn run(which: &str, plan: &Plan, brief: bool, cold: bool) {
    BRIEF.store(brief, Relaxed);
    COLD.store(cold, Relaxed);
    // Up to here, a simulator of cores runs without the counters.
    pmu::start_counters();
    if hypervisor::exists() {
        let bytes = hypervisor::info(Info::PerVcpu);
        output::print(format_args!("cost: per-vcpu {bytes}"));
    }
    let deliver = hypervisor::exists().then(|| plan.lists.deliver.values[0]);
    for errand in ERRANDS {
        let wanted = |path: &Path| which == "all" || which.split(',').any(|one| one == path.name());
        if !errand.paths.iter().any(wanted) {
            continue;
        }
        let names = || errand.paths.iter().map(|path| path.name());
        if let Some(why) = errand.obstacle(deliver) {
            names().for_each(|name| output::print(format_args!("cost: {name}: skipped: {why}")));
            continue;
        }
        set_all_knobs(errand.trap, deliver);
        (errand.run)();
        set_all_knobs(Trap::None, deliver);
        names().for_each(|name| output::print(format_args!("cost: {name}: done")));
    }
}

/// Whether a CPU may have a neighbour.
fn can_have_neighbour() -> bool {
    let none = KnobValue::Neighbour(Neighbour::None);
    hypervisor::try_knob(KnobValue::Neighbour(Neighbour::Work)) && hypervisor::try_knob(none)
}

/// Sets the knobs of every CPU. With direct delivery, nothing traps.
fn set_all_knobs(trap: Trap, deliver: Option<Deliver>) {
    static CHOICE: SpinMutex<(Trap, Deliver)> = SpinMutex::new((Trap::None, Deliver::Inject));
    let Some(deliver) = deliver else { return };
    let trap = match deliver {
        Deliver::Inject => trap,
        Deliver::Direct => Trap::None,
    };
    *CHOICE.lock() = (trap, deliver);
    workers::run_on_all(|| {
        let (trap, deliver) = *CHOICE.lock();
        // This knob has the value that it has in a measured cell.
        hypervisor::set_knob(KnobValue::RecheckTimers(false));
        hypervisor::set_trap(trap);
        hypervisor::set_deliver(deliver);
    });
}

/// Is called when this CPU has come up after it was started; ends the path of [`pair::cost_cpu_on`].
#[inline(always)]
pub fn note_started() {
    mark_end::<{ Path::CpuStart as u8 }>();
}
