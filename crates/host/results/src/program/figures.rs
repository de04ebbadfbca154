// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds figures in the output of well-known benchmarks.
//!
//! | program | line | figure |
//! |---|---|---|
//! | `perf bench` | `Total time: 0.021 [sec]` | total time, s |
//! | | `21.005000 usecs/op` | time per operation, us |
//! | | `47607 ops/sec` | operations per second |
//! | `perf bench -f simple` | `0.021` alone | number printed |
//! | `hackbench` | `Time: 0.042` | time, s |
//! | `cyclictest` | `T: 0 ( 71) P:80 I:1000 C: 200 Min: 4 Act: 5 Avg: 5 Max: 9` | latency of thread 0: min, avg, max, us |
//! | | `# Max Latencies: 00009 00011` | max latency, us |
//! | `sysbench` | `events per second: 812.34` | events per second |
//! | | `95th percentile: 1.27` | latency, 95th percentile, ms |
//! | `stress-ng --metrics` | `stress-ng: metrc: [1] pipe 123456 1.00 ...` | pipe: bogo operations, and per second of real time |
//! | `tbench` | `Throughput 412.5 MB/sec  1 clients  1 procs  max_latency=0.211 ms` | throughput, MB/s |
//! | `schbench` | `99.0th: 123` | latency, 99.0th percentile, us |
//! | `fio` | see the module `fio` | rates and latencies of reads and writes |

use std::collections::BTreeMap;

use super::fio;

/// Figures in lines of the form `NAME: NUMBER UNIT`: the name in the line, and the name of the figure.
const NAMED: [(&str, &str); 3] = [
    ("Total time", "total time, s"),
    ("Time", "time, s"),
    ("events per second", "events per second"),
];
/// Figures in lines of the form `NUMBER UNIT`: the unit in the line, and the name of the figure.
const UNITS: [(&str, &str); 2] = [
    ("usecs/op", "time per operation, us"),
    ("ops/sec", "operations per second"),
];

/// Returns the figures in `output`. If several lines have the same figure, the last line counts.
pub fn find_figures(output: &str) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let mut add = |name: String, text: &str| {
        if let Some(number) = parse_number(text) {
            figures.insert(name, number);
        }
    };
    for line in &lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [value, unit] = words[..]
            && let Some((_, name)) = UNITS.iter().find(|(known, _)| *known == unit)
        {
            add((*name).into(), value);
        }
        // The lines of a stressor's other metrics have words after the number.
        if let ["stress-ng:", "metrc:", _, stressor, numbers @ ..] = words.as_slice()
            && numbers.len() >= 5
            && numbers[..5].iter().all(|word| parse_number(word).is_some())
        {
            add(format!("{stressor}: bogo operations"), numbers[0]);
            let name = format!("{stressor}: bogo operations per second");
            add(name, numbers[4]);
        }
        if let ["Throughput", value, "MB/sec", ..] = words[..] {
            add("throughput, MB/s".into(), value);
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let first = value.split_whitespace().next().unwrap_or_default();
        match key.trim_start_matches(['#', '*', ' ']) {
            "T" => read_cyclictest_line(value, &mut add),
            key @ ("Min Latencies" | "Avg Latencies" | "Max Latencies") => {
                let values = value.split_whitespace();
                for (thread, value) in values.enumerate() {
                    let name = key[..3].to_lowercase();
                    add(format!("latency of thread {thread}, {name}, us"), value);
                }
            }
            key if is_percentile(key, "th percentile") => add(format!("latency, {key}, ms"), first),
            key if is_percentile(key, "th") => add(format!("latency, {key} percentile, us"), first),
            key => {
                if let Some((_, name)) = NAMED.iter().find(|(known, _)| *known == key) {
                    add((*name).into(), first);
                }
            }
        }
    }
    figures.extend(fio::fio_figures(&lines));
    // In the simple format, the whole output is one number.
    if let [line] = lines.as_slice()
        && line.contains('.')
        && let Some(number) = parse_number(line)
    {
        figures.insert("number printed".into(), number);
    }
    figures
}

/// Whether `text` is a number followed by `end`.
fn is_percentile(text: &str, end: &str) -> bool {
    text.strip_suffix(end)
        .is_some_and(|of| parse_number(of).is_some())
}

/// Parses the line of a cyclictest thread: ` 0 ( 71) P:80 I:1000 C:    200 Min:      4 Act:    5 Avg:    5 Max:
/// 9`.
fn read_cyclictest_line(line: &str, add: &mut impl FnMut(String, &str)) {
    let thread = line.split_whitespace().next().unwrap_or_default();
    for name in ["Min", "Avg", "Max"] {
        let rest = line.split_once(&format!("{name}:"));
        let value = rest.and_then(|(_, rest)| rest.split_whitespace().next());
        let title = format!("latency of thread {thread}, {}, us", name.to_lowercase());
        add(title, value.unwrap_or_default());
    }
}

