// SPDX-License-Identifier: MIT OR Apache-2.0

// This crate is only for programs of this workspace, so a field with a clear name needs no comment.
#![allow(missing_docs)]
//! The verb `doctor`: lists the available tools, the missing tools, and how to get them.

mod options;

pub use options::DoctorArgs;

mod dump;
pub mod machines;

use std::path::PathBuf;

use anyhow::{Result, bail};

use page::document::Document;
use providing::gem5;
use providing::qemu::{self, Found};
use providing::toolchain::{self, TARGET, output};
use providing::{apt, browser, trusted_firmware};
use running::debug::debugger;
use running::kvm::kernel;
use running::{boards, xen};
use shell::failure::bad_input;
use shell::places;
use shell::terminal::{self, print_document};

/// File name of the UEFI firmware that some boards boot (boards/*.toml).
const FIRMWARE: &str = "QEMU_EFI.fd";

/// The release of Trusted Firmware-A for boards that start with it.
const TRUSTED: &str = "2.12.1";

/// A tool: its name, its state, and a remedy if it needs one.
struct Finding {
    tool: &'static str,
    state: String,
    remedy: String,
    /// Whether nothing runs without the tool.
    blocks: bool,
}

impl Finding {
    fn new(tool: &'static str, state: impl Into<String>) -> Self {
        Self {
            tool,
            state: state.into(),
            remedy: String::new(),
            blocks: false,
        }
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: remedy.into(),
            ..self
        }
    }

    fn blocks(self) -> Self {
        Self {
            blocks: true,
            ..self
        }
    }
}

/// Checks every tool. If device trees or ACPI tables are named, checks the machines that they describe instead.
pub fn doctor(args: &DoctorArgs) -> Result<()> {
    if !args.dtb.is_empty() || !args.acpi.is_empty() {
        return machines::report_machines(args);
    }
    if args.boards {
        return boards::list();
    }
    if args.json.is_some() {
        bad_input!("--json: no machine is named; name one by --dtb or --acpi");
    }
    let findings = [
        rust(),
        target(),
        emulator(),
        firmware(),
        trusted_firmware(),
        xen(),
        host_kernel(),
        gem5(),
        binutils(),
        llvm_tools(),
        debugger(),
        browser(),
    ];
    print_document(&document(&findings), terminal::width());
    let missing: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.blocks)
        .map(|finding| finding.tool)
        .collect();
    if !missing.is_empty() {
        bail!(
            "`run` can't work without {}; the lines above show how to get it",
            missing.join(" and ")
        );
    }
    Ok(())
}

/// Returns a line for each tool, with the remedy on a line below it.
fn document(findings: &[Finding]) -> Document {
    let longest = findings.iter().map(|finding| finding.tool.len()).max();
    let longest = longest.unwrap_or(0);
    let mut document = Document::default();
    for Finding {
        tool,
        state,
        remedy,
        ..
    } in findings
    {
        // A wrapped line keeps the indentation of its first part.
        document.push(format!("  {tool:longest$}  {state}"));
        if !remedy.is_empty() {
            document.push(format!("      to get it: {remedy}"));
        }
    }
    document
}

fn rust() -> Finding {
    match toolchain::rustc_version() {
        Some(version) => Finding::new("rust", version),
        None => Finding::new("rust", "missing")
            .remedy("https://rustup.rs")
            .blocks(),
    }
}

fn target() -> Finding {
    let add = format!("rustup target add {TARGET}");
    match toolchain::has_target(TARGET) {
        Some(true) => Finding::new("rust target", TARGET),
        Some(false) => {
            Finding::new("rust target", "missing").remedy(format!("on its own, or {add}"))
        }
        None => Finding::new("rust target", "unknown, there is no rustup").remedy(add),
    }
}

fn emulator() -> Finding {
    let finding = |state: String| Finding::new("qemu-system-aarch64", state);
    match qemu::find() {
        Found::Usable(emulator) => finding(format!("{} ({})", emulator.version, emulator.shown())),
        Found::Unusable(why) => finding("unusable".into()).remedy(why).blocks(),
        Found::Missing(old) => {
            let state = old.map_or("missing".into(), |old| format!("too old: {old}"));
            match qemu::provide_obstacle() {
                None => finding(state).remedy("on its own, below target/tools, when first needed"),
                Some(way) => finding(state).remedy(way).blocks(),
            }
        }
    }
}

