// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a command line that cannot be parsed.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Describes, in one line, the mistake in a command line.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    if let Some(option) = list_named_twice(error) {
        return format!("{option} is given twice; write its words as one list: {option} A,B");
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let told: Vec<&str> = told
        .map(|line| line.trim_start_matches("error: "))
        .collect();
    let told = told.join("; ").replace(":; ", ": ");
    // The standard library's text is about a type, and does not say which numbers are allowed.
    let told = told.replace("number would be zero for non-zero type", "use 1 or more");
    format!("{told}; --help lists what there is")
}

/// Returns the name of an option whose value is a list of words, if the option was given twice.
fn list_named_twice(error: &clap::Error) -> Option<&str> {
    let ContextValue::String(option) = error.get(ContextKind::InvalidArg)? else {
        return None;
    };
    // No list conflicts with another one, so the option conflicts with itself.
    let twice = error.kind() == ErrorKind::ArgumentConflict;
    option.strip_suffix(" <LIST>").filter(|_| twice)
}
