// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of machines: `boards/<name>.toml`, or `boards/<name>/board.toml` where
//! one needs more than a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use plan::{Under, Word};
use serde::Deserialize;

use crate::cli::Metric;
use crate::failure::{BadInput, bad_input};
use crate::places;

/// A machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Its name: that of the file.
    #[serde(skip)]
    pub name: String,
    /// The folder of its file.
    #[serde(skip)]
    folder: PathBuf,
    /// One line for people.
    pub about: String,
    /// What it has of the machine that it stands for; for people.
    pub models: Vec<String>,
    /// What it has not, or has otherwise.
    pub lacks: Vec<String>,
    /// Where the loader puts the image, if that is always the same place.
    pub image_base: Option<u64>,
    /// Its CPUs.
    pub cpus: Cpus,
    /// How QEMU emulates it.
    qemu: Option<Qemu>,
    /// How gem5 does; a board has one of the two.
    pub gem5: Option<Gem5>,
}

/// CPUs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpus {
    /// How many, unless asked otherwise.
    pub default: u32,
    /// The most.
    pub max: u32,
    /// Which, unless asked otherwise.
    pub model: String,
    /// Properties that QEMU starts each known model with; of gem5's, what it is.
    pub models: BTreeMap<String, String>,
    /// Frequency of the counter, Hz, for each metric.
    pub counter_hz: BTreeMap<Metric, u64>,
}

/// How QEMU emulates it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qemu {
    /// Size of RAM.
    pub memory: String,
    /// File name of the UEFI firmware; without it, QEMU itself loads the image.
    pub firmware: Option<String>,
    /// File name of what the firmware remembers from boot to boot, its keys for
    /// Secure Boot for instance; without it, it remembers nothing.
    pub variables: Option<String>,
    /// The console under the firmware, if it is not the machine's own.
    pub console: Option<Console>,
    /// `-M` by what the guest runs under.
    pub machine: BTreeMap<String, String>,
}

/// How gem5 emulates it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gem5 {
    /// The file, beside the board's, that puts the machine together.
    pub script: String,
    /// The file with what it is made of.
    pub parameters: String,
    /// Size of RAM.
    pub memory: String,
    /// Models that lose an interrupt which is acknowledged while an event comes.
    pub event_loses_irq: Vec<String>,
}

/// A console that the machine's description does not name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Console {
    /// The emulator's device; `console` is the character device that it writes to.
    pub device: String,
    /// The boot argument that names it.
    pub argument: String,
}

