// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cost --asm`: lists the instructions of a path, and how many times a pass executes each of them.

mod listing;

use std::collections::BTreeMap;
use std::path::Path as File;
use std::process::Command;

use anyhow::{Context, Result, bail};
use cost::Path;

use crate::cost::recorder::{Bench, CPUS, Recorded};
use crate::cost::trace::{Executed, Window};
use crate::cost::visit;
use crate::cost::{CostArgs, costs};
use guests::symbols;
use listing::Counts;
use providing::toolchain::{self, OBJDUMP};
use shell::failure::{self, bad_input};
use shell::terminal::{print_lines, say};

/// Lists the instructions of the path named `path`.
pub fn list_path(path: &str, args: &CostArgs) -> Result<()> {
    let Some(path) = Path::parse(path) else {
        let names: Vec<&str> = Path::ALL.iter().map(|path| path.name()).collect();
        bad_input!("--asm: there is no path `{path}`; use {}", names.join(", "));
    };
    let Some(objdump) = toolchain::objdump() else {
        bad_input!("{OBJDUMP} is not there; get it with `rustup component add llvm-tools`");
    };
    let bench = match path.is_floor() {
        true => Bench::with_floors(&args.board, &args.limits)?,
        false => Bench::new(&args.board, &args.limits)?,
    };
    let arguments = format!("rouse.cost={}", path.name());
    let recorded = bench.record(args.deliver, CPUS, &arguments)?;
    let (windows, all) = costs::clean_windows(&recorded.trace.windows, path, args.deliver);
    if windows.is_empty() {
        return Err(failure::listed(
            &format!(
                "{}: none of {all} passes showed it and nothing else; the console printed",
                path.name()
            ),
            &recorded.console,
        ));
    }
    say!(
        "{}: {} ({}), per pass, of {} passes",
        path.name(),
        path.about(),
        args.deliver.name(),
        windows.len()
    );
    let guest_elf = bench.built.guest_elf(bench.atomics).map(|elf| &**elf);
    let hypervisor =
        |window: &Window| -> Vec<Executed> { clone_steps(visit::hypervisor_steps(window)) };
    let guest = |window: &Window| clone_steps(visit::guest_steps(window).unwrap_or_default());
    show_image(
        &objdump,
        "hypervisor",
        Some(&bench.built.hypervisor),
        &recorded,
        &windows,
        hypervisor,
    )?;
    show_image(&objdump, "guest", guest_elf, &recorded, &windows, guest)
}

fn clone_steps(steps: Vec<&Executed>) -> Vec<Executed> {
    steps.into_iter().cloned().collect()
}

/// Prints the instructions of the image `name` that were executed in the windows. `elf` is the image's file.
fn show_image(
    objdump: &File,
    name: &str,
    elf: Option<&File>,
    recorded: &Recorded,
    windows: &[&Window],
    steps: impl Fn(&Window) -> Vec<Executed>,
) -> Result<()> {
    let (Some(elf), Some(base)) = (elf, symbols::base(&recorded.console, name)) else {
        return Ok(());
    };
    let mut counts = Counts {
        passes: windows.len() as u64,
        executed: BTreeMap::new(),
    };
    for step in windows.iter().flat_map(|window| steps(window)) {
        *counts
            .executed
            .entry(step.pc.wrapping_sub(base))
            .or_default() += 1;
    }
    if counts.executed.is_empty() {
        return Ok(());
    }
    let text = disassemble(objdump, elf)?;
    say!("");
    say!("{name}");
    print_lines(listing::executed_lines(&text, &counts));
    Ok(())
}

fn disassemble(objdump: &File, elf: &File) -> Result<String> {
    let output = Command::new(objdump)
        .args(["--disassemble", "--no-show-raw-insn", "--demangle"])
        .arg(elf)
        .output()
        .with_context(|| format!("{} can't be started", objdump.display()))?;
    if !output.status.success() {
        bail!(
            "{OBJDUMP}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
