// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of our pages can be sorted and filtered by keyboard alone.

use std::fs;

use browser::{Look, Tab, keys};
use maud::html;

/// An expression for the first and second column of the visible rows, from the top.
const ROWS: &str = "[...document.querySelectorAll('tbody tr')].filter((row) => !row.hidden)
    .map((row) => row.cells[0].textContent + row.cells[1].textContent).join(' ')";
const SORTED: &str =
    "[...document.querySelectorAll('thead tr:last-child th')].map((head) => head.ariaSort).join()";

fn page() -> String {
    let rows = [
        ("c", "12\u{202f}345"),
        ("a", "9.5*"),
        ("b", "·"),
        ("d10", "\u{2212}3"),
        ("d9", "1.07×"),
        ("e", "100"),
    ];
    let body = html! {
        h1 { "Tables" }
        div.scroll {
            table.data {
                thead { tr { th colspan="2" { "both" } } tr { th { "name" } th { "value" } } }
                tbody { @for (name, value) in rows { tr { td { (name) } td { (value) } } } }
            }
        }
    };
    page::document("Tables", body)
}

#[test]
#[ignore = "needs a browser; cargo xtask dev pages"]
fn tables_are_sorted_and_filtered_by_keyboard() {
    let mut browser = browser::from_environment().unwrap();
    let file = browser.folder().join("page.html");
    fs::write(&file, page()).unwrap();
    let mut tab = Tab::new(&mut browser).unwrap();
    assert_eq!(browser::check_page(&mut tab, &file).unwrap(), []);
    tab.open(&file, Look::ALL[0]).unwrap();
    let begin = "c12\u{202f}345 a9.5* b· d10\u{2212}3 d91.07× e100";
    assert_eq!(tab.value(ROWS).unwrap(), begin);
    // The filter's input field precedes the table.
    for stop in ["INPUT", "BUTTON", "BUTTON"] {
        keys::press(&mut tab, "Tab", 9, "").unwrap();
        assert_eq!(tab.value("document.activeElement.tagName").unwrap(), stop);
    }
    for (rows, sorted) in [
        (
            "d10\u{2212}3 d91.07× a9.5* e100 c12\u{202f}345 b·",
            ",ascending",
        ),
        (
            "c12\u{202f}345 e100 a9.5* d91.07× d10\u{2212}3 b·",
            ",descending",
        ),
        (begin, ","),
    ] {
        keys::press(&mut tab, "Enter", 13, "\r").unwrap();
        assert_eq!(tab.value(ROWS).unwrap(), rows);
        assert_eq!(tab.value(SORTED).unwrap(), sorted);
    }
    // Numbers in names are sorted by value: d9 before d10.
    tab.value("document.querySelector('thead tr:last-child button').focus()")
        .unwrap();
    keys::press(&mut tab, " ", 32, " ").unwrap();
    let names = "a9.5* b· c12\u{202f}345 d91.07× d10\u{2212}3 e100";
    assert_eq!(tab.value(ROWS).unwrap(), names);
    tab.value("document.querySelector('input').focus()")
        .unwrap();
    for letter in ["D", " ", "1", "0"] {
        keys::press(&mut tab, letter, u32::from(letter.as_bytes()[0]), letter).unwrap();
    }
    assert_eq!(tab.value(ROWS).unwrap(), "d10\u{2212}3");
    assert_eq!(
        tab.value("document.querySelector('[role=status]').textContent")
            .unwrap(),
        "1 of 6"
    );
    assert_eq!(tab.complaints(), []);
}
