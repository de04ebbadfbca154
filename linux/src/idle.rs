// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports how the kernel idles: the current cpuidle driver and governor, and the counts of the idle states.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use plan::LinuxCpuidle;

use crate::counts::Counts;

/// The kernel's folder for cpuidle.
const CPUIDLE: &str = "/sys/devices/system/cpu/cpuidle";
/// The kernel option that makes idle CPUs poll.
const NOHLT: &str = "nohlt";
/// The kernel's folder for CPUs.
const CPUS: &str = "/sys/devices/system/cpu";

/// The per-CPU file, in kernels that have it, that makes a CPU poll while idle.
const IDLE_POLL: &str = "idle_poll";

/// The current cpuidle driver and governor, as in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idles {
    driver: Option<String>,
    governor: Option<String>,
    /// The kernel's available governors.
    governors: String,
    /// Whether the command line has an option that makes the kernel poll, and the kernel knows this option.
    polls: bool,
    /// Whether every CPU polls because its own file says so; `None` if there are no such files.
    polls_by_file: Option<bool>,
}

impl Idles {
    /// Reads the current driver and governor. `words` are the first process's arguments, which include the words of the
    /// command line that the kernel does not know.
    #[must_use]
    pub fn read(words: impl IntoIterator<Item = String>) -> Self {
        let told = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let mut idles = Self::read_in(Path::new(CPUIDLE), &told, words);
        idles.polls_by_file = polls_by_file(Path::new(CPUS));
        idles
    }

    fn read_in(folder: &Path, told: &str, words: impl IntoIterator<Item = String>) -> Self {
        let read = |name: &str| {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            let text = text.trim().to_owned();
            (!text.is_empty() && text != "none").then_some(text)
        };
        let told = told.split_ascii_whitespace().any(|word| word == NOHLT);
        Self {
            driver: read("current_driver"),
            governor: read("current_governor").or_else(|| read("current_governor_ro")),
            governors: read("available_governors").unwrap_or_default(),
            polls: told && words.into_iter().all(|word| word != NOHLT),
            polls_by_file: None,
        }
    }

    /// If the kernel does not idle as `asked`, returns the reason.
    #[must_use]
    pub fn why_not_idle_as(&self, asked: LinuxCpuidle) -> Option<String> {
        let Self {
            driver,
            governor,
            governors,
            polls,
            polls_by_file,
        } = self;
        let why = match asked {
            LinuxCpuidle::Default => None,
            LinuxCpuidle::Nohlt => (!polls).then(|| {
                "the command line lacks nohlt, or the kernel does not know it (CONFIG_GENERIC_IDLE_POLL_SETUP)".into()
            }),
            LinuxCpuidle::IdlePoll => match polls_by_file {
                None => Some(format!("the kernel has no file {IDLE_POLL} for its CPUs; it comes with a patch")),
                Some(false) => Some(format!("not every CPU has 1 in its file {IDLE_POLL}")),
                Some(true) => None,
            },
            LinuxCpuidle::Off => governor
                .is_some()
                .then(|| format!("cpuidle runs, as {self}; the command line lacks cpuidle.off=1")),
            LinuxCpuidle::Haltpoll if driver.as_deref() != Some("haltpoll") => Some(format!(
                "the driver haltpoll does not run, but {self}; the kernel needs CONFIG_HALTPOLL_CPUIDLE built in"
            )),
            LinuxCpuidle::Haltpoll
            | LinuxCpuidle::Ladder
            | LinuxCpuidle::Menu
            | LinuxCpuidle::Teo => {
                let wanted = asked.governor();
                if governors.is_empty() {
                    Some("cpuidle is off, so there is no governor; under Xen Linux switches it off by itself".into())
                } else if governor.as_deref() != wanted {
                    Some(format!("{self} runs; this kernel has the governors {governors}"))
                } else {
                    driver.is_none().then(|| {
                        "no driver of cpuidle runs, so its governor chooses nothing: the machine describes no idle state; \
                         under rouse it does"
                            .into()
                    })
                }
            }
        };
        why.map(|why| format!("linux-cpuidle {asked}: {why}"))
    }
}

