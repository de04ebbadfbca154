// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statements of PSD's author and its reviewers, and our numbers about them.

use anyhow::Result;

use super::source_figures::{BASELINE, BOTH, DISABLED, PSD, READS, WRITES, WYSOCKI};
use super::{Figures, cell_of_column};
use crate::outcome::{ByBoot, Claim, Constant, Test, Way};
use crate::runs::{MeasuredCell, Run, Runs, Words};

/// Accepted deviation from a published change, in points, if that change is tens of per cent.
const BAND: f64 = 10.0;
/// Accepted deviation from a published change of a few per cent. Smaller differences count as equal.
const SMALL: f64 = 2.0;
/// Deviation that the source states for writes, in per cent. The source can't show smaller differences.
const DEVIATION: f64 = 3.73;

/// Why our menu governors choose a deep state for reads, unlike the source's governors.
const SCATTERED: &str = "these menus predict a wait only where times scatter by less than a sixth; how they scatter \
                         there is not known";
/// Why our writes do not behave like the writes of the source.
const UNKNOWN: &str = "not reproduced, reason unknown: the source gives none; here a write is a longer wait, and nothing else";
/// Why faster writes do not slow reads down here.
const NO_LOAD: &str = "the time of the device does not depend on what else it is asked for here";

/// The name of a column, and one of its figures for each boot.
type Column<'c> = (&'c str, ByBoot<f64>);

/// A row of the re-test: its boot, and the words that select its cells in that boot.
struct Load<'r>(&'r Runs, &'static str, Words<'static>);

impl Load<'_> {
    fn figure_by_boot(&self, column: usize, of: fn(&Figures) -> f64) -> Result<ByBoot<f64>> {
        let Self(runs, boot, words) = *self;
        runs.by_boot(|run| {
            Ok(of(&Figures::of_cell(&cell_of_column(
                run, words, boot, column,
            )?)))
        })
    }

    fn rate_by_boot(&self, column: usize) -> Result<ByBoot<f64>> {
        self.figure_by_boot(column, |it| it.rate)
    }

    /// Returns by how much the rate of `one` exceeds the rate of `base`, in per cent, for each boot.
    fn gain_by_boot(&self, one: usize, base: usize) -> Result<ByBoot<f64>> {
        let Self(runs, boot, words) = *self;
        runs.by_boot(|run| {
            let rate = |column| {
                Ok::<_, anyhow::Error>(
                    Figures::of_cell(&cell_of_column(run, words, boot, column)?).rate,
                )
            };
            Ok(100.0 * (rate(one)? / rate(base)? - 1.0))
        })
    }
}

fn size_test(expected: f64, band: f64) -> Test {
    Test::Size { expected, band }
}

const fn equality_test(band: f64) -> Test {
    Test::Equality { band }
}

const RISES: Test = Test::Sign { way: Way::Rises };
const FALLS: Test = Test::Sign { way: Way::Falls };

/// Returns all claims.
pub fn all_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    claims.extend(read_claims(&Load(runs, "fixed", &[]), "fixed")?);
    claims.extend(read_claims(&Load(runs, "apart", &READS), "uniform")?);
    claims.extend(write_claims(&Load(runs, "apart", &WRITES))?);
    claims.extend(mixed_claims(&Load(runs, "mixed", &[]))?);
    claims.extend(elsewhere_claims(runs)?);
    claims.extend(limit_claims(runs)?);
    claims.extend(tick_claims(runs)?);
    Ok(claims)
}

