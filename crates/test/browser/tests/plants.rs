// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each check finds the errors that are planted for it, and finds nothing in a page without errors.
//!
//! These tests need a browser, so a plain `cargo test` skips them; `cargo xtask dev pages` runs them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use browser::{Browser, Finding, Tab};

/// A page without an error.
const GOOD: &str = r##"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>t</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  :root { color-scheme: light dark; --paper: #fff; --ink: #222; --line: #0068a8; }
  @media (prefers-color-scheme: dark) { :root { --paper: #161616; --ink: #ddd; --line: #4a9fdc; } }
  @page { size: A4; margin: 14mm 12mm; }
  body { background: var(--paper); color: var(--ink); font: 15px sans-serif; margin: 0; }
  a { color: inherit; }
  h1, h2, h3, caption { break-after: avoid; }
  tr, figure { break-inside: avoid; }
  .scroll { overflow-x: auto; }
  :focus-visible { outline: 2px solid var(--line); }
  text { fill: var(--ink); font-size: 11px; }
  figure { margin: 0; } figure svg { width: 100%; max-width: 460px; }
  @media print { :root { --paper: #fff; --ink: #000; } .scroll { overflow: visible; } .wide { display: none; } }
</style></head><body>
<h1>One</h1>
<p><a href="#two">Two</a> <button>Press</button></p>
<!-- here -->
<h2 id="two">Two</h2>
<div class="scroll"><table class="wide"><tr><td><div style="width: 2000px">wide</div></td></tr></table></div>
<table><thead><tr><th>head</th></tr></thead><tbody><tr><td>cell</td></tr></tbody></table>
<figure><figcaption>chart</figcaption><svg viewBox="0 0 380 100" role="img" aria-label="chart">
<rect x="0" y="0" width="100" height="20" fill="#c33"/><text x="4" y="14" style="fill: #fff">in</text>
<text x="4" y="60">below</text></svg></figure>
</body></html>"##;

/// The planted errors: for each, the check that finds it, its name, the text to replace, and the replacement.
const PLANTS: [(&str, &str, &str, &str); 38] = [
    (
        "contrast",
        "a pale colour",
        "<!-- here -->",
        "<p style='color: #999'>pale</p>",
    ),
    (
        "contrast",
        "one that is pale in the dark only",
        "--ink: #ddd",
        "--ink: #555",
    ),
    (
        "contrast",
        "a faint one",
        "<!-- here -->",
        "<p style='opacity: .5'>faint</p>",
    ),
    (
        "contrast",
        "one on a ground",
        "<!-- here -->",
        "<p style='background: #888'>ground</p>",
    ),
    ("contrast", "a label in a bar", "fill: #fff", "fill: #d88"),
    (
        "contrast",
        "a label at a bar's end",
        r#"x="4" y="14" style="fill: #fff""#,
        r#"x="94" y="14" style="fill: #c33""#,
    ),
    (
        "contrast",
        "a hint of a field",
        "<!-- here -->",
        "<style>::placeholder { color: #aaa }</style><input aria-label=x placeholder=y>",
    ),
    (
        "overflow",
        "a fixed wide table",
        "<!-- here -->",
        "<table style='width: 900px'><tr><td>x</td></tr></table>",
    ),
    (
        "overflow",
        "a wide box",
        "overflow-x: auto",
        "overflow-x: visible",
    ),
    (
        "overflow",
        "a table that is wide on paper only",
        ".wide { display: none; }",
        "",
    ),
    (
        "cut",
        "a text that is cut",
        "<!-- here -->",
        "<p style='width: 20px; overflow: hidden; white-space: nowrap'>a long line</p>",
    ),
    (
        "cut",
        "a label outside its chart",
        r#"x="4" y="60""#,
        r#"x="-9" y="60""#,
    ),
    (
        "overlap",
        "labels on each other",
        r#"x="4" y="60""#,
        r#"x="9" y="16""#,
    ),
    (
        "small",
        "a chart that shrinks",
        "0 0 380 100",
        "0 0 800 100",
    ),
    (
        "headings",
        "h2 to h4",
        "<!-- here -->",
        "<h2>a</h2><h4>b</h4>",
    ),
    (
        "headings",
        "two of level 1",
        "<!-- here -->",
        "<h1>again</h1>",
    ),
    ("headings", "none of level 1", "<h1>One</h1>", "<p>One</p>"),
    (
        "keyboard",
        "a button that Tab passes",
        "<button>",
        "<button tabindex=-1>",
    ),
    (
        "keyboard",
        "something like a button",
        "<!-- here -->",
        "<span role=button>x</span>",
    ),
    (
        "keyboard",
        "another order",
        "<button>",
        "<button tabindex=1>",
    ),
    (
        "focus",
        "no mark of the focus",
        "outline: 2px solid var(--line)",
        "outline: none",
    ),
    (
        "focus",
        "a focus outside the window",
        "<!-- here -->",
        "<a href='#two' style='position: fixed; left: -99px'>x</a>",
    ),
    ("ids", "an id twice", "<!-- here -->", "<p id=two>x</p>"),
    ("links", "a link to nothing", "#two\">", "#three\">"),
    (
        "names",
        "a button without name",
        "<button>Press",
        "<button>",
    ),
    ("names", "a chart without text", "aria-label=\"chart\"", ""),
    (
        "loads",
        "an image from outside",
        "<!-- here -->",
        "<img alt=x src='http://127.0.0.1:9/x.png'>",
    ),
    (
        "console",
        "an error",
        "<!-- here -->",
        "<script>console.error('no')</script>",
    ),
    (
        "console",
        "an exception",
        "<!-- here -->",
        "<script>throw new Error('no')</script>",
    ),
    (
        "plain",
        "content by script",
        "<!-- here -->",
        "<p id=p></p><script>p.textContent = 'made'</script>",
    ),
    (
        "plain",
        "a dead button",
        "<body>",
        "<body><button>dead</button>",
    ),
    (
        "alone",
        "a heading at the foot",
        "<!-- here -->",
        "<h2>alone</h2><p style='break-before: page'>x</p>",
    ),
    (
        "printed",
        "a table that is not taken for one",
        "<!-- here -->",
        "<table><tr><td>x</td></tr></table>",
    ),
    (
        "alone",
        "a heading with what introduces a chart",
        "<!-- here -->",
        "<h2>a</h2><p>about</p><figure style='break-before: page'><figcaption>c</figcaption><svg viewBox='0 0 380 300' role=img aria-label=x><text x=9 y=20>x</text></svg></figure>",
    ),
    (
        "lines",
        "a line that is hardly seen",
        "<text x=\"4\" y=\"60\"",
        "<path d='M0 80L99 80' fill='none' stroke='#888' stroke-opacity='.5'/><text x=\"4\" y=\"60\"",
    ),
    (
        "lines",
        "a line of no colour",
        "<text x=\"4\" y=\"60\"",
        "<path d='M0 80L99 80' style='fill: none; stroke: var(--none)'/><text x=\"4\" y=\"60\"",
    ),
    (
        "torn",
        "a row on two pages",
        "<!-- here -->",
        "<table><thead><tr><th>h</th></tr></thead><tr><td>x<div style='break-before: page'>y</div></td></tr></table>",
    ),
    (
        "torn",
        "a chart on two pages",
        "<!-- here -->",
        "<figure><figcaption>c</figcaption><div style='break-before: page'><svg viewBox='0 0 380 300' role=img aria-label=x><text x=9 y=20>x</text></svg></div></figure>",
    ),
];

/// A browser that checks pages.
struct Reader {
    browser: Browser,
    file: PathBuf,
}

impl Reader {
    fn new() -> Self {
        let browser = browser::from_environment().unwrap();
        let file = browser.folder().join("page.html");
        Self { browser, file }
    }

    fn check(&mut self, text: &str) -> Vec<Finding> {
        fs::write(&self.file, text).unwrap();
        let mut tab = Tab::new(&mut self.browser).unwrap();
        browser::check_page(&mut tab, &self.file).unwrap()
    }
}

fn checks(found: &[Finding]) -> BTreeSet<&str> {
    found.iter().map(|finding| finding.check.as_str()).collect()
}

/// Returns [`GOOD`] with a link in place of its button, because a button does nothing without a script.
fn good() -> String {
    GOOD.replace("<button>Press</button>", "<a href=\"#two\">Press</a>")
}

#[test]
#[ignore = "needs a browser; cargo xtask dev pages"]
fn nothing_is_found_where_nothing_is_wrong() {
    let mut reader = Reader::new();
    assert_eq!(reader.check(&good()), []);
}

#[test]
#[ignore = "needs a browser; cargo xtask dev pages"]
fn each_plant_is_found_by_its_check() {
    let mut reader = Reader::new();
    for (check, name, place, planted) in PLANTS {
        // Plants that change the button need a page with the button. The button is then reported, too.
        let text = match place.contains("<button>") {
            true => GOOD.to_owned(),
            false => good(),
        };
        let text = text.replacen(place, planted, 1);
        assert_ne!(text, good(), "{name} is not planted");
        let found = reader.check(&text);
        assert!(
            checks(&found).contains(check),
            "{name}: {check} is not in {found:#?}"
        );
    }
}

/// The browser repeats a table's head on each page only if it is a `thead` with the default style; the check reports
/// any other head.
#[test]
#[ignore = "needs a browser; cargo xtask dev pages"]
fn a_table_s_head_is_on_each_of_its_pages() {
    let mut reader = Reader::new();
    let rows = "<tr><td>x</td></tr>".repeat(90);
    let table = |head: &str| format!("<table>{head}<tbody>{rows}</tbody></table>");
    let row = "<tr><th>head</th></tr>";
    let whole = table(&format!("<thead>{row}</thead>"));
    let page = good().replace("<!-- here -->", &whole);
    assert_eq!(reader.check(&page), []);
    for wrong in [
        table(&format!("<tbody>{row}</tbody>")),
        table(&format!(
            "<thead style='display: table-row-group'>{row}</thead>"
        )),
    ] {
        let page = good().replace("<!-- here -->", &wrong);
        let found = reader.check(&page);
        assert_eq!(checks(&found), BTreeSet::from(["headless"]), "{found:#?}");
    }
}

#[test]
#[ignore = "needs a browser; cargo xtask dev pages"]
fn a_program_that_is_no_browser_is_named() {
    let error = Browser::start(std::path::Path::new("/bin/false")).unwrap_err();
    assert!(
        format!("{error:#}").contains("/bin/false is not a browser"),
        "{error:#}"
    );
}
