// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads diffs from any text: an original patch, a mail that quotes one, or a page of an archive.
//!
//! Mailers and archives damage diffs. A reply quotes the diff, breaks its long lines, and has text of its own between
//! the lines. An archive drops white space at the beginnings of lines, which includes the mark of a context line. The
//! counts in a hunk's header decide which kind of damage a hunk has. A hunk that fits no kind of damage is an error.

use crate::diff::{FileDiff, Hunk, Line};

/// The diffs of a text, and the assumptions that were made to read them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loose {
    pub files: Vec<FileDiff>,
    /// How many broken lines were joined again.
    pub joined: usize,
    /// How many context lines had lost their mark.
    pub unmarked: usize,
    /// Whether the diff was quoted.
    pub quoted: bool,
    /// Whether no-break spaces had replaced blanks.
    pub no_break: bool,
}

const NO_BREAK: char = '\u{a0}';

/// The assumed damage of a hunk, which decides how its lines are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// A line without a mark is the rest of the line before it.
    Broken,
    /// A line without a mark is context.
    Unmarked,
}

/// Reads all diffs in `text`. The error names the file and the hunk.
pub fn parse(text: &str) -> Result<Loose, String> {
    // Some mail programs send every second blank as a no-break space, which never begins a line of Linux's source.
    let no_break = |line: &str| {
        unquote(line)
            .1
            .trim_start_matches(['+', '-'])
            .starts_with(NO_BREAK)
    };
    if text.lines().any(no_break) {
        let mut loose = parse(&text.replace(NO_BREAK, " "))?;
        loose.no_break = true;
        return Ok(loose);
    }
    let lines: Vec<(usize, &str)> = text.lines().map(unquote).collect();
    let mut loose = Loose::default();
    let mut at = 0;
    while at < lines.len() {
        let (depth, line) = lines[at];
        if let Some(old) = line.strip_prefix("--- ")
            && let Some(next) = same_depth(&lines, at + 1, depth)
            && let Some(new) = lines[next].1.strip_prefix("+++ ")
        {
            let header = lines_of_header(&lines[..at], depth);
            loose.quoted |= depth > 0;
            let mut file = FileDiff {
                old: path_in_header(old),
                new: path_in_header(new),
                header,
                hunks: Vec::new(),
            };
            at = next + 1;
            at = read_hunks(&lines, at, depth, &mut file, &mut loose)?;
            loose.files.push(file);
            continue;
        }
        if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err("it has a binary part, and only text is taken".into());
        }
        if Header::parse(line).is_some() {
            return Err(format!("line {} begins a hunk of no file", at + 1));
        }
        if let Some(file) = read_bare_header(&lines[at..], depth) {
            loose.files.push(file);
        }
        at += 1;
    }
    Ok(loose)
}

/// Returns the number of the first line from `at` on that is quoted `depth` times. Skips the reply's own lines. Returns
/// `None` if the line after these own lines is quoted more deeply, or if there is no such line.
fn same_depth(lines: &[(usize, &str)], at: usize, depth: usize) -> Option<usize> {
    let is_answer = |(deep, line): &(usize, &str)| *deep < depth || line.trim().is_empty();
    let answers = lines.get(at..)?.iter().take_while(|line| is_answer(line));
    let next = at + answers.count();
    lines
        .get(next)
        .filter(|(deep, _)| *deep == depth)
        .map(|_| next)
}

/// Returns how many times a line is quoted, and its text without the quotation marks.
pub fn unquote(line: &str) -> (usize, &str) {
    let (mut depth, mut rest) = (0, line.trim_end_matches('\r'));
    while let Some(more) = rest.strip_prefix('>') {
        depth += 1;
        rest = more.strip_prefix(' ').unwrap_or(more);
    }
    (depth, rest)
}

/// Returns a path in a diff without the `a/` or `b/` before it and without the date after it.
fn path_in_header(text: &str) -> Option<String> {
    let text = text.split('\t').next().unwrap_or(text).trim();
    if text == "/dev/null" {
        return None;
    }
    let inside = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/"));
    Some(inside.unwrap_or(text).to_owned())
}

