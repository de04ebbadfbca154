// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost card in cycles: the time of each path on models of cores, both warm and with empty caches and TLBs. Next to
//! each time is the shortest time that the path could take on that core.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::{Context, Result};
use cost::Path;
use serde::{Deserialize, Serialize};

use super::cache_misses;
use super::costs::{self, Mode};
use super::cycles::{el2_ticks, median_ticks};
use super::parts::{Target, parts};
use super::simulator::{Boot, Recorded, Simulator};
use super::trace::Window;
use super::visit;
use crate::cost::CostArgs;
use providing::toolchain;
use running::board::Board;
use shell::side_by_side;
use shell::terminal::note;

/// Version of [`Card`]'s format.
pub const SCHEMA: u32 = 1;
/// The default models, which have pipelines and caches.
const MODELS: [&str; 3] = ["minor", "hpi", "o3"];

/// The cycles of every path on each model of a core.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Card {
    pub schema: u32,
    #[serde(default)]
    pub label: String,
    pub board: String,
    pub emulator: String,
    pub rustc: String,
    pub models: BTreeMap<String, BTreeMap<String, Cycles>>,
    /// Warm cycles of the parts of an injected IPI to a CPU that runs, by model. The parts are in the order of
    /// [`PARTS`](super::parts::PARTS).
    #[serde(default)]
    pub wake_ups: BTreeMap<String, Vec<u64>>,
    /// Warm cycles of the parts of an injected IPI to a CPU that waits, by model. Older cards do not have them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, Vec<u64>>,
    /// The lines that each path missed with empty caches. Older cards do not have them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missed: cache_misses::Models,
}

/// The cost of a path on a core.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// Instructions at EL2 in the median pass.
    pub insns: u64,
    /// Cycles of the median pass, without the time in WFI. Cycles are counted from the guest's last instruction before
    /// EL2 (for an interrupt: from EL2's first instruction) to the guest's first instruction after EL2.
    pub warm: u64,
    /// Like `warm`, but with empty caches and TLBs. `None` if this was not measured.
    pub cold: Option<u64>,
}

impl Card {
    /// Returns the cycles of `path` on `model`.
    pub fn cycles(&self, model: &str, path: Path) -> Option<Cycles> {
        self.models.get(model)?.get(path.name()).copied()
    }

    /// Returns by what factor `path`'s warm cycles exceed the least possible cycles. `None` if the latter are unknown.
    pub fn ratio_to_floor(&self, model: &str, path: Path) -> Option<f64> {
        let least = self.cycles(model, path.floor()?)?;
        Some(self.cycles(model, path)?.warm as f64 / least.warm as f64)
    }

    /// Adds the results of the boots on `model`.
    fn add_model(&mut self, model: &str, [warm, floors, cold]: [Recorded; 3]) -> Result<()> {
        self.emulator.clone_from(&warm.emulator);
        let all = cycles_of_paths(model, &warm, &floors, &cold);
        self.models.insert(model.into(), all);
        self.missed.insert(model.into(), cold.missed);
        for target in Target::ALL {
            let parts = median_parts(target, model, &warm)?;
            let all = match target {
                Target::Runs => &mut self.wake_ups,
                Target::Waits => &mut self.waits,
            };
            all.insert(model.into(), parts);
        }
        Ok(())
    }

    /// Returns the parts of an injected IPI to `target`, by model.
    pub fn wake_ups(&self, target: Target) -> &BTreeMap<String, Vec<u64>> {
        match target {
            Target::Runs => &self.wake_ups,
            Target::Waits => &self.waits,
        }
    }

    /// Returns how many cycles the sender and the receiver of an injected IPI take together on `model`, and the
    /// smallest number that is possible.
    pub fn ipi_cycles(&self, model: &str) -> Option<(u64, u64)> {
        let both = |send, receive| -> Option<u64> {
            Some(self.cycles(model, send)?.warm + self.cycles(model, receive)?.warm)
        };
        Some((
            both(Path::SgiSend, Path::SgiReceive)?,
            both(Path::FloorSend, Path::FloorReceive)?,
        ))
    }
}

/// Returns a card without any measurements.
pub fn empty_card(args: &CostArgs) -> Card {
    Card {
        schema: SCHEMA,
        board: args.board.clone(),
        rustc: toolchain::rustc_version().unwrap_or_default(),
        ..Card::default()
    }
}

/// Measures the requested model, or all default models if none is requested. Even after an error, `card` has everything
/// measured so far.
pub fn measure_models(args: &CostArgs, card: &mut Card) -> Result<()> {
    let board = Board::load(&args.board)?;
    board.gem5("cost")?;
    let models: Vec<&str> = match &args.cpu {
        Some(model) => vec![model],
        None => MODELS.to_vec(),
    };
    let simulator = |model| Simulator {
        board: &args.board,
        model,
        gem5: args.gem5.as_deref(),
        limits: &args.limits,
    };
    let boots = models
        .iter()
        .flat_map(|&model| Boot::ALL.map(|boot| (model, boot)));
    let boots: Vec<(&str, Boot)> = boots.collect();
    let mut collected = Collected::new(card);
    side_by_side::in_order(
        boots,
        simulator(models[0]).parallel_boots()?,
        |_, (model, boot)| (model, simulator(model).record(boot)),
        |(model, recorded)| collected.take(model, recorded),
    );
    collected.ended
}

