// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the properties of the machine (`rouse.survey`), for the first boot on a new kind of
//! machine.
//!
//! Everything that decides how the hypervisor behaves is printed before a guest runs, so that the console
//! explains a machine that fails later. A step that may hang or crash the machine comes last, and is announced
//! before it is tried. The console of a server may keep no more than 64 KiB: a survey of 64 CPUs takes half of
//! that.

use core::fmt;

use aarch64_cpu::registers::{
    CNTFRQ_EL0, CNTPCT_EL0, CNTVCT_EL0, CNTVOFF_EL2, CurrentEL, HCR_EL2, MIDR_EL1, MPIDR_EL1,
    Readable, SCTLR_EL2,
};
use arch::regs::{
    CNTHCTL_EL2, CTR_EL0, ICC_CTLR_EL1, ICC_SRE_EL2, ICH_VTR_EL2, ISR_EL1, PMCCFILTR_EL0,
    PMCCNTR_EL0, PMCEID0_EL0, PMCNTENSET_EL0, PMCR_EL0,
};
use arch::{id, insn};
use platform::{GicV2, Region};

use crate::boot::discovery::{Acpi, Discovered};
use crate::interrupts::vgic_cpu;
use crate::machine::Machine;
use crate::say;

/// Maximum number of bytes that are shown of a table.
const TABLE_MOST: u64 = 8192;
/// Offsets in the distributor (IHI 0069H, 12.9).
const GICD: [(u64, &str); 5] = [
    (0x0, "GICD_CTLR"),
    (0x4, "GICD_TYPER"),
    (0x8, "GICD_IIDR"),
    (0xc, "GICD_TYPER2"),
    (0xffe8, "GICD_PIDR2"),
];
/// Offsets in the distributor and the CPU interface of a GICv2 (IHI 0048B, 4.3 and 4.4).
const GICD2: [(u64, &str); 5] = [
    (0x0, "CTLR"),
    (0x4, "TYPER"),
    (0x8, "IIDR"),
    (0x800, "ITARGETSR0"),
    (0xfe8, "PIDR2"),
];
const GICC: [(u64, &str); 3] = [(0x0, "CTLR"), (0x4, "PMR"), (0xfc, "IIDR")];
/// Offsets in a redistributor (IHI 0069H, 12.11): GICR_CTLR, the low and the high half of
/// GICR_TYPER, GICR_WAKER.
const GICR: [u64; 4] = [0x0, 0x8, 0xc, 0x14];
/// GICR_CTLR.EnableLPIs.
const ENABLE_LPIS: u32 = 1;

/// Prints one line of the survey.
macro_rules! line {
    ($($arg:tt)*) => { say!("survey {}", format_args!($($arg)*)) };
}

/// Prints the survey, on the first CPU, while the other CPUs run. `spis` is the number of SPIs that
/// firmware left enabled.
pub fn print_survey(machine: &Machine, discovered: &Discovered, spis: u32) {
    line!("begin");
    print_memory(machine);
    print_registers();
    print_interrupts(machine);
    line!(
        "{spis} SPIs were enabled; ISR_EL1 {:#x}: what is pending now",
        ISR_EL1.get()
    );
    if let Some(acpi) = &discovered.acpi {
        print_tables(acpi);
    }
    print_cycle_counter();
    line!("end");
}

fn print_memory(machine: &Machine) {
    let platform = &machine.platform;
    for bank in &platform.memory {
        line!("RAM {:#x}..{:#x}", bank.base, bank.end());
    }
    for part in platform.reserved.iter() {
        line!("reserved {:#x}..{:#x}", part.base, part.end());
    }
    line!("UART {:x?}", platform.uart);
    line!("watchdogs {:x?}", platform.watchdogs.found);
    line!("PSCI {:?}, timers {:?}", platform.psci, platform.timer);
}

/// Prints the registers that identify the first CPU, except identification registers that are
/// zero.
fn print_registers() {
    line!("CurrentEL {:#x}", CurrentEL.get());
    line!(
        "MIDR_EL1 {:#x} MPIDR_EL1 {:#x}",
        MIDR_EL1.get(),
        MPIDR_EL1.get()
    );
    line!(
        "HCR_EL2 {:#x} SCTLR_EL2 {:#x}",
        HCR_EL2.get(),
        SCTLR_EL2.get()
    );
    line!("CTR_EL0 {:#x}", CTR_EL0.get());
    for (name, value) in id::registers().filter(|(_, value)| *value != 0) {
        line!("{name} {value:#018x}");
    }
    let (counter, virt) = (CNTPCT_EL0.get(), CNTVCT_EL0.get());
    line!(
        "CNTFRQ_EL0 {} CNTPCT_EL0 {counter} CNTVCT_EL0 {virt}",
        CNTFRQ_EL0.get()
    );
    let step = fidelity::counter_step(|rounds| {
        insn::rounds(rounds);
        // The ISB keeps the counter from being read early (DDI 0487K.a, D12.2.1).
        insn::isb();
        CNTPCT_EL0.get()
    });
    line!("counter step {} ticks", step.unwrap_or(0));
    line!(
        "CNTHCTL_EL2 {:#x} CNTVOFF_EL2 {:#x}",
        // strict written-before-read: the value is only shown.
        CNTHCTL_EL2.get(),
        // strict written-before-read: likewise
        CNTVOFF_EL2.get()
    );
}