/// Prefixes of the lines in git's header that describe how the file changed.
const HEADER: [&str; 9] = [
    "old mode",
    "new mode",
    "deleted file mode",
    "new file mode",
    "copy from",
    "copy to",
    "rename from",
    "rename to",
    "similarity index",
];

fn lines_of_header(before: &[(usize, &str)], depth: usize) -> Vec<String> {
    let begins = before
        .iter()
        .rposition(|(_, line)| line.starts_with("diff --git "));
    let lines = begins.map_or(&[][..], |begins| &before[begins..]);
    // Only the lines right before the paths belong to this file.
    let lines = if lines.len() > 8 { &[][..] } else { lines };
    let matters = |line: &&str| HEADER.iter().any(|word| line.starts_with(word));
    let lines = lines.iter().filter(|(at, _)| *at == depth);
    lines
        .map(|(_, line)| *line)
        .filter(matters)
        .map(str::to_owned)
        .collect()
}

/// Returns the diff of a file whose content does not change, if such a diff begins here. Such a diff is a rename or a
/// change of mode.
fn read_bare_header(lines: &[(usize, &str)], depth: usize) -> Option<FileDiff> {
    let (old, new) = lines[0]
        .1
        .strip_prefix("diff --git a/")?
        .split_once(" b/")?;
    let mut header = Vec::new();
    for (at, line) in &lines[1..] {
        if *at != depth {
            break;
        }
        if !HEADER.iter().any(|word| line.starts_with(word)) {
            break;
        }
        header.push((*line).to_owned());
    }
    let mut next = lines[header.len() + 1..]
        .iter()
        .map(|(_, line)| *line)
        .peekable();
    next.next_if(|line| line.starts_with("index "));
    let changes = next.peek().is_some_and(|next| {
        ["--- ", "GIT binary", "Binary files"]
            .iter()
            .any(|word| next.starts_with(word))
    });
    let has = |word: &str| header.iter().any(|line| line.starts_with(word));
    let (comes, goes) = (has("new file"), has("deleted file"));
    (!header.is_empty() && !changes).then(|| FileDiff {
        old: (!comes).then(|| old.into()),
        new: (!goes).then(|| new.into()),
        header,
        hunks: Vec::new(),
    })
}

/// Reads the hunks of `file` from line `at` on, and returns the number of the line after them.
fn read_hunks(
    lines: &[(usize, &str)],
    mut at: usize,
    depth: usize,
    file: &mut FileDiff,
    loose: &mut Loose,
) -> Result<usize, String> {
    while at < lines.len() {
        let (deep, line) = lines[at];
        // Skips the reply's own lines between two hunks.
        if deep < depth || line.trim().is_empty() {
            at += 1;
            continue;
        }
        let Some(header) = Header::parse(line).filter(|_| deep == depth) else {
            return Ok(at);
        };
        at += 1;
        let read = [Damage::Broken, Damage::Unmarked]
            .into_iter()
            .find_map(|damage| read_hunk(&lines[at..], depth, header.counts, damage));
        let Some(read) = read else {
            return Err(header.count_error(file, "other"));
        };
        // Programs other than git name the file on both sides of a diff, even if it exists on only one side.
        if header.starts.0 == 0 && header.counts.0 == 0 {
            file.old = None;
        }
        if header.starts.1 == 0 && header.counts.1 == 0 {
            file.new = None;
        }
        at += read.taken;
        let more = lines
            .get(at)
            .filter(|(deep, _)| *deep == depth)
            .map(|(_, line)| *line);
        if more.is_some_and(|line| line.starts_with('+')) {
            return Err(header.count_error(file, "more"));
        }
        loose.joined += read.joined;
        loose.unmarked += read.unmarked;
        file.hunks.push(Hunk {
            start: header.starts.0,
            lines: read.lines,
        });
    }
    Ok(at)
}

/// A hunk's header: the numbers of its first line, and its numbers of lines, before and after the patch.
#[derive(Clone, Copy)]
struct Header {
    starts: (usize, usize),
    counts: (usize, usize),
}

