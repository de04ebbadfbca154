// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines: how often each was run, and which are tests.

use std::ops::RangeInclusive;

/// A source file in a report.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct File<'r> {
    pub path: &'r str,
    /// Lines with code, from 1, and how often each was run.
    pub counts: Vec<(usize, u64)>,
}

/// The files of a report in lcov's format: `SF:` begins one, `DA:` is a line
/// and its count.
pub fn files(report: &str) -> Vec<File<'_>> {
    let mut files = Vec::new();
    for line in report.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            files.push(File {
                path,
                ..File::default()
            });
        } else if let (Some(file), Some(entry)) = (files.last_mut(), line.strip_prefix("DA:")) {
            let mut numbers = entry.split(',').map(str::parse::<u64>);
            if let (Some(Ok(line)), Some(Ok(count))) = (numbers.next(), numbers.next()) {
                file.counts.push((line as usize, count));
            }
        }
    }
    files
}

/// The lines of a file's test module: from its `#[cfg(test)]`, or one with more
/// conditions, to the brace that closes it, both in the first column.
pub fn tests(source: &str) -> RangeInclusive<usize> {
    let mut lines = source.lines().zip(1..);
    let is_start =
        |line: &str| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
    let Some((_, start)) = lines.find(|(line, _)| is_start(line)) else {
        return RangeInclusive::new(1, 0);
    };
    let end = lines.find(|(line, _)| *line == "}").map(|(_, end)| end);
    start..=end.unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let report = "SF:/a.rs\nFN:1,x\nDA:3,0\nDA:4,17\nend_of_record\nSF:/b.rs\nDA:x\nLF:2\n";
        let expected = [("/a.rs", vec![(3, 0), (4, 17)]), ("/b.rs", vec![])];
        let expected = expected.map(|(path, counts)| File { path, counts });
        assert_eq!(files(report), expected);
    }

    #[test]
    fn a_test_module_ends_at_its_brace() {
        let source =
            "fn a() {\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {\n}\n";
        assert_eq!(tests(source), 4..=8);
        assert!(tests("fn a() {\n}\n").is_empty());
        assert_eq!(
            tests("#[cfg(all(test, not(loom)))]\nmod tests;\n"),
            1..=usize::MAX
        );
    }
}