impl Board {
    /// Reads a board: `name` of the tree, or a file of the user's own.
    pub fn load(name: &str) -> Result<Self> {
        let path = match Self::file(name) {
            Some(file) => file.into(),
            None => known(name),
        };
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&path, &text),
            Err(error) if Self::file(name).is_some() => {
                bad_input!("--board: {name} can't be read ({error}); name a board, or its file")
            }
            Err(_) => {
                let known = names()?.join(", ");
                bad_input!("--board: there is no `{name}`; use {known}, or add boards/{name}.toml")
            }
        }
    }

    /// `board` as a path, if it is one and no name.
    pub fn file(board: &str) -> Option<&Path> {
        let path = Path::new(board);
        path.extension()
            .is_some_and(|end| end == "toml")
            .then_some(path)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let place =
            || BadInput::error(format!("{} can't be used; correct it", places::shown(path)));
        let mut board: Self = toml::from_str(text)
            .map_err(|error| BadInput::error(one_line(&error)))
            .with_context(place)?;
        board.folder = path.parent().unwrap_or(Path::new("")).into();
        // A board in a folder of its own has the folder's name.
        let named = match path.file_name().is_some_and(|name| name == FILE) {
            true => board.folder.file_name(),
            false => path.file_stem(),
        };
        board.name = named.unwrap_or_default().to_string_lossy().into();
        if board.qemu.is_some() == board.gem5.is_some() {
            return Err(BadInput::error("it needs [qemu] or [gem5], one of them"))
                .with_context(place);
        }
        Ok(board)
    }

    /// How QEMU emulates it, for the one who needs QEMU for `what`.
    pub fn qemu(&self, what: &str) -> Result<&Qemu> {
        match &self.qemu {
            Some(qemu) => Ok(qemu),
            None => bad_input!(
                "{what}: board {} is gem5's, and this needs QEMU; use --board virt",
                self.name
            ),
        }
    }

    /// How gem5 emulates it, for the one who asked by `option` for what gem5 has.
    pub fn gem5(&self, option: &str) -> Result<&Gem5> {
        match &self.gem5 {
            Some(gem5) => Ok(gem5),
            None => bad_input!(
                "{option}: board {} is not gem5's; use --board gem5",
                self.name
            ),
        }
    }

    /// Whether CPUs of `model` lose an interrupt that is acknowledged while an event
    /// comes.
    pub fn event_loses_irq(&self, model: &str) -> bool {
        let gem5 = self.gem5.as_ref();
        gem5.is_some_and(|gem5| gem5.event_loses_irq.iter().any(|one| one == model))
    }

    /// The file `name` in the folder of the board's.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Size of RAM.
    pub fn memory(&self) -> &str {
        match (&self.qemu, &self.gem5) {
            (Some(qemu), _) => &qemu.memory,
            (None, Some(gem5)) => &gem5.memory,
            (None, None) => unreachable!("a board that was read has one of them"),
        }
    }

    /// How many seconds of the emulator's own time a boot may go without progress with
    /// the wake-ups per cell that are the default, unless asked otherwise.
    pub fn patience(&self) -> u64 {
        if self.gem5.is_some() { 3600 } else { 240 }
    }

    /// The number of CPUs to use when `asked` were asked for.
    pub fn cpus(&self, asked: Option<u32>) -> Result<u32> {
        let (cpus, max) = (asked.unwrap_or(self.cpus.default), self.cpus.max);
        if !(1..=max).contains(&cpus) {
            let nearest = cpus.clamp(1, max);
            bad_input!(
                "--cpus: board {} has 1 to {max}, not {cpus}; the nearest is {nearest}",
                self.name
            );
        }
        Ok(cpus)
    }

    /// The name of the CPU model to use when `asked` was asked for.
    pub fn model<'b>(&'b self, asked: Option<&'b str>) -> Result<&'b str> {
        let model = asked.unwrap_or(&self.cpus.model);
        if !self.cpus.models.contains_key(model) {
            bad_input!(
                "--cpu: board {} has no `{model}`; use {}",
                self.name,
                self.model_names().join(", ")
            );
        }
        Ok(model)
    }

    /// Names of the CPU models, sorted.
    pub fn model_names(&self) -> Vec<&str> {
        self.cpus.models.keys().map(String::as_str).collect()
    }

    /// The value of `-cpu`: a model, its properties, and its counter.
    pub fn cpu(&self, model: &str, metric: Metric) -> Result<String> {
        let properties = self.cpus.models.get(model).map_or("", String::as_str);
        let separator = if properties.is_empty() { "" } else { "," };
        let frequency = self.counter_hz(metric)?;
        Ok(format!("{model}{separator}{properties},cntfrq={frequency}"))
    }

    /// What to count when `asked` was asked for; the first that it has, if nothing was.
    pub fn metric(&self, asked: Option<Metric>) -> Result<Metric> {
        let first = self.metrics().next();
        let Some(metric) = asked.or(first) else {
            bad_input!(
                "--board: {} names no counter; add one to [cpus.counter_hz] of its file",
                self.name
            );
        };
        self.counter_hz(metric).map(|_| metric)
    }

    /// What it can count.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.cpus.counter_hz.keys().copied()
    }

    /// The counter's frequency.
    pub fn counter_hz(&self, metric: Metric) -> Result<u64> {
        let frequency = self.cpus.counter_hz.get(&metric);
        frequency.copied().ok_or_else(|| self.has_no(metric))
    }

    /// What to do where a metric is asked for that it has not.
    fn has_no(&self, metric: Metric) -> anyhow::Error {
        let why = match metric {
            Metric::Cycles => ", QEMU does not model them",
            Metric::Insns | Metric::Time => "",
        };
        let boards = names().unwrap_or_default().into_iter();
        let others = boards.filter(|name| {
            Self::load(name).is_ok_and(|board| board.cpus.counter_hz.contains_key(&metric))
        });
        let others: Vec<String> = others.collect();
        let elsewhere = match others.as_slice() {
            [] => String::new(),
            others => format!("--board {}, or ", others.join(", ")),
        };
        let here: Vec<String> = self.metrics().map(|metric| metric.to_string()).collect();
        BadInput::error(format!(
            "--metric {metric}: board {} has no {metric}{why}; use {elsewhere}--metric {}",
            self.name,
            here.join(", ")
        ))
    }

    /// Whether firmware boots it.
    pub fn has_firmware(&self) -> bool {
        let qemu = self.qemu.as_ref();
        qemu.is_some_and(|qemu| qemu.firmware.is_some())
    }

    /// Whether it boots disks, for the one who wants it by `option`.
    pub fn boots_disks(&self, option: &str) -> Result<()> {
        if !self.has_firmware() {
            bad_input!(
                "{option}: board {} has no firmware that boots disks; use board virt-uefi, or another that `boards` \
                 shows with UEFI",
                self.name
            );
        }
        Ok(())
    }

    /// The value of `-M`.
    pub fn machine(&self, under: Under) -> Result<&str> {
        let machine = self.qemu("--board")?.machine.get(under.name());
        machine
            .map(String::as_str)
            .ok_or_else(|| self.silent("--under", under))
    }

    fn silent(&self, option: &str, value: impl std::fmt::Display) -> anyhow::Error {
        BadInput::error(format!(
            "{option}: the file of board {} does not say how to run `{value}`; add it there",
            self.name
        ))
    }
}

