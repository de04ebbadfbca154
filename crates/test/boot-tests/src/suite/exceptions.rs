// SPDX-License-Identifier: MIT OR Apache-2.0
//! An exit is an exception taken to EL2. This test compares EL2's counts for a cell with the emulator's log of
//! exceptions (`-d int`) for the time in which EL2 counts. The log also shows where this time begins and ends
//! ([`abi::COUNTING`]).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use results::{Counts, Results};

use providing::qemu;
use shell::command;
use shell::partial_files::Scratch;
use shell::{places, processor_time};

/// The cells, each as options of `run`. Each cell has its own boot.
const CELLS: [&str; 9] = [
    "--workload=pingpong --wait=wfi --trap=none --deliver=inject",
    "--workload=pingpong --wait=wfi --trap=none --deliver=direct",
    "--workload=pingpong --wait=wfi --trap=wfi --deliver=inject --host-poll-us=0",
    "--workload=pingpong --wait=wfi --trap=wfi --deliver=direct --host-poll-us=0",
    "--workload=pingpong --wait=wfi --trap=wfi --deliver=inject --host-poll-us=50",
    "--workload=pingpong --wait=wfi --trap=wfi --deliver=inject --host-poll-us=1 --gap-us=20",
    "--workload=pingpong --wait=wfi --trap=wfi --deliver=direct --host-poll-us=50 --host-poll=adaptive",
    "--workload=pingpong --wait=wfe --trap=wfe --deliver=inject --event-stream-us=100",
    "--workload=timer --wait=wfi --trap=wfi --deliver=inject --gap-us=1000 --host-poll-us=0",
];

pub fn run() -> Result<()> {
    for cell in CELLS {
        compare(cell).with_context(|| format!("`run {cell}`"))?;
    }
    Ok(())
}

