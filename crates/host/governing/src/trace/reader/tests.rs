// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valid traces, and refused ones.

use super::super::Trace;
use super::*;

const HEADER: &str = "duration_ns,next_timer_ns,wake\n";

#[test]
fn a_trace_reads_back() {
    let intervals = vec![
        Interval {
            duration_ns: 5,
            next_timer_ns: 5,
            wake: Wake::Timer,
            busy_ns: 7,
            utilisation: Some(16),
            io: true,
        },
        Interval {
            duration_ns: LONGEST_NS,
            next_timer_ns: FOREVER,
            wake: Wake::Request,
            busy_ns: 0,
            utilisation: None,
            io: false,
        },
    ];
    let source = "made up".into();
    let trace = Trace { source, intervals };
    assert_eq!(parse(&trace.to_text()).unwrap(), trace.intervals);
}

#[test]
fn columns_are_found_by_name() {
    let text = "# recorded\nwake, io, duration_ns, next_timer_ns\nrequest, 1, 10, 20\n";
    let [interval] = parse(text).unwrap()[..] else {
        panic!()
    };
    assert_eq!((interval.duration_ns, interval.next_timer_ns), (10, 20));
    assert_eq!((interval.wake, interval.io), (Wake::Request, true));
}

/// The example in the documentation is a trace.
#[test]
fn the_documented_example_is_read() {
    let text = include_str!("../../../../../../docs/governors.md");
    let start = text.find(HEADER.trim_end()).unwrap();
    let example = text[start..].split("```").next().unwrap();
    let [_, timer] = parse(example).unwrap()[..] else {
        panic!("{example}")
    };
    assert_eq!((timer.wake, timer.busy_ns), (Wake::Timer, 9000));
}

#[test]
fn bad_lines_are_refused_by_number() {
    for (text, told) in [
        (String::new(), "does not name column `duration_ns`"),
        (HEADER.into(), "there is no interval"),
        (
            "duration,wake\n".into(),
            "names column `duration`; there are duration_ns,",
        ),
        (
            "duration_ns,wake\n".into(),
            "does not name column `next_timer_ns`",
        ),
        ("wake,wake\n".into(), "names column `wake` twice"),
        (
            format!("{HEADER}1,2,timer\n"),
            "line 2: a timer can't end it after 1 ns: it is due after 2 ns",
        ),
        (format!("{HEADER}1,none,timer\n"), "it is due never"),
        (
            format!("{HEADER}1,1,timer\n# x\n\n0,1,timer\n"),
            "line 5: duration_ns: `0`",
        ),
        (
            format!("{HEADER}1,x,timer\n"),
            "line 2: next_timer_ns: `x` is not a number",
        ),
        (
            format!("{HEADER}1000000000001,none,request\n"),
            "line 2: duration_ns",
        ),
        (
            format!("{HEADER}1,1,tick\n"),
            "line 2: wake: `tick` is not one of",
        ),
        (
            format!("{HEADER}1,1\n"),
            "line 2: 2 values, and the first line names 3",
        ),
    ] {
        let why = parse(&text).unwrap_err();
        assert!(why.contains(told), "{text}: {why}");
    }
}
