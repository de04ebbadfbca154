// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages that `ROUSE_PAGES` lists, one per line, have no errors.
//!
//! `cargo xtask test` makes a page of each kind, and names these pages and a browser.

use std::env;
use std::path::Path;

use browser::Tab;

#[test]
#[ignore = "needs a browser; cargo xtask test has one if cargo xtask dev pages has fetched it"]
fn nothing_is_wrong_with_our_pages() {
    let named = env::var("ROUSE_PAGES").expect("pages are named");
    let mut browser = browser::from_environment().unwrap();
    let mut tab = Tab::new(&mut browser).unwrap();
    let mut wrong = Vec::new();
    for page in named.lines() {
        let found = browser::check_page(&mut tab, Path::new(page)).unwrap();
        wrong.extend(found.iter().map(|finding| format!("{page}: {finding}")));
    }
    assert!(named.lines().count() > 0 && wrong.is_empty(), "{wrong:#?}");
}
