// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the page with the keyboard: a reader must reach every control in order, and see the focus.

use anyhow::Result;
use serde_json::{Value, json};

use crate::tab::text;
use crate::{Finding, Tab};

/// A script that returns the names of the operable elements, and defines `rousePlace`, which returns the focused
/// element.
const LIST: &str = include_str!("keys.js");

/// Returns the errors of the page when it is used with the keyboard.
///
/// # Errors
///
/// If the browser has ended.
pub fn check(tab: &mut Tab<'_>) -> Result<Vec<Finding>> {
    let list = tab.value(&format!("({LIST})()"))?;
    let list: Vec<Value> = list.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    let mut reached: Vec<usize> = Vec::new();
    let mut stops = 0;
    loop {
        press(tab, "Tab", 9, "")?;
        let place = tab.value("rousePlace()")?;
        // After the last element, Tab goes to the window or to the first element again. A box that scrolls also takes
        // the focus, but is not in the list.
        let Some(number) = place["number"].as_i64() else {
            break;
        };
        stops += 1;
        if let Ok(number) = usize::try_from(number) {
            if reached.contains(&number) {
                break;
            }
            reached.push(number);
            if place["seen"] == false {
                found.push(tab.finding("focus", format!("is not seen at {}", name(&list[number]))));
            }
        }
        if stops > 10 * list.len() + 1000 {
            found.push(tab.finding("keyboard", "Tab does not come to an end"));
            break;
        }
    }
    if reached.windows(2).any(|pair| pair[0] > pair[1]) {
        found.push(tab.finding("keyboard", "Tab's order is not that of the page"));
    }
    for (number, control) in list.iter().enumerate() {
        if !reached.contains(&number) {
            let what = format!("Tab does not reach {}", name(control));
            found.push(tab.finding("keyboard", what));
        }
    }
    Ok(found)
}

fn name(control: &Value) -> String {
    text(control)
}

/// Presses and releases a key.
///
/// # Errors
///
/// If the browser has ended.
pub fn press(tab: &mut Tab<'_>, key: &str, code: u32, typed: &str) -> Result<()> {
    let down = if typed.is_empty() {
        "rawKeyDown"
    } else {
        "keyDown"
    };
    for kind in [down, "keyUp"] {
        let mut event =
            json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
        if kind == "keyDown" {
            event["text"] = typed.into();
        }
        tab.call("Input.dispatchKeyEvent", event)?;
    }
    Ok(())
}
