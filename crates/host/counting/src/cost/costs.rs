// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of each path in each mode.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::ValueEnum;
use cost::Path;
use plan::{Deliver, Under};
use serde::{Deserialize, Deserializer, Serialize};

use super::tally::Tally;
use super::trace::{Trace, Window};
use super::visit;

/// The values in a chart, by the line's name and then by the number of vCPUs.
pub type Lines = BTreeMap<String, BTreeMap<u32, u64>>;

/// The configuration in which the guest runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Under the hypervisor, with injected interrupts and trapped waits.
    Inject,
    /// Under the hypervisor, with interrupts delivered directly and without trapped waits.
    Direct,
    /// On the bare machine.
    None,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Inject, Self::Direct, Self::None];

    /// Returns the word for the mode in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inject => "inject",
            Self::Direct => "direct",
            Self::None => "none",
        }
    }

    /// Returns the layer below the guest.
    pub const fn layer_below(self) -> Under {
        match self {
            Self::Inject | Self::Direct => Under::Rouse,
            Self::None => Under::None,
        }
    }

    /// Returns how interrupts are delivered to the guest. The bare machine ignores this.
    pub const fn delivery(self) -> Deliver {
        match self {
            Self::Inject | Self::None => Deliver::Inject,
            Self::Direct => Deliver::Direct,
        }
    }
}

/// The costs of a path in a mode.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PathCosts {
    /// Name of the path.
    #[serde(deserialize_with = "path_name")]
    pub path: String,
    pub mode: Mode,
    /// Number of counted passes.
    pub passes: u64,
    /// Number of passes that have as many instructions as the median pass.
    pub agree: u64,
    /// Number of passes that were not counted, because other events occurred in them.
    pub set_aside: u64,
    /// Counts for the hypervisor's part of the median pass.
    pub el2: Option<Tally>,
    /// Counts for the guest's part of the median pass.
    pub guest: Option<Tally>,
    /// Why the path has no counts, if it has none.
    pub skipped: Option<String>,
}

/// Reads the name of a path, and translates old names.
fn path_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    Ok(match Path::parse(&name) {
        Some(path) => path.name().to_owned(),
        None => name,
    })
}

/// Formats the number of the guest's instructions in `row`, for a table.
pub fn guest_insns(row: Option<&PathCosts>) -> String {
    let tally = row.and_then(|row| row.guest);
    tally.map_or("-".into(), |tally| tally.insns.to_string())
}

/// All counts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Costs {
    /// Version of this format.
    pub schema: u32,
    #[serde(default)]
    pub label: String,
    pub board: String,
    pub emulator: String,
    pub rustc: String,
    pub paths: Vec<PathCosts>,
    /// Single numbers by name: round trips, sizes, and the length of a boot.
    pub numbers: BTreeMap<String, u64>,
    /// Instructions per operation by number of vCPUs, if they were requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scale: Lines,
}

/// Version of [`Costs`]'s format.
pub const SCHEMA: u32 = 1;

impl Costs {
    /// Returns the row of `path` in `mode`.
    pub fn row(&self, path: Path, mode: Mode) -> Option<&PathCosts> {
        let mut rows = self.paths.iter();
        rows.find(|row| row.path == path.name() && row.mode == mode)
    }
}

/// Returns the windows that contain only `path`, and the total number of the path's windows.
pub fn clean_windows(windows: &[Window], path: Path, mode: Mode) -> (Vec<&Window>, usize) {
    let (mut windows, all) = windows_by_exits(windows, path, mode);
    let (_, interrupts) = visit::expected_stays(path);
    windows.retain(|window| {
        let taken = visit::handlers(window).len();
        interrupts.is_none_or(|expected| taken == expected)
    });
    (windows, all)
}

/// Like [`clean_windows`], but considers only the exits. Ignores whether the guest took its interrupt before the end of
/// the window, because a core that executes ahead may already be past the mark when it takes the interrupt.
pub fn windows_by_exits(windows: &[Window], path: Path, mode: Mode) -> (Vec<&Window>, usize) {
    let windows = windows.iter().filter(|window| window.path == path);
    let all = windows.clone().count();
    (
        windows.filter(|window| has_exits(window, mode)).collect(),
        all,
    )
}

fn has_exits(window: &Window, mode: Mode) -> bool {
    let (causes, _) = visit::expected_stays(window.path);
    let visits = visit::stay_causes(window);
    match mode {
        Mode::Inject => visits == causes,
        // Calls and emulated devices are handled by the hypervisor in any mode.
        Mode::Direct => match window.path {
            Path::Hypercall | Path::Service | Path::CpuOn | Path::CpuStart | Path::Mmio => {
                visits.len() == 1
            }
            _ => visits.is_empty(),
        },
        Mode::None => visits.is_empty(),
    }
}

/// Counts the passes of `path`.
pub fn count_row(trace: &Trace, path: Path, mode: Mode) -> Result<PathCosts> {
    let (windows, all) = clean_windows(&trace.windows, path, mode);
    let mut passes: Vec<(Tally, Option<Tally>)> =
        windows.iter().map(|window| tally_window(window)).collect();
    passes.sort_by_key(|(el2, guest)| (el2.insns, guest.map(|guest| guest.insns)));
    let Some(&(el2, guest)) = hist::of_sorted(&passes, 500) else {
        bail!(
            "{} ({}): none of {all} passes showed the path and nothing else",
            path.name(),
            mode.name()
        );
    };
    let same = |pass: &&(Tally, Option<Tally>)| {
        let insns = |tally: Option<Tally>| tally.map(|tally| tally.insns);
        pass.0.insns == el2.insns && insns(pass.1) == insns(guest)
    };
    Ok(PathCosts {
        path: path.name().into(),
        mode,
        passes: passes.len() as u64,
        agree: passes.iter().filter(same).count() as u64,
        set_aside: (all - passes.len()) as u64,
        el2: (mode != Mode::None).then_some(el2),
        guest,
        skipped: None,
    })
}

/// Counts the hypervisor's part and the guest's part of a pass separately.
fn tally_window(window: &Window) -> (Tally, Option<Tally>) {
    let entries = visit::stay_causes(window).len();
    let el2 = Tally::count_events(&visit::hypervisor_steps(window), entries);
    let taken = visit::handlers(window).len();
    let guest = visit::guest_steps(window).map(|steps| Tally::count_events(&steps, taken));
    (el2, guest)
}

/// Returns the row of a path that was not taken.
pub fn skipped_row(path: Path, mode: Mode, why: &str) -> PathCosts {
    PathCosts {
        path: path.name().into(),
        mode,
        passes: 0,
        agree: 0,
        set_aside: 0,
        el2: None,
        guest: None,
        skipped: Some(why.into()),
    }
}