/// Names of the boards, sorted.
pub fn names() -> Result<Vec<String>> {
    let folder = folder();
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| match folder.join(&file).join(FILE).exists() {
            true => Some(file),
            false => Some(file.strip_suffix(".toml")?.to_owned()),
        })
        .collect();
    names.sort();
    Ok(names)
}

/// The file of a board that is a folder.
const FILE: &str = "board.toml";

/// The file of the board `name` of the tree, if there is one.
fn known(name: &str) -> PathBuf {
    let of_its_own = folder().join(name).join(FILE);
    match of_its_own.exists() {
        true => of_its_own,
        false => folder().join(format!("{name}.toml")),
    }
}

fn folder() -> PathBuf {
    places::inside("boards")
}

/// A parser's message without its picture of the place.
pub fn one_line(error: &toml::de::Error) -> String {
    error.message().lines().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::is_bad_input;

    #[test]
    fn every_board_of_the_tree_can_be_used() {
        for name in names().unwrap() {
            let board = Board::load(&name).unwrap();
            board.cpus(None).unwrap();
            let model = board.model(None).unwrap();
            for metric in board.metrics() {
                board.cpu(model, metric).unwrap();
            }
            for &under in Under::ALL {
                assert!(board.machine(under).is_ok() || board.gem5.is_some());
            }
            assert!(
                !board.models.is_empty() && !board.lacks.is_empty(),
                "{name} says what it is"
            );
        }
    }

    #[test]
    fn an_instruction_is_a_tick_on_every_board() {
        for name in names().unwrap() {
            let board = Board::load(&name).unwrap();
            let hertz = board.cpus.counter_hz.get(&Metric::Insns);
            assert!(hertz.is_none_or(|&hertz| hertz == 1_000_000_000), "{name}");
        }
    }

    #[test]
    fn what_is_counted_is_what_the_board_has() {
        let mut board = Board::load("virt").unwrap();
        assert_eq!(board.metric(None).unwrap(), Metric::Insns);
        assert_eq!(board.metric(Some(Metric::Time)).unwrap(), Metric::Time);
        board.cpus.counter_hz.remove(&Metric::Insns);
        board.cpus.counter_hz.insert(Metric::Cycles, 25_000_000);
        assert_eq!(board.metric(None).unwrap(), Metric::Cycles);
        let error = board.metric(Some(Metric::Insns)).unwrap_err();
        let text = error.to_string();
        assert!(
            is_bad_input(&error) && text.contains("--board altra"),
            "{text}"
        );
        assert!(text.ends_with("or --metric cycles, time"), "{text}");
        board.cpus.counter_hz.clear();
        assert!(is_bad_input(&board.metric(None).unwrap_err()));
    }

    #[test]
    fn what_a_board_has_not_is_bad_input() {
        let board = Board::load("virt").unwrap();
        for error in [
            board.cpus(Some(0)).unwrap_err(),
            board.cpus(Some(65)).unwrap_err(),
            board.model(Some("z80")).unwrap_err(),
            Board::load("no-such").unwrap_err(),
            Board::load("no-such.toml").unwrap_err(),
            Board::parse(Path::new("x.toml"), "about = 3").unwrap_err(),
        ] {
            assert!(is_bad_input(&error), "{error:#}");
        }
        let error = board.cpus(Some(99)).unwrap_err().to_string();
        assert!(error.ends_with("the nearest is 64"), "{error}");
    }

    #[test]
    fn models_bring_their_properties_and_the_counter() {
        let board = Board::load("graviton3").unwrap();
        let model = board.model(None).unwrap();
        let cpu = board.cpu(model, Metric::Time).unwrap();
        assert_eq!(cpu, "neoverse-v1,sve256=on,cntfrq=1050000000");
        let board = Board::load("virt").unwrap();
        let cpu = board.cpu("max", Metric::Insns).unwrap();
        assert_eq!(cpu, "max,cntfrq=1000000000");
    }
}