impl fmt::Display for Idles {
    /// Prints the driver and the governor, for example `none/menu`. Without a driver, the kernel idles in its default
    /// loop and asks no governor. With `nohlt`, a polling loop overrides any driver.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.polls {
            return f.write_str(NOHLT);
        }
        if self.polls_by_file == Some(true) {
            return f.write_str(IDLE_POLL);
        }
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
        write!(f, "{}/{}", or(&self.driver), or(&self.governor))
    }
}

/// Makes each CPU poll while it idles, if the kernel has files for this.
///
/// # Errors
/// A file exists and can't be written.
pub fn make_idle_poll() -> io::Result<()> {
    for file in poll_files(Path::new(CPUS)) {
        fs::write(file, "1")?;
    }
    Ok(())
}

/// Returns whether every CPU polls because its own file says so; `None` if there are no such files.
fn polls_by_file(cpus: &Path) -> Option<bool> {
    let texts = poll_files(cpus).map(fs::read_to_string);
    let polls: Vec<bool> = texts
        .map(|text| text.is_ok_and(|text| text.trim() == "1"))
        .collect();
    (!polls.is_empty()).then(|| polls.iter().all(|polls| *polls))
}

fn poll_files(cpus: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(cpus).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path().join(IDLE_POLL));
    files.filter(|file| file.exists())
}

/// Returns how often and for how long all CPUs together were in each state, and how often another state would have been
/// better: `above` if the state was too deep, `below` if it was too shallow.
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
        for judged in ["above", "below"] {
            if let Some(count) = number(judged) {
                *counts
                    .entry(format!("cpuidle.{name}.{judged}"))
                    .or_default() += count;
            }
        }
    }
    counts
}

/// Returns the idle states of the first CPU that has any, with exit latency and target residency in microseconds, for
/// example `WFE:0:0,WFI:100:100`.
#[must_use]
pub fn table() -> String {
    table_in(Path::new(CPUS))
}

fn table_in(cpus: &Path) -> String {
    (0..)
        .map(|cpu| cpus.join(format!("cpu{cpu}")))
        .take_while(|cpu| cpu.exists())
        .map(|cpu| states_of(&cpu.join("cpuidle")))
        .find(|states| !states.is_empty())
        .unwrap_or_default()
}

