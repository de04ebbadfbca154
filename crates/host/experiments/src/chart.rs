// SPDX-License-Identifier: MIT OR Apache-2.0
//! The charts of an experiment. Charts are drawn from the experiment's tables, so both show the same figures.

use maud::Markup;
use page::{Bar, Bars, Line, Shared};
use serde::Serialize;

use super::outcome::Table;

/// A chart on the page; the terminal has none.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Chart {
    /// Lines over a quantity, which is the x axis.
    Curves {
        /// Heading: the measured quantity.
        title: String,
        /// The quantity of the x axis, with its unit.
        along: &'static str,
        /// The unit of the lines' values.
        unit: String,
        lines: Vec<Curve>,
    },
    /// Bars of several series, in groups.
    Bars {
        /// Heading: the measured quantity.
        title: String,
        /// The unit of the bars' values.
        unit: String,
        /// Names of the series. The name of a published series states that it is published.
        series: Vec<String>,
        /// Groups of bars: the name of the group, and a value for each series that has one.
        groups: Vec<(String, Vec<Option<f64>>)>,
    },
}

/// A line of a chart.
#[derive(Serialize)]
pub struct Curve {
    /// Name of the series.
    pub name: String,
    /// The classes of its colour and pattern in the style sheet.
    #[serde(skip)]
    pub class: &'static str,
    /// The series' points, in the order of the x axis.
    pub points: Vec<(f64, f64)>,
}

/// A column of a table that becomes a series of a chart: its index in the table, and its name in the chart.
#[derive(Clone, Copy)]
pub enum Series {
    /// A series of ours.
    Here(usize, &'static str),
    /// A published series of the source.
    Published(usize, &'static str),
}

/// Colours of our series.
const COLOURS: [&str; 6] = [
    "c-blue", "c-orange", "c-green", "c-red", "c-purple", "c-sky",
];
/// Colours of our lines.
const LINES: [&str; 6] = [
    "line c-blue",
    "line c-orange",
    "line c-green",
    "line c-red",
    "line c-purple",
    "line c-sky",
];

impl Series {
    /// Returns the column, marked as a published series of the source.
    pub const fn as_published(self) -> Self {
        match self {
            Self::Here(column, name) | Self::Published(column, name) => {
                Self::Published(column, name)
            }
        }
    }

    const fn column(self) -> usize {
        match self {
            Self::Here(column, _) | Self::Published(column, _) => column,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Here(_, name) => name.into(),
            Self::Published(_, name) => format!("published: {name}"),
        }
    }

    /// Returns the style class of series number `number` if it is drawn as a line.
    const fn line_class(self, number: usize) -> &'static str {
        match self {
            Self::Here(..) => LINES[number % LINES.len()],
            Self::Published(..) => "line c-grey dash",
        }
    }
}

impl Chart {
    /// Draws the columns of `table` as lines over the names of its rows, which are numbers.
    pub fn curves_over_rows(
        table: &Table,
        title: &str,
        along: &'static str,
        unit: &str,
        series: &[Series],
    ) -> Self {
        let lines = series.iter().enumerate().map(|(number, &one)| Curve {
            name: one.name(),
            class: one.line_class(number),
            points: table
                .rows
                .iter()
                .filter_map(|(name, texts)| {
                    Some((leading_number(name)?, leading_number(&texts[one.column()])?))
                })
                .collect(),
        });
        Self::Curves {
            title: title.into(),
            along,
            unit: unit.into(),
            lines: lines.collect(),
        }
    }

    /// Draws the rows of `table` as lines over the titles of its first `columns` columns, which begin with numbers.
    pub fn curves_over_columns(
        table: &Table,
        title: &str,
        along: &'static str,
        unit: &str,
        columns: usize,
    ) -> Self {
        let lines = table
            .rows
            .iter()
            .enumerate()
            .map(|(number, (name, texts))| Curve {
                name: name.clone(),
                class: LINES[number % LINES.len()],
                points: table.columns[..columns]
                    .iter()
                    .zip(texts)
                    .filter_map(|(column, text)| {
                        Some((leading_number(column)?, leading_number(text)?))
                    })
                    .collect(),
            });
        Self::Curves {
            title: title.into(),
            along,
            unit: unit.into(),
            lines: lines.collect(),
        }
    }

    /// Draws the columns of `table` as grouped bars, with a group for each row whose name `is` accepts.
    pub fn bars(
        table: &Table,
        title: &str,
        unit: &str,
        series: &[Series],
        is: impl Fn(&str) -> bool,
    ) -> Self {
        let groups = table.rows.iter().filter(|(name, _)| is(name));
        let groups = groups.map(|(name, texts)| {
            let values = series
                .iter()
                .map(|one| leading_number(&texts[one.column()]));
            (name.clone(), values.collect())
        });
        Self::Bars {
            title: title.into(),
            unit: unit.into(),
            series: series.iter().map(|&one| one.name()).collect(),
            groups: groups.collect(),
        }
    }

    /// Returns the chart's lines; bars have none.
    #[cfg(test)]
    pub fn lines(&self) -> &[Curve] {
        match self {
            Self::Curves { lines, .. } => lines,
            Self::Bars { .. } => &[],
        }
    }

