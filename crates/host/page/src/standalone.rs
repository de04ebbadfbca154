// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charts of the page, each as an SVG file that needs no other file: it has its caption, legend and colours.
//!
//! The colours are those of the page's style sheet, light or dark according to the reader's system. Colours are written
//! as literal values, because some programs that show SVG do not support custom properties (CSS Custom Properties for
//! Cascading Variables Module Level 1).

use std::collections::BTreeMap;
use std::fmt::Write;

use results::merge::Run;

use crate::charts::{self, PagePart};
use crate::frame::{Entry, Figure};
use crate::svg::{WIDTH, escape_xml, text_width};
use crate::{STYLE, charted_runs};

/// Empty space on each side.
const MARGIN: f64 = 12.0;
/// Distance from one line of text to the next.
const LINE: f64 = 15.0;
/// Width of a caption's letters, relative to a chart's.
const BOLD: f64 = 1.15;

/// A file.
#[derive(Debug)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// Returns every chart of the page about `runs`, in the page's order.
pub fn chart_files(runs: &[Run]) -> Vec<File> {
    let mut names = BTreeMap::new();
    let (answer, sections) = charts::chart_sections(charted_runs(runs));
    let mut files: Vec<File> = answer
        .iter()
        .map(|figure| chart_file("answer", figure, &mut names))
        .collect();
    for block in sections {
        if let PagePart::Charts(section) = block {
            let figures = section.figures();
            files.extend(figures.map(|figure| chart_file(section.id, figure, &mut names)));
        }
    }
    files
}

/// Returns the file of a chart. The file's name consists of the section and the caption, with a number if another file
/// already has that name.
fn chart_file(section: &str, figure: &Figure, names: &mut BTreeMap<String, usize>) -> File {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    let name: String = format!("{section}-{}", figure.caption.to_lowercase())
        .chars()
        .map(plain)
        .collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    let name = words.join("-");
    let count = names.entry(name.clone()).or_default();
    *count += 1;
    let number = match *count {
        1 => String::new(),
        count => format!("-{count}"),
    };
    File {
        name: format!("{name}{number}.svg"),
        text: svg_document(figure),
    }
}

fn svg_document(figure: &Figure) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    for (text, class, letter) in [
        (&figure.caption, "caption", BOLD),
        (&figure.note, "muted", 1.0),
    ] {
        for line in wrap_text(text, letter) {
            y += LINE;
            append_shape(
                &mut body,
                format_args!(
                    r#"<text class="{class}" x="0" y="{y:.1}">{}</text>"#,
                    escape_xml(&line)
                ),
            );
        }
    }
    y = draw_legend(&figure.legend, &mut body, y) + 8.0;
    append_shape(
        &mut body,
        format_args!(
            r#"<g transform="translate(0 {y:.1})">{}</g>"#,
            figure.chart.body
        ),
    );
    let (width, height) = (WIDTH + 2.0 * MARGIN, y + figure.chart.height + MARGIN);
    let about = escape_xml(&figure.chart.about);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" role="img" font-family="system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif" font-size="11"><title>{about}</title><style>{}</style><rect class="paper" width="100%" height="100%"/><g transform="translate({MARGIN:.0} 0)">{body}</g></svg>
"#,
        style_rules()
    )
}

