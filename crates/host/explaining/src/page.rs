// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of an explanation: each cell's sample as a strip with a lane for each CPU and level, as an icicle graph,
//! and as lists.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use page::document::Document;

use crate::difference::Difference;
use crate::explanation::{Explained, ExplainedCell};
use crate::step::Step;
use crate::table::{self, Questions, thousands};

/// Name of the file with an explanation.
pub const FILE: &str = "explain.html";
/// Name of the file with the difference between two kernels.
pub const DIFFERENCE: &str = "difference.html";
/// Width of a drawing.
const WIDTH: f64 = 640.0;
/// Height of a lane in the strip, and of a call level in the icicle.
const LANE: f64 = 18.0;
/// Colours by exception level.
const COLOURS: [&str; 4] = ["c-green", "c-sky", "c-orange", "c-purple"];

/// Returns the page of an explanation.
pub fn page(explained: &Explained) -> String {
    let body = html! {
        header.answer { h1 { "Wake-ups, function by function" @if !explained.guest.is_empty() { ": " (explained.guest) } }
            div.words { p { "The sample of each cell whose path is the median. The counts on the path add up to it, with what the measurement adds (bookkeeping)." } } }
        @for cell in &explained.cells { (cell_section(cell)) }
        @for note in &explained.notes { p.about { (note) } }
    };
    page::document("Wake-ups, function by function", body)
}

/// Returns a page about how two explanations differ. `document` lists the differences.
pub fn difference_page(both: [&Explained; 2], document: &Document) -> String {
    let title = "Two kernels, function by function";
    let body = html! {
        header.answer { h1 { (title) } }
        section { (document.html()) }
        @for difference in Difference::compare_all(both) {
            section { h2 { (difference.cells[0].name()) }
                figure { figcaption { b { "The changes, the largest first" } " " span.muted { "to the left: B has fewer; to the right: B has more; colours as levels: EL0 green, EL1 blue, EL2 orange" } } (change_bars(&difference)) }
            }
        }
    };
    page::document(title, body)
}

/// Draws a bar for each of the largest changes.
fn change_bars(difference: &Difference<'_>) -> Markup {
    const MOST: usize = 40;
    /// The x coordinate at which bars begin. `LONGEST` is the length of the longest bar.
    const MIDDLE: f64 = 230.0;
    const LONGEST: f64 = 150.0;
    let (changes, _) = difference.split_largest(MOST);
    let longest = changes.iter().map(|one| one.excess().unsigned_abs()).max();
    let mut shapes = String::new();
    for (n, change) in changes.iter().enumerate() {
        let top = LANE * n as f64;
        let length = LONGEST * change.excess().unsigned_abs() as f64 / longest.unwrap_or(1) as f64;
        let from = match change.excess() < 0 {
            true => MIDDLE - length,
            false => MIDDLE,
        };
        let [a, b] = change.counts.map(thousands);
        let (name, sign) = (&change.function.1, table::with_sign(change.excess()));
        let hint = format!("{name}: {a} in A, {b} in B");
        let size = (length, LANE - 2.0);
        add_rect(
            &mut shapes,
            (from, top + 1.0),
            size,
            change.level,
            "1",
            &hint,
        );
        add_text(&mut shapes, (2.0, top + 13.0), "", &sign);
        add_text(&mut shapes, (MIDDLE + LONGEST + 8.0, top + 13.0), "", name);
    }
    let about = format!("{}: changes of functions", difference.cells[0].name());
    svg_drawing(LANE * changes.len() as f64, &about, &shapes)
}

fn cell_section(cell: &ExplainedCell) -> Markup {
    let of_cell = Explained {
        cells: vec![cell.clone()],
        ..Explained::default()
    };
    let top = Questions {
        top: Some(40),
        ..Questions::default()
    };
    let list = table::document(&[&of_cell], &top).unwrap_or_else(|_| Document::default());
    html! {
        section { h2 { (cell.name()) }
            (list.html())
            figure { figcaption { b { "All CPUs, in order" } " " span.muted { "EL0 is green, EL1 blue, EL2 orange; off the path they are pale; a line leads from the store or interrupt to the CPU that it woke" } } (level_lanes(cell)) }
            figure { figcaption { b { "The path: functions below their callers" } " " span.muted { "the width is the number of " (cell.counted_noun()) } } (icicle(cell)) }
            details { summary { "Every block of the sample: CPU, level, code, address of the block, " (cell.counted_noun()) } pre { (step_lines(cell)) } }
        }
    }
}

/// Returns a line for each step, with the step's blocks.
fn step_lines(cell: &ExplainedCell) -> String {
    let mut text = String::new();
    for step in &cell.steps {
        let _ = write!(text, "{} EL{} {}", step.cpu, step.level, step.image);
        for (place, count) in &step.blocks {
            let _ = write!(text, " {place} {count}");
        }
        text += if step.on_path {
            "\n"
        } else {
            " (off the path)\n"
        };
    }
    text
}

