// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes files for common viewers: folded stacks, the trace format of Chrome and Perfetto, and a profile for the
//! Firefox Profiler. In these files, an instruction takes a microsecond.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp,
    SamplingInterval, Timestamp,
};
use serde_json::{Value, json};

use crate::explanation::{Explained, ExplainedCell};

/// Returns the names and texts of all files.
pub fn files(explained: &Explained) -> [(&'static str, String); 3] {
    [
        ("stacks.folded", folded_stacks(explained)),
        ("trace.json", chrome_trace(explained).to_string()),
        ("profile.json", firefox_json(explained)),
    ]
}

/// Returns a line for each stack on the path: names with semicolons between them, and a count.
fn folded_stacks(explained: &Explained) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for cell in &explained.cells {
        for step in cell.steps.iter().filter(|step| step.on_path) {
            let names = step
                .function_stack()
                .map(|(_, name)| name.replace([';', '\n'], ","));
            let names: Vec<String> = [
                cell.name(),
                format!("CPU {}", step.cpu),
                format!("EL{}", step.level),
            ]
            .into_iter()
            .chain(names)
            .collect();
            *counts.entry(names.join(";")).or_default() += step.count;
        }
    }
    counts
        .iter()
        .map(|(names, count)| format!("{names} {count}\n"))
        .collect()
}

/// Returns complete events of each function, by cell and CPU, and flow events where the path moves to another CPU.
fn chrome_trace(explained: &Explained) -> Value {
    let mut events = Vec::new();
    for (process, cell) in explained.cells.iter().enumerate() {
        events.push(json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": cell.name()}}));
        let mut last: Option<(usize, u64)> = None;
        for step in &cell.steps {
            let at = step.at;
            let name = &step.function;
            let arguments =
                json!({"code": step.image, "path": step.on_path, "callers": step.callers});
            events.push(
                json!({"ph": "X", "name": name, "cat": format!("EL{}", step.level), "pid": process,
                "tid": step.cpu, "ts": at, "dur": step.count, "args": arguments}),
            );
            if let (Some(via), Some((cpu, end))) = (&step.via, last) {
                let id = events.len();
                events.push(json!({"ph": "s", "name": via, "cat": "wake", "id": id, "pid": process, "tid": cpu, "ts": end.saturating_sub(1)}));
                events.push(json!({"ph": "f", "bp": "e", "name": via, "cat": "wake", "id": id, "pid": process, "tid": step.cpu, "ts": at}));
            }
            if step.on_path {
                last = Some((step.cpu, at + step.count));
            }
        }
    }
    json!({"traceEvents": events, "displayTimeUnit": "ns"})
}

/// Returns a profile with a thread for each cell and CPU. A step is a sample, weighted by its instructions.
fn firefox_json(explained: &Explained) -> String {
    let start = ReferenceTimestamp::from_system_time(SystemTime::UNIX_EPOCH);
    let interval = SamplingInterval::from(Duration::from_micros(1));
    let mut profile = Profile::new("Rouse", start, interval);
    for (number, cell) in explained.cells.iter().enumerate() {
        add_cell(&mut profile, number as u32, cell);
    }
    serde_json::to_string(&profile).unwrap_or_default()
}

fn add_cell(profile: &mut Profile, number: u32, cell: &ExplainedCell) {
    let origin = Timestamp::from_nanos_since_reference(0);
    let process = profile.add_process(&cell.name(), number, origin);
    let cpus: usize = cell
        .steps
        .iter()
        .map(|step| step.cpu + 1)
        .max()
        .unwrap_or(0);
    let threads: Vec<_> = (0..cpus)
        .map(|cpu| {
            let thread = profile.add_thread(process, cpu as u32, origin, cpu == 0);
            profile.set_thread_name(thread, &format!("CPU {cpu}"));
            thread
        })
        .collect();
    for step in &cell.steps {
        let thread = threads[step.cpu];
        let frames: Vec<FrameInfo> = step
            .function_stack()
            .map(|(_, name)| FrameInfo {
                frame: Frame::Label(profile.intern_string(name)),
                category_pair: CategoryHandle::OTHER.into(),
                flags: FrameFlags::empty(),
            })
            .collect();
        let handle = profile.intern_stack_frames(thread, frames.into_iter());
        let time = Timestamp::from_nanos_since_reference(1000 * step.at);
        let weight = i32::try_from(step.count).unwrap_or(i32::MAX);
        profile.add_sample(
            thread,
            time,
            handle,
            CpuDelta::from_micros(step.count),
            weight,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::cell_with_steps;

    fn explained() -> Explained {
        Explained {
            cells: vec![cell_with_steps("a 1 5, b 2 7, a 1 1")],
            ..Explained::default()
        }
    }

    #[test]
    fn folded_stacks_add_up_to_the_path() {
        let text = folded_stacks(&explained());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "linux-pipe none, under none;CPU 0;EL1;a 6",
                "linux-pipe none, under none;CPU 0;EL2;b 7"
            ]
        );
    }

    #[test]
    fn events_lie_one_after_another() {
        let trace = chrome_trace(&explained());
        let events = trace["traceEvents"].as_array().unwrap();
        let complete = events.iter().filter(|event| event["ph"] == "X");
        let times: Vec<_> = complete
            .map(|event| {
                [
                    event["ts"].as_u64().unwrap(),
                    event["dur"].as_u64().unwrap(),
                ]
            })
            .collect();
        assert_eq!(times, [[0, 5], [5, 7], [12, 1]]);
    }

    #[test]
    fn a_profile_has_a_sample_for_each_step() {
        let profile: Value = serde_json::from_str(&firefox_json(&explained())).unwrap();
        let thread = &profile["threads"][0];
        assert_eq!(thread["samples"]["weight"], json!([5, 7, 1]));
        assert_eq!(profile["meta"]["product"], "Rouse");
    }
}
