// SPDX-License-Identifier: MIT OR Apache-2.0
//! Axes: the position of a value, and the values to label.

use crate::svg::format_number;

/// Minimum ratio of the largest to the smallest value at which a linear scale would hide the small values.
const TOO_WIDE: f64 = 30.0;

/// How values map to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// In proportion to the value, from zero.
    Linear,
    /// Logarithmically: all decades have the same length.
    Log,
}

/// A scale of values between two positions.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// How values become positions.
    pub kind: AxisKind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// Whether zero is among the values. A logarithmic scale shows zero separately.
    zero: bool,
}

impl Axis {
    /// Creates a scale from zero to the largest of `values`. The scale is logarithmic if a linear one would hide the
    /// small values. Negative values extend a linear scale below zero, in proportion.
    pub fn from_zero(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        /// Factor that leaves space for a number next to the lowest value.
        const ROOM: f64 = 1.15;
        let lowest = values.clone().fold(0.0, f64::min);
        if lowest < 0.0 {
            let high = values.fold(0.0, f64::max);
            return Self {
                kind: AxisKind::Linear,
                low: lowest * ROOM,
                high: if high > 0.0 {
                    high
                } else {
                    -lowest * (ROOM - 1.0)
                },
                from,
                to,
                zero: true,
            };
        }
        let (low, high) = positive_range(values);
        if high / low > TOO_WIDE {
            return Self::logarithmic(low, high, from, to);
        }
        let high = if high > 0.0 { high } else { 1.0 };
        Self {
            kind: AxisKind::Linear,
            low: 0.0,
            high,
            from,
            to,
            zero: false,
        }
    }

    /// Creates a scale that covers only the range of `values`.
    pub fn around_values(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let zero = values.clone().any(|value| value == 0.0);
        let (low, high) = positive_range(values);
        if high / low > TOO_WIDE / 3.0 {
            let room = if zero { (high / low).powf(-0.15) } else { 1.0 };
            let axis = Self::logarithmic(low * room, high, from, to);
            return Self { zero, ..axis };
        }
        let margin = ((high - low) * 0.05).max(high * 0.01).max(0.5);
        Self {
            kind: AxisKind::Linear,
            low: if zero { 0.0 } else { (low - margin).max(0.0) },
            high: high + margin,
            from,
            to,
            zero,
        }
    }

    /// Creates a logarithmic scale that covers positive values from `low` to `high`.
    pub fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        Self {
            kind: AxisKind::Log,
            low: low * 0.8,
            high: high.max(low) * 1.1,
            from,
            to,
            zero: false,
        }
    }

    /// Returns the position of a value.
    pub fn position_of(&self, value: f64) -> f64 {
        let part = match self.kind {
            AxisKind::Linear => (value - self.low) / (self.high - self.low),
            AxisKind::Log => {
                (value.max(self.low).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
            }
        };
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Returns the values to label, with their texts.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.kind {
            AxisKind::Linear => self.linear_ticks(),
            AxisKind::Log => self.log_ticks(),
        };
        let apart = (self.zero && self.kind == AxisKind::Log).then_some(0.0);
        let values: Vec<f64> = apart
            .into_iter()
            .chain(
                values
                    .into_iter()
                    .filter(|value| *value > 0.0 || apart.is_none()),
            )
            .collect();
        let short: Vec<String> = values.iter().copied().map(format_number).collect();
        let texts = match short.windows(2).any(|pair| pair[0] == pair[1]) {
            // Other displayed numbers have two decimals, which are too few to distinguish these values.
            true => values.iter().copied().map(format_exactly).collect(),
            false => short,
        };
        values.into_iter().zip(texts).collect()
    }

    /// Returns the caption's note about the scale.
    pub fn scale_note(&self) -> &'static str {
        match self.kind {
            AxisKind::Linear => "",
            AxisKind::Log if self.zero => ", log scale but for 0",
            AxisKind::Log => ", log scale",
        }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 4.0;
        let decade = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * decade);
        let step = steps
            .into_iter()
            .find(|&step| step >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|index| index as f64 * step).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match decades {
            ..1.2 => &[1.0, 2.0, 5.0],
            ..2.2 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let exponents = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let all = exponents.flat_map(|e| steps.iter().map(move |step| step * 10_f64.powi(e)));
        all.filter(|value| (self.low..=self.high).contains(value))
            .collect()
    }
}

/// Formats a small number with all of its decimals.
fn format_exactly(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the smallest positive and the largest value.
fn positive_range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let high = values.clone().fold(0.0, f64::max);
    let low = values
        .filter(|&value| value > 0.0)
        .fold(f64::INFINITY, f64::min);
    (low.min(high), high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_size_are_in_proportion() {
        let axis = Axis::from_zero([20.0, 100.0].into_iter(), 0.0, 200.0);
        assert_eq!(axis.kind, AxisKind::Linear);
        assert_eq!(
            (
                axis.position_of(0.0),
                axis.position_of(50.0),
                axis.position_of(100.0)
            ),
            (0.0, 100.0, 200.0)
        );
        let ticks: Vec<String> = axis.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(ticks, ["0", "25", "50", "75", "100"]);
    }

    #[test]
    fn values_of_many_sizes_are_logarithmic() {
        let axis = Axis::from_zero([7.0, 90_000.0, 0.0].into_iter(), 0.0, 100.0);
        assert_eq!(axis.kind, AxisKind::Log);
        assert!(axis.position_of(0.0) == 0.0 && axis.position_of(90.0) < axis.position_of(900.0));
        assert!((3..7).contains(&axis.ticks().len()), "{:?}", axis.ticks());
    }

    #[test]
    fn small_values_have_the_decimals_that_tell_them_apart() {
        let axis = Axis::from_zero([0.02].into_iter(), 0.0, 1.0);
        let ticks: Vec<String> = axis.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(ticks, ["0", "0.005", "0.01", "0.015", "0.02"]);
    }

    #[test]
    fn nothing_and_zero_have_a_scale() {
        for values in [&[][..], &[0.0], &[5.0]] {
            for axis in [
                Axis::from_zero(values.iter().copied(), 0.0, 1.0),
                Axis::around_values(values.iter().copied(), 0.0, 1.0),
            ] {
                assert!(axis.position_of(5.0).is_finite());
                assert!(axis.ticks().len() < 20);
            }
        }
    }
}
