// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a sample: the stretches of functions that CPUs executed.

use serde::{Deserialize, Serialize};

/// The code of waits in explanations.
pub const MACHINE: &str = "machine";

/// A function that called another one, or that an exception interrupted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Caller {
    /// Exception level.
    pub level: u8,
    /// The function.
    pub function: String,
}

/// Instructions of a function that a CPU executed one after another.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// The CPU, by the order of its first instruction.
    pub cpu: usize,
    /// Exception level.
    pub level: u8,
    /// The file of the code; `?` for code of no known file.
    pub image: String,
    /// The function.
    pub function: String,
    /// Whether it is on the path from the waker's store to the woken task, or off it.
    pub on_path: bool,
    /// Cause that the path followed to this CPU: `store` or `interrupt`; left out where the CPU went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// How much was counted before it: of all CPUs, or cycles since the beginning of the sample.
    pub at: u64,
    /// Number of instructions or cycles.
    pub count: u64,
    /// Number of instructions; 0 for a wait.
    pub instructions: u64,
    /// The functions that called it, the outermost one first. They follow from the calls and returns in the sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
    /// Its blocks: distance from the symbol, and number of instructions.
    pub blocks: Vec<(String, u64)>,
}

impl Step {
    /// Returns the levels and names of its stack, the outermost function first.
    pub fn stack(&self) -> impl Iterator<Item = (u8, &str)> {
        let callers = self
            .callers
            .iter()
            .map(|one| (one.level, one.function.as_str()));
        callers.chain([(self.level, self.function.as_str())])
    }

    /// Returns the wait before this instruction.
    pub fn wait(&self, name: &str, cycles: u64) -> Self {
        Self {
            image: MACHINE.into(),
            function: name.into(),
            count: cycles,
            instructions: 0,
            callers: Vec::new(),
            blocks: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether `next` goes on in the same function.
    pub fn goes_on(&self, next: &Self) -> bool {
        next.via.is_none()
            && (self.cpu, self.level, self.on_path) == (next.cpu, next.level, next.on_path)
            && (&self.image, &self.function, &self.callers)
                == (&next.image, &next.function, &next.callers)
    }
}
