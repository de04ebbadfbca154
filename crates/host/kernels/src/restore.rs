// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restores the lost white space of a diff from the file that it changes.
//!
//! Context lines and removed lines are in the file, so their white space is taken from there. The white space is
//! certain if a hunk's lines equal the file's lines when white space is ignored. Added lines are only in the diff.
//! Added lines are not changed, except in Kconfig files, where indentation is syntax.

use crate::diff::{FileDiff, Hunk, Line};

/// How many lines got their white space back, and for how many it was guessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub lines: usize,
    pub guessed: usize,
}

/// Restores the lines of `diff` from the text of its file before the patch.
pub fn restore(diff: &mut FileDiff, before: &str) -> Restored {
    let file: Vec<&str> = before.lines().collect();
    let kconfig = diff.path().rsplit('/').next().unwrap_or_default();
    let kconfig = kconfig.starts_with("Kconfig");
    let mut restored = Restored::default();
    for hunk in &mut diff.hunks {
        let Some(start) = find_place(hunk, &file) else {
            continue;
        };
        let lost = put_back(hunk, &file[start..], &mut restored);
        hunk.start = start + 1;
        if lost && kconfig {
            restored.guessed += indent_added(hunk);
        }
    }
    restored
}

/// Returns the index of the file's line at which the hunk's old lines begin, ignoring white space. Of several places,
/// returns the one nearest to the place that the hunk states.
fn find_place(hunk: &Hunk, file: &[&str]) -> Option<usize> {
    let wanted: Vec<String> = hunk
        .lines
        .iter()
        .filter_map(Line::before)
        .map(without_blanks)
        .collect();
    if wanted.is_empty() {
        return None;
    }
    let stated = hunk.start.saturating_sub(1);
    let last = file.len().checked_sub(wanted.len())?;
    let is_at = |start: &usize| {
        let lines = file[*start..].iter().zip(&wanted);
        lines
            .into_iter()
            .all(|(line, wanted)| without_blanks(line) == *wanted)
    };
    (0..=last)
        .filter(is_at)
        .min_by_key(|start| start.abs_diff(stated))
}

/// Replaces the hunk's old lines by the file's lines. Returns whether white space at the beginning of a line had been
/// lost.
fn put_back(hunk: &mut Hunk, file: &[&str], restored: &mut Restored) -> bool {
    let mut lost = false;
    let mut file = file.iter();
    for line in &mut hunk.lines {
        if line.before().is_none() {
            continue;
        }
        let (Some(text), Some(is)) = (line.text_mut(), file.next()) else {
            break;
        };
        if text != is {
            lost |= is.starts_with([' ', '\t']) && !text.starts_with([' ', '\t']);
            restored.lines += 1;
            *text = (*is).to_owned();
        }
    }
    lost
}

/// Returns a line without its white space.
fn without_blanks(line: &str) -> String {
    line.split_whitespace().collect()
}

/// Words that begin an entry of Kconfig at the first column (Linux, Documentation/kbuild/kconfig-language.rst).
const ENTRIES: [&str; 10] = [
    "config",
    "menuconfig",
    "choice",
    "endchoice",
    "menu",
    "endmenu",
    "if",
    "endif",
    "source",
    "comment",
];

/// Indents the added lines of a Kconfig file. Returns how many were indented.
fn indent_added(hunk: &mut Hunk) -> usize {
    let (mut help, mut guessed) = (false, 0);
    for line in &mut hunk.lines {
        let Line::Added(text) = line else {
            help = false;
            continue;
        };
        let first = text.split_whitespace().next().unwrap_or_default();
        if ENTRIES.contains(&first) && !help || first == "config" {
            help = false;
        } else if !first.is_empty() {
            let by = if help { "\t  " } else { "\t" };
            help |= first == "help";
            *text = format!("{by}{}", text.trim_start());
            guessed += 1;
        }
    }
    guessed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(path: &str, start: usize, lines: Vec<Line>) -> FileDiff {
        FileDiff {
            old: Some(path.into()),
            new: Some(path.into()),
            hunks: vec![Hunk { start, lines }],
            ..FileDiff::default()
        }
    }

    fn context(text: &str) -> Line {
        Line::Context(text.into())
    }

    #[test]
    fn lines_of_the_file_get_their_white_space_back() {
        let file = "x\n\tif (a)\n\t\tb();\n";
        let lines = vec![
            context("if (a)"),
            Line::Removed("b();".into()),
            Line::Added("c();".into()),
        ];
        let mut diff = diff("a.c", 2, lines);
        let restored = restore(&mut diff, file);
        assert_eq!((restored.lines, restored.guessed), (2, 0));
        assert_eq!(
            diff.hunks[0].lines,
            [
                context("\tif (a)"),
                Line::Removed("\t\tb();".into()),
                Line::Added("c();".into())
            ]
        );
    }

    #[test]
    fn of_two_places_the_nearer_is_taken() {
        let file = "\ta\nb\nb\nb\n\ta\n";
        for (stated, found) in [(1, 1), (2, 1), (4, 5), (9, 5)] {
            let mut diff = diff("a.c", stated, vec![context("a")]);
            restore(&mut diff, file);
            assert_eq!(diff.hunks[0].start, found);
        }
    }

    #[test]
    fn a_hunk_of_another_file_stays() {
        let mut diff = diff("a.c", 1, vec![context("a"), context("b")]);
        let before = diff.clone();
        assert_eq!(restore(&mut diff, "a\nc\n"), Restored::default());
        assert_eq!(diff, before);
    }

    #[test]
    fn kconfig_is_indented_because_its_help_would_not_end() {
        let added = [
            "config B",
            "bool \"b\"",
            "help",
            "If this is text.",
            "config C",
            "bool",
        ];
        let mut lines = vec![context("config A"), context("bool")];
        lines.extend(added.map(|text| Line::Added(text.into())));
        let mut diff = diff("x/Kconfig.arm", 1, lines);
        assert_eq!(restore(&mut diff, "config A\n\tbool\n").guessed, 4);
        let indented: Vec<_> = diff.hunks[0].lines[2..]
            .iter_mut()
            .map(|line| line.text_mut().unwrap().clone())
            .collect();
        assert_eq!(
            indented,
            [
                "config B",
                "\tbool \"b\"",
                "\thelp",
                "\t  If this is text.",
                "config C",
                "\tbool"
            ]
        );
    }
}
