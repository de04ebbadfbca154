// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of `run`, as a test's file gives them.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};

use running::board::Board;
use running::options::RunArgs;
use shell::args::parse;
use shell::places;

/// Options of `run` and their values.
pub type Options = BTreeMap<String, toml::Value>;

/// Parses the options as `run` does. Makes paths relative to the workspace.
pub fn options(run: &Options) -> Result<RunArgs> {
    let mut line = vec!["run".to_owned()];
    for (option, value) in run {
        let option = option.replace('_', "-");
        match value {
            // Commands are not joined with commas, because a command may contain one.
            toml::Value::Array(commands) if option == "exec" => {
                line.extend(commands.iter().map(|one| format!("--exec={}", typed(one))));
            }
            toml::Value::Boolean(true) => line.push(format!("--{option}")),
            toml::Value::Boolean(false) => {}
            value => line.push(format!("--{option}={}", typed(value))),
        }
    }
    let args = parse::<RunArgs>(line);
    let mut args = args.map_err(|error| anyhow!(request::one_line(&error)))?;
    let tree = args.job.dtb.take();
    args.job.dtb = tree.map(|path| places::root().join(path));
    let xen = args.job.xen.take();
    args.job.xen = xen.map(|path| places::root().join(path));
    let load = &mut args.job.load;
    load.given.beside(places::root());
    if let Some(board) = Board::file(&load.board) {
        load.board = places::root().join(board).display().to_string();
    }
    Ok(args)
}

/// Returns a value in the form in which users type it after an option.
pub fn typed(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(values) => values.iter().map(typed).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_run() {
        let text = "wait = ['wfi', 'wfe']\npoll_limit_us = 5\ncpus = 4\nsurvey = true";
        let args = options(&toml::from_str(text).unwrap()).unwrap();
        assert_eq!(args.job.load.plan.lists.get("wait"), Some("wfi,wfe"));
        assert_eq!(args.job.load.plan.lists.get("poll-limit-us"), Some("5"));
        assert_eq!(args.job.cpus, Some(4));
        assert!(args.job.load.survey && !args.job.load.plan.raw);
    }
}
