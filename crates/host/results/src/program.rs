// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of a program that a cell ran, and the figures that the program printed.

mod figures;
mod fio;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The last run of a program.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Program {
    /// The program's output and errors, in the order in which they came.
    pub output: String,
    /// How many bytes are left out in the middle of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
    /// A remark on the run, if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Figures in the output, by name with unit: of `perf bench`, `cyclictest`, `hackbench`, `sysbench`, `stress-ng`,
    /// `tbench` and `schbench`.
    pub figures: BTreeMap<String, f64>,
}

impl Program {
    /// Finds the figures in the output.
    #[must_use]
    pub fn with_figures(mut self) -> Self {
        self.figures = figures::find_figures(&self.output);
        self
    }
}
