// SPDX-License-Identifier: MIT OR Apache-2.0
//! An option for each dimension, made from the table of dimensions.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use plan::{DIMENSIONS, Info, Place, ValueKind};

/// Heading of the options that belong to the workloads on the guest's executor.
const EXECUTOR: &str =
    "Options of the workloads on the executor (CPUS: like 0-3+6 or 0x4f, all, none)";

/// The values that the user gave for the dimensions' options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListArgs(pub(crate) BTreeMap<&'static str, String>);

impl ListArgs {
    /// Returns the values that were given for dimension `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Iterates over the dimensions for which values were given, with the values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(key, values)| (*key, values.as_str()))
    }
}

impl Args for ListArgs {
    fn augment_args(command: Command) -> Command {
        let option = |info: &'static Info| {
            let option = Arg::new(info.key).long(info.key).help(results::help(info));
            let option = option.visible_aliases(info.aliases.iter().copied());
            let option = option.value_name(match info.kind {
                ValueKind::Words | ValueKind::Numbers | ValueKind::Names => "LIST",
                ValueKind::Cpus => "CPUS,...",
                ValueKind::Pairs => "A,B+...|all",
                ValueKind::Tables => "TABLE,...",
            });
            match info.place {
                Place::Always | Place::Unusual => option,
                Place::System => option.help_heading(EXECUTOR),
            }
        };
        command.args(DIMENSIONS.iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ListArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = DIMENSIONS.iter().filter_map(|info| {
            let values = matches.get_one::<String>(info.key)?;
            Some((info.key, values.clone()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}
