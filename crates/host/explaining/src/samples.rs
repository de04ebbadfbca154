// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up explanations, for tests.

use std::collections::BTreeMap;

use crate::events::Events;
use crate::explanation::{ExplainedCell, FunctionCost};
use crate::step::Step;

/// Returns a cell whose path has the steps in `text`, each with its function, level and count.
pub fn cell_with_steps(text: &str) -> ExplainedCell {
    let step = |text: &str| {
        let words: Vec<&str> = text.split(' ').collect();
        let count = words[2].parse().unwrap();
        Step {
            cpu: 0,
            level: words[1].parse().unwrap(),
            image: "linux".into(),
            function: words[0].into(),
            on_path: true,
            via: None,
            at: 0,
            count,
            instructions: count,
            callers: Vec::new(),
            blocks: vec![(format!("{}+0x0", words[0]), count)],
        }
    };
    let mut steps: Vec<Step> = text.split(", ").map(step).collect();
    let mut at = 0;
    for step in &mut steps {
        step.at = at;
        at += step.count;
    }
    let function = |step: &Step| FunctionCost {
        name: step.function.clone(),
        image: step.image.clone(),
        level: step.level,
        cpu: step.cpu,
        count: step.count,
        instructions: step.instructions,
        off_path: 0,
        all: [step.count; 3],
    };
    let path = steps.iter().map(|step| step.count).sum();
    let cell = ExplainedCell {
        title: "linux-pipe none".into(),
        words: BTreeMap::new(),
        under: "none".into(),
        unit: "insns".into(),
        path,
        bookkeeping: 0,
        work: path,
        events: Events::default(),
        samples: [1, 1],
        functions: steps.iter().map(function).collect(),
        steps,
    };
    cell.check_sums().unwrap();
    cell
}
