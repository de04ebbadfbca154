// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the options of the machine one by one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use foreign::Quoted;
use platform::{Node, Tree};

use super::ram::Ram;
use crate::board::size::{self, bytes};
use crate::board::{Board, EmulatedMachine};
use crate::gem5::parameters::{Parameters, Values};
use crate::job::Load;
use crate::options::{JobArgs, Metric};
use shell::failure::bad_input;
use shell::output::file_arguments;
use shell::terminal::note;

/// Returns the parameters of the machine: the board's, with the requested changes.
pub fn choose_parameters(args: &JobArgs, board: &Board) -> Result<Values> {
    let (preset, set) = (args.preset.as_deref(), args.set.as_deref());
    for (option, asked) in [
        ("--preset", preset.is_some()),
        ("--set", set.is_some()),
        ("--gem5", args.gem5.is_some()),
    ] {
        if asked {
            board.gem5(option)?;
        }
    }
    match &board.machine {
        EmulatedMachine::Qemu(_) => Ok(Values::new()),
        EmulatedMachine::Gem5(gem5) => {
            Parameters::load(&board.beside(&gem5.parameters))?.pick_values(preset, set)
        }
    }
}

/// Returns the amount of RAM.
pub fn choose_ram(args: &JobArgs, board: &Board) -> Result<Ram> {
    let Some(memory) = &args.memory else {
        return Ok(Ram::new(None, board.machine.memory()));
    };
    if size::parse(memory).is_none() {
        bad_input!("--memory: `{memory}` is not a size; use for instance 64M or 2G");
    }
    let least = board.machine.memory();
    if board.machine.trusted_loader().is_some() && bytes(memory) < bytes(least) {
        bad_input!(
            "--memory: {memory} is too little on {}: Trusted Firmware-A puts the image at 512 MiB of RAM; use --memory {least}",
            board.name
        );
    }
    Ok(Ram::new(Some(memory), least))
}

/// Whether to replace WFE instructions of other kernels with YIELD. WFE is replaced if an emulator runs all CPUs in one
/// thread, unless WFE must trap in some cell, because YIELD does not trap. All cells of a boot share the kernel, so one
/// such cell decides for all.
pub fn replaces_waits(args: &JobArgs, metric: Metric, load: &Load) -> bool {
    let traps = load.measures_linux() && load.plan.lists.trap.values.iter().any(|trap| trap.wfe());
    if traps && metric == Metric::Insns && !args.as_loaded {
        note!("--trap: WFE is to trap in some cells, so the kernel runs as it is in all of them");
    }
    metric == Metric::Insns && !args.as_loaded && !traps
}

/// Reads a file, which must exist and be a device tree.
pub fn tree_bytes(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let bytes = match file_arguments::read("--dtb", path) {
        Ok(read) => read,
        Err(error) => bad_input!("--dtb: {shown}: {error}; name a flattened device tree"),
    };
    match Tree::as_far_as_it_goes(&bytes).is_some() {
        true => Ok(bytes),
        false => bad_input!(
            "--dtb: {shown} is not a flattened device tree; name one, which `dtc -O dtb` makes of a source"
        ),
    }
}

/// Checks a device tree for a boot.
pub fn check_tree(path: &PathBuf) -> Result<PathBuf> {
    let shown = path.display();
    let bytes = tree_bytes(path)?;
    match Tree::new(&bytes) {
        Ok(tree) => {
            let odd: Vec<String> = tree.nodes().flat_map(|node| odd_names(&node)).collect();
            if let Some(first) = odd.first() {
                note!(
                    "--dtb: {shown}: {} names are not as the Devicetree Specification has them \
                     (2.2.1, 2.2.4.1), the first: `{}`; Linux and Rouse take them",
                    odd.len(),
                    Quoted::new(first)
                );
            }
            Ok(fs::canonicalize(path)?)
        }
        Err(error) => bad_input!("--dtb: {shown}: {error}; name another"),
    }
}

/// Returns the names that violate the specification: the node's own name, and the names of its properties.
fn odd_names(node: &Node<'_>) -> Vec<String> {
    let allowed = |name: &[u8], more: &[u8]| {
        let character = |byte: &u8| byte.is_ascii_alphanumeric() || more.contains(byte);
        (1..32).contains(&name.len()) && name.iter().all(character)
    };
    let own = node.depth() > 0 && !allowed(node.kind(), b",._+-");
    let own = own.then_some(node.name).into_iter();
    let properties = node
        .property_names()
        .filter(|name| !allowed(name, b",._+-?#"));
    let odd = own.chain(properties);
    odd.map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}
