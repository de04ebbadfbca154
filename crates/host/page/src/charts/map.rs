// SPDX-License-Identifier: MIT OR Apache-2.0
//! A map: a matrix with the median for each pair of CPUs. Each row is a sender.

use crate::cells::Panel;
use crate::curves::value_range;
use crate::frame::{Entry, Figure, Item, Section, new_figure, new_section};
use crate::pairs::{self, Group};
use crate::scale::shown_median;
use crate::svg::{Anchor, Canvas, WIDTH, format_number, text_width};

/// Shades, from the nearest to the farthest.
const SHADES: usize = 7;
/// The darkest shade shows at least this multiple of the nearest value. If all values are closer together, all have one
/// light shade.
const FULL: f64 = 2.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 26.0;
/// Maximum number of labels on an axis.
const LABELS: usize = 16;

/// Returns the section with a map for each kind of cell that has several pairs.
pub fn map_section(panels: &[Panel<'_>]) -> Section {
    let drawn = panels.iter().flat_map(|panel| {
        let groups = pairs::group_by_kind(panel.cells.iter().copied());
        let maps: Vec<Item> = groups
            .iter()
            .flat_map(|group| {
                let left_out = pairs::left_out_note(group).map(Item::About);
                let map = draw_map(panel, group).map(Item::Figure);
                map.into_iter().chain(left_out)
            })
            .collect();
        maps
    });
    let counted = panels.iter().any(|panel| panel.run.results.unit == "insns");
    let of_host = panels.iter().any(|panel| panel.scale.of_host);
    let caveat = match (counted, of_host) {
        (true, _) => {
            " Instructions are the same between any two CPUs: this machine models no distance."
        }
        (_, true) => " These are threads of the emulator: the map says nothing about a machine.",
        _ => "",
    };
    new_section(
        "pairs",
        "Between which CPUs",
        &format!(
            "Median of each pair: a row for each sender, a column for each receiver. What is blank was not measured, or too seldom; a \
                      round trip is measured once for both directions.{caveat}"
        ),
        drawn.collect(),
    )
}

fn draw_map(panel: &Panel<'_>, group: &Group<'_>) -> Option<Figure> {
    let medians = group.cells.iter().filter_map(|cell| {
        let value = panel.shown_value(shown_median(cell)?);
        Some((cell.what.pair.cpus(), value, cell.stats?.count))
    });
    let medians: Vec<([usize; 2], f64, u64)> = medians.collect();
    let cpus = 1 + medians.iter().flat_map(|(pair, ..)| *pair).max()?;
    let [low, high] = value_range(medians.iter().map(|(_, value, _)| *value));
    let shades = Shades {
        low,
        full: high.max(low * FULL),
    };
    let side = (WIDTH - LEFT - 2.0) / cpus as f64;
    let named = text_width(&format_number(high)) + 4.0 <= side;
    let mut canvas = Canvas::new(TOP + side * cpus as f64 + 4.0);
    canvas.draw_text((LEFT, 9.0), Anchor::Start, "tick", "receiver →");
    canvas.draw_text((LEFT - 4.0, 9.0), Anchor::End, "tick", "sender ↓");
    for cpu in (0..cpus).step_by(cpus.div_ceil(LABELS)) {
        let at = (cpu as f64 + 0.5) * side;
        let text = cpu.to_string();
        canvas.draw_text((LEFT + at, TOP - 4.0), Anchor::Middle, "tick", &text);
        canvas.draw_text((LEFT - 4.0, TOP + at + 3.5), Anchor::End, "tick", &text);
    }
    for ([from, to], value, count) in &medians {
        let (x, y) = (LEFT + *to as f64 * side, TOP + *from as f64 * side);
        let shade = shades.shade_index(*value);
        let hint = format!("{from} to {to}: {}, n = {count}", format_number(*value));
        canvas.draw_rect((x, y), (side, side), &format!("heat h{shade}"), &hint);
        if named {
            let class = if shade > SHADES / 2 {
                "on-heat"
            } else {
                "named"
            };
            let place = (x + side / 2.0, y + side / 2.0 + 3.5);
            canvas.draw_text(place, Anchor::Middle, class, &format_number(*value));
        }
    }
    let all = group.cells[0]
        .what
        .pairs(panel.run.results.machine.cpus as usize);
    let note = format!(
        "{}, median of {} of {} pairs, {} to {}; the full colour is {}",
        panel.value_label(),
        medians.len(),
        all.count().max(medians.len() as u64),
        format_number(low),
        format_number(high),
        format_number(shades.full)
    );
    let about = format!("{}: medians by sender and receiver", group.title);
    let values = medians.iter().map(|(_, value, _)| *value);
    Some(new_figure(
        &group.title,
        &note,
        &shades.legend(values, panel.unit()),
        canvas.into_drawing(&about),
    ))
}

/// Shades of values from `low` to `full`.
struct Shades {
    low: f64,
    full: f64,
}

impl Shades {
    fn shade_index(&self, value: f64) -> usize {
        if self.full <= self.low {
            return 0;
        }
        let part = (value - self.low) / (self.full - self.low);
        (part * SHADES as f64).min(SHADES as f64 - 1.0) as usize
    }

    /// Returns a legend entry for each shade that occurs among the values.
    fn legend(&self, values: impl Iterator<Item = f64> + Clone, unit: &str) -> Vec<Entry> {
        let entry = |shade: usize| {
            let mut here = values
                .clone()
                .filter(|value| self.shade_index(*value) == shade)
                .peekable();
            here.peek()?;
            let [low, high] = value_range(here);
            let text = match format_number(low) == format_number(high) {
                true => format_number(low),
                false => format!("{} to {}", format_number(low), format_number(high)),
            };
            Some((format!("heat h{shade}"), text, unit.into()))
        };
        (0..SHADES).filter_map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_per_cent_has_no_full_colour_and_twice_as_far_has() {
        let near = Shades {
            low: 17_312.0,
            full: f64::max(17_440.0, 17_312.0 * FULL),
        };
        assert_eq!(
            (near.shade_index(17_312.0), near.shade_index(17_440.0)),
            (0, 0)
        );
        let far = Shades {
            low: 100.0,
            full: 300.0,
        };
        assert_eq!(
            (far.shade_index(100.0), far.shade_index(300.0)),
            (0, SHADES - 1)
        );
        // The legend has only shades that occur in the data.
        let legend = far.legend([100.0, 300.0].into_iter(), "ns");
        assert_eq!(legend.len(), 2);
    }
}