impl Header {
    fn parse(line: &str) -> Option<Self> {
        let inside = line.strip_prefix("@@ -")?.split_once(" @@")?.0;
        let (before, after) = inside.split_once(" +")?;
        let of = |text: &str| match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        };
        let (before, after): ((usize, usize), (usize, usize)) = (of(before)?, of(after)?);
        Some(Self {
            starts: (before.0, after.0),
            counts: (before.1, after.1),
        })
    }

    /// Returns the error for the next hunk of `file`, whose number of lines differs from the header's counts. `other`
    /// is the word for the difference, `other` or `more`.
    fn count_error(&self, file: &FileDiff, other: &str) -> String {
        let (before, after) = self.counts;
        format!(
            "hunk {} of {} has {other} lines than the {before} before and {after} after that its header counts",
            file.hunks.len() + 1,
            file.path(),
        )
    }
}

/// The lines of a hunk, and how they were read.
struct Read {
    lines: Vec<Line>,
    /// How many lines of the text belong to the hunk.
    taken: usize,
    joined: usize,
    unmarked: usize,
}

fn read_hunk(
    text: &[(usize, &str)],
    depth: usize,
    (mut before, mut after): (usize, usize),
    damage: Damage,
) -> Option<Read> {
    let mut read = Read {
        lines: Vec::new(),
        taken: 0,
        joined: 0,
        unmarked: 0,
    };
    for &(deep, line) in text {
        let mark = line.chars().next();
        let whole = before == 0 && after == 0;
        if whole && mark != Some('\\') && !is_rest(deep == depth, line, &read, damage) {
            break;
        }
        read.taken += 1;
        if deep < depth {
            continue;
        }
        let rest = || line.get(1..).unwrap_or_default().to_owned();
        match mark {
            Some('+') => {
                after = after.checked_sub(1)?;
                read.lines.push(Line::Added(rest()));
            }
            Some('-') => {
                before = before.checked_sub(1)?;
                read.lines.push(Line::Removed(rest()));
            }
            Some('\\') => read.lines.push(Line::NoEnd),
            Some(' ') | None => {
                (before, after) = (before.checked_sub(1)?, after.checked_sub(1)?);
                read.lines.push(Line::Context(rest()));
            }
            Some(_) if damage == Damage::Unmarked => {
                (before, after) = (before.checked_sub(1)?, after.checked_sub(1)?);
                read.unmarked += 1;
                read.lines.push(Line::Context(line.to_owned()));
            }
            // The line is the rest of the hunk's own header.
            Some(_) if read.lines.is_empty() => {}
            Some(_) => {
                let last = read.lines.last_mut()?.text_mut()?;
                join_lines(last, line);
                read.joined += 1;
            }
        }
    }
    (before == 0 && after == 0).then_some(read)
}

/// Length of the shortest line that a mailer breaks.
const BROKEN: usize = 50;

/// Whether `line`, which follows the last line of a hunk, is the rest of that line.
fn is_rest(same_depth: bool, line: &str, read: &Read, damage: Damage) -> bool {
    let long = |line: &Line| line.before().is_some_and(|text| text.len() >= BROKEN);
    let marked = line.starts_with([' ', '+', '-', '@']) || line.starts_with("diff ");
    damage == Damage::Broken
        && same_depth
        && read.joined > 0
        && !line.is_empty()
        && !marked
        && read.lines.last().is_some_and(long)
}

