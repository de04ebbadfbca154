// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `cost` on a gem5 board: prints the card in cycles, stores it, and compares it with the previous card.

use anyhow::{Result, bail};
use cost::Path;
use page::Column;
use page::document::Document;

use super::cache_misses;
use super::card::{self, Card};
use super::gate::{self, Change};
use super::history;
use super::parts::{PARTS, Target};
use crate::cost::CostArgs;
use shell::failure::bad_input;
use shell::output::Output;
use shell::terminal::say;

const HEADING: &str = "cycles from the guest's last instruction before an exit (of an interrupt: from EL2's first) to its first one after, without what a WFI waits: warm, \
                       as a multiple of the least (floor-...), and with nothing in caches and TLBs";
/// Text for a missing value.
const NONE: &str = "-";

/// Runs `cargo xtask cost --board gem5`.
pub fn cost(args: &CostArgs) -> Result<()> {
    if args.scale {
        bad_input!("--scale: counts instructions with up to 64 vCPUs; use --board virt");
    }
    if args.save.is_some() && args.cpu.is_some() {
        bad_input!("--save: a baseline has every model; leave --cpu out");
    }
    let base: Option<Card> = match &args.compare {
        Some(Some(file)) => Some(history::read_baseline(file)?),
        Some(None) => Some(history::read_baseline(&history::newest::<Card>(
            &args.board,
        )?)?),
        None => None,
    };
    args.format.claim()?;
    let copy = Output::claim_any("--json", args.json.as_ref())?;
    let mut card = card::empty_card(args);
    let measured = card::measure_models(args, &mut card);
    let changes = base.as_ref().map(|base| changes(base, &card));
    let mut shown = document(&card);
    if let (Some(base), Some(changes)) = (&base, &changes) {
        shown.push(String::new());
        shown.push(format!("against `{}` ({}):", base.label, base.rustc));
        shown.extend(changes.iter().map(Change::description));
    }
    if !card.models.is_empty() {
        args.format
            .show_with(&shown, || results::json::text(&card))?;
    }
    measured.map_err(|error| super::note_no_baseline(error, args))?;
    if let Some(copy) = copy {
        copy.write(&serde_json::to_string_pretty(&card)?)?;
    }
    let judged = match (base, changes) {
        (Some(base), Some(changes)) => fail_on_growth(&base, &card, &changes),
        _ => Ok(()),
    };
    if let Some(label) = &args.save {
        say!(
            "kept as {}",
            history::save_baseline(card, &args.board, label)?
        );
    }
    judged
}

/// Returns the card as a document.
fn document(card: &Card) -> Document {
    let machine = format!("{}: {}, {}", card.board, card.emulator, card.rustc);
    let mut document = Document::from(vec![machine, String::new(), HEADING.into()]);
    document.table(columns(card));
    document.push(String::new());
    document.extend(describe_ipis(card));
    document.push(String::new());
    document.push(
        "an injected IPI to a CPU that runs and to one that waits, cycles, warm, by its parts"
            .into(),
    );
    document.table(wake_ups(card));
    if !card.missed.is_empty() {
        document.push(String::new());
        document.push(cache_misses::HEADING.into());
        document.table(cache_misses::columns(&card.missed));
    }
    document
}

/// Returns a table of the parts of a wake-up and their sum, with a row for each model and state of the receiver.
pub fn wake_ups(card: &Card) -> Vec<Column> {
    let rows = Target::ALL.iter().flat_map(|&target| {
        let of = card.wake_ups(target).iter();
        of.map(move |(model, parts)| (model, target, parts))
    });
    let rows: Vec<(&String, Target, &Vec<u64>)> = rows.collect();
    let words = |title, of: &dyn Fn(&String, Target) -> String| {
        let texts = rows.iter().map(|(model, target, _)| of(model, *target));
        Column::words(title, texts.collect())
    };
    let mut columns = vec![
        words("model", &|model, _| model.clone()),
        words("receiver", &|_, target| target.name().to_owned()),
    ];
    for (n, part) in PARTS.into_iter().enumerate() {
        let texts = rows.iter().map(|(.., parts)| match parts.get(n) {
            Some(cycles) => cycles.to_string(),
            None => NONE.into(),
        });
        columns.push(Column::numbers("", part, texts.collect()));
    }
    let sums = rows
        .iter()
        .map(|(.., parts)| parts.iter().sum::<u64>().to_string());
    columns.push(Column::numbers("", "all", sums.collect()));
    columns
}

