// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats a comparison as text.

use foreign::Quoted;
use results::Cell;
use results::compare::{
    Compared, Comparison, Differs, Figures, Lost, Order, Pair, Quantity, Verdict, order_in_time,
};

use super::side::Side;
use super::{gate, kernels, layer_costs, screen, sentences};
use page::cell_names::CellNames;
use page::document::Document;
use page::grid::Column;
use page::scale::Scale;
use page::table::{Units, distinguishing_columns};

/// Largest number of cells, or of other things of one kind, in a list.
const LISTED: usize = 12;
/// Largest number of characters in a note.
const LONG: usize = 600;

/// Returns the document: a sentence, the table, the other changes, and the cells that could not be compared. `see` is a
/// difference in per cent; the document reports how many runs show it. With `whole`, the table has every cell and every
/// column, else only the cells that differ, in 80 columns.
pub fn document(
    found: &Comparison<'_>,
    differs: &[Differs],
    a: &Side,
    b: &Side,
    see: Option<f64>,
    whole: bool,
) -> Document {
    let scale = Scale::for_results(a.first_results());
    let mut lines = Document::default();
    let kernels = [a, b].map(kernels::kernel_text);
    let cell_names = super::cell_names::names_in_comparison(found);
    lines.extend(kernels::several_differences(a, b));
    lines.push(sentences::verdict_sentence(found, &cell_names));
    lines.extend(sentences::path_sentence(found));
    lines.push(String::new());
    for ((name, of), kernel) in [("A", a), ("B", b)].into_iter().zip(&kernels) {
        lines.push(describe_side(name, of));
        lines.extend(kernel.as_ref().map(|kernel| format!("   {kernel}")));
    }
    let named = kernels.iter().all(Option::is_some) && !whole;
    lines.extend(list_differences(differs, named));
    lines.extend(notes_of_one_side("A", a, b).chain(notes_of_one_side("B", b, a)));
    lines.push(String::new());
    let cells = found.pairs.iter().map(|pair| pair.cell);
    let units = Units::of_cells(cells, a.first_results(), scale);
    let unit = units.common_unit();
    let path = match (found.pairs.iter().any(has_path), whole) {
        (false, _) => "",
        (true, true) => "; in brackets the path, from the waker's store to the woken task",
        (true, false) => "; the path is from the waker's store to the woken task",
    };
    // Without a row, there is no median to explain.
    let has_rows = whole
        || found
            .pairs
            .iter()
            .any(|pair| !screen::differs_nowhere(pair));
    lines.push(match (found.exact, whole) {
        (true, false) if !has_rows => "Exact: a run of each side is enough.".to_owned(),
        (true, _) => format!("Medians in {unit}{path}. Exact: a run of each side is enough."),
        (false, true) => {
            format!("Medians of the runs in {unit}, with the lowest and the highest run{path}.")
        }
        (false, false) => {
            format!("Medians of the runs in {unit}{path}. The lowest and the highest run: --wide.")
        }
    });
    lines.push(String::new());
    match whole {
        true => lines.table(table_columns(found, scale, &units, see)),
        false => lines.append(screen::differing_cells(found, &cell_names, scale, &units)),
    }
    lines.extend(kernels::explain_unlike_cells(found, whole));
    lines.extend(other_changes(found, &cell_names, scale, whole));
    lines.extend(titled_list(
        "not measured in B:",
        missing_cells(&found.lost, &cell_names),
        whole,
    ));
    lines.extend(titled_list(
        "more often in B than it has runs:",
        missing_cells(&found.again, &cell_names),
        whole,
    ));
    lines.extend(cells_only_in_b(&found.added, &cell_names, whole));
    lines.push(String::new());
    let changed = found
        .cells_and_figures()
        .any(|(_, figure)| figure.quantity.decides_verdict() && figure.has_changed());
    lines.extend((changed && unit.contains("instructions")).then(|| {
        match kernels.iter().all(Option::is_some) {
            true => "Which functions changed: `cargo xtask explain` with the options of these runs.",
            false => {
                "Which functions changed: `cargo xtask explain` with the options of A and of one cell, then with those of B; \
                 `cargo xtask explain A B` with the folders that they name."
            }
        }
        .into()
    }));
    lines.explain_rounding();
    lines.extend(explain_method(found, a, b));
    lines.extend(see.and_then(|see| runs_needed_note(found, see)));
    lines
}

