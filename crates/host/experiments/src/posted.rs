// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `posted-*` experiments: measure posted patches, in the kernels for which they were made.
//!
//! Other experiments reproduce the effect of a patch in Rouse's own guest. These experiments take the patch itself from
//! the folder of `--patches`, apply it to Debian's source, and measure that kernel with and without the patch.

mod arm_poll_idle;
mod arm_poll_idle_cycles;
mod idle_poll;
mod irq_delay;
mod poll_limit;
mod skip_newidle;
mod teo_util;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use plan::Under;
use shell::failure::bad_input;

use super::Experiment;
use super::boot::{Boot, Lists, SEEDS};
use super::runs::MeasuredCell;

/// Experiments that need the folder of `--patches`.
pub const ALL: [&Experiment; 7] = [
    &arm_poll_idle::EXPERIMENT,
    &arm_poll_idle_cycles::EXPERIMENT,
    &irq_delay::EXPERIMENT,
    &poll_limit::EXPERIMENT,
    &skip_newidle::EXPERIMENT,
    &idle_poll::EXPERIMENT,
    &teo_util::EXPERIMENT,
];

/// Key under which the lists of a boot name its kernel: the version of Debian's source, and the first characters of
/// each patch's file name, such as `6.12+000`.
pub const KERNEL: &str = "kernel";

/// Key under which the lists of a boot give further arguments for its kernel.
pub const ARGUMENTS: &str = "arguments";

/// Key under which the lists of a boot change a parameter of the simulated machine, in the form of `--set`.
pub const SET: &str = "set";

/// The waits of guests do not trap.
const UNTRAPPED: (&str, &str) = ("trap", "none");

/// Creates a boot of two CPUs.
const fn two_cpu_boot(label: &'static str, under: Under, iterations: u64, lists: Lists) -> Boot {
    Boot {
        label,
        under,
        cpus: Some(2),
        lists,
        iterations,
        repeats: SEEDS,
    }
}

/// Returns the number of interrupts between CPUs per operation, as counted by Linux itself.
fn ipis_per_operation(cell: &MeasuredCell<'_>) -> f64 {
    cell.count_per_operation("linux", "call") + cell.count_per_operation("linux", "resched")
}

/// Builds the kernel named `named`, with patches from `folder`. Returns the path of its Image.
pub fn build_kernel(named: &str, folder: Option<&Path>) -> Result<String> {
    let mut parts = named.split('+');
    let version = parts.next().unwrap_or_default();
    let mut patches = Vec::new();
    for begins in parts {
        let Some(folder) = folder else {
            bad_input!(
                "this experiment measures a kernel with the patch {begins}; name the folder with the patches: --patches DIR"
            );
        };
        patches.push(find_patch(folder, begins, version)?);
    }
    Ok(kernels::built(version, patches)?.display().to_string())
}

/// Returns the path of the patch whose file name begins with `begins`. If several do, returns the one whose name
/// contains `version`.
fn find_patch(folder: &Path, begins: &str, version: &str) -> Result<PathBuf> {
    let shown = folder.display();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries.flatten(),
        Err(error) => bad_input!("--patches {shown}: can't be read ({error}); name a folder"),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(begins))
        .collect();
    if names.len() > 1 {
        names.retain(|name| name.contains(&format!("{version}.")));
    }
    match &names[..] {
        [name] => Ok(folder.join(name)),
        [] => bad_input!(
            "--patches {shown}: no file begins with {begins} and is for Linux {version}; name it like {begins}-NAME.on-{version}.patch"
        ),
        _ => bad_input!(
            "--patches {shown}: {} begin with {begins}; leave one",
            names.join(" and ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use page::document::Document;
    use results::Results;
    use results::goldens::golden;

    use super::*;
    use crate::runs::Runs;

    /// The results of the boots with patches on 27 November 2026, without histograms.
    const MEASURED: &str = include_str!("posted/measured.json");
    /// The file with the reports that the experiments produce from these boots.
    const REPORTS: &str = "src/posted/reports.txt";

    /// The figures in the documents come from these boots. CI can't repeat the boots, because it does not have the
    /// patches.
    #[test]
    fn golden_reports_of_measured_boots() {
        type Boots = BTreeMap<String, BTreeMap<String, BTreeMap<String, Results>>>;
        let measured: Boots = serde_json::from_str(MEASURED).unwrap();
        let mut text = String::new();
        for experiment in ALL {
            assert!(
                measured.contains_key(experiment.name),
                "{}",
                experiment.name
            );
            let mut runs = Runs::new(experiment.name);
            for boot in experiment.boots {
                for repeat in boot.repeats {
                    let results = measured[experiment.name][boot.label][repeat.name].clone();
                    runs.add(boot.label, repeat.name, results);
                }
            }
            let mut document = Document::default();
            experiment
                .draw_conclusions(&runs)
                .unwrap()
                .show(&mut document);
            text += &(document.terminal(Some(200)).join("\n") + "\n\n");
        }
        golden(&Path::new(env!("CARGO_MANIFEST_DIR")).join(REPORTS), &text);
    }

    #[test]
    fn a_patch_is_found_by_its_number_and_version() {
        let place = tempfile::tempdir().unwrap();
        let of = |begins, version| find_patch(place.path(), begins, version);
        for name in [
            "000-a.on-6.12.patch",
            "001-b.on-6.1.patch",
            "001-b.on-6.12.patch",
        ] {
            fs::write(place.path().join(name), "").unwrap();
        }
        assert!(of("000", "6.1").unwrap().ends_with("000-a.on-6.12.patch"));
        assert!(of("001", "6.1").unwrap().ends_with("001-b.on-6.1.patch"));
        assert!(of("001", "6.12").unwrap().ends_with("001-b.on-6.12.patch"));
        let told = |result: Result<PathBuf>| result.unwrap_err().to_string();
        assert!(told(of("002", "6.1")).contains("no file begins with 002"));
        assert!(told(find_patch(Path::new("/nonexistent"), "0", "6")).contains("can't be read"));
        assert!(told(build_kernel("6.12+000", None).map(PathBuf::from)).contains("--patches DIR"));
    }
}
