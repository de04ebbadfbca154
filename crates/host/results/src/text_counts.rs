// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins repeated texts. Each text appears once, with the number of its occurrences and with the boots that have it.

use std::collections::BTreeMap;

/// Texts, in the order of their first occurrence.
#[derive(Debug, Default)]
pub struct Repeated {
    texts: Vec<(String, Times)>,
    places: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Times {
    count: u64,
    /// Numbers of the first and of the last boot with the text, counted from 1. 0 if unknown.
    boots: (usize, usize),
}

impl Repeated {
    /// Adds a text from the boot with number `boot`, which is counted from 1, or 0 if unknown.
    pub fn add_text(&mut self, boot: usize, text: String) {
        if let Some(&place) = self.places.get(&text) {
            let times = &mut self.texts[place].1;
            times.count += 1;
            times.boots.1 = boot;
            return;
        }
        self.places.insert(text.clone(), self.texts.len());
        let boots = (boot, boot);
        self.texts.push((text, Times { count: 1, boots }));
    }

    /// Returns each text once, followed by its number of occurrences and its boots.
    pub fn into_texts(self) -> impl Iterator<Item = String> {
        self.texts
            .into_iter()
            .map(|(text, times)| match times.occurrences_text() {
                Some(times) => format!("{text} ({times})"),
                None => text,
            })
    }
}

impl Times {
    fn occurrences_text(&self) -> Option<String> {
        match (self.count, self.boots) {
            (1, (0, _)) => None,
            (1, (boot, _)) => Some(format!("boot {boot}")),
            (count, (0, _)) => Some(format!("{count} times")),
            (count, (first, last)) if first == last => Some(format!("{count} times, boot {first}")),
            (count, (first, last)) => Some(format!("{count} times, boots {first} to {last}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(texts: &[(usize, &str)]) -> Vec<String> {
        let mut repeated = Repeated::default();
        for &(boot, text) in texts {
            repeated.add_text(boot, text.into());
        }
        repeated.into_texts().collect()
    }

    #[test]
    fn what_comes_again_is_told_once() {
        let all: Vec<_> = (1..=300).map(|boot| (boot, "lost")).collect();
        assert_eq!(told(&all), ["lost (300 times, boots 1 to 300)"]);
        let some = [(2, "b"), (2, "a"), (2, "b"), (3, "c")];
        assert_eq!(
            told(&some),
            ["b (2 times, boot 2)", "a (boot 2)", "c (boot 3)"]
        );
        assert_eq!(told(&[(0, "a"), (0, "b"), (0, "a")]), ["a (2 times)", "b"]);
    }
}
