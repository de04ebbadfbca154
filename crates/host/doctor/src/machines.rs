// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks, from a machine's device tree or ACPI tables, whether Rouse can run on the machine, before a user carries a
//! disk there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use acpi::Ram;
use anyhow::{Result, bail};
use platform::{Conduit, Enable, Firmware, Platform, Region, Room, Uart, UartKind, Unfit, carve};
use serde::Serialize;

use super::dump::Dump;
use crate::DoctorArgs;
use running::job::checks;
use shell::failure::bad_input;
use shell::output::Output;
use shell::terminal::say;

/// Largest number of characters in a line.
const WIDTH: usize = 80;
/// Largest number of characters that a file's name may take up in a line.
const NAME: usize = 34;

/// A finding about the machine that a file describes.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The file, or the folder of tables.
    pub file: String,
    /// Whether Rouse can run on the machine.
    pub ok: bool,
    /// The reason if Rouse can't run there, or else a note.
    pub why: Option<String>,
    /// The machine's console, if Rouse can drive one.
    pub console: Option<String>,
    /// Summary of the machine in a few words.
    #[serde(skip)]
    found: String,
}

/// Checks the machine in every named file, and prints the findings.
pub fn report_machines(args: &DoctorArgs) -> Result<()> {
    let mut findings = Vec::new();
    for named in &args.dtb {
        let mut files = Vec::new();
        trees(named, &mut files)?;
        if files.is_empty() {
            bad_input!(
                "--dtb: {} has no *.dtb; name a file, or another folder",
                named.display()
            );
        }
        for file in files {
            findings.push(match checks::tree_bytes(&file) {
                Ok(blob) => of_tree(&file, &blob),
                // A broken file does not stop the check of a folder's other files.
                Err(_) if file != *named => {
                    Finding::refused(&file, "it is not a flattened device tree")
                }
                Err(error) => return Err(error),
            });
        }
    }
    for named in &args.acpi {
        findings.push(judge_tables(named)?);
    }
    let json = Output::claim_any("--json", args.json.as_ref())?;
    findings
        .iter()
        .for_each(|finding| say!("{}", finding.line()));
    summary(&findings).iter().for_each(|line| say!("{line}"));
    if let Some(json) = json {
        json.write(&format!("{}\n", serde_json::to_string_pretty(&findings)?))?;
    }
    let refused = findings.iter().filter(|finding| !finding.ok).count();
    if refused > 0 {
        bail!(
            "Rouse can't run on {refused} of {} machines",
            findings.len()
        );
    }
    Ok(())
}