/// Lists how the setups differ. Leaves out the properties of kernels that have been `named`.
fn list_differences(differs: &[Differs], named: bool) -> Vec<String> {
    let known = |differs: &&Differs| named && differs.is_of_linux();
    let told = differs.iter().filter(|differs| !known(differs));
    let told = told.map(|differs| {
        let Differs { what, a, b, .. } = differs;
        format!("{what}: A = {a}, B = {b}")
    });
    let rest = match differs {
        [] => "The machines are equal.",
        _ => "Otherwise the machines are equal.",
    };
    told.chain([rest.to_owned()]).collect()
}

/// Describes a side.
fn describe_side(name: &str, side: &Side) -> String {
    let results = side.first_results();
    let parts = [&results.board, &results.machine.cpu, &results.tool];
    let mut parts: Vec<String> = parts.into_iter().cloned().collect();
    parts.retain(|part| !part.is_empty());
    if let trees @ [_, ..] = side.trees().as_slice() {
        parts.push(format!("commit {}", trees.join(" or ")));
    }
    let runs = gate::format_runs(side.runs.len());
    format!("{name}: {runs}, {} ({})", side.shown, parts.join(", "))
}

/// Returns the notes that only one side's runs have.
fn notes_of_one_side(name: &str, side: &Side, other: &Side) -> impl Iterator<Item = String> {
    let own = side
        .notes()
        .filter(|note| other.notes().all(|other| other != *note));
    own.map(move |note| format!("note of {name}: {}", Quoted::up_to(LONG, note)))
}

/// Whether the path of a cell is known on both sides.
fn has_path(pair: &Pair<'_>) -> bool {
    pair.figure(Quantity::Path).is_some()
}

/// Returns the columns of A and B for one quantity of each cell.
fn side_columns(
    found: &Comparison<'_>,
    scale: Scale,
    group: &str,
    of: &dyn Fn(&Pair<'_>) -> Option<Compared>,
) -> Vec<Column> {
    let column = |title: &str, text: &dyn Fn(&Compared, Scale) -> String| {
        let text = |pair: &Pair<'_>| Some(text(&of(pair)?, scale.for_cell(pair.cell)));
        let texts = found.pairs.iter().map(text);
        let texts = texts.map(Option::unwrap_or_default).collect();
        Column::numbers(group, title, texts)
    };
    vec![
        column("A", &|figure, scale| format_figures(&figure.a, scale)),
        column("B", &|figure, scale| format_figures(&figure.b, scale)),
        column("by", &format_difference),
        column("%", &|figure, _| format_percent(figure)),
    ]
}

/// Returns the columns of the median that decides a cell's verdict, with the cell's path in brackets, and the column of
/// the verdict.
fn answer_columns(found: &Comparison<'_>, scale: Scale) -> Vec<Column> {
    let medians = |title, of: &dyn Fn(&Compared) -> &Figures| {
        let text = |pair: &Pair<'_>| {
            let shown = |figure: &Compared| format_figures(of(figure), scale.for_cell(pair.cell));
            let total = pair.deciding_figure().map(shown).unwrap_or_default();
            match pair.figure(Quantity::Path) {
                Some(path) => format!("{total} ({})", shown(path)),
                None => total,
            }
        };
        Column::numbers("", title, found.pairs.iter().map(text).collect())
    };
    let differences = side_columns(found, scale, "", &|pair| pair.deciding_figure().cloned());
    let verdicts = found.pairs.iter().map(cell_verdict).collect();
    let mut columns = vec![
        medians("A", &|figure| &figure.a),
        medians("B", &|figure| &figure.b),
    ];
    columns.extend(differences.into_iter().skip(2));
    columns.push(Column::words("verdict", verdicts));
    columns.into_iter().map(Column::result).collect()
}

/// Returns the columns of the table that lists every cell.
pub fn table_columns(
    found: &Comparison<'_>,
    scale: Scale,
    units: &Units<'_>,
    see: Option<f64>,
) -> Vec<Column> {
    let pairs = &found.pairs;
    let mut columns = distinguishing_columns(pairs.iter().map(|pair| pair.cell).collect());
    columns.extend(units.unit_column());
    columns.extend(answer_columns(found, scale));
    columns.extend(layer_costs::cost_columns(found, scale));
    if pairs.iter().any(has_path) {
        let path = |pair: &Pair<'_>| pair.figure(Quantity::Path).cloned();
        let path = side_columns(found, scale, Quantity::Path.name(), &path);
        columns.extend(path.into_iter().skip(2));
    }
    if let Some(see) = see.filter(|_| !found.exact) {
        let runs = found.runs_to_see(see).into_iter();
        let runs = runs.map(|runs| runs.map_or("?".into(), |runs| runs.to_string()));
        columns.push(Column::numbers(
            "",
            &format!("runs for {see} %"),
            runs.collect(),
        ));
    }
    let is_part = |pair: &Pair<'_>| pair.a.iter().chain(&pair.b).any(|cell| cell.is_part());
    if pairs.iter().any(is_part) {
        let passes = |cells: &[&Cell]| {
            let part = cells.iter().find(|cell| cell.is_part());
            part.map_or("all".into(), |cell| cell.passes_text())
        };
        let texts = pairs
            .iter()
            .map(|pair| format!("A {}, B {}", passes(&pair.a), passes(&pair.b)));
        columns.push(Column::words("passes", texts.collect()));
    }
    if pairs.iter().any(|pair| pair.stage.is_some()) {
        let stage = |(name, by): &(String, f64)| {
            let sides = (by.max(0.0) as u64, (-by).max(0.0) as u64);
            format!(
                "{name} {}",
                scale.show_difference((sides.0, None), (sides.1, None))
            )
        };
        let stages = pairs.iter().map(|pair| pair.stage.as_ref().map(stage));
        let stages = stages.map(Option::unwrap_or_default);
        columns.push(Column::words("mostly in stage", stages.collect()));
    }
    columns
}