/// Splits the text into lines that fit the width of the file.
fn wrap_text(text: &str, letter: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}")) * letter <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Draws the entries of the legend below `y`, as many per line as fit. Returns the position of the legend's lower end.
fn draw_legend(entries: &[Entry], body: &mut String, mut y: f64) -> f64 {
    /// Width of a mark, and space after a text.
    const KEY: f64 = 20.0;
    const GAP: f64 = 12.0;
    let mut x = f64::INFINITY;
    for (class, name, more) in entries {
        let text = format!("{name} {more}");
        let width = KEY + text_width(text.trim_end()) + GAP;
        if x + width > WIDTH {
            (x, y) = (0.0, y + LINE);
        }
        let middle = y - 4.0;
        match class.contains("line") {
            true => append_shape(
                body,
                format_args!(r#"<path class="{class}" d="M{x:.1} {middle:.1}h16"/>"#),
            ),
            false => append_shape(
                body,
                format_args!(
                    r#"<rect class="{class}" x="{x:.1}" y="{:.1}" width="10" height="10"/>"#,
                    y - 9.0
                ),
            ),
        }
        append_shape(
            body,
            format_args!(
                r#"<text x="{:.1}" y="{y:.1}">{} <tspan class="muted">{}</tspan></text>"#,
                x + KEY,
                escape_xml(name),
                escape_xml(more)
            ),
        );
        x += width;
    }
    y
}

fn append_shape(body: &mut String, shape: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = body.write_fmt(shape);
}

/// Returns the style rules for shapes: light colours, and dark colours for readers who prefer them.
fn style_rules() -> String {
    let dark = STYLE
        .split_once("(prefers-color-scheme: dark)")
        .map_or("", |(_, rest)| rest);
    format!(
        "{}@media (prefers-color-scheme: dark){{{}}}",
        shape_rules(&first_palette(STYLE)),
        shape_rules(&first_palette(dark))
    )
}

/// Returns the colours of the first palette in the style sheet `text`.
fn first_palette(text: &str) -> BTreeMap<&str, &str> {
    let block = text.split_once(":root {").map_or("", |(_, rest)| rest);
    let block = block.split_once('}').map_or("", |(block, _)| block);
    let pairs = block.split(';').filter_map(|pair| pair.split_once(':'));
    let colours =
        pairs.filter_map(|(name, colour)| Some((name.trim().strip_prefix("--")?, colour.trim())));
    colours.collect()
}

/// Returns the style sheet's rules for shapes, with the colours of `palette`.
fn shape_rules(palette: &BTreeMap<&str, &str>) -> String {
    let shapes = STYLE.split_once(".c-blue").map_or("", |(_, rest)| rest);
    let shapes = shapes.split_once("@media").map_or("", |(shapes, _)| shapes);
    let shapes = format!(".c-blue{shapes}");
    let all: Vec<(&str, &str)> = shapes
        .split('}')
        .filter_map(|rule| rule.split_once('{'))
        .map(|(of, what)| (of.trim(), what.trim()))
        .collect();
    let (classes, plain): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(of, _)| of.starts_with(".c-"));
    let mut rules = String::from(
        ".paper{fill:var(--paper)}.caption{font-weight:650;font-size:12px}.muted{fill:var(--muted)}",
    );
    for (of, what) in plain {
        if !what.contains("var(--c)") && !what.contains("var(--on)") {
            append_shape(&mut rules, format_args!("{of}{{{what}}}"));
            continue;
        }
        for (class, colours) in &classes {
            let value = |name: &str| {
                let (_, rest) = colours.split_once(name)?;
                Some(rest.split_once(';')?.0.trim())
            };
            let what = what.replace("var(--c)", value("--c:").unwrap_or_default());
            let what = what.replace("var(--on)", value("--on:").unwrap_or_default());
            append_shape(&mut rules, format_args!("{of}{class}{{{what}}}"));
        }
    }
    for (name, colour) in palette {
        rules = rules.replace(&format!("var(--{name})"), colour);
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::goldens::logs_as_runs;

    /// Returns the classes of shapes in `text`.
    fn classes(text: &str) -> Vec<&str> {
        let values = text
            .split(" class=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"'));
        values.flat_map(|(value, _)| value.split(' ')).collect()
    }

    /// Lists what a file lacks in order to stand alone.
    fn lacks(text: &str) -> Vec<String> {
        let (style, _) = text.split_once("</style>").unwrap();
        // These classes mark texts for the page's reader, and need no rule.
        let unruled = ["name", "value"];
        let used = classes(text)
            .into_iter()
            .filter(|class| !unruled.contains(class));
        let ruled = |class: &str| {
            let selector = format!(".{class}");
            let rest = style.split(&selector).skip(1);
            rest.into_iter()
                .any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
        };
        let mut lacks: Vec<String> = used
            .filter(|class| !ruled(class))
            .map(str::to_owned)
            .collect();
        lacks.extend(text.contains("var(").then(|| "a colour".into()));
        lacks.extend(
            (text.matches("<g").count() != text.matches("</g>").count()).then(|| "an end".into()),
        );
        lacks
    }

    #[test]
    fn every_chart_of_the_page_is_a_file_that_needs_nothing_else() {
        let all = results::merge::join_sweeps(logs_as_runs());
        let files = chart_files(&all);
        let page = crate::results_page(None, &all);
        assert_eq!(files.len(), page.matches("<figure>").count());
        for file in &files {
            assert_eq!(lacks(&file.text), Vec::<String>::new(), "{}", file.name);
            assert!(file.text.contains("#0068a8") && file.text.contains("#4a9fdc"));
        }
        let mut names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), files.len());
        assert!(
            names
                .iter()
                .all(|name| name.ends_with(".svg") && !name.contains(['/', ' ', '*']))
        );
    }

    #[test]
    fn what_a_file_lacks_is_found() {
        let text = |shape: &str| format!("<style>{}</style>{shape}", style_rules());
        assert!(lacks(&text(r#"<path class="line c-blue dash"/>"#)).is_empty());
        assert_eq!(lacks(&text(r#"<path class="line s1"/>"#)), ["s1"]);
        assert_eq!(lacks(&text(r#"<path fill="var(--blue)"/>"#)), ["a colour"]);
    }
}
