// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disassembly with execution counts next to the instructions.

use std::collections::BTreeMap;

/// How often instructions were executed.
#[derive(Debug)]
pub struct Counts {
    /// Number of passes that were counted.
    pub passes: u64,
    /// Execution counts by link address.
    pub executed: BTreeMap<u64, u64>,
}

/// Line that replaces omitted instructions.
const GAP: &str = "            ...";

/// Returns the executed functions of the disassembly `text`. Omits instructions far from executed ones.
pub fn executed_lines(text: &str, counts: &Counts) -> Vec<String> {
    let mut lines = Vec::new();
    for function in functions(text) {
        if function
            .instructions
            .iter()
            .any(|(at, _)| counts.executed.contains_key(at))
        {
            lines.push(without_hash(function.name).to_owned());
            lines.extend(function_lines(&function, counts));
        }
    }
    lines
}

/// Returns the name of a function without the hash that the compiler appends to it.
fn without_hash(name: &str) -> &str {
    let hash = |hash: &str| hash.len() == 17 && hash.starts_with('h');
    match name.rsplit_once("::") {
        Some((plain, last)) if hash(last) => plain,
        _ => name,
    }
}

struct Function<'t> {
    name: &'t str,
    instructions: Vec<(u64, &'t str)>,
}

fn functions(text: &str) -> Vec<Function<'_>> {
    let mut functions: Vec<Function<'_>> = Vec::new();
    for line in text.lines() {
        if let Some((_, name)) = line
            .strip_suffix(">:")
            .and_then(|line| line.split_once(" <"))
        {
            functions.push(Function {
                name,
                instructions: Vec::new(),
            });
        } else if let (Some(function), Some((at, instruction))) =
            (functions.last_mut(), line.split_once(':'))
            && let Ok(at) = u64::from_str_radix(at.trim(), 16)
        {
            function.instructions.push((at, instruction.trim()));
        }
    }
    functions
}

fn function_lines(function: &Function<'_>, counts: &Counts) -> Vec<String> {
    let mut lines = Vec::new();
    let executed = |index: usize| {
        let instruction = function.instructions.get(index);
        instruction.and_then(|(at, _)| counts.executed.get(at))
    };
    for (index, (at, instruction)) in function.instructions.iter().enumerate() {
        // The instructions next to executed ones are shown too, so that the reader can see which instructions a branch
        // has skipped.
        let near = index.saturating_sub(1)..=index + 1;
        let count = executed(index);
        if count.is_some() || near.clone().any(|index| executed(index).is_some()) {
            let count = count.map_or(String::new(), |&count| per_pass(count, counts.passes));
            lines.push(format!(
                "{count:>7} {at:>8x}  {}",
                align_operands(instruction)
            ));
        } else if lines.last().is_some_and(|line| line != GAP) {
            lines.push(GAP.into());
        }
    }
    lines
}

/// Formats a count per pass. The text is a whole number if the count is a multiple of the number of passes.
fn per_pass(count: u64, passes: u64) -> String {
    if count.is_multiple_of(passes) {
        (count / passes).to_string()
    } else {
        format!("{:.2}", count as f64 / passes as f64)
    }
}

fn align_operands(instruction: &str) -> String {
    match instruction.split_once('\t') {
        Some((name, rest)) => format!("{name:<8}{}", rest.replace('\t', " ")),
        None => instruction.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_beside_their_instructions() {
        let text = "\
0000000000000000 <first>:
       0:      \tnop

0000000000000010 <second<T>>:
      10:      \tb\t0x18 <second<T>+0x8>
      14:      \tnop
      18:      \tnop
      1c:      \tnop
      20:      \tnop
      24:      \tret
";
        let counts = Counts {
            passes: 2,
            executed: [(0x10, 2), (0x18, 1)].into(),
        };
        assert_eq!(
            executed_lines(text, &counts),
            [
                "second<T>",
                "      1       10  b       0x18 <second<T>+0x8>",
                "              14  nop",
                "   0.50       18  nop",
                "              1c  nop",
                GAP,
            ]
        );
    }
}
