// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the time that tests took, for people to read. No test fails because of its time.

use std::fmt::Write;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Took {
    name: String,
    /// Wall-clock time, including waits for concurrent tests.
    wall: Duration,
    /// Processor time of all processes of the test.
    cpu: Duration,
}

impl Took {
    pub fn new(name: &str, wall: Duration, cpu: Duration) -> Self {
        let name = name.into();
        Self { name, wall, cpu }
    }
}

/// Returns a table of the `count` longest tests, by the larger of their two times, and the sum over all tests.
pub fn table(took: &[Took], count: usize) -> String {
    let mut sorted: Vec<&Took> = took.iter().collect();
    sorted.sort_by_key(|one| (one.cpu.max(one.wall), one.cpu));
    let mut text = "      CPU     wall  test".to_owned();
    for one in sorted.iter().rev().take(count) {
        row(&mut text, one.cpu, one.wall, &one.name);
    }
    let sum = |of: fn(&Took) -> Duration| took.iter().map(of).sum();
    let all = format!("all {}", took.len());
    row(&mut text, sum(|one| one.cpu), sum(|one| one.wall), &all);
    text
}

fn row(text: &mut String, cpu: Duration, wall: Duration, name: &str) {
    let [cpu, wall] = [cpu, wall].map(|time| time.as_secs_f64());
    // Writing to a string can't fail.
    let _ = write!(text, "\n{cpu:7.1} s {wall:6.1} s  {name}");
}

/// Returns a table of the `count` longest test programs in Cargo's output `said`, and the sum over all programs,
/// without the time to compile them.
pub fn host_table(said: &str, count: usize) -> String {
    let mut programs = programs(said);
    programs.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let mut text = "     wall  program of tests of the host".to_owned();
    let sum: f64 = seconds(programs.iter().map(|(_, took)| took).sum());
    for (name, took) in programs.iter().take(count) {
        let _ = write!(text, "\n{:7.1} s  {name}", seconds(*took));
    }
    let _ = write!(text, "\n{sum:7.1} s  all {}", programs.len());
    text
}

fn seconds(milliseconds: u64) -> f64 {
    Duration::from_millis(milliseconds).as_secs_f64()
}

/// Returns the test programs, with their packages, and the milliseconds that each program reports.
///
/// Cargo names a package only before the package's first program, whose file has the package's name.
fn programs(said: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let (mut package, mut name) = (String::new(), None);
    for line in said.lines().map(str::trim) {
        if let Some(running) = line.strip_prefix("Running ") {
            if let Some(first) = running.strip_prefix("unittests ") {
                package = file_name(first).to_owned();
                name = Some(package.clone());
            } else {
                let source = running.split(' ').next().unwrap_or_default();
                name = Some(format!("{package}, {source}"));
            }
        } else if let Some(library) = line.strip_prefix("Doc-tests ") {
            name = Some(format!("{library}, examples in comments"));
        } else if let Some((_, took)) = line.split_once("; finished in ")
            && let Some(name) = name.take()
            && let Some(took) = took.strip_suffix('s')
            && let Ok(took) = took.parse().map(Duration::from_secs_f64)
        {
            found.push((name, u64::try_from(took.as_millis()).unwrap_or(u64::MAX)));
        }
    }
    found
}

/// Returns NAME of `src/lib.rs (target/debug/deps/NAME-HASH)`.
fn file_name(running: &str) -> &str {
    let path = running.rsplit('/').next().unwrap_or_default();
    path.rsplit_once('-').map_or(path, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_first_and_the_sum_is_of_all() {
        let took = |name, wall, cpu| {
            let [wall, cpu] = [wall, cpu].map(Duration::from_millis);
            Took::new(name, wall, cpu)
        };
        let all = [
            took("short", 200, 100),
            took("waits", 9000, 40),
            took("works", 5000, 9500),
        ];
        let wanted = "      CPU     wall  test\n\
                      \x20   9.5 s    5.0 s  works\n\
                      \x20   0.0 s    9.0 s  waits\n\
                      \x20   9.6 s   14.2 s  all 3";
        assert_eq!(table(&all, 2), wanted);
        assert!(table(&all, 100).contains("0.1 s    0.2 s  short"));
    }

    #[test]
    fn programs_are_read_with_their_packages() {
        let said = "   Compiling abi v0.1.0\n\
            \x20    Running unittests src/lib.rs (target/debug/deps/governors_by_rules-0123456789abcdef)\n\
            \n\
            test result: ok. 8 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s\n\
            \x20    Running tests/against/main.rs (target/debug/deps/against-0123456789abcdef)\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 63.40s\n\
            \x20  Doc-tests abi\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let wanted = [
            ("governors_by_rules", 1250),
            ("governors_by_rules, tests/against/main.rs", 63_400),
            ("abi, examples in comments", 0),
        ];
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|(name, took)| (name.to_owned(), took))
            .collect();
        assert_eq!(programs(said), wanted);
        let table = host_table(said, 1);
        assert!(
            table.ends_with(
                "\n   63.4 s  governors_by_rules, tests/against/main.rs\n   64.7 s  all 3"
            ),
            "{table}"
        );
    }
}
