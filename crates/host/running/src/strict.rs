// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches a running machine for violations of the architecture's rules that an emulator does not enforce. The
//! recorder passes the instructions of every CPU to crate `rules`, and this module adds the names of functions to the
//! findings.
//!
//! If a finding is false, the rule is corrected. If the rule has too little information, a comment explains why the
//! code is right: `strict RULE: why`. The comment is on the instruction's line or directly before it. If the
//! instruction was inlined, the comment may be at the call instead; in assembly, it is at the label. Code that breaks
//! rules on purpose has the comment `strict any rule: why`.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use rules::{Finding, Place};

use crate::boot::Recorder;
use crate::emulator::Emulator;
use guests::debug_info::Frame;
use guests::symbols::{Level, Site, Symbols};
use shell::failure::bad_input;
use shell::partial_files::Scratch;
use shell::places;

/// The folder with wrappers of single instructions. A finding in a wrapper is reported for the wrapper's caller.
const WRAPPERS: &str = "crates/no_std/arch/";
/// Folders with assembly.
const ASSEMBLY: [&str; 3] = [
    "hypervisor/src",
    "guest-kernel-shim",
    "crates/no_std/arch/src",
];
/// Prefix of a comment that explains why a finding is false.
const SILENCE: &str = "strict ";

/// A plugin with its files, prepared for a boot.
#[derive(Debug)]
pub struct Checker {
    plugin: PathBuf,
    findings: PathBuf,
    _place: Scratch,
}

/// A finding, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// The rule's name.
    pub rule: String,
    /// File and function, or the symbol in assembly. This name does not depend on line numbers.
    pub place: String,
    /// The full text.
    shown: String,
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl BrokenRule {
    /// Returns a finding with only `rule` and `place`, for tests.
    pub fn new(rule: &str, place: &str) -> Self {
        Self {
            rule: rule.into(),
            place: place.into(),
            shown: format!("{rule}: {place}"),
        }
    }
}

impl Checker {
    /// Prepares to watch a boot by `emulator`.
    pub fn new(emulator: &Emulator) -> Result<Self> {
        let Emulator::Qemu(qemu) = emulator else {
            bad_input!("--strict: the rules are watched on QEMU only");
        };
        let place = Scratch::new()?;
        Ok(Self {
            plugin: crate::critical::build_plugin(qemu.command())?,
            findings: place.path().join("findings"),
            _place: place,
        })
    }

    /// Returns the plugin, for the boot to load.
    pub fn recorder(&self) -> Recorder<'_> {
        Recorder::Plugin {
            plugin: &self.plugin,
            options: vec![("findings", &self.findings)],
        }
    }

    /// Returns the findings in our images, after the boot, except findings that a comment explains. Code of firmware
    /// and of other kernels is not judged.
    pub fn broken_rules(&self, symbols: &Symbols) -> Result<Vec<BrokenRule>> {
        let text = fs::read_to_string(&self.findings).context("the recorder left no findings")?;
        let findings = text.lines().filter_map(Finding::parse);
        Ok(findings
            .filter_map(|finding| name_code(&finding, symbols))
            .collect())
    }
}

/// Returns a finding with the names of its code. `None` if it is not in our code, or if a comment explains it.
fn name_code(finding: &Finding, symbols: &Symbols) -> Option<BrokenRule> {
    let level = level_of(finding.place)?;
    let site = symbols.find_site(level, finding.place.pc)?;
    if is_explained(&finding.rule, &site) {
        return None;
    }
    let about = rules::RULES.iter().find(|rule| rule.name == finding.rule);
    let cites = about.map_or("", |rule| rule.cites);
    let mut shown = format!(
        "{}: {} on CPU {} at EL{} ({:#x}), {}",
        finding.rule,
        full_place(&site),
        finding.cpu,
        finding.place.level,
        finding.place.pc,
        finding.what,
    );
    if let Some(other) = finding.other {
        let site = self::level_of(other).and_then(|level| symbols.find_site(level, other.pc));
        let site = site.as_ref().map_or(format!("{:#x}", other.pc), full_place);
        shown += &format!("; the other instruction: {site}");
    }
    shown += &format!(" [{cites}]");
    Some(BrokenRule {
        rule: finding.rule.clone(),
        place: short_place(&site),
        shown,
    })
}

fn level_of(place: Place) -> Option<Level> {
    match place.level {
        1 => Some(Level::El1),
        2 => Some(Level::El2),
        _ => None,
    }
}

/// Returns the function of a finding: the innermost one of this workspace that is not just a wrapper.
fn our_frame(site: &Site) -> Option<&Frame> {
    let mut ours = site.frames.iter().filter(|frame| frame.ours);
    let first = ours.clone().next();
    ours.find(|frame| !frame.file.starts_with(WRAPPERS))
        .or(first)
}

/// Returns the function of `frame`, or the one that contains its closure.
fn function_in<'s>(site: &'s Site, frame: &'s Frame) -> &'s str {
    let outwards = site.frames.iter().skip_while(|one| *one != frame);
    let mut names = outwards
        .filter(|one| one.file == frame.file)
        .map(|one| short_name(&one.function));
    names
        .find(|name| !name.starts_with('{'))
        .unwrap_or_else(|| short_name(&frame.function))
}