fn firmware() -> Finding {
    let finding = |state: String| Finding::new("uefi firmware", state);
    match (qemu::firmware(FIRMWARE), qemu::find()) {
        (Ok(path), _) => finding(places::shown(&path)),
        (Err(_), Found::Missing(_)) if qemu::provide_obstacle().is_none() => {
            finding("missing".into()).remedy("on its own, with QEMU")
        }
        (Err(error), _) => {
            finding("missing, optional: boards with UEFI".into()).remedy(error.to_string())
        }
    }
}

fn xen() -> Finding {
    check_tool("xen", xen::find_provided(), "`--under xen`", "--xen FILE")
}

fn trusted_firmware() -> Finding {
    check_tool(
        "trusted firmware",
        trusted_firmware::find_provided(TRUSTED),
        "boards virt-tfa, virt-uboot",
        "--board virt-el3",
    )
}

fn host_kernel() -> Finding {
    let provided = kernel::provided();
    check_tool(
        "kernel of KVM's host",
        provided,
        "`--under kvm`",
        "--host-kernel IMAGE",
    )
}

/// Returns the finding about a tool that Debian's apt fetches when `user` first needs it. `named` is the option or
/// variable with which the user names another copy of the tool.
fn check_tool(tool: &'static str, provided: Option<PathBuf>, user: &str, named: &str) -> Finding {
    match provided {
        Some(path) => Finding::new(tool, places::shown(&path)),
        None => Finding::new(tool, format!("missing, optional: {user}")).remedy(if apt::usable() {
            format!("on its own, below target/tools, when first needed, or {named}")
        } else {
            format!("{named}; this computer lacks Debian's apt, which would fetch it")
        }),
    }
}

fn browser() -> Finding {
    let (found, elsewhere) = (browser::find(), browser::find_other_browser());
    match elsewhere.filter(|_| found.is_none()) {
        None => {
            let named = format!("{}=/path/to/chromium", browser::VARIABLE);
            check_tool("browser", found, "`dev pages`", &named)
        }
        Some(elsewhere) => {
            let shown = elsewhere.display();
            Finding::new("browser", format!("{shown}, with its own fonts")).remedy(format!(
                "`dev pages` fetches another; this one: {}={shown}",
                browser::VARIABLE
            ))
        }
    }
}

fn gem5() -> Finding {
    match gem5::find(None) {
        Ok(found) => Finding::new("gem5", format!("{} ({})", found.version, found.shown())),
        Err(why) => {
            let why = why.to_string();
            let remedy = why.strip_prefix("gem5 is missing: ").unwrap_or(&why);
            Finding::new("gem5", "missing, optional: board gem5").remedy(remedy)
        }
    }
}

fn binutils() -> Finding {
    match output("cargo-objdump", &["--version"]) {
        Some(version) => Finding::new(
            "cargo-binutils",
            version.lines().next().unwrap_or("there").to_owned(),
        ),
        None => Finding::new(
            "cargo-binutils",
            "missing, optional: cargo objdump, nm, size by hand",
        )
        .remedy("cargo install cargo-binutils"),
    }
}

fn llvm_tools() -> Finding {
    match toolchain::objdump() {
        Some(found) => Finding::new("llvm-objdump", places::shown(&found)),
        None => Finding::new("llvm-objdump", "missing, optional: `cost --asm`")
            .remedy("rustup component add llvm-tools"),
    }
}

fn debugger() -> Finding {
    match debugger::find() {
        Some(found) => Finding::new("debugger", format!("{}: {}", found.name(), found.version)),
        None => Finding::new("debugger", "none knows arm64, optional: `run --debug`")
            .remedy(debugger::how_to_install()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let gem5 = format!(
            "build it, {}",
            "and name the program by GEM5=PATH, ".repeat(9)
        );
        let findings = [
            Finding::new("rust", "rustc 1.95.0 (59807616e 2026-04-14)"),
            Finding::new(
                "kernel of KVM's host",
                format!("missing, optional: {}", "x ".repeat(40)),
            ),
            Finding::new("gem5", "missing, optional: board gem5").remedy(gem5),
        ];
        for width in [40, 80, 120] {
            let lines = document(&findings).terminal(Some(width));
            for line in &lines {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            let begun = |line: &str| line.len() - line.trim_start().len();
            assert!(lines.iter().all(|line| begun(line) >= 2), "{lines:#?}");
            let begun = lines.iter().filter(|line| begun(line) == 2);
            assert_eq!(begun.count(), findings.len(), "{lines:#?}");
            let told = lines.concat().split_whitespace().collect::<String>();
            assert_eq!(told.matches("GEM5=PATH").count(), 9, "{told}");
        }
    }
}
