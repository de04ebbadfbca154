// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes whether the clocks of the measuring cores are equal, and whether they stayed constant during the run.

use results::core_clocks::{AGREES_PPM, differing_clocks};
use results::{CoreClock, Results};

/// Maximum number of CPUs that are named.
const NAMED: usize = 8;

/// Describes the CPUs' clocks. One line has the range and the largest drift. Further lines name the CPUs that differ
/// from most others and the CPUs whose clock drifted, with the consequences. Returns nothing if no clock is known.
pub fn clock_lines(results: &Results) -> Vec<String> {
    let clocks = &results.machine.core_clocks;
    let Some((middle, differ)) = differing_clocks(clocks) else {
        return Vec::new();
    };
    let mut lines = vec![range_and_drift(clocks)];
    let cycles = results.unit == "cycles";
    if !differ.is_empty() {
        let means = match cycles {
            true => {
                "values are cycles of the core that measured them, so compare cells between such cores by time"
            }
            false => "cells between such cores differ by that, too",
        };
        let told = |clock: &CoreClock| format_mhz(clock.begin_hz.unwrap_or(0));
        lines.push(format!(
            "cores differ: most have {}, {}; {means}",
            format_mhz(middle),
            list_cpus(&differ, told)
        ));
    }
    let drift: Vec<&CoreClock> = clocks.iter().filter(|clock| clock.has_drifted()).collect();
    if !drift.is_empty() {
        let means = match cycles {
            true => {
                "values were converted with the clock at the beginning, so values of these CPUs are wrong by up to their drift, \
                 the last ones most"
            }
            false => "the same code took longer or shorter on them, most of all at the end",
        };
        let told = |clock: &CoreClock| format!("{:+} ppm", clock.drift_ppm.unwrap_or(0));
        lines.push(format!(
            "clocks drifted by more than {AGREES_PPM} ppm from the beginning to the end: {}; {means}",
            list_cpus(&drift, told)
        ));
    }
    lines
}

fn range_and_drift(clocks: &[CoreClock]) -> String {
    let known = clocks.iter().filter_map(|clock| clock.begin_hz);
    let (low, high) = (known.clone().min(), known.max());
    let range = match (low.map(format_mhz), high.map(format_mhz)) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (low, _) => low.unwrap_or_default(),
    };
    let drifts = clocks.iter().filter_map(|clock| clock.drift_ppm);
    let drift = match drifts.max_by_key(|ppm| ppm.abs()) {
        Some(ppm) => format!("drift up to {} ppm from begin to end", ppm.abs()),
        None => "not known at the end".into(),
    };
    let unsteady: Vec<&CoreClock> = clocks
        .iter()
        .filter(|clock| clock.begin_hz.is_none())
        .collect();
    let unsteady = match unsteady.as_slice() {
        [] => String::new(),
        some => format!(
            "; not steady at the beginning: {}",
            list_cpus(some, |_| String::new())
        ),
    };
    let count = match clocks.len() {
        1 => "clock of the core that measured".into(),
        count => format!("clocks of the {count} cores that measured"),
    };
    format!("{count}: {range}, {drift}{unsteady}")
}

/// Lists the CPUs of `clocks`, each with the text that `told` returns for its clock.
fn list_cpus(clocks: &[&CoreClock], told: impl Fn(&CoreClock) -> String) -> String {
    let texts = clocks.iter().take(NAMED);
    let texts = texts.map(|clock| {
        format!("CPU {} {}", clock.cpu, told(clock))
            .trim_end()
            .to_owned()
    });
    let mut text = texts.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = clocks.len().checked_sub(NAMED) {
        text = format!("{text} and {more} more, see results.json");
    }
    text
}

fn format_mhz(hertz: u64) -> String {
    format!("{:.1} MHz", hertz as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use results::core_clocks;

    use super::*;

    fn run(unit: &str, clocks: &[(u64, Option<u64>)]) -> Results {
        let mut results = Results {
            unit: unit.into(),
            ..Results::default()
        };
        let clocks = clocks
            .iter()
            .zip(0..)
            .map(|(&(begin, end), cpu)| CoreClock {
                cpu,
                affinity: format!("{cpu:#x}"),
                begin_hz: Some(begin),
                end_hz: end,
                drift_ppm: end.map(|end| core_clocks::excess_ppm(end, begin)),
            });
        results.machine.core_clocks = clocks.collect();
        results
    }

    const MHZ: u64 = 1_000_000;

    #[test]
    fn clocks_that_agree_are_one_line_and_none_is_no_line() {
        assert!(clock_lines(&run("cycles", &[])).is_empty());
        let agree = run(
            "cycles",
            &[
                (2600 * MHZ, Some(2600 * MHZ + 1_300_000)),
                (2601 * MHZ, Some(2601 * MHZ - 2_601_000)),
            ],
        );
        assert_eq!(
            clock_lines(&agree),
            [
                "clocks of the 2 cores that measured: 2600.0 MHz to 2601.0 MHz, drift up to 1000 ppm from begin to end"
            ]
        );
        assert_eq!(
            clock_lines(&run("ticks", &[(2600 * MHZ, None)])),
            ["clock of the core that measured: 2600.0 MHz, not known at the end"]
        );
    }

    #[test]
    fn a_core_that_differs_and_one_that_drifts_are_named_with_what_it_means() {
        let clocks = [
            (2600 * MHZ, Some(2600 * MHZ)),
            (2600 * MHZ, Some(2587 * MHZ)),
            (1300 * MHZ, Some(1300 * MHZ)),
        ];
        let told = clock_lines(&run("cycles", &clocks));
        assert_eq!(told.len(), 3);
        for (line, begins, ends) in [
            (
                1,
                "cores differ: most have 2600.0 MHz, CPU 2 1300.0 MHz; ",
                "by time",
            ),
            (
                2,
                "clocks drifted by more than 1000 ppm from the beginning to the end: CPU 1 -5000 ppm; ",
                "the last ones most",
            ),
        ] {
            assert!(told[line].starts_with(begins), "{told:?}");
            assert!(told[line].ends_with(ends), "{told:?}");
        }
        assert!(
            !clock_lines(&run("ticks", &clocks))
                .join("")
                .contains("cycles")
        );
    }

    #[test]
    fn many_cores_are_counted() {
        let clocks: Vec<_> = (0..20).map(|_| (1000 * MHZ, Some(1010 * MHZ))).collect();
        let told = clock_lines(&run("cycles", &clocks)).join("\n");
        assert!(
            told.contains("CPU 7 +10000 ppm and 12 more, see results.json"),
            "{told}"
        );
        assert!(!told.contains("CPU 8"), "{told}");
    }
}
