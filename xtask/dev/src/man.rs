// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `man`: writes manual pages, which it makes from the options and the help of the verbs.

use std::io::Write;

use anyhow::Result;
use clap::builder::StyledStr;
use clap::{Command, CommandFactory};

use crate::cli::DevCli;
use crate::completions::print_text;
use shell::failure::bad_input;

/// Section for text that has no heading in the help.
const NOTES: &str = "NOTES";

/// Writes the page of `verb`, or the page of the whole program.
pub fn man(verb: Option<&str>) -> Result<()> {
    let mut all = DevCli::command();
    all.build();
    let command = match verb {
        None => all,
        Some(verb) => match find_verb(&all, verb) {
            Some(of) => of.clone(),
            None => bad_input!(
                "there is no verb `{verb}`; use {}",
                verb_names(&all).join(", ")
            ),
        },
    };
    print_text(&page(command)?)
}

fn page(command: Command) -> Result<Vec<u8>> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let after = command
        .get_after_long_help()
        .or_else(|| command.get_after_help())
        .map(StyledStr::to_string);
    let has_verbs = command.has_subcommands();
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    section(&mut text, "SYNOPSIS", &usage)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if has_verbs {
        page.render_subcommands_section(&mut text)?;
    }
    for part in after.unwrap_or_default().split("\n\n") {
        match part.split_once(":\n") {
            Some((title, body)) if !title.contains('\n') => {
                section(&mut text, &title.to_uppercase(), body)?;
            }
            _ => section(&mut text, NOTES, part)?,
        }
    }
    Ok(text)
}

/// Writes a section whose lines are not filled (man-pages(7)).
fn section(text: &mut Vec<u8>, title: &str, lines: &str) -> Result<()> {
    writeln!(text, ".SH \"{title}\"\n.nf")?;
    for line in lines.lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A dot at the start of a line of text must not turn the line into a roff request.
        let dot = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        writeln!(text, "{dot}{line}")?;
    }
    writeln!(text, ".fi")?;
    Ok(())
}

/// Returns the verb called `verb`, which may be a verb of `dev`.
fn find_verb<'c>(all: &'c Command, verb: &str) -> Option<&'c Command> {
    let mut verbs = all.get_subcommands();
    let of_dev = || all.find_subcommand("dev")?.find_subcommand(verb);
    verbs.find(|of| of.get_name() == verb).or_else(of_dev)
}

fn verb_names(all: &Command) -> Vec<&str> {
    let dev = all.find_subcommand("dev");
    let verbs = all
        .get_subcommands()
        .chain(dev.into_iter().flat_map(Command::get_subcommands));
    verbs
        .map(Command::get_name)
        .filter(|name| *name != "help")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::cli::examples;

    #[test]
    fn a_page_has_a_short_synopsis_and_the_examples() {
        let mut all = DevCli::command();
        all.build();
        for verb in verb_names(&all) {
            let page = page(find_verb(&all, verb).unwrap().clone()).unwrap();
            let page = String::from_utf8(page).unwrap();
            let (_, synopsis) = page.split_once(".SH \"SYNOPSIS\"\n.nf\n").unwrap();
            let synopsis = synopsis.lines().next().unwrap();
            assert!(synopsis.len() < 120, "{verb}: {synopsis}");
            let known = [verb.to_owned(), format!("dev {verb}")];
            for (line, _) in known.iter().flat_map(|verb| examples::examples_of(verb)) {
                let line = line.replace('-', "\\-");
                let (_, shown) = page.split_once(".SH \"EXAMPLES\"").unwrap();
                assert!(shown.contains(&format!("cargo xtask {line}\n")), "{page}");
            }
        }
    }
}
