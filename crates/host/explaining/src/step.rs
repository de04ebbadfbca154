// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a sample: each is a function that a CPU executed for a while.

use serde::{Deserialize, Serialize};

/// File name in steps that are waits, which execute no code.
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
    /// Number of the CPU, in the order in which CPUs executed their first instruction.
    pub cpu: usize,
    /// Exception level.
    pub level: u8,
    /// The file that contains the code; `?` if no known file does.
    pub image: String,
    /// The function.
    pub function: String,
    /// Whether the step is on the path from the waker's store to the woken task.
    pub on_path: bool,
    /// How the path came to this CPU: by a `store` or an `interrupt`; left out if it stayed on the same CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The number of instructions that all CPUs had executed before the step, or the cycles since the beginning of the
    /// sample.
    pub at: u64,
    /// Number of instructions or cycles.
    pub count: u64,
    /// Number of instructions; 0 for a wait.
    pub instructions: u64,
    /// The callers of this function, the outermost one first, as far as the calls and returns in the sample show them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
    /// The step's blocks, each with its distance from a symbol and its number of instructions.
    pub blocks: Vec<(String, u64)>,
}

impl Step {
    /// Returns the levels and names of the functions on the step's stack, the outermost one first.
    pub fn function_stack(&self) -> impl Iterator<Item = (u8, &str)> {
        let callers = self
            .callers
            .iter()
            .map(|one| (one.level, one.function.as_str()));
        callers.chain([(self.level, self.function.as_str())])
    }

    /// Returns a step for the wait before this step.
    pub fn wait_step(&self, name: &str, cycles: u64) -> Self {
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

    /// Whether `next` continues this step.
    pub fn is_continued_by(&self, next: &Self) -> bool {
        next.via.is_none()
            && (self.cpu, self.level, self.on_path) == (next.cpu, next.level, next.on_path)
            && (&self.image, &self.function, &self.callers)
                == (&next.image, &next.function, &next.callers)
    }
}
