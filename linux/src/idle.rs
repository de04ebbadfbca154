// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the kernel idles: the driver and the governor of cpuidle that run, and what its states
//! have counted.

use std::fs;
use std::path::Path;

use crate::counts::Counts;

/// Where the kernel shows cpuidle.
const CPUIDLE: &str = "/sys/devices/system/cpu/cpuidle";
/// Where it shows CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// The driver and the governor that run, as `none/menu`: without a driver the kernel idles by its
/// own loop, and asks no governor.
#[must_use]
pub fn ran() -> String {
    let read = |name: &str| {
        let text = fs::read_to_string(Path::new(CPUIDLE).join(name)).ok()?;
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    let none = || "none".to_owned();
    let driver = read("current_driver").unwrap_or_else(none);
    let governor = read("current_governor").or_else(|| read("current_governor_ro"));
    format!("{driver}/{}", governor.unwrap_or_else(none))
}

/// How often each state was entered, and for how long, by all CPUs.
#[must_use]
pub fn states() -> Counts {
    states_in(Path::new(CPUS))
}

fn states_in(cpus: &Path) -> Counts {
    let mut counts = Counts::new();
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let states = folders(cpus).flat_map(|cpu| folders(&cpu.join("cpuidle")));
    for state in states {
        let read = |name: &str| fs::read_to_string(state.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let (Some(name), Some(usage), Some(us)) = (read("name"), number("usage"), number("time"))
        else {
            continue;
        };
        let name = name.trim().to_lowercase();
        *counts.entry(format!("cpuidle.{name}.usage")).or_default() += usage;
        *counts.entry(format!("cpuidle.{name}.time-ns")).or_default() += us * 1000;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_summed_over_cpus() {
        let place = std::env::temp_dir().join(format!("rouse-linux-{}", std::process::id()));
        for (cpu, usage) in [("cpu0", 3), ("cpu1", 4)] {
            let state = place.join(cpu).join("cpuidle/state0");
            fs::create_dir_all(&state).unwrap();
            fs::write(state.join("name"), "WFI\n").unwrap();
            fs::write(state.join("usage"), format!("{usage}\n")).unwrap();
            fs::write(state.join("time"), "10\n").unwrap();
        }
        fs::create_dir_all(place.join("power")).unwrap();
        let counts = states_in(&place);
        fs::remove_dir_all(&place).unwrap();
        assert_eq!(counts.len(), 2);
        assert_eq!(counts["cpuidle.wfi.usage"], 7);
        assert_eq!(counts["cpuidle.wfi.time-ns"], 20_000);
    }
}
