// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unified diff as a value (git-diff(1), "Generating patch text with -p"; POSIX, diff -u).

use std::fmt;

/// The changes to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// The path before the patch; `None` if the patch creates the file.
    pub old: Option<String>,
    /// The path after the patch; `None` if the patch removes the file.
    pub new: Option<String>,
    /// Lines of git's header that are neither paths nor hunks, such as the mode of a new file.
    pub header: Vec<String>,
    pub hunks: Vec<Hunk>,
}

/// A run of changed lines with their context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Number of the hunk's first line in the file before the patch, from 1; 0 if the hunk has no lines there.
    pub start: usize,
    pub lines: Vec<Line>,
}

/// A line of a hunk, without its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Context(String),
    Removed(String),
    Added(String),
    /// Marks that the line before this one does not end with a newline.
    NoEnd,
}

impl Line {
    /// Returns the text, if the line exists before the patch.
    pub fn before(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Removed(text) => Some(text),
            Self::Added(_) | Self::NoEnd => None,
        }
    }

    /// Whether the line exists after the patch.
    pub const fn is_after(&self) -> bool {
        matches!(self, Self::Context(_) | Self::Added(_))
    }

    pub fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Context(text) | Self::Removed(text) | Self::Added(text) => Some(text),
            Self::NoEnd => None,
        }
    }
}

impl FileDiff {
    /// Returns the path by which messages name the file.
    pub fn path(&self) -> &str {
        let path = self.new.as_deref().or(self.old.as_deref());
        path.unwrap_or_default()
    }
}

impl Hunk {
    /// Returns the numbers of the hunk's lines before and after the patch.
    pub fn counts(&self) -> (usize, usize) {
        let count = |of: fn(&Line) -> bool| self.lines.iter().filter(|line| of(line)).count();
        (count(|line| line.before().is_some()), count(Line::is_after))
    }
}

impl fmt::Display for FileDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = [self.old.as_deref(), self.new.as_deref()];
        let [old, new] = paths.map(|path| path.unwrap_or(self.path()));
        writeln!(f, "diff --git a/{old} b/{new}")?;
        for line in &self.header {
            writeln!(f, "{line}")?;
        }
        // Git needs a file mode for a file that is created or removed.
        for (is_none, mode) in [(self.old.is_none(), "new"), (self.new.is_none(), "deleted")] {
            let mode = format!("{mode} file mode ");
            if is_none && !self.header.iter().any(|line| line.starts_with(&mode)) {
                writeln!(f, "{mode}100644")?;
            }
        }
        if self.hunks.is_empty() {
            return Ok(());
        }
        for (mark, side, path) in [("---", "a", &self.old), ("+++", "b", &self.new)] {
            match path {
                Some(path) => writeln!(f, "{mark} {side}/{path}")?,
                None => writeln!(f, "{mark} /dev/null")?,
            }
        }
        // Earlier hunks shift the lines of later ones.
        let mut shift = 0isize;
        for hunk in &self.hunks {
            let (before, after) = hunk.counts();
            let new = hunk.start.saturating_add_signed(shift);
            // If the count is zero, the header has the number of the line before the hunk.
            let new = match (before, after) {
                (0, _) => new + 1,
                (_, 0) => new.saturating_sub(1),
                _ => new,
            };
            writeln!(f, "@@ -{},{before} +{new},{after} @@", hunk.start)?;
            shift += after as isize - before as isize;
            for line in &hunk.lines {
                match line {
                    Line::Context(text) => writeln!(f, " {text}")?,
                    Line::Removed(text) => writeln!(f, "-{text}")?,
                    Line::Added(text) => writeln!(f, "+{text}")?,
                    Line::NoEnd => writeln!(f, "\\ No newline at end of file")?,
                }
            }
        }
        Ok(())
    }
}
