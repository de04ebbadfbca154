// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a page without scripts: it must have all its text, and nothing that works only with a script.

use std::path::Path;

use anyhow::Result;

use crate::tab::{WIDE, text};
use crate::{Finding, Look, Tab};

/// An expression for the page's text, without the controls that scripts add.
const READ: &str = r"(() => {
  document.querySelectorAll('details').forEach((details) => { details.open = true; });
  document.querySelectorAll('[data-added]').forEach((added) => { added.hidden = true; });
  return document.body.innerText.replace(/\s+/g, ' ').trim();
})()";
/// An expression that lists the controls that do nothing without a script.
const DEAD: &str = "[...document.querySelectorAll('button,input,select,textarea')].map((dead) => dead.outerHTML.slice(0, 80))";

/// Returns the errors of the page without scripts.
///
/// # Errors
///
/// If the browser has ended.
pub fn check(tab: &mut Tab<'_>, file: &Path) -> Result<Vec<Finding>> {
    tab.open(file, Look::screen(WIDE, false))?;
    let with = text(&tab.value(READ)?);
    let look = Look {
        scripts: false,
        ..Look::screen(WIDE, false)
    };
    tab.open(file, look)?;
    let without = text(&tab.value(READ)?);
    let mut found = Vec::new();
    if with != without {
        found.push(tab.finding("plain", first_difference(&with, &without)));
    }
    for dead in tab.value(DEAD)?.as_array().into_iter().flatten() {
        found.push(tab.finding("plain", format!("does nothing: {}", text(dead))));
    }
    found.extend(tab.complaints());
    Ok(found)
}

/// Describes the place at which two texts begin to differ.
fn first_difference(with: &str, without: &str) -> String {
    let alike = with.chars().zip(without.chars());
    let alike = alike.take_while(|(a, b)| a == b).count();
    let from = |text: &str| -> String {
        let from = alike.saturating_sub(20);
        text.chars().skip(from).take(60).collect()
    };
    format!("with script `{}`, without `{}`", from(with), from(without))
}
