// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that options take, from the tables by which the words are parsed.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use plan::{Info, Under, Word};
use running::board::{Board, EmulatedMachine};
use running::gem5::parameters::Parameters;

/// The word that stands for all words of a list.
const ALL: &str = "all";

/// The words that the board files define.
struct Boards {
    names: Vec<String>,
    models: BTreeSet<String>,
    presets: BTreeSet<String>,
}

impl Boards {
    fn read() -> Result<Self> {
        let names = running::board::names()?;
        let (mut models, mut presets) = (BTreeSet::new(), BTreeSet::new());
        for name in &names {
            let board = Board::load(name)?;
            models.extend(board.model_names().into_iter().map(String::from));
            if let EmulatedMachine::Gem5(gem5) = &board.machine {
                let parameters = Parameters::load(&board.beside(&gem5.parameters))?;
                presets.extend(parameters.presets().into_iter().map(String::from));
            }
        }
        Ok(Self {
            names,
            models,
            presets,
        })
    }

    /// Returns the words of option `id`. Returns `None` if the option takes other values.
    fn words_of(&self, id: &str) -> Option<Vec<String>> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        if let Some(info) = Info::find(id) {
            return match info.words {
                [] => None,
                words => Some(owned(&[words, &[ALL]].concat())),
            };
        }
        Some(match id {
            "board" => self.names.clone(),
            "cpu" => self.models.iter().cloned().collect(),
            "preset" => self.presets.iter().cloned().collect(),
            "under" => owned(&[Under::NAMES, &[ALL]].concat()),
            "stages" | "keep_cpu" => owned(&["on", "off"]),
            _ => return None,
        })
    }
}

/// Returns `command` with the words that its own options and its verbs' options take. The result can't parse a
/// command line, because a list may join several words.
pub fn with_words(command: Command) -> Result<Command> {
    let boards = Boards::read()?;
    let experiments = || {
        let names = experiments::names();
        let names = names.split(", ").chain([ALL]).map(String::from);
        names.collect::<Vec<_>>()
    };
    let command = command.mut_subcommand("experiment", |verb| {
        verb.mut_arg("names", |arg| with_values(arg, experiments()))
    });
    Ok(each_verb(
        command,
        &|arg| match boards.words_of(arg.get_id().as_str()) {
            _ if !takes_free_value(&arg) => arg,
            Some(words) => with_values(arg, words),
            None if names_a_file(&arg) => arg,
            None => arg.value_hint(ValueHint::Other),
        },
    ))
}

fn each_verb(command: Command, change: &dyn Fn(Arg) -> Arg) -> Command {
    let command = command.mut_args(change);
    command.mut_subcommands(|verb| each_verb(verb, change))
}

fn with_values(arg: Arg, words: Vec<String>) -> Arg {
    // Leaking is harmless: the command is made once, and then the program ends.
    let words = words.into_iter().map(|word| &*word.leak());
    arg.value_parser(PossibleValuesParser::new(words))
}

/// Whether `arg` takes a value, and has no list of possible words.
fn takes_free_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && arg.get_possible_values().is_empty()
}

/// Whether the value of `arg` can be a file, which a shell completes by itself.
fn names_a_file(arg: &Arg) -> bool {
    const NAMES: [&str; 5] = ["FILE", "DIR", "IMAGE", "PATH", "INPUT"];
    let names = arg.get_value_names().unwrap_or_default();
    let named = |name: &clap::builder::Str| NAMES.iter().any(|of| name.contains(of));
    arg.is_positional() || names.iter().any(named)
}
