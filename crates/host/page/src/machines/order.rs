// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines whether two machines put the same cells into the same order.
//!
//! A pair of cells is discordant if the machines disagree on which of the two cells is cheaper. Pairs whose cells cost
//! the same on either machine do not count. The number of discordant pairs is the distance of M. G. Kendall (A New
//! Measure of Rank Correlation, Biometrika 30, 1938).

use std::cmp::Ordering;

/// Maximum number of cells that are named.
const NAMED: usize = 3;

/// The medians of the same cells on two machines, for a comparison of their orders.
#[derive(Debug)]
pub struct Order {
    medians: [Vec<u64>; 2],
    /// For each cell, the number of discordant pairs with this cell.
    swaps: Vec<usize>,
}

impl Order {
    /// Compares two machines' orders of cells by their medians, `a` and `b`. `None` if there are fewer than two cells.
    pub fn compare(a: Vec<u64>, b: Vec<u64>) -> Option<Self> {
        let cells = 0..a.len().min(b.len());
        let swapped = |&(i, j): &(usize, usize)| {
            let (here, there) = (a[i].cmp(&a[j]), b[i].cmp(&b[j]));
            here != Ordering::Equal && here == there.reverse()
        };
        let others = |i| cells.clone().map(move |j| (i, j));
        let swaps = cells.clone().map(|i| others(i).filter(swapped).count());
        let swaps: Vec<usize> = swaps.collect();
        (swaps.len() > 1).then_some(Self {
            medians: [a, b],
            swaps,
        })
    }

    /// Returns the position of a cell in a machine's order, counted from 1, cheapest first. Equal cells have the same
    /// position.
    fn place_of_cell(&self, machine: usize, cell: usize) -> usize {
        let medians = &self.medians[machine];
        let cheaper = medians.iter().filter(|other| **other < medians[cell]);
        cheaper.count() + 1
    }

    /// Returns the sentence. `names` has the names of the cells, and `by` has the units of the machines.
    pub fn order_sentence(&self, names: &[String], by: &[String; 2]) -> String {
        let [here, there] = by;
        let cells = self.swaps.len();
        let swapped = self.swaps.iter().sum::<usize>() / 2;
        if swapped == 0 {
            return format!("by {there} the {cells} cells are in the same order as by {here}.");
        }
        let pairs = cells * (cells - 1) / 2;
        let mut most: Vec<usize> = (0..cells).filter(|&cell| self.swaps[cell] > 0).collect();
        most.sort_by_key(|&cell| usize::MAX - self.swaps[cell]);
        let told = most.iter().take(NAMED).map(|&cell| {
            let places = [1, 0].map(|machine| format_ordinal(self.place_of_cell(machine, cell)));
            format!("{} is {}, not {}", names[cell], places[0], places[1])
        });
        let told = told.collect::<Vec<_>>().join("; ");
        let more = match most.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        format!(
            "by {there}, {swapped} of {pairs} pairs of cells are in another order than by {here}, \
             cheapest first: {told}{more}."
        )
    }
}

/// Formats an ordinal number: 1st, 2nd, 11th.
fn format_ordinal(number: usize) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(a: &[u64], b: &[u64]) -> Option<String> {
        let names = ["w", "x", "y", "z", "v"].map(String::from);
        let by = ["insns (A)", "cycles (B)"].map(String::from);
        Some(Order::compare(a.to_vec(), b.to_vec())?.order_sentence(&names, &by))
    }

    #[test]
    fn the_same_order_is_said_to_be_the_same() {
        let same = "by cycles (B) the 3 cells are in the same order as by insns (A).";
        assert_eq!(sentence(&[1, 5, 9], &[100, 101, 999]).unwrap(), same);
        // A tie on one machine is not a different order.
        assert_eq!(sentence(&[5, 5, 9], &[101, 100, 101]).unwrap(), same);
        assert_eq!(sentence(&[1], &[1]), None);
        assert_eq!(sentence(&[], &[]), None);
    }

    #[test]
    fn cells_that_change_places_are_named_by_how_many_they_pass() {
        assert_eq!(
            sentence(&[10, 20, 30, 40], &[9000, 2000, 3000, 4000]).unwrap(),
            "by cycles (B), 3 of 6 pairs of cells are in another order than by insns (A), \
             cheapest first: w is 4th, not 1st; x is 1st, not 2nd; y is 2nd, not 3rd; and 1 more."
        );
    }

    #[test]
    fn numbers_in_an_order() {
        let all = [1, 2, 3, 4, 11, 12, 13, 21, 102, 112].map(format_ordinal);
        let said = [
            "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "112th",
        ];
        assert_eq!(all, said);
    }
}
