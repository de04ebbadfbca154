// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the machine, and the unit of its values.

use aarch64_cpu::registers::{MIDR_EL1, Readable};
use abi::Info;
use plan::Arguments;
use platform::Firmware;
use wait::stream::Stream;

use super::record::{hypervisor_name, record, send_line};
use super::unit::Unit;
use super::{clocks, cores};
use crate::features::features;
use crate::machine::platform;
use crate::{atomics, clock, hypervisor, percpu, probe};

/// Describes the machine in records `boot`, `machine`, `feature`, `probe` and `unit`. The plan of
/// `arguments` may ask for samples in cycles of the core.
pub fn report_machine(arguments: &Arguments<'_>) {
    let plan = &arguments.plan;
    cores::measure_at_start(plan);
    let unit = Unit::choose(plan);
    let info = |info| match hypervisor::exists() {
        true => hypervisor::info(info),
        false => 0,
    };
    let (vtr, pidr2) = (info(Info::Vtr), info(Info::Pidr2));
    let firmware = match platform().described_by {
        Firmware::Acpi => "acpi",
        Firmware::Fdt => "fdt",
    };
    let version = env!("CARGO_PKG_VERSION");
    send_line(
        record("boot")
            .field("under", hypervisor_name())
            .field("version", version)
            .field("atomics", atomics::OWN),
    );
    let line = record("machine")
        .field("midr", format_args!("{:#x}", MIDR_EL1.get()))
        .field("cpus", percpu::online().count())
        .field("cntfrq_hz", clock::frequency())
        .field("firmware", firmware);
    let line = match clock::counter_step() {
        Some(ticks) => line.field("counter_step", ticks),
        None => line,
    };
    let line = match hypervisor::other_name() {
        Some(name) => line.field("hypervisor", name),
        None => line,
    };
    let line = match unit.core_hz() {
        Some(hertz) => line.field("core_hz", hertz),
        None => line,
    };
    send_line(if hypervisor::exists() {
        line.field("gic", format_args!("v{}", pidr2 >> 4 & 0xf))
            .field("list_registers", (vtr & 0x1f) + 1)
            .field("sgi_without_exit", hypervisor::info(Info::Typer2) >> 8 & 1)
    } else {
        line
    });
    for (name, value) in features().list() {
        send_line(record("feature").field("name", name).field("value", value));
    }
    if hypervisor::exists() && hypervisor::info(Info::Typer2) >> 8 & 1 != 0 {
        let text = "the GIC can deliver SGIs without EL2 (GICv4.1); not used: it needs an ITS";
        send_line(record("note").field("text", text));
    }
    if hypervisor::exists() && hypervisor::info(Info::SecureSgis) != 0 {
        let secure = hypervisor::info(Info::SecureSgis);
        let text = format_args!(
            "SGIs {secure:#06x} belong to the secure world: a guest that enables one is injected to, not delivered to directly"
        );
        send_line(record("note").field("text", text));
    }
    let stream = Stream::nearest(100, clock::frequency(), features().ecv);
    if let Some(stream) = stream {
        let made = clock::ticks_to_ns(stream.period());
        let text = format_args!(
            "event stream: its period is {made} ns, which the counter has nearest to 100000 ns"
        );
        send_line(record("note").field("text", text));
    }
    // On simulated cores, the probes take longer than the few passes of a brief run for costs, and
    // nothing in such a run depends on an answer.
    let answers = (!arguments.cost_brief).then(probe::answers);
    for (name, answer) in answers.into_iter().flatten() {
        let line = record("probe")
            .field("name", name)
            .field("value", answer.word());
        send_line(line.field("detail", answer));
    }
    unit.report(plan);
    clocks::report_at_start(plan);
}