fn read_claims(load: &Load<'_>, spread: &str) -> Result<Vec<Claim>> {
    let [base, shallow, wysocki, psd, both] = rates_of_columns(load)?;
    let here = format!("reads, times {spread}");
    let claims = vec![
        Claim::new(
            "first posting: reads +21.5 % (kernel not named)",
            size_test(21.5, BAND),
            psd.clone(),
            base.clone(),
        ),
        Claim::new(
            "re-test: reads +0.36 % by PSD",
            equality_test(SMALL),
            psd,
            base.clone(),
        )
        .with_reason(SCATTERED),
        Claim::new(
            "re-test: reads +0.02 % by Wysocki's",
            equality_test(SMALL),
            wysocki.clone(),
            base.clone(),
        )
        .with_reason(SCATTERED),
        Claim::new(
            "re-test: reads +0.38 % by PSD where Wysocki's are in",
            equality_test(SMALL),
            both,
            wysocki,
        )
        .with_reason(SCATTERED),
        Claim::new(
            "re-test: reads +0.59 % without C6",
            size_test(0.59, SMALL),
            shallow,
            base,
        )
        .with_reason(SCATTERED),
    ];
    Ok(claims
        .into_iter()
        .map(|claim| claim.with_tested_part(here.clone()))
        .collect())
}

/// Returns the rates of all columns, with their names.
fn rates_of_columns<'c>(load: &Load<'_>) -> Result<[Column<'c>; 5]> {
    Ok([
        ("baseline", load.rate_by_boot(BASELINE)?),
        ("C6 disabled", load.rate_by_boot(DISABLED)?),
        ("Wysocki's", load.rate_by_boot(WYSOCKI)?),
        ("PSD", load.rate_by_boot(PSD)?),
        ("both", load.rate_by_boot(BOTH)?),
    ])
}

fn write_claims(load: &Load<'_>) -> Result<Vec<Claim>> {
    let [base, shallow, wysocki, psd, both] = rates_of_columns(load)?;
    Ok(vec![
        Claim::new(
            "re-test: writes -11.9 % without C6",
            FALLS,
            shallow,
            base.clone(),
        )
        .with_reason(UNKNOWN),
        Claim::new(
            "re-test: writes -7.9 % by Wysocki's",
            FALLS,
            wysocki.clone(),
            base.clone(),
        )
        .with_reason(UNKNOWN),
        Claim::new(
            "re-test: writes +1.5 % by PSD, less than their deviation of 3.7 %",
            equality_test(DEVIATION),
            psd,
            base,
        )
        .with_reason(UNKNOWN),
        Claim::new(
            "re-test: writes +0.14 % by PSD where Wysocki's are in",
            equality_test(SMALL),
            both,
            wysocki,
        )
        .with_reason(UNKNOWN),
    ])
}

fn mixed_claims(load: &Load<'_>) -> Result<Vec<Claim>> {
    let [base, shallow, wysocki, psd, both] = rates_of_columns(load)?;
    let [read, write] = [|it: &Figures| it.read_us, |it: &Figures| it.write_us];
    let pair = |of| {
        Ok::<_, anyhow::Error>((
            load.figure_by_boot(DISABLED, of)?,
            load.figure_by_boot(BASELINE, of)?,
        ))
    };
    let ((read, read_base), (write, write_base)) = (pair(read)?, pair(write)?);
    Ok(vec![
        Claim::new(
            "re-test: reads and writes +4.3 % without C6",
            size_test(4.3, SMALL),
            shallow,
            base.clone(),
        )
        .with_reason(SCATTERED),
        Claim::new(
            "re-test: reads and writes +3.3 % by PSD",
            size_test(3.3, SMALL),
            psd,
            base,
        )
        .with_reason(SCATTERED),
        Claim::new(
            "re-test: reads and writes +0.04 % by PSD where Wysocki's are in",
            equality_test(SMALL),
            both,
            wysocki,
        )
        .with_reason(SCATTERED),
        Claim::new_below(
            "re-test: Wysocki's take away what PSD brings (+3.3 % to +0.04 %)",
            ("gain with them", load.gain_by_boot(BOTH, WYSOCKI)?),
            ("without", load.gain_by_boot(PSD, BASELINE)?),
        )
        .difference_in("points"),
        Claim::new(
            "re-test: without C6 a write takes 19 % less",
            FALLS,
            ("C6 disabled", write),
            ("baseline", write_base),
        ),
        Claim::new(
            "re-test: without C6 a read takes 6 % more",
            RISES,
            ("C6 disabled", read),
            ("baseline", read_base),
        )
        .with_reason(NO_LOAD),
    ])
}

