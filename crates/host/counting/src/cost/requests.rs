// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses cache misses from gem5's debug output. The crossbars after the first-level caches and the crossbar after the
//! second-level caches print each request that reaches them. A cache requests a missed line only once, however many
//! accesses wait for the line.
//!
//! A request has the form `TICK: CROSSBAR: recvTimingReq: src PORT packet COMMAND [FIRST:LAST] FLAGS` (gem5's
//! `src/mem/coherent_xbar.cc` and `packet.cc`, 24.0). The addresses are physical and hexadecimal.
//! `boards/gem5/machine.py` connects each core's instruction cache, data cache and table walkers, in this order, to the
//! core's crossbar.

use std::collections::BTreeSet;
use std::io::BufRead;

use anyhow::{Context, Result, bail};

/// Bytes of a cache line.
pub const LINE: u64 = 64;

/// The source of a request for a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum From {
    /// A core's first-level cache for code.
    Code,
    /// A core's first-level cache for data.
    Data,
    /// A core's table walker, which has no first-level cache.
    Walk,
    /// A core's second-level cache.
    Second,
}

/// A request for a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    pub tick: u64,
    /// Number of the core.
    pub core: u16,
    pub from: From,
    /// Physical address of the line.
    pub line: u64,
}

/// Parses all requests for lines, in order. A refused request is repeated, so the list has it once per attempt.
pub fn parse_requests(mut text: impl BufRead) -> Result<Vec<Request>> {
    let (mut found, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let length = text
            .read_until(b'\n', &mut line)
            .context("gem5's debug output can't be read")?;
        if length == 0 {
            return Ok(found);
        }
        found.extend(parse_request(&String::from_utf8_lossy(&line))?);
    }
}

/// Parses a request for a cache line. Returns `None` for any other output: responses, snoops, cache lines that are
/// written back or cleaned, uncached accesses, and upgrades to write permission.
fn parse_request(line: &str) -> Result<Option<Request>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [
        tick,
        crossbar,
        "recvTimingReq:",
        "src",
        port,
        "packet",
        command,
        range,
        flags @ ..,
    ] = &words[..]
    else {
        return Ok(None);
    };
    if !command.starts_with("Read") || flags.contains(&"UC") || flags.contains(&"BUSY") {
        return Ok(None);
    }
    let read = || -> Option<Request> {
        let tick = tick.strip_suffix(':')?.parse().ok()?;
        let (_, port) = port.strip_suffix(']')?.rsplit_once('[')?;
        let port: u16 = port.parse().ok()?;
        let (first, _) = range.strip_prefix('[')?.split_once(':')?;
        let address = u64::from_str_radix(first, 16).ok()?;
        let core = crossbar.strip_suffix(".to_second:");
        let (core, from) = match core {
            Some(core) => (core.rsplit_once("cpu")?.1.parse().ok()?, requester_at(port)),
            None => (port, From::Second),
        };
        Some(Request {
            tick,
            core,
            from,
            line: address / LINE,
        })
    };
    match read() {
        Some(request) => Ok(Some(request)),
        None => bail!(
            "gem5's debug output has a line of another form: {}",
            line.trim()
        ),
    }
}

/// Returns the source of requests at a port of a core's crossbar.
const fn requester_at(port: u16) -> From {
    match port {
        0 => From::Code,
        1 => From::Data,
        _ => From::Walk,
    }
}

/// Returns the lines that `core` requested between `begin` and `end`.
pub fn requested_lines(
    requests: &[Request],
    core: u16,
    (begin, end): (u64, u64),
) -> BTreeSet<(From, u64)> {
    let since = requests.partition_point(|request| request.tick < begin);
    let within = requests[since..]
        .iter()
        .take_while(|request| request.tick <= end);
    within
        .filter(|request| request.core == core)
        .map(|request| (request.from, request.line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
        5: system.cpu0.to_second: recvTimingReq: src system.cpu0.to_second.cpu_side_port[0] packet ReadCleanReq [80202400:8020243f] IF\n\
        5: system.cpu0.to_second: recvTimingReq: src system.cpu0.to_second.cpu_side_port[0] packet ReadCleanReq [80202400:8020243f] IF SF size: 1 lat: 0\n\
        6: system.cpu1.to_second: recvTimingReq: src system.cpu1.to_second.cpu_side_port[1] packet ReadExReq [81f9ef00:81f9ef3f]\n\
        7: system.cpu1.to_second: recvTimingReq: src system.cpu1.to_second.cpu_side_port[3] packet ReadReq [81fbb008:81fbb00f]\n\
        8: system.interconnect: recvTimingReq: src system.interconnect.cpu_side_port[1] packet ReadExReq [81f9ef00:81f9ef3f]\n\
        8: system.cpu1.to_second: recvTimingReq: src system.cpu1.to_second.cpu_side_port[1] packet ReadReq [2c000000:2c000003] UC\n\
        8: system.cpu1.to_second: recvTimingReq: src system.cpu1.to_second.cpu_side_port[1] packet CleanInvalidReq [80202400:8020243f] PoC\n\
        8: system.cpu1.to_second: recvTimingReq: src system.cpu1.to_second.cpu_side_port[1] packet UpgradeReq [80202400:8020243f]\n\
        9: system.cpu1.to_second: recvTimingResp: src system.cpu1.to_second.mem_side_port[0] packet ReadResp [81f9ef00:81f9ef3f]\n";

    #[test]
    fn a_line_is_asked_for_by_one_cache_of_one_core() {
        let requests = parse_requests(TEXT.as_bytes()).unwrap();
        let asked = |core, time| {
            let lines = requested_lines(&requests, core, time);
            lines
                .iter()
                .map(|&(from, line)| (from, line * LINE))
                .collect::<Vec<_>>()
        };
        assert_eq!(asked(0, (0, 9)), [(From::Code, 0x8020_2400)]);
        assert_eq!(
            asked(1, (0, 9)),
            [
                (From::Data, 0x81f9_ef00),
                (From::Walk, 0x81fb_b000),
                (From::Second, 0x81f9_ef00)
            ]
        );
        assert_eq!(asked(1, (7, 7)), [(From::Walk, 0x81fb_b000)]);
        assert_eq!(asked(0, (6, 9)), []);
    }

    #[test]
    fn what_is_damaged_is_told() {
        let damaged = TEXT.replacen("[80202400", "[8020x400", 1);
        assert!(parse_requests(damaged.as_bytes()).is_err());
        assert!(
            parse_requests(&b"info: something else\n"[..])
                .unwrap()
                .is_empty()
        );
    }
}