fn compare(cell: &str) -> Result<()> {
    let place = Scratch::new()?;
    let (list, out) = (place.path().join("list"), place.path().join("out"));
    let emulator = place.path().join("emulator");
    write_emulator(&emulator, &list)?;
    let mut command = Command::new(places::program()?);
    command.env("ROUSE_QEMU", &emulator);
    command.args(["run", "--board=virt", "--wake=ipi", "--stages=off"]);
    command.args(["--iterations=50", "--timeout=36000", "--out"]);
    command.arg(&out).args(cell.split(' '));
    let output = processor_time::output(&mut command)?;
    ensure!(
        output.status.success(),
        "ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let text = fs::read_to_string(out.join("results.json"))?;
    let results: Results = serde_json::from_str(&text)?;
    let measured = results.cells.iter().filter(|cell| cell.stats.is_some());
    let mut counted = Counts::new();
    for cell in measured.clone() {
        for (cause, count) in &cell.exits {
            *counted.entry(as_listed(cause).into()).or_default() += count;
        }
    }
    ensure!(measured.count() == 1, "not one cell was measured");
    counted.retain(|_, count| *count > 0);
    let listed = count_exits(BufReader::new(fs::File::open(&list)?))?;
    ensure!(
        counted == listed,
        "EL2 counted {counted:?}, the emulator {listed:?}"
    );
    Ok(())
}

/// Writes a script that runs the emulator, with its log of exceptions in the file `list`.
fn write_emulator(program: &Path, list: &Path) -> Result<()> {
    let command = command::typed(&qemu::ensure()?.command());
    let list = command::quoted(list);
    let text = format!("#!/bin/sh\nexec {command} \"$@\" -d int -D {list}\n");
    fs::write(program, text)?;
    Ok(fs::set_permissions(
        program,
        fs::Permissions::from_mode(0o755),
    )?)
}

/// Returns the log's name for `cause`. The log does not distinguish the causes of interrupts.
fn as_listed(cause: &str) -> &str {
    match cause {
        "maintenance" => "irq",
        cause => cause,
    }
}

/// A kind of exception taken to EL2.
enum El2Exception<'c> {
    /// An exit, with its cause.
    Exit(&'c str),
    /// The hypercall that reads the counters.
    Reading,
}

/// Counts the exits by cause between two readings of a CPU's counters: from the first reading to the second, from the
/// third to the fourth, and so on.
fn count_exits(lines: impl BufRead) -> Result<Counts> {
    let mut exits = Counts::new();
    let mut counting: BTreeMap<u32, bool> = BTreeMap::new();
    let mut taken: Option<(u32, bool)> = None;
    let mut to_el2 = false;
    for line in lines.lines() {
        let line = line?;
        if let Some(rest) = line.strip_prefix("Taking exception ") {
            let cpu = rest
                .rsplit_once(" on CPU ")
                .context("an exception of no CPU")?;
            taken = Some((cpu.1.parse()?, rest.contains("[IRQ]")));
            to_el2 = false;
            continue;
        }
        to_el2 |= line == "...from EL1 to EL2" || line == "...from EL0 to EL2";
        let Some(syndrome) = line.strip_prefix("...with ESR ") else {
            continue;
        };
        let (Some((cpu, interrupt)), true) = (taken.take(), to_el2) else {
            continue;
        };
        let (_, esr) = syndrome.split_once('/').context("a syndrome of one part")?;
        let esr = u32::from_str_radix(esr.trim_start_matches("0x"), 16)?;
        match classify(esr, interrupt) {
            El2Exception::Reading => {
                let counting = counting.entry(cpu).or_default();
                *counting = !*counting;
            }
            El2Exception::Exit(cause) if counting.get(&cpu) == Some(&true) => {
                *exits.entry(cause.into()).or_default() += 1;
            }
            El2Exception::Exit(_) => {}
        }
    }
    if counting.is_empty() || counting.values().any(|&counting| counting) {
        bail!("the counters were not read at both ends: {counting:?}");
    }
    Ok(exits)
}

/// Classifies an exception with syndrome `esr` (DDI 0487K.a, D23.2.39), or an interrupt.
fn classify(esr: u32, interrupt: bool) -> El2Exception<'static> {
    /// The ISS for a write from x0 to ICC_SGI1R_EL1, and the ISS field that names x0.
    const SGI: u32 = 0x3a_3016;
    const RT: u32 = 0x3e0;
    if interrupt {
        return El2Exception::Exit("irq");
    }
    let iss = esr & 0x1ff_ffff;
    El2Exception::Exit(match esr >> 26 {
        0x16 | 0x17 if iss & 0xffff == u32::from(abi::COUNTING) => return El2Exception::Reading,
        0x01 if iss & 1 == 0 => "wfi",
        0x01 => "wfe",
        0x16 => "hvc",
        0x17 => "smc",
        0x18 if iss & !RT == SGI => "sgi",
        0x18 => "sysreg",
        0x24 => "mmio",
        _ => "other",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(cpu: u32, name: &str, to: &str, esr: &str) -> String {
        format!("Taking exception 1 [{name}] on CPU {cpu}\n...from {to}\n...with ESR {esr}\n")
    }

    #[test]
    fn exceptions_to_el2_are_counted_while_their_cpu_counts() {
        let reading = |cpu| taken(cpu, "Secure Monitor Call", "EL1 to EL2", "0x17/0x5e000001");
        let wfi = |cpu| taken(cpu, "Undefined Instruction", "EL1 to EL2", "0x1/0x7e00000");
        let list = [
            wfi(0),
            reading(0),
            wfi(0),
            wfi(1),
            taken(0, "Undefined Instruction", "EL1 to EL2", "0x18/0x623a3036"),
            taken(0, "IRQ", "EL1 to EL2", "0x1/0x7e00000"),
            taken(0, "Virtual IRQ", "EL1 to EL1", "0x1/0x7e00000"),
            reading(0),
            wfi(0),
        ]
        .concat();
        let exits = count_exits(list.as_bytes()).unwrap();
        let expected = [("irq", 1), ("sgi", 1), ("wfi", 1)];
        assert!(
            exits
                .iter()
                .map(|(name, &n)| (name.as_str(), n))
                .eq(expected)
        );
        assert!(count_exits(reading(0).as_bytes()).is_err());
        assert!(count_exits(wfi(0).as_bytes()).is_err());
    }
}