/// Returns a table with one row per path: the number of instructions, and three numbers for each model.
pub fn columns(card: &Card) -> Vec<Column> {
    let taken = |path: &&Path| {
        let mut models = card.models.keys();
        models.any(|model| card.cycles(model, **path).is_some())
    };
    let paths: Vec<Path> = Path::ALL.iter().filter(taken).copied().collect();
    let texts = |of: &dyn Fn(Path) -> Option<String>| {
        let texts = paths.iter().map(|&path| of(path).unwrap_or(NONE.into()));
        texts.collect::<Vec<_>>()
    };
    let mut columns = vec![
        Column::words("code path", texts(&|path| Some(path.name().into()))),
        Column::numbers("", "insns", texts(&|path| instructions_of_path(card, path))),
    ];
    for model in card.models.keys() {
        let cycles = |path| card.cycles(model, path);
        let number =
            |title, of: &dyn Fn(Path) -> Option<String>| Column::numbers(model, title, texts(of));
        columns.push(number("warm", &|path| Some(cycles(path)?.warm.to_string())));
        columns.push(number("x least", &|path| {
            Some(format!("{:.2}", card.ratio_to_floor(model, path)?))
        }));
        columns.push(number("cold", &|path| {
            Some(cycles(path)?.cold?.to_string())
        }));
    }
    columns
}

/// Returns the number of instructions of `path`, or one number per model if the models differ.
fn instructions_of_path(card: &Card, path: Path) -> Option<String> {
    let models = card.models.keys();
    let mut all: Vec<u64> = models
        .filter_map(|model| Some(card.cycles(model, path)?.insns))
        .collect();
    all.dedup();
    let texts: Vec<String> = all.iter().map(u64::to_string).collect();
    (!texts.is_empty()).then(|| texts.join("/"))
}

/// Describes how many cycles the sender and the receiver of an injected IPI take together.
pub fn describe_ipis(card: &Card) -> Vec<String> {
    let models = card.models.keys();
    let sentence = |model: &String| {
        let (is, least) = card.ipi_cycles(model)?;
        let ratio = is as f64 / least as f64;
        Some(format!(
            "{model}: an injected IPI takes {is} cycles of exits on both sides, the least is {least}: {ratio:.2} times that."
        ))
    };
    models.filter_map(sentence).collect()
}

/// Returns the differences from `base`. If only one of the cards lists missed lines, the other card is older, and fewer
/// caches were emptied for its cold passes. The cold passes are then not compared.
fn changes(base: &Card, card: &Card) -> Vec<Change> {
    let mut changes = Vec::new();
    for (model, paths) in &card.models {
        let as_cold = base.missed.contains_key(model) == card.missed.contains_key(model);
        for (path, is) in paths {
            let was = base.models.get(model).and_then(|paths| paths.get(path));
            let Some(was) = was else { continue };
            for (part, was, is) in [
                ("warm", Some(was.warm), Some(is.warm)),
                ("cold", was.cold.filter(|_| as_cold), is.cold),
            ] {
                changes.extend(Change::new(format!("{model}, {path}, {part}"), was, is));
            }
        }
    }
    changes
}