/// Returns the file and the function of an instruction, or its symbol.
fn short_place(site: &Site) -> String {
    match our_frame(site) {
        Some(frame) => format!("{}: {}", frame.file, function_in(site, frame)),
        None => site.symbol.clone(),
    }
}

/// Returns the image, function, file and line of an instruction, or its image and symbol.
fn full_place(site: &Site) -> String {
    match our_frame(site) {
        Some(frame) => {
            let function = function_in(site, frame);
            format!("{}: {function} ({}:{})", site.image, frame.file, frame.line)
        }
        None => format!("{}: {}", site.image, site.symbol),
    }
}

/// Returns a function's name without its path and generic parameters.
fn short_name(function: &str) -> &str {
    let name = function.split('<').next().unwrap_or(function);
    match name.rsplit("::").next() {
        Some(last) if !last.is_empty() => last,
        _ => function,
    }
}

/// Whether a comment explains why the code at `site` is right.
fn is_explained(rule: &str, site: &Site) -> bool {
    let ours = site.frames.iter().filter(|frame| frame.ours);
    let mut lines = ours.filter_map(|frame| {
        let text = fs::read_to_string(places::root().join(&frame.file)).ok()?;
        Some((text, frame.line as usize))
    });
    lines.any(|(text, line)| explains_rule(&text, line, rule))
        || site.frames.is_empty() && is_label_explained(&site.symbol, rule)
}

/// Whether a comment on line `line` of `text`, or right before it, is about `rule`.
fn explains_rule(text: &str, line: usize, rule: &str) -> bool {
    let wanted = [rule, "any rule"].map(|rule| format!("{SILENCE}{rule}: "));
    let speaks = |line: &&str| wanted.iter().any(|wanted| line.contains(wanted));
    let lines: Vec<&str> = text.lines().take(line).collect();
    let Some((last, before)) = lines.split_last() else {
        return false;
    };
    let comment = |line: &&&str| line.trim_start().starts_with("//");
    let mut comments = before.iter().rev().take_while(comment);
    speaks(last) || comments.any(speaks)
}

/// Whether a comment at the label `symbol` in assembly is about `rule`.
fn is_label_explained(symbol: &str, rule: &str) -> bool {
    let label = format!("{symbol}:");
    let mut files = Vec::new();
    for folder in ASSEMBLY {
        rust_files(&places::root().join(folder), &mut files);
    }
    files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .any(|text| {
            let line = text
                .lines()
                .position(|line| line.trim_start().starts_with(&label));
            line.is_some_and(|line| explains_rule(&text, line + 1, rule))
        })
}

/// Adds the Rust files below `folder` to `found`.
fn rust_files(folder: &std::path::Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(files: &[(&str, &str)]) -> Site {
        let frames = files.iter().map(|(file, function)| Frame {
            function: (*function).into(),
            ours: !file.starts_with('/'),
            file: (*file).into(),
            line: 7,
        });
        Site {
            image: "hypervisor",
            symbol: "fast_halt".into(),
            frames: frames.collect(),
        }
    }

    #[test]
    fn a_finding_is_of_the_function_that_wraps_nothing() {
        let inlined = site(&[
            ("/library/core/src/macros.rs", "get"),
            ("crates/no_std/arch/src/insn.rs", "wfi"),
            (
                "hypervisor/src/exits/wfx.rs",
                "hypervisor::exits::wfx::idle<hypervisor::cpu::trace::On>",
            ),
            ("hypervisor/src/exits/synchronous.rs", "fast"),
        ]);
        assert_eq!(short_place(&inlined), "hypervisor/src/exits/wfx.rs: idle");
        assert_eq!(
            full_place(&inlined),
            "hypervisor: idle (hypervisor/src/exits/wfx.rs:7)"
        );
        assert_eq!(
            short_place(&site(&[("crates/no_std/arch/src/insn.rs", "wfi")])),
            "crates/no_std/arch/src/insn.rs: wfi"
        );
        let closure = [
            ("a.rs", "{closure#2}"),
            ("b.rs", "with<()>"),
            ("a.rs", "idle_until"),
        ];
        assert_eq!(short_place(&site(&closure)), "a.rs: idle_until");
        assert_eq!(short_place(&site(&[])), "fast_halt");
    }

    #[test]
    fn a_comment_explains_its_own_rule_at_its_own_place() {
        let text = "fn f() {\n    // strict wait-can-end: the end of the machine\n    // in any case\n    wfi();\n    wfi();\n}\n";
        assert!(explains_rule(text, 4, "wait-can-end"));
        assert!(!explains_rule(text, 5, "wait-can-end") && !explains_rule(text, 4, "synchronised"));
        assert!(explains_rule(
            "// strict any rule: why\nwfi();",
            2,
            "wait-can-end"
        ));
        assert!(explains_rule(
            "wfi(); // strict wait-can-end: why\n",
            1,
            "wait-can-end"
        ));
        assert!(!explains_rule(
            "wfi(); // strict wait-can-end\n",
            1,
            "wait-can-end"
        ));
    }
}
