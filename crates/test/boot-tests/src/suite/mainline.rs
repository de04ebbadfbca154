// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device trees of mainline Linux, as Debian packages them for arm64. All trees with a GICv3 and PSCI are accepted,
//! and so are trees with a GICv2 and its virtual CPU interface. All other trees are refused, with a reason that a
//! second check of the tree's bytes confirms.

use std::fs;

use anyhow::{Context, Result, ensure};

use doctor::machines::{Finding, of_tree, summary, trees};
use providing::linux_trees;
use shell::terminal::say;

/// The smallest plausible number of trees: with fewer, the package is not the expected one.
const LEAST: usize = 1000;

pub fn run() -> Result<()> {
    let mut files = Vec::new();
    trees(&linux_trees::provide()?, &mut files)?;
    ensure!(files.len() >= LEAST, "only {} device trees", files.len());
    let mut findings = Vec::new();
    for file in files {
        let blob = fs::read(&file).with_context(|| file.display().to_string())?;
        let finding = of_tree(&file, &blob);
        check_finding(&finding, &blob)?;
        findings.push(finding);
    }
    summary(&findings).iter().for_each(|line| say!("{line}"));
    Ok(())
}

/// Fails unless strings anywhere in the blob confirm the finding.
fn check_finding(finding: &Finding, blob: &[u8]) -> Result<()> {
    let has = |text: &str| {
        blob.windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    let gic = has("arm,gic-v3\0");
    let older = ["arm,gic-400\0", "arm,cortex-a15-gic\0", "qcom,msm-qgic2\0"];
    let v2 = older.iter().any(|name| has(name));
    let psci = has("arm,psci-1.0\0") || has("arm,psci-0.2\0");
    let why = finding.why.as_deref().unwrap_or("");
    let named = match (gic, psci) {
        (true, true) => finding.ok,
        // If a spin-table starts the CPUs, the lack of PSCI is only a note.
        (true, false) => why.starts_with("no PSCI") && finding.ok == has("spin-table\0"),
        (false, _) => {
            let no_interface = why.contains("GIC: a GICv2 is described without");
            let no_address = why.starts_with("device tree: cpu: spin-table without");
            let is_clustered = why.contains("only above Aff1");
            match v2 {
                true => {
                    let no_psci = why.starts_with("no PSCI") && !psci;
                    finding.ok || no_interface || no_address || is_clustered || no_psci
                }
                false => !no_interface && why.contains("the interrupt controller is"),
            }
        }
    };
    let file = &finding.file;
    ensure!(
        named && (v2 || finding.ok == (gic && psci) || why.contains("spin-table")),
        "{file}: GICv3 {gic}, PSCI {psci}, and found was: {why}"
    );
    Ok(())
}