/// Formats the median of a side's runs, with the lowest and the highest if they differ.
fn format_figures(figures: &Figures, scale: Scale) -> String {
    let shown = |figure: f64| scale.show_figure((figure as u64, figures.bounds(figure)));
    let (low, high) = (figures.lowest(), figures.highest());
    match low == high {
        true => shown(low),
        false => format!(
            "{} [{}, {}]",
            shown(figures.median()),
            shown(low),
            shown(high)
        ),
    }
}

/// Formats a figure of a side, which is a sample's value or a rate.
pub fn format_figure(figure: &Compared, of: &Figures, scale: Scale) -> String {
    match figure.quantity {
        quantity if !quantity.is_rate() => scale.show_figure(of.rounded_median()),
        Quantity::Mean => format!("{:.2}", of.median() * scale.convert_value(1)),
        _ => format!("{}", of.median()),
    }
}

pub fn format_difference(figure: &Compared, scale: Scale) -> String {
    match scale.show_difference(figure.b.rounded_median(), figure.a.rounded_median()) {
        none if none == "0" => "·".into(),
        by => by,
    }
}

pub fn format_percent(figure: &Compared) -> String {
    match figure.percent_difference() {
        0.0 => "·".into(),
        percent if percent.is_finite() => format!("{percent:+.1}"),
        _ => "from 0".into(),
    }
}

/// Returns the verdict on a cell, in words.
pub fn cell_verdict(pair: &Pair<'_>) -> String {
    let star = if pair.one_sided_properties().is_empty() {
        ""
    } else {
        " *"
    };
    match (pair.deciding_figure(), pair.verdict()) {
        (Some(total), _) => verdict_text(total) + star,
        (None, Verdict::FewSamples) => "too few samples".into(),
        (None, _) => "not measured".into(),
    }
}

pub fn verdict_text(figure: &Compared) -> String {
    let p_value = |p: f64| match p {
        ..0.001 => " (p below 0.001)".into(),
        p => format!(" (p {p:.3})"),
    };
    let p_value = figure.p_value.map_or(String::new(), p_value);
    match (figure.verdict, figure.least_detectable_percent()) {
        (Verdict::Better, _) => format!("better{p_value}"),
        (Verdict::Worse, _) => format!("worse{p_value}"),
        (Verdict::NoDifference, Some(0.0)) => "no difference, every run is the same".into(),
        (Verdict::NoDifference, Some(sees)) => {
            format!("no difference seen (would have seen {sees:.1} %)")
        }
        (Verdict::NoDifference, None) => "no difference".into(),
        (Verdict::TooFew, _) => "too few runs".into(),
        (Verdict::FewSamples, _) => "too few samples".into(),
        (Verdict::Unknown, _) => "not measured".into(),
    }
}

/// Lists changes of quantities that do not decide a cell's verdict. Unless `whole`, lists only cells that the table
/// lacks.
fn other_changes(
    found: &Comparison<'_>,
    names: &CellNames,
    scale: Scale,
    whole: bool,
) -> Vec<String> {
    let beside = |(_, figure): &(&Pair<'_>, &Compared)| {
        !figure.quantity.decides_verdict() && figure.has_changed()
    };
    let in_table = |pair: &Pair<'_>| !screen::differs_nowhere(pair);
    let told = found
        .cells_and_figures()
        .filter(beside)
        .filter(|(pair, _)| whole || !in_table(pair));
    let told = told.map(|(pair, figure)| {
        let values = [&figure.a, &figure.b].map(|side| self::format_figure(figure, side, scale));
        let per = match figure.quantity {
            Quantity::Mean => "",
            quantity if quantity.is_rate() => " per sample",
            _ => "",
        };
        let what = format!("{}{per}", figure.quantity.name());
        let (percent, verdict) = (format_percent(figure), verdict_text(figure));
        let sign = if figure.percent_difference().is_finite() {
            " %"
        } else {
            ""
        };
        let cell = names.name(pair.cell);
        format!(
            "  {cell}: {what} {} to {} ({percent}{sign}), {verdict}",
            values[0], values[1]
        )
    });
    titled_list("changed besides:", told.collect(), whole)
}

