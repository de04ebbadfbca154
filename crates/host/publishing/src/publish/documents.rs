// SPDX-License-Identifier: MIT OR Apache-2.0
//! Documents with tables of the stored results: one page about all boards, and blocks between two marker lines in other
//! documents.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use page::{screen, table};
use results::{Cell, Results};

use super::SHOWN;
use super::runs::{FOLDER, Run, changed_cells};
use shell::failure::bad_input;
use shell::places;

/// The page about all boards.
const PAGE: &str = "docs/measured.md";
/// The line after a block.
const END: &str = "<!-- until here -->\n";

/// A block in a document: rows from the results of a run.
struct ResultsBlock {
    path: &'static str,
    run: &'static str,
    /// Selects the block's cells; with `None`, the block is the first screen of the run.
    has: Option<fn(&Cell) -> bool>,
    /// Width of the terminal for which the block is made, in columns.
    width: usize,
}

const BLOCKS: [ResultsBlock; 3] = [
    ResultsBlock {
        path: "README.md",
        run: SHOWN,
        has: None,
        width: screen::WIDTH,
    },
    ResultsBlock {
        path: "docs/linux.md",
        run: "linux",
        has: Some(|cell| cell.stats.is_some()),
        width: 120,
    },
    ResultsBlock {
        path: "docs/hypervisors.md",
        run: "neighbour",
        // Select cells whose wait gives up the CPU at once, or polls and needs no IPI.
        has: Some(|cell| {
            let title = cell.title();
            [
                "one wfi ",
                "spin none inject elide",
                "poll-wfi wfi inject elide",
            ]
            .iter()
            .any(|words| title.contains(words))
        }),
        width: 160,
    },
];

/// A document with figures from the stored results.
#[derive(Debug)]
pub struct Document {
    pub path: &'static str,
    /// The document's current text, and the text that it should have.
    pub is: String,
    pub wanted: String,
}

/// Returns all documents.
pub fn all_documents(kept: &[(String, Results)]) -> Result<Vec<Document>> {
    let read =
        |path: &str| fs::read_to_string(places::inside(path)).with_context(|| path.to_owned());
    let mut documents = vec![Document {
        path: PAGE,
        is: read(PAGE)?,
        wanted: boards_page(kept)?,
    }];
    for block in BLOCKS {
        let is = read(block.path)?;
        let wanted = block.replace_block(&is, kept)?;
        documents.push(Document {
            path: block.path,
            is,
            wanted,
        });
    }
    Ok(documents)
}

impl ResultsBlock {
    /// Returns the document's text `text` with an up-to-date block.
    fn replace_block(&self, text: &str, kept: &[(String, Results)]) -> Result<String> {
        let Self { path, run, .. } = self;
        let begin = format!("<!-- cargo xtask dev publish: rows of {FOLDER}/{run}.json -->\n");
        let parts = text
            .split_once(&begin)
            .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
        let Some((before, after)) = parts else {
            bad_input!(
                "{path} has not the lines {begin:?} and {END:?}; put them where its rows are"
            );
        };
        let Some((_, results)) = kept.iter().find(|(name, _)| name == run) else {
            bad_input!("{FOLDER}/{run}.json is not there; run `cargo xtask dev publish {run}`");
        };
        let rows = self.block_text(results);
        let run = Run::find_by_name(run)?;
        let made = match run.is_board() {
            true => String::new(),
            false => format!("$ {}\n{}\n\n", run.command(), measuring_program(results)),
        };
        Ok(format!("{before}{begin}```\n{made}{rows}```\n{END}{after}"))
    }

    /// Returns the block's text: the machine and the selected rows, as a terminal shows them.
    fn block_text(&self, results: &Results) -> String {
        let Some(has) = self.has else {
            let screen = screen::document(results, screen::Rest::Elsewhere).unwrap_or_default();
            let lines = screen.terminal(Some(self.width));
            return lines.iter().map(|line| format!("{line}\n")).collect();
        };
        let mut some = results.clone();
        some.cells.retain(has);
        let lines = table::lines(&some, Some(self.width));
        let machine = table::lines(&some, None);
        let tables: BTreeSet<String> = some.cells.iter().map(Cell::table_key).collect();
        let tables = lines.split(String::is_empty).skip(1).take(tables.len());
        let shown = machine.iter().take(1).map(String::as_str);
        let below =
            tables.flat_map(|table| [""].into_iter().chain(table.iter().map(String::as_str)));
        shown
            .chain(below)
            .map(|line| format!("{}\n", line.trim_end()))
            .collect()
    }
}

