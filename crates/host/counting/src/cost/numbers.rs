// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs that are single numbers: sizes, the length of a boot, and round trips.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, SectionKind};
use plan::{Under, Word};

use super::costs::Mode;
use super::recorder::{Bench, Recorded};
use running::job::Job;
use running::options::{JobArgs, LimitArgs, Unders};
use running::session;

/// Numbers by name.
pub type Numbers = BTreeMap<String, u64>;

/// Prefix for the names of sizes.
pub const BYTES: &str = "bytes: ";
/// Name of the number for the length of a boot.
pub const BOOT: &str = "insns: reset to the guest's first, 1 CPU";

/// Returns the sizes, in bytes, of code, constants and variables, for the hypervisor and for both of the guest's
/// programs. In the result, `guest` is the measuring program.
pub fn image_sizes(bench: &Bench) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    let images = [
        ("hypervisor", Some(&bench.built.hypervisor)),
        ("guest", bench.measuring.guest_elf(bench.atomics)),
        ("trials", bench.built.guest_elf(bench.atomics)),
    ];
    for (name, path) in images {
        let Some(path) = path else { continue };
        for (part, bytes) in section_sizes(path)? {
            numbers.insert(format!("{BYTES}{name}, {part}"), bytes);
        }
    }
    Ok(numbers)
}

fn section_sizes(path: &Path) -> Result<[(&'static str, u64); 3]> {
    let shown = || path.display().to_string();
    let bytes = fs::read(path).with_context(shown)?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).with_context(shown)?;
    let sum = |kinds: &[SectionKind]| {
        let sections = file
            .sections()
            .filter(|section| kinds.contains(&section.kind()));
        sections.map(|section| section.size()).sum()
    };
    Ok([
        ("text", sum(&[SectionKind::Text])),
        (
            "read-only data",
            sum(&[SectionKind::ReadOnlyData, SectionKind::ReadOnlyString]),
        ),
        (
            "data",
            sum(&[SectionKind::Data, SectionKind::UninitializedData]),
        ),
    ])
}

/// Returns the number of bytes that the hypervisor allocates per vCPU, as the guest reports it.
pub fn bytes_per_vcpu(recorded: &Recorded) -> Result<Numbers> {
    let mut lines = recorded.console.lines();
    let said = lines.find_map(|line| line.strip_prefix("cost: per-vcpu "));
    let bytes = said.and_then(|text| text.trim().parse().ok());
    let bytes = bytes.context("the guest did not say how much memory a vCPU takes")?;
    Ok([(format!("{BYTES}hypervisor, per vCPU"), bytes)].into())
}

/// Returns the number of instructions from reset to the measuring guest's first instruction, on a machine with one
/// CPU. Because this CPU never waits for another CPU, the number is the same in every run. The number includes the
/// five instructions that the emulator executes in place of a boot loader.
pub fn boot_instructions(bench: &Bench) -> Result<Numbers> {
    let little =
        "rouse.workload=stream rouse.wait=wfe rouse.event-stream-us=100 rouse.iterations=4";
    let recorded = bench.record_image(&bench.measuring, Mode::Inject, 1, little)?;
    let mut entered = recorded.trace.entered.iter();
    let Some((_, before)) = entered.find(|(cpu, _)| *cpu == 0) else {
        bail!("the recorder did not see the guest begin");
    };
    Ok([(BOOT.to_owned(), *before)].into())
}

/// Returns the median round-trip times of `pingpong` in WFI. The guest measures them in ticks, and each tick is one
/// instruction.
pub fn median_round_trips(board: &str, limits: &LimitArgs) -> Result<Numbers> {
    let mut args = JobArgs::on(board);
    args.under = Some(Unders::Named(vec![Under::Rouse, Under::None]));
    args.load.plan = request::PlanArgs::exactly(
        400,
        &[
            ("workload", "pingpong"),
            ("wait", "wfi"),
            ("trap", "none,wfi"),
            ("deliver", "inject,direct"),
            ("wake", "ipi"),
            ("host-poll-us", "0"),
        ],
    );
    let results = session::measure(&Job::new(&args)?.within(limits))?;
    let mut numbers = Numbers::new();
    for cell in &results.cells {
        let Some(stats) = cell.stats else { continue };
        let (below, trap) = match (cell.under, cell.what.trap.wfi()) {
            (Under::None, _) => ("bare machine", ""),
            // The job requests no other hypervisors.
            (Under::Xen | Under::Bao | Under::Kvm | Under::KvmNvhe | Under::KvmProtected, _) => {
                continue;
            }
            (Under::Rouse, false) => (cell.what.deliver.name(), ", not trapped"),
            (Under::Rouse, true) => (cell.what.deliver.name(), ", trapped"),
        };
        numbers.insert(format!("insns: round trip, wfi{trap}, {below}"), stats.p50);
    }
    Ok(numbers)
}
