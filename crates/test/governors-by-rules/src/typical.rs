// SPDX-License-Identifier: MIT OR Apache-2.0
//! The typical interval of the menu governor (M4).

/// The number of samples that menu keeps.
pub(crate) const SAMPLES: usize = 8;

/// Means "no result", or an unknown sample.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The minimum number of samples: when only this many are left, no further outliers are removed.
const FEW: usize = SAMPLES * 3 / 4;

/// M4a: returns the typical interval in us, after removing outliers at the upper end.
///
/// `beaten_by` is the timer's prediction in us, if the smallest sample must be below it (6.2).
pub(crate) fn trimmed_above(samples: &[u32; SAMPLES], beaten_by: Option<u32>) -> u32 {
    let mut kept: Vec<u32> = samples
        .iter()
        .copied()
        .filter(|&us| us <= i32::MAX as u32)
        .collect();
    loop {
        let smallest = kept.iter().copied().min().unwrap_or(UNKNOWN);
        let largest = kept.iter().copied().max().unwrap_or(0);
        let pointless = match beaten_by {
            Some(timer_us) => smallest >= timer_us,
            None => largest == 0,
        };
        if pointless || kept.is_empty() {
            return UNKNOWN;
        }
        let count = kept.len() as u64;
        let mean = kept.iter().map(|&us| u64::from(us)).sum::<u64>() / count;
        let squares: u64 = kept
            .iter()
            .map(|&us| u64::from(us).abs_diff(mean).pow(2))
            .sum();
        if let Some(answer) = mean_if_typical(mean, squares / count, kept.len()) {
            return answer;
        }
        if kept.len() <= FEW {
            return UNKNOWN;
        }
        kept.retain(|&us| us < largest);
    }
}

/// M4b: returns the typical interval in us, after removing outliers at both ends.
///
/// With `else_maximum` (M4c): if no interval is typical and four or more samples are left, returns their maximum.
pub(crate) fn trimmed_both(samples: &[u32; SAMPLES], else_maximum: bool) -> u32 {
    let mut kept: Vec<u32> = samples
        .iter()
        .copied()
        .filter(|&us| us != UNKNOWN)
        .collect();
    loop {
        let largest = kept.iter().copied().max().unwrap_or(0);
        if largest == 0 {
            return UNKNOWN;
        }
        let smallest = kept.iter().copied().min().unwrap_or(0);
        let count = kept.len() as u64;
        let mean = kept.iter().map(|&us| u64::from(us)).sum::<u64>() / count;
        let squares = kept
            .iter()
            .map(|&us| u64::from(us).wrapping_mul(u64::from(us)))
            .fold(0_u64, u64::wrapping_add);
        let variance = (squares / count).wrapping_sub(mean.wrapping_mul(mean));
        if let Some(answer) = mean_if_typical(mean, variance, kept.len()) {
            return answer;
        }
        if kept.len() <= FEW {
            let answers = else_maximum && kept.len() >= SAMPLES / 2;
            return if answers { largest } else { UNKNOWN };
        }
        if mean - u64::from(smallest) > u64::from(largest) - mean {
            kept.retain(|&us| us > smallest);
        } else {
            kept.retain(|&us| us < largest);
        }
    }
}

/// Returns `mean` (us) if samples with `mean` and `variance` (us²) are similar enough.
fn mean_if_typical(mean: u64, variance: u64, count: usize) -> Option<u32> {
    let relative =
        variance <= u64::MAX / 36 && mean.wrapping_mul(mean) > variance * 36 && count >= FEW;
    (relative || variance <= 400).then_some(mean as u32)
}
