// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of boots, and the properties of the machine on which the figures depend.

use std::collections::BTreeSet;

/// A figure for every boot, with the boots' names, and the properties that the figures depend on and the machine lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct ByBoot<T> {
    figures: Vec<(String, T)>,
    /// The names of the probes for the missing properties.
    missing: BTreeSet<String>,
}

impl<T> ByBoot<T> {
    /// Creates figures that depend on no missing properties, each with the name of its boot.
    pub const fn new(figures: Vec<(String, T)>) -> Self {
        let missing = BTreeSet::new();
        Self { figures, missing }
    }

    /// Sets the names of the probes for the missing properties on which the figures depend.
    pub fn with_missing_probes(self, missing: BTreeSet<String>) -> Self {
        Self { missing, ..self }
    }

    /// Applies `of` to each figure. The results have the same dependencies as the figures.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> ByBoot<U> {
        let each = self.figures.iter();
        let figures = each.map(|(name, it)| (name.clone(), of(it))).collect();
        ByBoot::new(figures).with_missing_probes(self.missing.clone())
    }

    /// Returns each figure with the name of its boot.
    pub fn named_figures(&self) -> &[(String, T)] {
        &self.figures
    }

    /// Returns the names of the probes that the figures depend on and the machine lacks.
    pub const fn missing_probes(&self) -> &BTreeSet<String> {
        &self.missing
    }

    /// Returns each figure.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.figures.iter().map(|(_, it)| it)
    }
}

impl ByBoot<f64> {
    /// Returns the median of the figures.
    pub fn median(&self) -> f64 {
        let values: Vec<f64> = self.values().copied().collect();
        significance::median(&values).unwrap_or(f64::NAN)
    }
}

/// A figure that was not measured here: a figure of the source, or a bound. Measured figures come from
/// [`Runs`](super::runs::Runs), which records their dependencies.
#[derive(Clone, Copy)]
pub struct Constant(pub f64);

impl From<Constant> for ByBoot<f64> {
    fn from(Constant(value): Constant) -> Self {
        Self::new(vec![(String::new(), value)])
    }
}
