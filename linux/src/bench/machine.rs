// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports the machine and the plan of the measurement.

use std::path::Path;
use std::{fs, io};

use plan::{Machine, PASSES};

use super::{Bench, CellEntry};
use crate::clock;

/// The kernel's file with MIDR_EL1 of the first CPU.
const MIDR: &str = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";

/// The name of the interrupt controller in Rouse's device tree.
const CONTROLLER: &str = "/sys/firmware/devicetree/base/interrupt-controller/compatible";

impl Bench {
    /// Returns the properties of the machine that decide which cells can run.
    pub(super) fn machine_properties(&self, instructions: bool) -> Machine {
        Machine {
            cpus: self.cpus.len(),
            // Linux itself decides whether it uses these features.
            wfxt: true,
            lse: true,
            ecv: true,
            linux: true,
            frequency: clock::frequency(),
            under: self.below.under,
            given: self.below.given,
            cpus_at_once: !instructions,
            caches: false,
            event_loses_irq: self.plan.event_loses_irq,
            gicv2: fs::read(CONTROLLER).is_ok_and(|name| name.starts_with(b"arm,cortex-a15-gic")),
        }
    }

    /// Writes the records `boot`, `machine`, `feature`, `unit`, and `core-clock` if values are cycles.
    pub(super) fn tell_machine(&mut self, instructions: bool) -> io::Result<()> {
        let text = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        // Linux's release would also be in a file in /proc, but only with CONFIG_PROC_SYSCTL.
        let system = rustix::system::uname();
        let release = system.release().to_string_lossy();
        let midr = text(MIDR).ok();
        let midr =
            midr.and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        let firmware = match Path::new("/sys/firmware/devicetree/base").exists() {
            true => "fdt",
            false => "acpi",
        };
        let output = &mut self.output;
        let boot = output.record("boot").field("under", self.below.under);
        output.send(boot.field("version", env!("CARGO_PKG_VERSION")))?;
        let line = output.record("machine");
        let line = match midr {
            Some(midr) => line.field("midr", format_args!("{midr:#x}")),
            None => line,
        };
        let line = line
            .field("cpus", self.cpus.len())
            .field("cntfrq_hz", clock::frequency())
            .field("firmware", firmware);
        output.send(line)?;
        let line = output.record("feature").field("name", "linux");
        output.send(line.field("value", release))?;
        if let Some(hz) = clock::tick_hz() {
            let line = output.record("feature").field("name", "linux_hz");
            output.send(line.field("value", hz))?;
        }
        let (unit, how) = match (self.cycles, instructions) {
            (Some(ratio), _) => (
                "cycles",
                match ratio.is_one() {
                    true => {
                        "CNTVCT, one cycle of the core a tick (the machine's parameters)".into()
                    }
                    false => format!(
                        "CNTVCT, {ratio} cycles of the core a tick (the machine's parameters)"
                    ),
                },
            ),
            (None, true) => (
                "insns",
                "CNTVCT counts every instruction of the machine, one tick each".into(),
            ),
            (None, false) => ("ticks", "CNTVCT".into()),
        };
        let line = output.record("unit").field("unit", unit);
        output.send(line.field("how", how))?;
        self.tell_core_clock(&["begin_hz", "cycles_hz"])
    }

    /// Writes a record `core-clock` with `fields`, if values are cycles. All cores are alike, and their clock is fixed.
    pub(super) fn tell_core_clock(&mut self, fields: &[&str]) -> io::Result<()> {
        let Some(ratio) = self.cycles else {
            return Ok(());
        };
        let line = self.output.record("core-clock");
        let line = line.field("cpu", 0).field("affinity", "0x0");
        let line = fields
            .iter()
            .fold(line, |line, field| line.field(field, ratio.wanted));
        self.output.send(line)
    }

    /// Writes the records that announce the cells to be measured.
    pub(super) fn tell_plan(&mut self, entries: &[CellEntry]) -> io::Result<()> {
        let ran = || entries.iter().filter(|entry| entry.skipped.is_none());
        let guess: u64 = ran().map(|entry| entry.guess_us).sum::<u64>() * u64::from(PASSES);
        let budget = entries
            .iter()
            .map(|entry| entry.limits.budget)
            .max()
            .unwrap_or(0);
        let line = self
            .output
            .record("plan")
            .field("cells", entries.len())
            .field("skipped", entries.len() - ran().count())
            .field("passes", PASSES)
            .field("iterations", self.plan.iterations)
            .field("guess_us", guess)
            .field("cell_ms", budget / (clock::frequency() / 1000).max(1));
        self.output.send(line)
    }
}
