// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines that a path misses with nothing in caches: how many, which, and whether the path is to have them.
//!
//! What a core asks its second cache for is what its first ones missed ([`misses`]). The addresses are physical, and EL2 maps
//! its memory to itself, so a line of EL2's memory is a line that EL2 missed: the guest has no access to it. A line that no committed
//! instruction came from or accessed was fetched or loaded ahead, and in vain. One that was used and not missed was still, or
//! again, in a first cache: the call that empties the caches returns to the guest through it.

mod design;
mod fields;
pub mod misses;
mod names;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use cost::Path;
use serde::{Deserialize, Serialize};

use super::costs::{self, Mode};
use super::trace::Window;
use super::visit;
pub use design::{Design, check, design};
use misses::{From, LINE, Request};
pub use names::{Kind, Names};
pub use tables::{HEADING, columns, named};

/// A line of EL2.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Line {
    pub kind: Kind,
    /// What is in it.
    pub name: String,
    /// The second cache missed it too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second: bool,
}

/// What a pass missed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Lines that committed instructions came from or accessed.
    pub used: Vec<Line>,
    /// Lines that were asked for and not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Line>,
    /// Lines that were used and not missed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub there: Vec<Line>,
    /// Lines of translation tables that were walked in the whole window, the guest's walks too.
    #[serde(default)]
    pub walked: u64,
}

impl Missed {
    /// Lines of code and of data that were missed and used.
    pub fn counts(&self) -> (usize, usize) {
        let code = self.used.iter().filter(|line| line.kind.is_code()).count();
        (code, self.used.len() - code)
    }
}

/// The paths' misses: of each the pass with the most.
pub fn missed(windows: &[Window], requests: &[Request], names: &Names) -> BTreeMap<String, Missed> {
    let mut found = BTreeMap::new();
    for &path in Path::ALL {
        let (windows, _) = costs::clean(windows, path, Mode::Inject);
        let passes = windows.iter().map(|window| pass(window, requests, names));
        if let Some(most) = passes.max_by_key(|missed| missed.used.len()) {
            found.insert(path.name().to_owned(), most);
        }
    }
    found
}

/// What the pass in `window` missed.
fn pass(window: &Window, requests: &[Request], names: &Names) -> Missed {
    let mut missed = Missed::default();
    let [Some(first), Some(last)] = [window.steps.first(), window.steps.last()] else {
        return missed;
    };
    let asked = misses::asked(requests, window.cpu, (first.tick, last.tick));
    let from = |from| move |&&(other, _): &&(From, u64)| other == from;
    let lines = |of| asked.iter().filter(from(of)).map(|&(_, line)| line);
    let second: BTreeSet<u64> = lines(From::Second).collect();
    missed.walked = lines(From::Walk).collect::<BTreeSet<_>>().len() as u64;
    for (cache, used) in [(From::Code, code(window)), (From::Data, data(window))] {
        let asked: BTreeSet<u64> = lines(cache).collect();
        for &line in asked
            .iter()
            .chain(used.keys().filter(|line| !asked.contains(*line)))
        {
            let addresses = used.get(&line).map_or(&[][..], Vec::as_slice);
            let Some((kind, name)) = names.find(window.cpu, line, addresses) else {
                continue;
            };
            let (was_used, was_missed) = (!addresses.is_empty(), asked.contains(&line));
            let second = second.contains(&line);
            let list = match (was_used, was_missed) {
                (true, true) => &mut missed.used,
                (false, _) => &mut missed.ahead,
                (true, false) => &mut missed.there,
            };
            list.push(Line { kind, name, second });
        }
    }
    missed
}

/// The lines that EL2's instructions in `window` came from, and the addresses.
fn code(window: &Window) -> BTreeMap<u64, Vec<u64>> {
    let steps = visit::hypervisor_steps(window);
    by_line(steps.iter().map(|step| step.pc))
}

/// The lines of memory that they accessed, and the addresses. What is below RAM is devices.
fn data(window: &Window) -> BTreeMap<u64, Vec<u64>> {
    let steps = visit::hypervisor_steps(window);
    let accesses = steps.iter().flat_map(|step| &step.accesses);
    let ends = accesses.flat_map(|access| [access.address, access.address + access.bytes - 1]);
    by_line(ends.filter(|address| *address >= RAM))
}

/// Where RAM begins on this platform (`boards/gem5/machine.py`).
const RAM: u64 = 0x8000_0000;