/// Parses a number as these programs print it.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    let text = text.replace(',', "");
    let of_number = text.starts_with(|c: char| c.is_ascii_digit());
    let number: f64 = text.parse().ok().filter(|_| of_number)?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(output: &str) -> Vec<String> {
        let figures = find_figures(output).into_iter();
        figures
            .map(|(name, value)| format!("{name} = {value}"))
            .collect()
    }

    #[test]
    fn perf_bench_has_times_and_rates() {
        let output = "# Running 'sched/pipe' benchmark:\n# Executed 1000 pipe operations between two processes\n\n     \
                      Total time: 0.021 [sec]\n\n      21.005000 usecs/op\n          47607 ops/sec\n";
        let expected = [
            "operations per second = 47607",
            "time per operation, us = 21.005",
            "total time, s = 0.021",
        ];
        assert_eq!(found(output), expected);
        assert_eq!(found("0.125\n"), ["number printed = 0.125"]);
    }

    #[test]
    fn cyclictest_has_latencies_by_thread() {
        let output = "# /dev/cpu_dma_latency set to 0us\nT: 0 (   71) P:80 I:1000 C:    200 Min:      4 Act:    5 Avg:    \
                      6 Max:       9\n# Max Latencies: 00009 00011\n";
        let expected = [
            "latency of thread 0, avg, us = 6",
            "latency of thread 0, max, us = 9",
            "latency of thread 0, min, us = 4",
            "latency of thread 1, max, us = 11",
        ];
        assert_eq!(found(output), expected);
    }

    #[test]
    fn other_programs_have_theirs() {
        assert_eq!(
            found("Running in process mode\nTime: 0.042\n"),
            ["time, s = 0.042"]
        );
        let sysbench = "    events per second:   812.34\n         95th percentile:                        1.27\n";
        let expected = [
            "events per second = 812.34",
            "latency, 95th percentile, ms = 1.27",
        ];
        assert_eq!(found(sysbench), expected);
        let stress = "stress-ng: metrc: [71] pipe          1234      1.00      0.10      0.90      1230.50   1234.00\n";
        let expected = [
            "pipe: bogo operations = 1234",
            "pipe: bogo operations per second = 1230.5",
        ];
        assert_eq!(found(stress), expected);
        let other = "stress-ng: metrc: [71] pipe 536.1 MB per sec pipe write rate (harmonic mean of 1 instance)\n";
        assert_eq!(found(&format!("{stress}{other}")), expected);
        let tbench = "Throughput 412.5 MB/sec  1 clients  1 procs  max_latency=0.211 ms\n";
        assert_eq!(found(tbench), ["throughput, MB/s = 412.5"]);
        let expected = ["latency, 99.0th percentile, us = 123"];
        assert_eq!(found("\t* 99.0th: 123          (4 samples)\n"), expected);
    }

    #[test]
    fn each_direction_of_fio_has_its_rate_and_latency() {
        // fio 3.39 printed this text, which was then shortened.
        let read = "r: (groupid=0, jobs=1): err= 0: pid=74: Thu Jan  1 00:00:07 1970\n  \
                    read: IOPS=990, BW=3960KiB/s (4055kB/s)(800KiB/202msec)\n    \
                    clat (nsec): min=1006.7k, max=1016.4k, avg=1006957.60, stdev=732.91\n     \
                    lat (nsec): min=1006.9k, max=1016.6k, avg=1007164.60, stdev=732.91\n    \
                    clat percentiles (usec):\n     |  1.00th=[ 1004],  5.00th=[ 1004]\n  \
                    lat (msec)   : 2=100.00%\n  cpu          : usr=0.00%, sys=1.99%, ctx=200\n";
        let of_read = [
            "latency of a read, avg, us = 1007.1646",
            "latency of a read, max, us = 1016.6",
            "latency of a read, min, us = 1006.9",
            "reads per second = 990",
        ];
        assert_eq!(found(read), of_read);
        let write = "  write: IOPS=12.5k, BW=1MiB/s\n     lat (msec): min=1, max=2, avg= 1.50, stdev= 0.10\n";
        let of_write = [
            "latency of a write, avg, us = 1500",
            "latency of a write, max, us = 2000",
            "latency of a write, min, us = 1000",
            "writes per second = 12500",
        ];
        assert_eq!(found(write), of_write);
        assert_eq!(found(&format!("{read}{write}")).len(), 8);
    }

    #[test]
    fn a_latency_of_fio_without_an_operation_is_none() {
        for text in [
            "     lat (usec): min=1, max=2, avg=1\n",
            "read: IOPS=, BW=1\n",
            "sync: IOPS=12, BW=1\n",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn text_has_no_figures() {
        for output in [
            "",
            "hello\n",
            "Time: soon\n",
            "T: 0\n",
            "inf usecs/op\n",
            "NaN\n",
            "12 13\n",
            "9\n",
            "Bandwidth: 12\n",
            "Depth: 3\n",
        ] {
            assert_eq!(found(output), Vec::<String>::new(), "{output}");
        }
    }
}