/// Returns the gain of PSD over the base, in per cent, if `completion` per cent of the requests complete on the CPU
/// that submitted them.
fn gain_by_completion(runs: &Runs, completion: &str) -> Result<ByBoot<f64>> {
    let rate = |run: Run<'_>, psd| {
        let found = run.cell("elsewhere", &[("completion", completion), ("psd-ms", psd)])?;
        Ok::<_, anyhow::Error>(Figures::of_cell(&found).rate)
    };
    runs.by_boot(|run| Ok(100.0 * (rate(run, "3")? / rate(run, "0")? - 1.0)))
}

/// Returns a figure of the cell with window `psd` and with `words`.
fn figure_by_boot(
    runs: &Runs,
    boot: &str,
    psd: &str,
    words: Words<'_>,
    of: fn(&Figures) -> f64,
) -> Result<ByBoot<f64>> {
    let mut all = vec![("psd-ms", psd)];
    all.extend(words);
    runs.by_boot(|run| Ok(of(&Figures::of_cell(&run.cell(boot, &all)?))))
}

fn elsewhere_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let there = ("gain where all are here", gain_by_completion(runs, "100")?);
    let claim = |percent: &str, of: &str| {
        Ok::<_, anyhow::Error>(
            Claim::new_below(
                format!("{of}: {percent} % of completions on the CPU that submitted"),
                ("gain", gain_by_completion(runs, percent)?),
                (there.0, there.1.clone()),
            )
            .with_tested_part("completions elsewhere take away from what PSD brings")
            .difference_in("points")
            .with_reason(
                "a CPU that waits for its request is woken all the same, by the CPU that is interrupted; what is \
                 lost is the time which that one takes to leave its state",
            ),
        )
    };
    Ok(vec![
        claim("90", "the author's machine")?,
        claim("85", "the author's machine")?,
        claim("50", "review, other maps of queues")?,
        claim("0", "review, other maps of queues")?,
    ])
}

fn limit_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let rate = |limit| {
        let words = [("wait", "governor:menu-6.14"), ("psd-limit", limit)];
        figure_by_boot(runs, "limit", "3", &words, |it| it.rate)
    };
    Ok(vec![
        Claim::new(
            "review: a latency limit slightly above C1 would do",
            equality_test(SMALL),
            ("no deeper than wfi", rate("wfi")?),
            ("polls", rate("poll")?),
        )
        .with_tested_part("requests per second")
        .with_reason(
            "a stay in WFI outlasts the window; a poll ends after 250 us, and where the window has ended meanwhile a \
             deep state follows",
        ),
    ])
}

/// Returns how long the window was open, in milliseconds, for requests that take longer than the window. The CPU polls
/// as long as the window is open.
pub fn window_ms(found: &MeasuredCell<'_>) -> f64 {
    let polled = found.time_counter("cpuidle", "poll.time-ns");
    polled / found.count("timer", "expired").max(1.0) / 1e6
}

fn tick_claims(runs: &Runs) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for hz in ["100", "250", "1000"] {
        let open = runs.by_boot(|run| Ok(window_ms(&run.cell("lengths", &[("hz", hz)])?)))?;
        let claim = Claim::new(
            "review: rounding up to ticks is a heavy price",
            RISES,
            ("open, ms", open),
            ("asked, ms", Constant(3.0)),
        );
        claims.push(claim.with_tested_part(format!("window at {hz} Hz")).with_reason(
            "the window ends with a tick, and the one in which it begins has partly passed: n ticks are n - 1 to n",
        ));
    }
    let rate = |hz| figure_by_boot(runs, "windows", "3", &[("hz", hz)], |it| it.rate);
    let base = ("1000 Hz", rate("1000")?);
    for hz in ["100", "250"] {
        let claim = Claim::new(
            "author: rounding is not problematic",
            equality_test(SMALL),
            (hz, rate(hz)?),
            (base.0, base.1.clone()),
        );
        claims.push(claim.with_tested_part(format!("requests per second at {hz} Hz and at 1000")).with_reason(
            "a request that is submitted late in a tick has its window end soon, and the deep state follows",
        ));
    }
    Ok(claims)
}