/// Fails if a path is missing, or takes more cycles than in `base` by more than is allowed.
fn fail_on_growth(base: &Card, card: &Card, changes: &[Change]) -> Result<()> {
    let mut wrong: Vec<String> = changes
        .iter()
        .filter(|change| change.grew_too_much())
        .map(Change::description)
        .collect();
    for (model, paths) in &card.models {
        let before = base
            .models
            .get(model)
            .into_iter()
            .flat_map(|paths| paths.keys());
        let gone = before.filter(|path| !paths.contains_key(*path));
        wrong.extend(gone.map(|path| format!("{model}, {path}: no longer counted")));
    }
    if !wrong.is_empty() {
        wrong.extend(gate::note_other_compiler(
            &base.label,
            &base.rustc,
            &card.rustc,
        ));
        bail!("more than before: {}", wrong.join("; "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cost::card::Cycles;

    fn card(warm: u64, cold: u64) -> Card {
        let cycles = |warm, cold| Cycles {
            insns: 24,
            warm,
            cold,
        };
        let paths = [
            ("sgi-send", cycles(warm, Some(cold))),
            ("sgi-receive", cycles(80, Some(900))),
            ("floor-send", cycles(50, None)),
            ("floor-receive", cycles(50, None)),
        ];
        let paths = paths.map(|(name, cycles)| (name.to_owned(), cycles));
        Card {
            rustc: "rustc 1.95.0 (x)".into(),
            models: [("minor".to_owned(), paths.into())].into(),
            wake_ups: [("minor".to_owned(), (1..=8).collect())].into(),
            waits: [("minor".to_owned(), (11..=19).collect())].into(),
            ..Card::default()
        }
    }

    fn judged(base: &Card, card: &Card) -> Result<()> {
        fail_on_growth(base, card, &changes(base, card))
    }

    #[test]
    fn what_takes_longer_fails_warm_and_cold_and_so_does_what_is_gone() {
        let base = card(70, 1000);
        assert!(judged(&base, &card(71, 1020)).is_ok());
        assert!(judged(&base, &card(60, 500)).is_ok());
        let why = judged(&base, &card(72, 1000)).unwrap_err().to_string();
        assert!(why.contains("minor, sgi-send, warm: 70 became 72"), "{why}");
        let why = judged(&base, &card(70, 1021)).unwrap_err().to_string();
        assert!(why.contains("minor, sgi-send, cold"), "{why}");
        let mut fewer = card(70, 1000);
        fewer.models.get_mut("minor").unwrap().remove("sgi-receive");
        let why = judged(&base, &fewer).unwrap_err().to_string();
        assert!(why.contains("sgi-receive: no longer counted"), "{why}");
        let mut colder = card(70, 1021);
        colder.missed = [("minor".to_owned(), BTreeMap::new())].into();
        assert!(judged(&base, &colder).is_ok());
        let mut other = card(72, 1000);
        other.rustc = "rustc 1.96.0 (y)".into();
        let why = judged(&base, &other).unwrap_err().to_string();
        assert!(
            why.contains("72") && why.contains("the compiler's"),
            "{why}"
        );
    }

    #[test]
    fn the_newest_card_counts_the_lines_of_each_path() {
        let newest = history::newest::<Card>("gem5").unwrap();
        let card: Card = history::read_baseline(&newest).unwrap();
        for (model, paths) in &card.models {
            for (path, cycles) in paths {
                let counted = card.missed[model].contains_key(path);
                let floor = path.starts_with("floor-");
                assert!(floor || cycles.cold.is_none() || counted, "{model}, {path}");
            }
        }
    }

    #[test]
    fn a_path_stands_beside_the_least_of_its_core() {
        let text = document(&card(75, 1000)).terminal(None).join("\n");
        assert!(
            text.contains("sgi-send          24    75     1.50  1000"),
            "{text}"
        );
        assert!(
            text.contains("takes 155 cycles of exits on both sides, the least is 100: 1.55 times"),
            "{text}"
        );
        assert!(text.contains("return  idle exit  all\n"), "{text}");
        assert!(
            text.contains("8          -   36") && text.contains("minor  runs "),
            "{text}"
        );
        assert!(text.contains("18         19  135"), "{text}");
    }
}
