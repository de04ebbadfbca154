// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of a program that a cell ran, and the figures in this output.

mod figures;
mod fio;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The last run of a program.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Program {
    /// Its output and its errors, as they came.
    pub output: String,
    /// Bytes in the middle of it that are left out.
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
    pub fn read(mut self) -> Self {
        self.figures = figures::of(&self.output);
        self
    }
}