/// Collects the device trees at `named`, a file or a folder.
pub fn trees(named: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let unread = |error: std::io::Error| {
        let shown = named.display();
        shell::failure::BadInput::error(format!(
            "--dtb: {shown}: {error}; name a device tree or a folder of them"
        ))
    };
    if !fs::metadata(named).map_err(unread)?.is_dir() {
        files.push(named.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(named).map_err(unread)?;
    let mut below = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(unread)?;
    below.sort();
    for path in below {
        // A link may lead into a cycle.
        if path.is_dir() && !path.is_symlink() {
            trees(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "dtb") && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Checks the machine of a device tree. The tree may lack RAM, which the boot loader often adds.
pub fn of_tree(file: &Path, blob: &[u8]) -> Finding {
    let (mut room, mut again) = (Box::new(Room::new()), Box::new(Room::new()));
    let read = Platform::from_fdt(blob, &mut room);
    let (bare, note) = match &read {
        Err(platform::Error::Registers {
            node,
            why: Unfit::InRam,
            ..
        }) => (
            true,
            Some(format!(
                "{node} is in the RAM of the file: the boot loader has to write that"
            )),
        ),
        Err(
            platform::Error::NoNode("memory") | platform::Error::Property { node: "memory", .. },
        ) => (true, None),
        _ => (false, None),
    };
    let read = match bare {
        true => Platform::from_fdt_with_ram(blob, platform::Ram::new(), &mut again),
        false => read,
    };
    match read {
        Ok(platform) => Finding::of(file, &platform, note),
        Err(error) => Finding::refused(file, &error.to_string()),
    }
}

/// Checks the machine that is described by the output of `acpidump`, or by a folder of tables.
fn judge_tables(named: &Path) -> Result<Finding> {
    let dump = Dump::read(named)?;
    let mut ram = Ram::new();
    // The tables do not describe RAM.
    ram.usable(Region {
        base: Dump::BASE,
        size: Dump::SIZE,
    })?;
    let mut room = Box::new(Room::new());
    Ok(match acpi::read(&dump, Dump::BASE, &ram, "", &mut room) {
        Ok(read) => Finding::of(named, &read.platform, Some(read.notes.to_string())),
        Err(error) => Finding::refused(named, &error.to_string()),
    })
}

impl Finding {
    fn refused(file: &Path, why: &str) -> Self {
        Self {
            file: file.display().to_string(),
            ok: false,
            why: Some(why.to_owned()),
            console: None,
            found: String::new(),
        }
    }

    fn of(file: &Path, platform: &Platform<'_>, note: Option<String>) -> Self {
        let console = platform.uart.as_ref().map(uart_value);
        let wrong = obstacle(platform);
        let by_table = (platform.psci.is_none() && is_by_table(platform)).then(|| {
            "no PSCI: a spin-table starts the CPUs, and nothing turns the machine off".into()
        });
        let psci = match platform.psci {
            Some(Conduit::Smc) => "SMC",
            Some(Conduit::Hvc) => "HVC",
            None => "none",
        };
        Self {
            file: file.display().to_string(),
            ok: wrong.is_none(),
            found: format!(
                "{} CPUs, PSCI {psci}, {}",
                platform.cpus.len() + platform.cpus_ignored,
                console.as_deref().unwrap_or("no console")
            ),
            why: wrong.or(note).or(by_table),
            console,
        }
    }

    /// Returns a line of at most [`WIDTH`] characters.
    fn line(&self) -> String {
        let (state, rest) = match (self.ok, &self.why) {
            (false, Some(why)) => ("no", shorten_reason(why)),
            _ => ("ok", self.found.as_str()),
        };
        // The end of a path stays, because it distinguishes the path from other paths.
        let name: Vec<char> = self.file.chars().collect();
        let name = match name.len().checked_sub(NAME) {
            Some(1..) => format!(
                "...{}",
                name[name.len() + 3 - NAME..].iter().collect::<String>()
            ),
            _ => self.file.clone(),
        };
        let line = format!("{state} {name:NAME$} {rest}");
        match line.chars().count() > WIDTH {
            true => format!("{}...", line.chars().take(WIDTH - 3).collect::<String>()),
            false => line,
        }
    }
}

/// Whether the CPUs start through a spin-table.
fn is_by_table(platform: &Platform<'_>) -> bool {
    let by_table = |cpu: &platform::Cpu| matches!(cpu.enable, Enable::SpinTable(_));
    platform.cpus.iter().any(by_table)
}

/// Returns why Rouse cannot run on a machine whose description is complete. The conditions that the image itself checks
/// come first.
fn obstacle(platform: &Platform<'_>) -> Option<String> {
    let by_table = is_by_table(platform);
    let pool = carve::pool(platform.cpus.len() as u64);
    let short = match platform.memory.is_empty() {
        true => None,
        false => carve::divide(&platform.memory, &platform.reserved, pool).err(),
    };
    let lacks = platform.lacks().map(str::to_owned);
    let why = match platform.described_by {
        Firmware::Fdt => "no PSCI is described; a boot loader may add it",
        Firmware::Acpi => "no PSCI is described",
    };
    let no_psci = platform.psci.is_none() && !by_table;
    lacks
        .or_else(|| short.map(|short| short.to_string()))
        .or_else(|| no_psci.then(|| why.to_owned()))
}

/// Returns the value of `rouse.uart=` that names `uart`.
fn uart_value(uart: &Uart) -> String {
    let base = uart.base;
    match uart.kind {
        UartKind::Pl011 => format!("pl011,{base:#x}"),
        UartKind::Ns16550 { shift, width } => format!("16550,{base:#x},{shift},{width}"),
        UartKind::Imx => format!("imx,{base:#x}"),
        UartKind::Lpuart { offset } => format!("lpuart,{base:#x},{offset}"),
        UartKind::Geni => format!("geni,{base:#x}"),
        UartKind::Armada3700 => format!("armada3700,{base:#x}"),
    }
}

/// Returns a reason without its usual prefix.
fn shorten_reason(why: &str) -> &str {
    [
        "device tree: the interrupt controller is ",
        "device tree: ",
        "ACPI: ",
    ]
    .iter()
    .find_map(|start| why.strip_prefix(start))
    .unwrap_or(why)
}

/// Counts the machines on which Rouse can run, their notes by text, and the other machines by reason.
pub fn summary(findings: &[Finding]) -> Vec<String> {
    let well = findings.iter().filter(|finding| finding.ok);
    let silent = well
        .clone()
        .filter(|finding| finding.console.is_none())
        .count();
    let mut lines = vec![format!(
        "{} of {} machines can run Rouse, {silent} of them without a console",
        well.count(),
        findings.len(),
    )];
    let mut reasons: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for finding in findings {
        if let Some(why) = &finding.why {
            *reasons.entry((!finding.ok, why)).or_default() += 1;
        }
    }
    for ((refused, why), count) in reasons {
        let mut line = format!("{count:6}{}", if refused { "" } else { " note:" });
        for word in why.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::replace(&mut line, " ".repeat(6)));
            }
            line += &format!(" {word}");
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_names_the_reason() {
        let far = format!("{}/imx8mp-evk.dtb", "folder/".repeat(20));
        let error = platform::Error::Version(16, 16).to_string();
        let finding = Finding::refused(far.as_ref(), &error);
        let line = finding.line();
        assert_eq!(line.chars().count(), WIDTH);
        assert!(line.contains("imx8mp-evk.dtb version 16 of"), "{line}");
        let lines = summary(&[finding]);
        assert_eq!(
            lines[0],
            "0 of 1 machines can run Rouse, 0 of them without a console"
        );
        assert!(
            lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{lines:?}"
        );
        let words: Vec<&str> = lines[1..]
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        assert_eq!(words.join(" "), format!("1 {error}"));
    }

    #[test]
    fn a_console_is_named_as_the_boot_argument_has_it() {
        use platform::uart::Named;
        for kind in [
            UartKind::Pl011,
            UartKind::Ns16550 { shift: 2, width: 4 },
            UartKind::Imx,
            UartKind::Lpuart { offset: 0 },
            UartKind::Geni,
            UartKind::Armada3700,
        ] {
            let uart = Uart {
                kind,
                base: 0x900_0000,
            };
            assert_eq!(Named::parse(&uart_value(&uart)), Some(Named::Ready(uart)));
        }
    }

    /// Reads QEMU's tree, once unchanged and once without memory.
    #[test]
    fn a_tree_without_ram_is_read() {
        let virt = include_bytes!("../../../no_std/platform/tests/virt.dtb");
        let found = of_tree("virt.dtb".as_ref(), virt);
        assert!(found.ok && found.why.is_none(), "{found:?}");
        assert_eq!(found.console.as_deref(), Some("pl011,0x9000000"));
        let mut bare = virt.to_vec();
        let at = bare
            .windows(7)
            .position(|text| text == b"memory\0")
            .unwrap();
        bare[at] = b'M';
        assert!(of_tree("virt.dtb".as_ref(), &bare).ok);
    }

    /// Checks QEMU's tree, once with a region that has room for only one redistributor, and once with the GIC at an
    /// address in RAM.
    #[test]
    fn the_verdict_is_the_images() {
        let virt = include_bytes!("../../../no_std/platform/tests/virt.dtb");
        let with = |from: [u32; 4], to: [u32; 4]| {
            let [from, to] = [from, to].map(|cells| cells.map(u32::to_be_bytes).concat());
            let at = virt.windows(16).position(|bytes| bytes == from).unwrap();
            let mut tree = virt.to_vec();
            tree[at..at + 16].copy_from_slice(&to);
            of_tree("virt.dtb".as_ref(), &tree)
        };
        let gicr = [0, 0x80a_0000, 0, 0xf6_0000];
        let small = with(gicr, [0, 0x80a_0000, 0, 0x2_0000]);
        assert!(
            !small.ok && small.line().contains("redistributors"),
            "{small:?}"
        );
        let gicd = [0, 0x800_0000, 0, 0x1_0000];
        // A device in RAM gives only a note, because the boot loader may replace the RAM that a file lists.
        let in_ram = with(gicd, [0, 0x4000_0000, 0, 0x1_0000]);
        let summary = summary(&[in_ram]).join("\n");
        assert!(summary.starts_with("1 of 1 machines"), "{summary}");
        assert!(summary.contains("     1 note: "), "{summary}");
        assert!(summary.contains("is in the RAM of the file"), "{summary}");
    }
}