fn by_line(addresses: impl Iterator<Item = u64>) -> BTreeMap<u64, Vec<u64>> {
    let mut lines = BTreeMap::<u64, BTreeSet<u64>>::new();
    for address in addresses {
        lines.entry(address / LINE).or_default().insert(address);
    }
    let sorted = |(line, used): (u64, BTreeSet<u64>)| (line, used.into_iter().collect());
    lines.into_iter().map(sorted).collect()
}

/// What of the `models`' misses is no line of its path's design, in words.
pub fn judge(models: &BTreeMap<String, BTreeMap<String, Missed>>) -> Result<()> {
    let paths = |paths: &BTreeMap<String, Missed>| paths.clone().into_iter();
    let all = models
        .iter()
        .flat_map(|(model, of)| paths(of).map(move |pair| (model, pair)));
    let wrong: Vec<String> = all
        .filter_map(|(model, (path, missed))| Some((model, Path::parse(&path)?, missed)))
        .flat_map(|(model, path, missed)| {
            let extra = check(path, &missed);
            extra
                .into_iter()
                .map(move |why| format!("{model}, {}: {why}", path.name()))
        })
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    anyhow::bail!(
        "lines that a path does not have by design: {}",
        wrong.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use cost::Level;

    use super::*;
    use crate::cost::trace::{Access, Step};

    const BASE: u64 = 0x8020_0000;
    const STATE: u64 = 0x8100_4000;

    /// A pass of an SGI's sender that uses two lines of code and two of data.
    fn window() -> Window {
        let step = |tick, level, pc, address: Option<u64>| Step {
            level,
            word: 0,
            pc,
            accesses: Vec::from_iter(address.map(|address| Access {
                store: true,
                address,
                bytes: 8,
            })),
            tick,
        };
        let steps = vec![
            step(10, Level::El1, 0x4000_0000, Some(0x4000_1000)),
            step(20, Level::El2, BASE + 0x2400, Some(STATE - 0x100)),
            step(30, Level::El2, BASE + 0x2440, Some(STATE + 0x40)),
            step(35, Level::El2, BASE + 0x2444, Some(0x2c00_0000)),
            step(40, Level::El1, 0x4000_0004, None),
        ];
        Window {
            path: Path::SgiSend,
            cpu: 1,
            steps,
            spun: false,
        }
    }

    fn missed_with(extra: Option<Request>) -> Missed {
        let request = |tick, from, address: u64| Request {
            tick,
            core: 1,
            from,
            line: address / LINE,
        };
        let mut requests = vec![
            // Before the pass, and the guest's.
            request(5, From::Data, STATE + 0x40),
            request(12, From::Data, 0x9000_1000),
            request(13, From::Walk, 0x9100_0000),
            request(15, From::Code, BASE + 0x2400),
            request(16, From::Second, BASE + 0x2400),
            request(25, From::Code, BASE + 0x2440),
            request(26, From::Data, STATE - 0x100),
            request(38, From::Code, BASE + 0x2480),
        ];
        requests.extend(extra);
        let names = Names::planted(
            BASE,
            &[(0x2000, "el2_vectors"), (0x2400, "fast_sync_plain")],
            1,
            STATE,
        );
        pass(&window(), &requests, &names)
    }

    #[test]
    fn a_line_is_used_or_ahead_or_was_there() {
        let names = |lines: &[Line]| -> Vec<String> {
            lines
                .iter()
                .map(|line| format!("{} {}", line.name, line.second))
                .collect()
        };
        let missed = missed_with(None);
        let used = [
            "fast_sync_plain true",
            "fast_sync_plain+0x40 false",
            "sp+0x0 false",
        ];
        assert_eq!(names(&missed.used), used);
        assert_eq!(names(&missed.ahead), ["fast_sync_plain+0x80 false"]);
        assert_eq!(names(&missed.there), ["field8 false"]);
        assert_eq!((missed.counts(), missed.walked), ((2, 1), 1));
        // Of another core, it is none of this one's.
        let other = Request {
            tick: 39,
            core: 0,
            from: From::Data,
            line: (STATE + 0x40) / LINE,
        };
        assert_eq!(missed_with(Some(other)), missed);
    }

    #[test]
    fn a_line_too_many_fails_by_its_name() {
        let of = |missed| {
            judge(&[("minor".to_owned(), [("sgi-send".to_owned(), missed)].into())].into())
        };
        assert!(of(missed_with(None)).is_ok());
        let mut more = missed_with(None);
        more.used.push(Line {
            kind: Kind::Cpu,
            name: "vcpu.private.planted".into(),
            second: true,
        });
        let why = of(more).unwrap_err().to_string();
        assert!(
            why.ends_with("minor, sgi-send: CPU vcpu.private.planted"),
            "{why}"
        );
    }
}
