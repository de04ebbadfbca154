// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the page on a screen: widths, contrast, headings, links.
//!
//! The script `screen.js` runs the checks within the page, where the computed styles and boxes are available.

use anyhow::Result;
use serde_json::Value;

use crate::tab::text;
use crate::{Finding, Tab};

/// The script with all checks of a page on a screen.
const LOOK: &str = include_str!("screen.js");

/// Returns the errors of the page on a screen.
///
/// # Errors
///
/// If the browser has ended.
pub fn check(tab: &mut Tab<'_>) -> Result<Vec<Finding>> {
    let answer = tab.value(&format!("({LOOK})({})", tab.look.paper))?;
    let found = answer.as_array().into_iter().flatten();
    let pair = |pair: &Value| tab.finding(&text(&pair[0]), text(&pair[1]));
    Ok(found.map(pair).collect())
}
