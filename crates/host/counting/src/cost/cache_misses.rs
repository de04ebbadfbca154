// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the cache lines of EL2's code and data that a path misses if the caches are empty.
//!
//! A core that misses a line in its first-level caches requests the line from its second-level cache ([`requests`]).
//! The requests have physical addresses. EL2 has an identity map, so these addresses can be compared with the committed
//! instructions' addresses.

use std::collections::{BTreeMap, BTreeSet};

use cost::Path;
use page::Column;
use serde::{Deserialize, Serialize};

use super::costs::{self, Mode};
use super::requests::{self, From, LINE, Request};
use super::trace::Window;
use super::visit;

/// Heading of the table.
pub const HEADING: &str = "lines of 64 bytes that EL2 uses and misses with nothing in caches, code/data; of those in the second cache too; lines of translation tables (walked)";
/// Start of RAM on this platform (`boards/gem5/machine.py`). Devices are below this address.
const RAM: u64 = 0x8000_0000;

/// Missed lines, by model and by path.
pub type Models = BTreeMap<String, BTreeMap<String, Missed>>;

/// Numbers of lines that a pass missed.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Missed lines that contain EL2's instructions.
    pub code: usize,
    /// Missed lines of memory that these instructions accessed.
    pub data: usize,
    /// Code and data lines that the second-level cache missed, too.
    pub second: usize,
    /// Missed lines of translation tables in the whole window, including the guest's table walks.
    pub walked: usize,
}

/// Returns, for each path, the misses of the pass that missed the most lines.
pub fn worst_passes(windows: &[Window], requests: &[Request]) -> BTreeMap<String, Missed> {
    let most = |path: Path| {
        let (windows, _) = costs::clean_windows(windows, path, Mode::Inject);
        let passes = windows.iter().map(|window| pass_misses(window, requests));
        let most = passes.max_by_key(|missed| missed.code + missed.data)?;
        Some((path.name().to_owned(), most))
    };
    Path::ALL.iter().filter_map(|&path| most(path)).collect()
}

/// Counts the misses of the pass in `window`.
fn pass_misses(window: &Window, requests: &[Request]) -> Missed {
    let [Some(first), Some(last)] = [window.steps.first(), window.steps.last()] else {
        return Missed::default();
    };
    let asked = requests::requested_lines(requests, window.cpu, (first.tick, last.tick));
    let steps = visit::hypervisor_steps(window);
    let code = steps.iter().map(|step| step.pc);
    let accesses = steps.iter().flat_map(|step| &step.accesses);
    let data = accesses.flat_map(|access| [access.address, access.address + access.bytes - 1]);
    let missed = |cache, line| asked.contains(&(cache, line));
    let lines = |cache, used: &mut dyn Iterator<Item = u64>| -> BTreeSet<u64> {
        let lines = used.map(|address| address / LINE);
        lines.filter(|&line| missed(cache, line)).collect()
    };
    let code = lines(From::Code, &mut code.into_iter());
    let data = lines(From::Data, &mut data.filter(|address| *address >= RAM));
    let both = code.union(&data);
    Missed {
        code: code.len(),
        data: data.len(),
        second: both.filter(|&&line| missed(From::Second, line)).count(),
        walked: asked.iter().filter(|(from, _)| *from == From::Walk).count(),
    }
}

/// Returns the columns of a table that has a row for each path and shows the path's misses on each of the `models`.
pub fn columns(models: &Models) -> Vec<Column> {
    let taken = |path: &&Path| models.values().any(|of| of.contains_key(path.name()));
    let paths: Vec<Path> = Path::ALL.iter().filter(taken).copied().collect();
    let names = paths.iter().map(|path| path.name().to_owned());
    let mut columns = vec![Column::words("code path", names.collect())];
    for (model, of) in models {
        let number = |title, text: &dyn Fn(&Missed) -> String| {
            let of = paths.iter().map(|path| of.get(path.name()));
            let texts = of.map(|missed| missed.map_or("-".into(), text));
            Column::numbers(model, title, texts.collect())
        };
        columns.push(number("missed", &|of| format!("{}/{}", of.code, of.data)));
        columns.push(number("second", &|of| of.second.to_string()));
        columns.push(number("walked", &|of| of.walked.to_string()));
    }
    columns
}

#[cfg(test)]
mod tests {
    use cost::Level;

    use super::*;
    use crate::cost::trace::{Access, Executed};

    const CODE: u64 = 0x8020_2400;
    const DATA: u64 = 0x8100_4000;

    #[test]
    fn lines_that_el2_uses_and_misses_are_counted() {
        let step = |tick, level, pc, address: Option<u64>| Executed {
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
        let window = Window {
            path: Path::SgiSend,
            cpu: 1,
            steps: vec![
                step(10, Level::El1, 0x4000_0000, Some(0x4000_1000)),
                step(20, Level::El2, CODE, Some(DATA)),
                step(30, Level::El2, CODE + 0x40, Some(DATA + 0x140)),
                step(35, Level::El2, CODE + 0x44, Some(0x2c00_0000)),
                step(40, Level::El1, 0x4000_0004, None),
            ],
            spun: false,
        };
        let request = |tick, core, from, address: u64| Request {
            tick,
            core,
            from,
            line: address / LINE,
        };
        let requests = [
            // The first request is before the pass, and the next two are from the guest.
            request(5, 1, From::Data, DATA + 0x140),
            request(12, 1, From::Data, 0x9000_1000),
            request(13, 1, From::Walk, 0x9100_0000),
            request(15, 1, From::Code, CODE),
            request(16, 1, From::Second, CODE),
            request(25, 1, From::Code, CODE + 0x40),
            request(26, 1, From::Data, DATA),
            // The next request is for a line that EL2 does not use, and the last one is from another core.
            request(38, 1, From::Code, CODE + 0x80),
            request(39, 0, From::Data, DATA + 0x140),
        ];
        let missed = Missed {
            code: 2,
            data: 1,
            second: 1,
            walked: 1,
        };
        assert_eq!(pass_misses(&window, &requests), missed);
        assert_eq!(pass_misses(&window, &[]), Missed::default());
    }
}