fn print_interrupts(machine: &Machine) {
    let gic = &machine.platform.gic;
    line!("maintenance INTID {}", gic.maintenance);
    line!(
        "ICH_VTR_EL2 {:#x} ICC_CTLR_EL1 {:#x}",
        ICH_VTR_EL2.get(),
        ICC_CTLR_EL1.get()
    );
    line!("SGIs of the secure world {:#06x}", vgic_cpu::secure_sgis());
    line!("GICD {:#x}", gic.distributor.base);
    match &gic.version2 {
        Some(version2) => print_version2(machine, version2),
        None => print_version3(machine),
    }
}

/// Prints the registers of a GICv2.
fn print_version2(machine: &Machine, version2: &GicV2) {
    let gic = &machine.platform.gic;
    let bases = [gic.distributor.base, version2.gicc.base];
    for ((base, part), registers) in bases
        .into_iter()
        .zip(["GICD", "GICC"])
        .zip([&GICD2[..], &GICC])
    {
        for (offset, name) in registers {
            line!("{part}_{name} {:#x}", read_register(base + offset));
        }
    }
    for region in version2.registers() {
        line!("GICC, GICH or GICV {:#x}..{:#x}", region.base, region.end());
    }
    for cpu in machine.cpus {
        match cpu.redistributor.get() {
            Some(_) => line!(
                "CPU {:#x} CPU interface {}",
                cpu.mpidr,
                cpu.version2.number()
            ),
            None => line!("CPU {:#x} did not arrive", cpu.mpidr),
        }
    }
}

/// Prints the registers of a GICv3 or later.
fn print_version3(machine: &Machine) {
    let gic = &machine.platform.gic;
    for (offset, name) in GICD {
        line!("{name} {:#x}", read_register(gic.distributor.base + offset));
    }
    for range in gic.redistributors {
        line!("GICR range {:#x}..{:#x}", range.base, range.end());
    }
    line!("ICC_SRE_EL2 {:#x}", ICC_SRE_EL2.get());
    for cpu in machine.cpus {
        let Some(redistributor) = cpu.redistributor.get() else {
            line!("CPU {:#x} did not arrive", cpu.mpidr);
            continue;
        };
        let base = redistributor.base();
        let [control, low, high, wake] = GICR.map(|offset| read_register(base + offset));
        line!(
            "CPU {:#x} GICR {base:#x} TYPER {high:08x}{low:08x} CTLR {control:#x} WAKER {wake:#x}",
            cpu.mpidr
        );
        if control & ENABLE_LPIS != 0 {
            line!(
                "CPU {:#x}: LPIs are on: other software ran here before",
                cpu.mpidr
            );
        }
    }
}

/// Prints the list of tables, and the bytes of the tables that the hypervisor reads.
fn print_tables(acpi: &Acpi) {
    for table in &acpi.tables {
        let name = table.signature.escape_ascii();
        let state = if table.sound { "" } else { ", damaged" };
        let place = table.place;
        line!("table {name} {:#x} {} bytes{state}", place.base, place.size);
    }
    let read = [b"FACP", b"APIC", b"GTDT", b"SPCR", b"XSDT"];
    for table in &acpi.tables {
        if read.contains(&&table.signature) {
            print_bytes(table.signature.escape_ascii(), table.place);
        }
    }
}

/// Prints the bytes of a table, 32 per line.
fn print_bytes(name: impl fmt::Display + Clone, place: Region) {
    let length = place.size.min(TABLE_MOST) as usize;
    // SAFETY: the tables have been mapped for reading since `memory_split::split_ram`.
    let bytes = unsafe { core::slice::from_raw_parts(place.base as *const u8, length) };
    for (row, part) in bytes.chunks(32).enumerate() {
        line!("{name} {:04x} {}", row * 32, Hex(part));
    }
}

/// Prints bytes as hexadecimal digits without spaces.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Prints whether the cycle counter counts at EL2.
fn print_cycle_counter() {
    // ID_AA64DFR0_EL1.PMUVer: 0 means none, 15 a PMU that is not Arm's.
    if matches!(id::pmu_version(), 0 | 15) {
        line!("no PMUv3");
        return;
    }
    line!("PMU: tried now; if nothing follows, firmware at EL3 keeps it to itself");
    PMCCFILTR_EL0.set(1 << 27);
    // Sets LC and E, and clears everything that reset or firmware left: DP would stop the counter
    // here, and D would make it count every 64th cycle.
    PMCR_EL0.set(1 << 6 | 1);
    PMCNTENSET_EL0.set(1 << 31);
    insn::isb();
    let (start, from) = (PMCCNTR_EL0.get(), CNTPCT_EL0.get());
    for _ in 0..1000 {
        insn::isb();
    }
    let (end, to) = (PMCCNTR_EL0.get(), CNTPCT_EL0.get());
    line!(
        "PMCR_EL0 {:#x} PMCEID0_EL0 {:#x}: {} cycles in {} ticks",
        PMCR_EL0.get(),
        PMCEID0_EL0.get(),
        end.wrapping_sub(start),
        to.wrapping_sub(from)
    );
}

/// Reads a register of the interrupt controller.
fn read_register(address: u64) -> u32 {
    // SAFETY: distributor, redistributors and CPU interfaces are described and mapped, and reading changes
    // none of the registers that are read here.
    unsafe { (address as *const u32).read_volatile() }
}
