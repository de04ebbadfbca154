// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of one figure over several runs. The names of the runs are along the axis.

use crate::axis::Axis;
use crate::frame::draw_left_axis;
use crate::svg::{Anchor, Canvas, Drawing, WIDTH, format_number, text_width};

const LEFT: f64 = 48.0;
const RIGHT: f64 = WIDTH - 30.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 128.0;
/// Minimum height of the axis above and below the values, as a share of the largest value, so that a change of one per
/// cent looks small.
const ROOM: f64 = 0.05;

/// A figure over some of the runs.
#[derive(Debug)]
pub struct Trend {
    /// Indices of the runs, and their values in the shown unit.
    pub points: Vec<(usize, f64)>,
}

impl Trend {
    /// Draws the figure over the runs that `names` lists.
    pub fn draw_trend(&self, names: &[String], unit: &str, about: &str) -> Drawing {
        let values = self.points.iter().map(|point| point.1);
        let most = values.clone().fold(0.0, f64::max);
        let room = [1.0 - ROOM, 1.0 + ROOM].map(|part| most * part);
        let y = Axis::around_values(values.chain(room), BOTTOM, TOP);
        let mut canvas = Canvas::new(BOTTOM + 20.0);
        let ticks: Vec<(f64, String)> = y
            .ticks()
            .into_iter()
            .map(|(value, text)| (y.position_of(value), text))
            .collect();
        draw_left_axis(&mut canvas, &ticks, (LEFT, RIGHT));
        let unit = format!("{unit}{}", y.scale_note());
        canvas.draw_text((2.0, 9.0), Anchor::Start, "tick", &unit);
        let place = |run: usize| LEFT + 12.0 + run as f64 * run_distance(names.len());
        write_names(&mut canvas, names, &place);
        let places = self
            .points
            .iter()
            .map(|(run, value)| (place(*run), y.position_of(*value)));
        let places: Vec<(f64, f64)> = places.collect();
        canvas.draw_curve(&places, "line c-blue", about);
        let (mut last, mut free) = (None, 0.0);
        for ((x, at), (run, value)) in places.iter().zip(&self.points) {
            let hint = format!("{}: {}", names[*run], format_number(*value));
            canvas.draw_dot((*x, *at), "fill c-blue", &hint);
            let half = text_width(&format_number(*value)) / 2.0;
            if last != Some(*value) && x - half > free {
                canvas.draw_text(
                    (*x, at - 6.0),
                    Anchor::Middle,
                    "value",
                    &format_number(*value),
                );
                free = x + half;
            }
            last = Some(*value);
        }
        canvas.into_drawing(about)
    }
}

fn run_distance(runs: usize) -> f64 {
    (RIGHT - LEFT - 24.0) / (runs.max(2) - 1) as f64
}

/// Writes as many names as fit, including the last name.
fn write_names(canvas: &mut Canvas, names: &[String], place: &dyn Fn(usize) -> f64) {
    let mut free = f64::INFINITY;
    for (run, name) in names.iter().enumerate().rev() {
        let half = text_width(name) / 2.0;
        let x = place(run).clamp(half.min(WIDTH / 2.0), (WIDTH - 2.0 - half).max(WIDTH / 2.0));
        if x + half < free - 4.0 {
            canvas.draw_text((x, BOTTOM + 15.0), Anchor::Middle, "tick", name);
            free = x - half;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn runs_are_named_and_a_change_of_one_per_cent_is_small() {
        let trend = Trend {
            points: vec![(0, 100.0), (2, 101.0)],
        };
        let text = trend
            .draw_trend(&names(&["1f2e3d4c", "middle", "0a1b2c3d"]), "ns", "")
            .body;
        for name in ["1f2e3d4c", "middle", "0a1b2c3d"] {
            assert!(text.contains(&format!(">{name}</text>")), "{text}");
        }
        let heights: Vec<f64> = text
            .split("cy=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(
            (heights[0] - heights[1]).abs() < (BOTTOM - TOP) / 5.0,
            "{heights:?}"
        );
    }

    #[test]
    fn names_without_room_are_left_out_but_the_last() {
        let all: Vec<String> = (0..60).map(|run| format!("run-number-{run}")).collect();
        let trend = Trend {
            points: (0..60).map(|run| (run, run as f64)).collect(),
        };
        let text = trend.draw_trend(&all, "ns", "").body;
        assert!(text.contains(">run-number-59</text>"));
        let names = text.matches("</text>").count();
        assert!(names < 40, "{names} in {text}");
    }
}