/// Lists cells that do not occur exactly once in each run of B. Cells with the same reason share a line.
fn missing_cells(cells: &[Lost<'_>], names: &CellNames) -> Vec<String> {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for lost in cells {
        let has = match (lost.has, lost.of) {
            (0, _) => String::new(),
            (has, of) if has < of => format!(": {has} of {of} runs have it"),
            (has, of) => format!(": {has} times in {}", gate::format_runs(of)),
        };
        let name = format!("{}{has}", names.name(lost.cell));
        let why = lost.why.unwrap_or_default();
        match told
            .iter_mut()
            .find(|(known, _)| !why.is_empty() && known == why)
        {
            Some((_, names)) => names.push(name),
            None => told.push((why.into(), vec![name])),
        }
    }
    let told = told.into_iter().map(|(why, names)| match why.as_str() {
        "" => format!("  {}", names.concat()),
        why => format!("  {} (skipped: {why})", names.join("; ")),
    });
    told.collect()
}

/// Lists the cells that only B has.
fn cells_only_in_b(cells: &[&Cell], names: &CellNames, whole: bool) -> Vec<String> {
    let told = cells.iter().map(|cell| format!("  {}", names.name(cell)));
    titled_list("only in B:", told.collect(), whole)
}

fn titled_list(title: &str, all: Vec<String>, whole: bool) -> Vec<String> {
    if all.is_empty() {
        return Vec::new();
    }
    let most = if whole { all.len() } else { LISTED };
    let more = all.len().saturating_sub(most);
    let mut lines = vec![String::new(), title.into()];
    lines.extend(all.into_iter().take(most));
    lines.extend((more > 0).then(|| format!("  and {more} more: --wide")));
    lines
}

/// Describes the method of the verdicts, and its assumptions.
fn explain_method(found: &Comparison<'_>, a: &Side, b: &Side) -> Vec<String> {
    if found.exact {
        return Vec::new();
    }
    let mut lines: Vec<String> = gate::too_few_runs(found)
        .map(|why| format!("{}{}.", why[..1].to_uppercase(), &why[1..]))
        .into_iter()
        .collect();
    if found
        .cells_and_figures()
        .any(|(_, figure)| figure.p_value.is_some())
    {
        lines.push(format!(
            "Test: exact rank sum test of runs, Holm's procedure over {} figures; if nothing differs, the probability \
             that anything is called better or worse is {} % at most, so p is adjusted.{}",
            found.tests,
            found.level * 100.0,
            match found.pairs.iter().any(|pair| pair.deciding_figure().is_some_and(names_visible_change)) {
                true => " A difference that would have been seen is found with a probability of 80 %.",
                false => "",
            }
        ));
    }
    match order_in_time(&a.runs, &b.runs) {
        _ if a.runs.len() + b.runs.len() < 3 => {}
        Order::Mixed => {}
        Order::Apart => lines.push(
            "The runs of one side were made before those of the other: if the machine was busier meanwhile, that shows \
             as a difference. Make them by turns (docs/significance.md)."
                .into(),
        ),
        Order::Unknown => lines.push(
            "It is not known when the runs were made. The test assumes that they were made by turns (docs/significance.md).".into(),
        ),
    }
    lines
}

/// Whether the verdict says which difference would have been seen.
fn names_visible_change(figure: &Compared) -> bool {
    figure.verdict == Verdict::NoDifference
        && figure
            .least_detectable_percent()
            .is_some_and(|sees| sees > 0.0)
}

/// Reports how many runs of each side would show a difference.
fn runs_needed_note(found: &Comparison<'_>, see: f64) -> Option<String> {
    if found.exact {
        return None;
    }
    let runs = found.runs_to_see(see);
    let all: Option<Vec<usize>> = runs.iter().copied().collect();
    Some(match all.and_then(|all| all.into_iter().max()) {
        Some(most) => format!(
            "To see {see} % in each cell takes {most} runs of each side, if they are spread as these are: --repeat {most}."
        ),
        None => format!(
            "To see {see} % takes more than {} runs of each side where the table has `?`, or their spread is not known yet.",
            significance::LADDER[significance::LADDER.len() - 1]
        ),
    })
}