/// Returns a text that names the program that measured, and its tree.
fn measuring_program(results: &Results) -> String {
    let build = results.build.as_ref();
    let tree = build.map(results::Build::tree_text).unwrap_or_default();
    format!("{}, {tree}", results.tool)
}

/// Returns the page, which has a section for each board. A section has only those tables whose figures no earlier board
/// has.
fn boards_page(kept: &[(String, Results)]) -> Result<String> {
    let mut text = String::from(HEAD);
    let mut shown: Vec<(&str, &Results)> = Vec::new();
    let (first, rest): (Vec<_>, Vec<_>) = kept.iter().partition(|(name, _)| name == SHOWN);
    for (name, results) in first.into_iter().chain(rest) {
        let run = Run::find_by_name(name)?;
        if !run.is_board() {
            continue;
        }
        text += &format!(
            "\n## {name}\n\n{}; [{name}.json](../{FOLDER}/{name}.json)\n\n",
            measuring_program(results)
        );
        let like = shown
            .iter()
            .find(|(_, other)| changed_cells(name, other, results).is_none());
        text += &match like {
            Some((like, _)) => format!(
                "`{}` has the figures of [{like}](#{like}) in all {} cells.\n",
                run.command(),
                results.cells.len()
            ),
            None => table::output_document(results).markdown(&run.command()),
        };
        if like.is_none() {
            shown.push((name, results));
        }
    }
    Ok(text)
}

const HEAD: &str = "\
# What was measured on each board

`cargo xtask dev publish` measures every board whose emulator is on the computer, and keeps what comes out in `results/`, one file for each board: a run's
[results.json](results.md) without histograms. This page is made of these files (`cargo xtask dev publish --page`), so it has the version and the commit that
measured. Instructions and cycles repeat: the command below a section gives the same numbers with the same compiler and emulator.
`cargo xtask compare results/virt.json RUN` prints the differences. A star and its reason mean the same as in any [table](glossary.md).

No board here is hardware: each is QEMU or gem5 with the properties that `cargo xtask doctor --boards` lists. [Bring-up](bring-up.md) explains how to measure the machine itself.
";

#[cfg(test)]
mod tests {
    use super::super::runs::stored_results;
    use super::*;

    #[test]
    fn the_page_is_that_of_what_is_kept() {
        let kept = stored_results().unwrap();
        for document in all_documents(&kept).unwrap() {
            let path = document.path;
            assert!(
                document.is == document.wanted,
                "{path}: run `cargo xtask dev publish --page`"
            );
        }
        for (name, results) in &kept {
            let run = Run::find_by_name(name).unwrap();
            assert!(!run.is_board() || results.board == *name);
            assert!(!results.incomplete && results.damaged.is_empty(), "{name}");
            assert!(
                results.build.as_ref().is_some_and(|build| !build.dirty),
                "{name}"
            );
            assert!(
                run.job().is_ok() && results.cells.iter().any(|cell| cell.stats.is_some()),
                "{name}"
            );
        }
    }

    #[test]
    fn one_instruction_more_in_one_cell_is_another_figure() {
        let kept = stored_results().unwrap();
        let (_, kept) = kept.iter().find(|(board, _)| board == SHOWN).unwrap();
        assert_eq!(changed_cells(SHOWN, kept, kept), None);
        let mut now = kept.clone();
        now.cells[7].stats.as_mut().unwrap().p99 += 1;
        let told = changed_cells(SHOWN, kept, &now).unwrap();
        assert!(told.contains(&kept.cells[7].title()), "{told}");
        now.cells.remove(0);
        let told = changed_cells(SHOWN, kept, &now).unwrap();
        assert!(told.contains(&kept.cells[0].title()), "{told}");
    }

    #[test]
    fn cells_in_another_order_are_found() {
        let kept = stored_results().unwrap();
        let (_, kept) = kept.iter().find(|(board, _)| board == SHOWN).unwrap();
        let mut now = kept.clone();
        now.cells.swap(2, 3);
        let told = changed_cells(SHOWN, kept, &now).unwrap();
        assert!(told.contains("another order"), "{told}");
    }
}