/// Joins the rest of a broken line. Mailers break a line at a blank, which is lost, or after a hyphen.
fn join_lines(line: &mut String, rest: &str) {
    if !line.ends_with(['-', ' ']) {
        line.push(' ');
    }
    line.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "\
From: A\n\nText.\n---\n a.c | 2 +-\n\ndiff --git a/a.c b/a.c\nindex 1..2 100644\n--- a/a.c\n+++ b/a.c\n\
@@ -3,3 +3,4 @@ int f(void)\n \tint x;\n-\tg();\n+\th();\n+\ti();\n \treturn x;\n-- \n2.39\n";

    fn lines(read: &Loose) -> Vec<Line> {
        read.files[0].hunks[0].lines.clone()
    }

    #[test]
    fn a_patch_as_it_was_made_is_read_as_it_is() {
        let read = parse(WHOLE).unwrap();
        assert_eq!((read.joined, read.unmarked, read.quoted), (0, 0, false));
        let printed = read.files[0].to_string();
        let (_, diff) = WHOLE.split_once("index 1..2 100644\n").unwrap();
        let diff = diff.split("-- \n").next().unwrap();
        let (_, printed) = printed.split_once('\n').unwrap();
        assert_eq!(printed, diff.replace("@@ int f(void)", "@@"));
    }

    #[test]
    fn a_quoted_diff_is_read_past_the_answers_in_it() {
        let mut quoted = String::new();
        for line in WHOLE.lines() {
            quoted += &format!("> > {line}\n");
            if line.starts_with('-') {
                quoted += ">\n> Why?\n\nBecause.\n\n";
            }
        }
        let quoted = parse(&quoted).unwrap();
        assert!(quoted.quoted);
        assert_eq!(lines(&quoted), lines(&parse(WHOLE).unwrap()));
    }

    #[test]
    fn no_break_spaces_are_blanks() {
        let sent = WHOLE.replace(" \t", "\u{a0} ");
        let sent = parse(&sent).unwrap();
        assert!(sent.no_break);
        assert_eq!(lines(&sent)[0], Line::Context(" int x;".into()));
    }

    #[test]
    fn broken_lines_are_joined_if_the_counts_then_fit() {
        let broken = WHOLE
            .replace("+\th();", "+\th(one,\ntwo);")
            .replace("+\ti();", "+obj-\ny");
        let read = parse(&broken).unwrap();
        assert_eq!(read.joined, 2);
        assert!(lines(&read).contains(&Line::Added("\th(one, two);".into())));
        assert!(lines(&read).contains(&Line::Added("obj-y".into())));
    }

    #[test]
    fn context_without_its_mark_is_context_if_the_counts_then_fit() {
        let bare = WHOLE
            .replace(" \tint x;", "int x;")
            .replace(" \treturn", "return");
        let read = parse(&bare).unwrap();
        assert_eq!((read.joined, read.unmarked), (0, 2));
        assert_eq!(lines(&read)[0], Line::Context("int x;".into()));
    }

    #[test]
    fn a_hunk_whose_counts_do_not_fit_is_named() {
        let cut = WHOLE.replace("+\ti();\n", "");
        let error = parse(&cut).unwrap_err();
        assert!(error.starts_with("hunk 1 of a.c has"), "{error}");
        assert_eq!(parse("no diff").unwrap(), Loose::default());
    }

    #[test]
    fn a_file_of_no_lines_is_none() {
        let text = "--- a/n\n+++ b/n\n@@ -0,0 +1,1 @@\n+a\n--- a/o\n+++ b/o\n@@ -1 +0,0 @@\n-a\n";
        let read = parse(text).unwrap();
        let sides = |n: usize| (read.files[n].old.is_some(), read.files[n].new.is_some());
        assert_eq!((sides(0), sides(1)), ((false, true), (true, false)));
    }

    #[test]
    fn nothing_is_left_out_silently() {
        let second = "@@ -9,1 +10,1 @@\n-\ta();\n+\tb();\n";
        let two = WHOLE.replace("-- \n", &format!("{second}-- \n"));
        assert_eq!(parse(&two).unwrap().files[0].hunks.len(), 2);
        for (text, told) in [
            (
                two.replace("+\ti();", "+\ti();\n+\tj();"),
                "hunk 1 of a.c has",
            ),
            (
                two.replace(second, &format!("[snip]\n{second}")),
                "begins a hunk of no file",
            ),
            (
                "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 1\n".into(),
                "binary",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let empty = parse("diff --git a/n b/n\nnew file mode 100644\nindex 0..e69de29\n").unwrap();
        assert_eq!(
            (empty.files[0].old.as_deref(), empty.files[0].new.as_deref()),
            (None, Some("n"))
        );
    }

    #[test]
    fn a_rename_and_a_new_file_keep_their_headers() {
        let text = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n\
                    diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n";
        let read = parse(text).unwrap();
        assert_eq!(read.files.len(), 2);
        assert_eq!(read.files[0].header.len(), 3);
        assert_eq!(read.files[1].old, None);
        assert!(read.files[1].to_string().contains("@@ -0,0 +1,1 @@\n+a\n"));
    }
}