fn states_of(folder: &Path) -> String {
    let state = |number: u32| {
        let read = |name: &str| {
            let path = folder.join(format!("state{number}")).join(name);
            Some(fs::read_to_string(path).ok()?.trim().to_owned())
        };
        let name = read("name")?.replace(',', " ");
        Some(format!(
            "{name}:{}:{}",
            read("latency")?,
            read("residency")?
        ))
    };
    (0..).map_while(state).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a sysfs that consists of `files`.
    fn idles(files: &[(&str, &str)], told: &str, words: &[&str]) -> Idles {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(place.path().join(name), text).unwrap();
        }
        let words = words.iter().map(|word| (*word).to_owned());
        Idles::read_in(place.path(), told, words)
    }

    #[test]
    fn what_ran_is_told_from_what_was_asked_for() {
        use LinuxCpuidle::{Default, Haltpoll, Menu, Nohlt, Off, Teo};
        let of = |driver, governor| {
            let files = [
                ("current_driver", driver),
                ("current_governor", governor),
                ("available_governors", "ladder menu teo\n"),
            ];
            idles(&files, "quiet", &[])
        };
        let (bare, psci) = (of("none\n", "menu\n"), of("psci_idle\n", "teo\n"));
        let haltpoll = of("haltpoll\n", "haltpoll\n");
        let off = idles(&[], "cpuidle.off=1", &["rouse-linux"]);
        let told = |idles: &Idles| idles.to_string();
        assert_eq!(
            [told(&bare), told(&psci), told(&haltpoll), told(&off)],
            [
                "none/menu",
                "psci_idle/teo",
                "haltpoll/haltpoll",
                "none/none"
            ]
        );
        let held = |idles: &Idles| {
            let all = [Default, Nohlt, Off, Haltpoll, Menu, Teo].into_iter();
            all.filter(|asked| idles.why_not_idle_as(*asked).is_none())
                .collect::<Vec<_>>()
        };
        assert_eq!(held(&bare), [Default]);
        assert_eq!(held(&psci), [Default, Teo]);
        assert_eq!(held(&haltpoll), [Default, Haltpoll]);
        assert_eq!(held(&off), [Default, Off]);
        assert!(
            bare.why_not_idle_as(Menu)
                .unwrap()
                .contains("no idle state")
        );
        assert!(
            off.why_not_idle_as(Menu)
                .unwrap()
                .contains("cpuidle is off")
        );
        assert!(
            psci.why_not_idle_as(Menu)
                .unwrap()
                .contains("ladder menu teo")
        );
    }

    #[test]
    fn a_kernel_that_does_not_know_a_word_passes_it_on() {
        let of =
            |told, words: &[&str]| idles(&[], told, words).why_not_idle_as(LinuxCpuidle::Nohlt);
        assert_eq!(of("quiet nohlt", &["/init"]), None);
        assert!(of("quiet nohlt", &["/init", "nohlt"]).is_some());
        assert!(of("quiet", &["/init"]).is_some());
    }

    #[test]
    fn cpus_poll_by_their_files_if_all_do() {
        let place = tempfile::tempdir().unwrap();
        let cpus = place.path();
        assert_eq!(polls_by_file(cpus), None);
        for (one, polls) in [("0\n", false), ("1\n", true)] {
            for (cpu, text) in [("cpu0", "1\n"), ("cpu1", one)] {
                fs::create_dir_all(cpus.join(cpu)).unwrap();
                fs::write(cpus.join(cpu).join(IDLE_POLL), text).unwrap();
            }
            assert_eq!(polls_by_file(cpus), Some(polls));
        }
        let idles = Idles {
            polls_by_file: Some(true),
            ..idles(&[], "", &[])
        };
        assert_eq!(idles.to_string(), "idle_poll");
        assert_eq!(idles.why_not_idle_as(LinuxCpuidle::IdlePoll), None);
    }

    #[test]
    fn states_are_listed_in_their_order() {
        let kept = tempfile::tempdir().unwrap();
        let place = kept.path();
        assert_eq!(table_in(place), "");
        fs::create_dir_all(place.join("cpu0")).unwrap();
        for (number, name, us) in [(1, "WFI", "100"), (0, "a,b", "0")] {
            let state = place.join(format!("cpu1/cpuidle/state{number}"));
            fs::create_dir_all(&state).unwrap();
            fs::write(state.join("name"), format!("{name}\n")).unwrap();
            fs::write(state.join("latency"), format!("{us}\n")).unwrap();
            fs::write(state.join("residency"), format!("{us}\n")).unwrap();
        }
        assert_eq!(table_in(place), "a b:0:0,WFI:100:100");
    }

    #[test]
    fn states_are_summed_over_cpus() {
        let kept = tempfile::tempdir().unwrap();
        let place = kept.path();
        for (cpu, usage) in [("cpu0", 3), ("cpu1", 4)] {
            let state = place.join(cpu).join("cpuidle/state0");
            fs::create_dir_all(&state).unwrap();
            fs::write(state.join("name"), "WFI\n").unwrap();
            fs::write(state.join("usage"), format!("{usage}\n")).unwrap();
            fs::write(state.join("time"), "10\n").unwrap();
            fs::write(state.join("above"), "2\n").unwrap();
        }
        fs::create_dir_all(place.join("power")).unwrap();
        let counts = states_in(place);
        // Older kernels have fewer files.
        assert_eq!(counts.len(), 3);
        assert_eq!(counts["cpuidle.wfi.above"], 4);
        assert_eq!(counts["cpuidle.wfi.usage"], 7);
        assert_eq!(counts["cpuidle.wfi.time-ns"], 20_000);
    }
}
