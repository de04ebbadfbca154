// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the printed page.
//!
//! The browser tags its printed output (ISO 32000-1, 14.8): the tag of each heading, row and figure names the pages
//! that contain its text. So the tags show which parts a page break divides, and no page needs to be rendered.

use std::path::Path;

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::pdf::{self, Element};
use crate::{Finding, Look, Tab, screen};

/// Width of A4 paper without the margins of the style sheet, 12 mm on either side, in CSS pixels of 1/96 inch.
const WIDTH: u32 = 703;

/// Kinds of elements to check: the name of the kind, its tags in the PDF, and its selector in the page. A drawing in a
/// figure has the figure's tag.
const TAGGED: [(&str, &[&str], &str); 3] = [
    (
        "headings",
        &["H1", "H2", "H3", "H4", "H5", "H6"],
        "h1,h2,h3,h4,h5,h6",
    ),
    ("rows", &["TR"], "tr"),
    ("charts", &["Figure"], "figure,svg[role=img]"),
];

/// Returns the errors in the printed page.
///
/// # Errors
///
/// If the browser has ended, or the PDF can't be read.
pub fn check(tab: &mut Tab<'_>, file: &Path) -> Result<Vec<Finding>> {
    let look = Look {
        paper: true,
        ..Look::screen(WIDTH, false)
    };
    tab.open(file, look)?;
    let mut found = screen::check(tab)?;
    let document = pdf::read(print(tab)?).context("the PDF can't be read")?;
    found.extend(untagged(tab, &document)?);
    let judged = find_cut_parts(&document).into_iter();
    found.extend(judged.map(|(check, what)| tab.finding(check, what)));
    Ok(found)
}

/// Returns the page as PDF, in A4, with the margins and colours of its style sheet.
///
/// # Errors
///
/// If the browser has ended.
pub fn print(tab: &mut Tab<'_>) -> Result<Vec<u8>> {
    let how = json!({ "printBackground": true, "preferCSSPageSize": true, "paperWidth": 8.27,
        "paperHeight": 11.69, "generateTaggedPDF": true });
    let printed = tab.call("Page.printToPDF", how)?;
    decoded(&printed)
}

/// Decodes the bytes of the browser's answer.
///
/// # Errors
///
/// If the answer has no base64 data.
pub fn decoded(answer: &Value) -> Result<Vec<u8>> {
    Ok(BASE64_STANDARD.decode(answer["data"].as_str().unwrap_or_default())?)
}

/// Returns the kinds of elements that can't all be checked, because the PDF has fewer tags than the page has elements:
/// the browser tags only tables with headings.
fn untagged(tab: &mut Tab<'_>, document: &Element) -> Result<Vec<Finding>> {
    let all = document.all();
    let mut found = Vec::new();
    for (name, roles, selector) in TAGGED {
        let there = all
            .iter()
            .filter(|element| roles.contains(&element.role.as_str()));
        let there = there.count() as u64;
        let count = format!(
            "[...document.querySelectorAll('{selector}')].filter((one) => one.checkVisibility()).length"
        );
        let wanted = tab.value(&count)?.as_u64().unwrap_or(0);
        if there < wanted {
            let what = format!("{there} of {wanted} {name} are tagged");
            found.push(tab.finding("printed", what));
        }
    }
    Ok(found)
}

/// Returns rows and figures that a page break divides, tables without heads, and headings alone at the foot of a page.
fn find_cut_parts(document: &Element) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let all = document.all();
    for (place, element) in all.iter().enumerate() {
        let pages = element.pages();
        let (Some(&first), Some(&last)) = (pages.first(), pages.last()) else {
            continue;
        };
        match element.role.as_str() {
            "H1" | "H2" | "H3" | "H4" | "H5" | "H6" | "Caption" => {
                // The search begins after the heading, so that it finds neither a part of the heading nor an element
                // around it.
                let next = all[place + element.all().len()..].iter();
                let next = next.flat_map(|next| next.marks.first()).next();
                let alone = next.is_some_and(|next| *next > last);
                if alone || only_introduced(&all[place + element.all().len()..], last) {
                    let what = format!("the {} at the foot of page {}", element.role, last + 1);
                    found.push(("alone", what));
                }
            }
            "TR" if !element.is_head() && first != last => {
                found.push(("torn", format!("a row, by page {}'s end", first + 1)));
            }
            "Figure" if first != last => {
                found.push(("torn", format!("a chart, by page {}'s end", first + 1)));
            }
            "Table" => found.extend(without_head(element)),
            _ => {}
        }
    }
    found
}

/// Returns whether a single paragraph follows on `page`, and the chart or table that it introduces is on a later page.
fn only_introduced(behind: &[&Element], page: usize) -> bool {
    let Some(paragraph) = behind.first().filter(|next| next.role == "P") else {
        return false;
    };
    let marked = |next: &&&Element| !next.pages().is_empty();
    let next = behind[paragraph.all().len()..].iter().find(marked);
    next.is_some_and(|next| {
        let introduced = matches!(next.role.as_str(), "Figure" | "Table" | "NonStruct");
        introduced && next.pages()[0] > page
    })
}

/// Returns a finding for each page on which the table's head is missing.
fn without_head(table: &Element) -> Vec<(&'static str, String)> {
    let all = table.all();
    let rows = || all.iter().filter(|element| element.role == "TR");
    let heads: Vec<usize> = rows()
        .filter(|row| row.is_head())
        .flat_map(|row| row.pages())
        .collect();
    if heads.is_empty() {
        return Vec::new();
    }
    let mut pages: Vec<usize> = rows()
        .filter(|row| !row.is_head())
        .flat_map(|row| row.pages())
        .collect();
    pages.sort_unstable();
    pages.dedup();
    pages.retain(|page| !heads.contains(page));
    pages
        .iter()
        .map(|page| ("headless", format!("a table on page {}", page + 1)))
        .collect()
}
