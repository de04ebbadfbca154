// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doctor --boards`: the boards, what each one models, and what it lacks.

use anyhow::Result;

use crate::board::{Board, EmulatedMachine, Starts, names};
use crate::gem5::parameters::{DEFAULT, Parameters};
use shell::terminal::{print_lines, say};

/// Limits that all emulated boards share, so that the boards' files need not repeat them.
const COMMON: &str = "\
Boards of QEMU model no caches, pipelines or power states: a number is instructions (--metric insns), or time of the
emulator (--metric time), never of the machine. Cycles (--metric cycles) are of a core that is modelled, with the
parameters that are kept with the results, and not of the machine either. Under --metric insns every counter runs at 1 GHz, so that a tick is an
instruction; under --metric time it has the machine's rate. docs/fidelity.md says what the emulator makes of waits, and
every run measures it.";

/// Prints the boards.
pub fn list() -> Result<()> {
    for name in names()? {
        print_lines(describe_board(&Board::load(&name)?)?);
        say!("");
    }
    print_lines(COMMON.lines());
    Ok(())
}

/// Describes a board.
fn describe_board(board: &Board) -> Result<Vec<String>> {
    let cpus = &board.cpus;
    let mut lines = vec![format!("{}: {}", board.name, board.about)];
    let mut add = |title: &str, texts: &[String]| {
        let titles = std::iter::once(title).chain(std::iter::repeat(""));
        let said = titles.zip(texts);
        lines.extend(said.map(|(title, text)| format!("    {title:<9}{text}")));
    };
    add(
        "CPUs",
        &[format!(
            "{} to {}, {} by default; {}",
            cpus.min,
            cpus.max,
            cpus.default,
            model_line(board)
        )],
    );
    match &board.machine {
        EmulatedMachine::Qemu(_) => add_qemu(board, &mut add),
        EmulatedMachine::Gem5(gem5) => add_gem5(board, &gem5.parameters, &mut add)?,
    }
    add("models", &board.models);
    add("lacks", &board.lacks);
    Ok(lines)
}

/// Adds the properties of a QEMU board.
fn add_qemu(board: &Board, add: &mut impl FnMut(&str, &[String])) {
    add("counter", &[counter_text(board)]);
    let loaded =
        "the bare machine (--under none): always loaded by QEMU, with a device tree, at EL1";
    let starts = board.machine.trusted_loader().map(|trusted| trusted.starts);
    let (boots, bare) = match starts {
        None if board.machine.firmware().is_some() => (
            "by UEFI: handed to it (--boot kernel) or from a disk (--boot virtio, nvme)",
            loaded,
        ),
        None => ("loaded by QEMU, with a device tree", loaded),
        Some(Starts::UBoot) => ("from a disk (--boot virtio, nvme), by U-Boot", loaded),
        Some(Starts::Image) => (
            "by Trusted Firmware-A, with a device tree",
            "the bare machine (--under none): likewise, and the guest goes down to EL1 by itself",
        ),
    };
    add("boots", &[boots.into(), bare.into()]);
}

/// Adds the properties of a gem5 board: its parameters, with their values in each preset.
fn add_gem5(board: &Board, file: &str, add: &mut impl FnMut(&str, &[String])) -> Result<()> {
    let models = board.cpus.models.iter();
    let cores: Vec<String> = models
        .map(|(name, about)| format!("{name}: {about}"))
        .collect();
    add("cores", &cores);
    let parameters = Parameters::load(&board.beside(file))?;
    add(
        "boots",
        &["loaded by gem5, with a device tree, all CPUs at once".into()],
    );
    let presets: Vec<&str> = parameters.presets().into_iter().collect();
    add(
        "presets",
        &[format!("{} ({DEFAULT} by default)", presets.join(", "))],
    );
    let mut lines = Vec::new();
    for (name, about) in parameters.about() {
        lines.push(format!("{name}: {about}"));
    }
    add("made of", &lines);
    Ok(())
}

fn model_line(board: &Board) -> String {
    match board.model_names()[..] {
        [only] => only.into(),
        ref names => format!("{} ({} by default)", names.join(", "), board.cpus.model),
    }
}

/// Returns the counter's frequency for each of the board's metrics.
fn counter_text(board: &Board) -> String {
    let frequencies = board.cpus.counter_hz.iter();
    let texts =
        frequencies.map(|(metric, &hertz)| format!("{} MHz ({metric})", hertz as f64 / 1e6));
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_described_line_by_line() {
        let lines = describe_board(&Board::load("graviton3").unwrap()).unwrap();
        assert!(lines[0].starts_with("graviton3: "));
        assert_eq!(lines[1], "    CPUs     1 to 64, 2 by default; neoverse-v1");
        assert_eq!(lines[2], "    counter  1000 MHz (insns), 1050 MHz (time)");
        let lacks = lines.iter().position(|line| line.starts_with("    lacks"));
        assert!(lines[lacks.unwrap() + 1].starts_with("             "));
    }
}