/// Draws a lane for each level of each CPU. The x axis is in instructions of all CPUs together, or in cycles.
fn level_lanes(cell: &ExplainedCell) -> Markup {
    let cpus = cell
        .steps
        .iter()
        .map(|step| step.cpu + 1)
        .max()
        .unwrap_or(1);
    let ends = cell.steps.iter().map(|step| step.at + step.count);
    let total = ends.max().unwrap_or(0);
    let x = |at: u64| 60.0 + (WIDTH - 60.0) * at as f64 / total.max(1) as f64;
    let y = |step: &Step| LANE * (3 * step.cpu + usize::from(step.level.min(2))) as f64;
    let mut shapes = String::new();
    for cpu in 0..cpus {
        for level in 0..3 {
            let base = LANE * (3 * cpu + level) as f64 + 13.0;
            add_text(
                &mut shapes,
                (2.0, base),
                "",
                &format!("CPU {cpu} EL{level}"),
            );
        }
    }
    let mut last: Option<(u64, f64)> = None;
    for step in &cell.steps {
        let at = step.at;
        let opacity = if step.on_path { "1" } else { "0.3" };
        let Step {
            image,
            function,
            count,
            ..
        } = step;
        let hint = format!("{image}: {function} ({count} {})", cell.unit);
        add_rect(
            &mut shapes,
            (x(at), y(step) + 2.0),
            (x(at + step.count) - x(at), LANE - 4.0),
            step.level,
            opacity,
            &hint,
        );
        if let (Some(via), Some((from, row))) = (&step.via, last) {
            let _ = write!(
                shapes,
                r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="currentColor" stroke-width="1.2"><title>{via}</title></line>"#,
                x(from),
                row + LANE / 2.0,
                x(at),
                y(step) + LANE / 2.0
            );
        }
        if step.on_path {
            last = Some((at + step.count, y(step)));
        }
    }
    svg_drawing(
        LANE * (3 * cpus) as f64,
        &format!("{}: CPUs and levels in order", cell.name()),
        &shapes,
    )
}

/// Draws the call stacks of the path in order, merged where neighbouring steps have the same callers.
fn icicle(cell: &ExplainedCell) -> Markup {
    let on_path: Vec<&Step> = cell.steps.iter().filter(|step| step.on_path).collect();
    let x = |at: u64| WIDTH * at as f64 / cell.path.max(1) as f64;
    let mut shapes = String::new();
    // Open frames: name, begin, level.
    let mut open: Vec<(&str, u64, u8)> = Vec::new();
    let (mut at, mut deepest) = (0, 0);
    let close =
        |shapes: &mut String, depth: usize, (name, from, level): (&str, u64, u8), to: u64| {
            let width = x(to) - x(from);
            let top = LANE * depth as f64;
            add_rect(
                shapes,
                (x(from), top + 0.5),
                (width - 0.5, LANE - 1.0),
                level,
                "1",
                &format!("{name}: {} {}", to - from, cell.unit),
            );
            if width > 7.0 * name.len() as f64 + 6.0 {
                let class = format!("within {}", COLOURS[usize::from(level.min(3))]);
                add_text(shapes, (x(from) + 3.0, top + 13.0), &class, name);
            }
        };
    for step in on_path {
        let frames: Vec<(u8, &str)> = step.function_stack().collect();
        let same = open.iter().zip(&frames);
        let same = same.take_while(|(open, frame)| (open.2, open.0) == **frame);
        let same = same.count();
        while open.len() > same {
            let frame = open.pop().unwrap_or_default();
            close(&mut shapes, open.len(), frame, at);
        }
        open.extend(
            frames[same..]
                .iter()
                .map(|(level, name)| (*name, at, *level)),
        );
        deepest = deepest.max(open.len());
        at += step.count;
    }
    while let Some(frame) = open.pop() {
        close(&mut shapes, open.len(), frame, at);
    }
    let about = format!(
        "{}: {} {} by callers",
        cell.name(),
        thousands(cell.path),
        cell.counted_noun()
    );
    svg_drawing(LANE * deepest as f64, &about, &shapes)
}

fn add_rect(
    shapes: &mut String,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
    level: u8,
    opacity: &str,
    hint: &str,
) {
    let colour = COLOURS[usize::from(level.min(3))];
    let hint = html! { (hint) }.into_string();
    let _ = write!(
        shapes,
        r#"<rect class="fill {colour}" fill-opacity="{opacity}" x="{x:.1}" y="{y:.1}" width="{:.1}" height="{height:.1}"><title>{hint}</title></rect>"#,
        width.max(0.3)
    );
}

fn add_text(shapes: &mut String, (x, y): (f64, f64), class: &str, words: &str) {
    let words = html! { (words) }.into_string();
    let _ = write!(
        shapes,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}" font-size="10">{words}</text>"#
    );
}

fn svg_drawing(height: f64, about: &str, shapes: &str) -> Markup {
    html! { div.scroll { (PreEscaped(format!(
        r#"<svg viewBox="0 0 {WIDTH:.0} {height:.0}" style="width:{WIDTH:.0}px;max-width:none" role="img" aria-label="{}">{shapes}</svg>"#,
        html! { (about) }.into_string()
    ))) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::cell_with_steps;

    #[test]
    fn a_difference_has_a_bar_for_each_change_to_its_side() {
        let side = |text: &str| Explained {
            cells: vec![cell_with_steps(text)],
            ..Explained::default()
        };
        let both = [side("a 1 8, b 2 4, c 1 5"), side("a 1 4, b 2 12, c 1 5")];
        let page = difference_page([&both[0], &both[1]], &Document::default());
        // One bar goes to the left and has half the longest length; the other goes to the right and has the longest
        // length.
        for (colour, bar) in [
            ("c-sky", r#"x="155.0" y="19.0" width="75.0""#),
            ("c-orange", r#"x="230.0" y="1.0" width="150.0""#),
        ] {
            let rect = page.split("<rect").find(|rect| rect.contains(bar));
            assert!(rect.is_some_and(|rect| rect.contains(colour)), "{page}");
        }
        assert!(page.contains("b: 4 in A, 12 in B"));
        assert!(!page.contains("c: 5 in A"));
    }
}