    /// Draws the chart for the page. Bars share a scale with all bars of the same unit in `all`, the charts of the
    /// experiment.
    pub fn draw(&self, all: &[Self]) -> Markup {
        match self {
            Self::Curves {
                title,
                along,
                unit,
                lines,
            } => {
                let lines = lines.iter().map(|curve| Line {
                    class: curve.class.into(),
                    name: curve.name.clone(),
                    points: curve.points.clone(),
                });
                page::chart_of(title, &lines.collect::<Vec<Line>>(), along, unit)
            }
            Self::Bars {
                title,
                unit,
                series,
                ..
            } => {
                let legend = series.iter().enumerate();
                let legend: Vec<_> = legend
                    .map(|(number, name)| {
                        (
                            format!("fill {}", colour(number, name)),
                            name.clone(),
                            String::new(),
                        )
                    })
                    .collect();
                let alike = all.iter().filter(|chart| chart.unit() == unit);
                let alike: Vec<Bars> = alike.flat_map(Self::groups).collect();
                let shared = Shared::of(alike.iter());
                page::bars_of(title, &legend, &self.groups(), unit, shared)
            }
        }
    }
}

impl Chart {
    fn unit(&self) -> &str {
        let (Self::Curves { unit, .. } | Self::Bars { unit, .. }) = self;
        unit
    }

    /// Returns the chart's bars; curves have none.
    fn groups(&self) -> Vec<Bars> {
        let Self::Bars { series, groups, .. } = self else {
            return Vec::new();
        };
        let group = |(name, values): &(String, Vec<Option<f64>>)| Bars {
            label: (name.clone(), String::new()),
            bars: bars(series, values),
        };
        groups.iter().map(group).collect()
    }
}

fn bars(series: &[String], values: &[Option<f64>]) -> Vec<Bar> {
    let each = series.iter().zip(values).enumerate();
    let each = each.filter_map(|(number, (name, value))| {
        let value = (*value)?;
        Some(Bar {
            class: colour(number, name).into(),
            value,
            text: page::shown(value),
            hint: format!("{name}: {value}"),
        })
    });
    each.collect()
}

fn colour(number: usize, name: &str) -> &'static str {
    match name.starts_with("published") {
        true => "c-grey",
        false => COLOURS[number % COLOURS.len()],
    }
}

/// Parses the number at the beginning of a text, with its sign.
fn leading_number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.,".contains(c)));
    let number = text[..end.unwrap_or(text.len())].replace(',', "");
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("rates", &["10 us", "change", "QPS"]);
        table.add_row("0", vec!["5".into(), "-".into(), "5.87".into()]);
        table.add_row("100", vec!["6".into(), "+20.5 %".into(), "6.06".into()]);
        table
    }

    /// Returns the widths of a chart's bars.
    fn widths(drawn: &str) -> Vec<&str> {
        fn width(part: &str) -> Option<&str> {
            let (of_bar, _) = part.split_once('>')?;
            let (_, rest) = of_bar.split_once("width=\"")?;
            let (width, _) = rest.split_once('"')?;
            of_bar.contains("fill c-").then_some(width)
        }
        // The first rectangle is the square in the legend.
        let each = drawn.split("<rect ").skip(1).filter_map(width);
        each.skip(1).collect()
    }

    #[test]
    fn bars_of_one_unit_have_one_scale_and_others_their_own() {
        let chart = |title: &str, unit: &str, values: [&str; 2]| {
            let mut table = Table::new(title, &["here"]);
            for (name, value) in ["a", "b"].into_iter().zip(values) {
                table.add_row(name, vec![value.into()]);
            }
            Chart::bars(&table, title, unit, &[Series::Here(0, "here")], |_| true)
        };
        let charts = [
            chart("light", "%", ["10", "20"]),
            chart("heavy, with a long name of its row", "%", ["20", "100"]),
            chart("other", "us", ["10", "20"]),
        ];
        let drawn = |chart: &Chart, all: &[Chart]| chart.draw(all).into_string();
        let [light, heavy, other] = [0, 1, 2].map(|at| drawn(&charts[at], &charts));
        assert_eq!(widths(&light).len(), 2, "{light}");
        // A bar for 20 % has the same length in both charts.
        assert_eq!(widths(&light)[1], widths(&heavy)[0]);
        // A single chart is scaled to its full width, and so are charts of different units.
        let alone = drawn(&charts[0], &charts[..1]);
        assert_ne!(widths(&alone)[1], widths(&light)[1]);
        assert_eq!(widths(&alone), widths(&other));
    }

    #[test]
    fn charts_have_the_numbers_of_their_table() {
        let series = [Series::Here(1, "change"), Series::Published(2, "QPS")];
        let Chart::Curves { lines, .. } =
            Chart::curves_over_rows(&table(), "t", "limit, us", "%", &series)
        else {
            panic!("curves were asked for");
        };
        assert_eq!(lines[0].points, [(100.0, 20.5)]);
        assert_eq!(lines[1].points, [(0.0, 5.87), (100.0, 6.06)]);
        assert_eq!(
            (lines[1].name.as_str(), lines[1].class),
            ("published: QPS", "line c-grey dash")
        );
        let bars = Chart::bars(&table(), "t", "%", &series, |name| name != "0");
        let Chart::Bars { groups, .. } = &bars else {
            panic!("bars were asked for");
        };
        assert_eq!(
            groups[..],
            [("100".to_owned(), vec![Some(20.5), Some(6.06)])]
        );
        let page = bars.draw(std::slice::from_ref(&bars)).into_string();
        for part in ["published: QPS", "c-grey", "c-blue", "20.5"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        let Chart::Curves { lines, .. } =
            Chart::curves_over_columns(&table(), "t", "gap, us", "insns", 1)
        else {
            panic!("curves were asked for");
        };
        assert_eq!(
            (lines[1].name.as_str(), &lines[1].points[..]),
            ("100", &[(10.0, 6.0)][..])
        );
    }
}