/// The results of boots, collected for a card.
struct Collected<'c> {
    card: &'c mut Card,
    /// The finished boots of the current model, in the order of [`Boot::ALL`].
    ready: Vec<Recorded>,
    /// The first error. After it, no result is added, although boots that have already begun run to their end.
    ended: Result<()>,
}

impl<'c> Collected<'c> {
    const fn new(card: &'c mut Card) -> Self {
        Self {
            card,
            ready: Vec::new(),
            ended: Ok(()),
        }
    }

    fn take(&mut self, model: &str, recorded: Result<Recorded>) -> ControlFlow<()> {
        if self.ended.is_ok() {
            self.ended = recorded.and_then(|recorded| self.add(model, recorded));
        }
        match self.ended {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Adds the results of a boot. Adds the model to the card once all boots of the model have been added.
    fn add(&mut self, model: &str, recorded: Recorded) -> Result<()> {
        self.ready.push(recorded);
        match <[Recorded; 3]>::try_from(std::mem::take(&mut self.ready)) {
            Ok(all) => self.card.add_model(model, all),
            Err(some) => {
                self.ready = some;
                Ok(())
            }
        }
    }
}

/// Returns the cycles of each path on `model`. If a path never occurs alone, prints a note instead. With 16 list
/// registers, for example, no interrupt ever waits for a free list register, so the path with that wait does not occur.
fn cycles_of_paths(
    model: &str,
    warm: &Recorded,
    floors: &Recorded,
    cold: &Recorded,
) -> BTreeMap<String, Cycles> {
    let mut paths = BTreeMap::new();
    for &path in Path::ALL {
        let warm = if path.is_floor() { floors } else { warm };
        let taken = [warm, cold].map(|recorded| median_pass(recorded, path));
        let [Some((insns, warm)), cold] = taken else {
            let why = super::why_path_skipped(&warm.console, path);
            let why = why.unwrap_or("none of its passes showed it and nothing else");
            note!("{model}: {}: {why}", path.name());
            continue;
        };
        let cold = cold.map(|(_, cold)| cold);
        paths.insert(path.name().to_owned(), Cycles { insns, warm, cold });
    }
    paths
}

/// Returns the median of each part of an injected IPI to `target`. The sum of these medians is close to the median of
/// the whole IPI.
fn median_parts(target: Target, model: &str, recorded: &Recorded) -> Result<Vec<u64>> {
    let of = |path| {
        recorded
            .windows
            .iter()
            .filter(move |window| window.path == path)
    };
    let [sends, receives] = target.paths();
    let passes: Vec<_> = of(sends)
        .zip(of(receives))
        .filter_map(|(sender, receiver)| parts(target, sender, receiver))
        .collect();
    let part = |n: usize| {
        let ticks = median_ticks(passes.iter().map(|pass| pass[n]).collect())?;
        Some(ticks / recorded.period)
    };
    let found: Option<Vec<u64>> = (0..target.part_count()).map(part).collect();
    found.with_context(|| {
        let (sends, receives) = (sends.name(), receives.name());
        format!("{model}: no pass of {sends} and {receives} is of one SGI")
    })
}

/// Returns the numbers of instructions and cycles of the median pass.
fn median_pass(recorded: &Recorded, path: Path) -> Option<(u64, u64)> {
    let (windows, all) = costs::windows_by_exits(&recorded.windows, path, Mode::Inject);
    let ticks: Vec<u64> = windows
        .iter()
        .filter_map(|window| el2_ticks(window))
        .collect();
    if ticks.len() < all {
        note!(
            "{}: {} of {all} passes are counted",
            path.name(),
            ticks.len()
        );
    }
    let insns = |window: &&Window| visit::hypervisor_steps(window).len() as u64;
    let insns = median_ticks(windows.iter().map(insns).collect())?;
    Some((insns, median_ticks(ticks)? / recorded.period))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn an_error_stays_although_other_boots_end_after_it() {
        let recorded = || Recorded {
            windows: Vec::new(),
            missed: BTreeMap::new(),
            console: String::new(),
            emulator: String::new(),
            period: 1,
        };
        let mut card = Card::default();
        let mut collected = Collected::new(&mut card);
        assert!(collected.take("minor", Ok(recorded())).is_continue());
        let error = Err(anyhow!("no cycles"));
        assert!(collected.take("minor", error).is_break());
        for model in ["minor", "hpi", "hpi", "hpi"] {
            assert!(collected.take(model, Ok(recorded())).is_break());
        }
        let ended = collected.ended.unwrap_err();
        assert_eq!(ended.to_string(), "no cycles");
        assert!(card.models.is_empty());
    }
}
