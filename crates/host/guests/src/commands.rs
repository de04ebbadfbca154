// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that run in Linux, as the guest (workload `linux-exec`), and the files that they need.

mod packages;
mod root;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use linux::commands::{Command, FILE};
use plan::{CommandName, List, Plan, Workload};
use shell::failure::bad_input;
use vmm::archive::{self, Archive};

/// Characters that a shell interprets. A shell runs each command that contains one of them.
const SHELLS: &str = "|&;<>()$`\"'*?[]#~\\\n";

/// Default number of runs before the samples.
const WARM_UP: u32 = 1;
/// Default time limit of a run, in seconds.
const SECONDS: u64 = 60;

/// Commands from mails about idle CPUs, with at most a hundredth of the mails' loop counts, because an emulator is that
/// much slower.
const PRESETS: [(&str, &str, &str); 6] = [
    ("perf-pipe", "linux-perf", "perf bench sched pipe -l 1000"),
    (
        "perf-messaging",
        "linux-perf",
        "perf bench sched messaging -g 1 -l 20",
    ),
    (
        "perf-seccomp-notify",
        "linux-perf",
        "perf bench sched seccomp-notify -l 1000",
    ),
    (
        "cyclictest",
        "rt-tests",
        "cyclictest -q -m -p 80 -i 1000 -l 200 -h 1000",
    ),
    ("hackbench", "rt-tests", "hackbench -g 1 -l 20"),
    // tbench runs for two seconds, because after one second it prints a throughput of 0.
    (
        "tbench",
        "dbench,iproute2",
        "ip link set lo up; tbench_srv & until ss -Hltn sport = 7003 | grep -q LISTEN; do sleep 0.01; done; \
         tbench -t 2 1 127.0.0.1; status=$?; kill $!; exit $status",
    ),
];

/// Commands in the guest.
#[derive(Args, Clone, Debug, Default)]
pub struct ExecArgs {
    /// Command that the workload linux-exec runs unmodified in the guest; may be repeated. NAME defaults to the
    /// program's name; a shell runs the command if it contains shell characters
    #[arg(
        long,
        value_name = "[NAME=]COMMAND",
        allow_hyphen_values = true,
        requires = "guest"
    )]
    pub exec: Vec<String>,
    /// Commands of this kind, from the mails about idle CPUs: perf-pipe, perf-messaging, perf-seccomp-notify,
    /// cyclictest, hackbench, tbench
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "guest"
    )]
    pub exec_preset: Vec<String>,
    /// Files for the guest: a folder, a tar or cpio archive, compressed or not, or an ext4 image
    #[arg(long, value_name = "DIR|FILE", requires = "guest")]
    pub rootfs: Option<PathBuf>,
    /// Debian's arm64 packages for the guest, fetched once with their dependencies
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "guest"
    )]
    pub packages: Vec<String>,
    /// CPUs that the commands may run on: 0,1 [default: all]
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "guest")]
    pub exec_cpus: Vec<usize>,
    /// Runs of each command before the samples of a pass [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000), requires = "guest")]
    pub warm_up: Option<u32>,
    /// Longest time that a run may take, by the guest's clock [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400), requires = "guest")]
    pub exec_seconds: Option<u64>,
}

impl ExecArgs {
    /// Whether the options name commands.
    pub fn is_given(&self) -> bool {
        !self.exec.is_empty() || !self.exec_preset.is_empty()
    }

    /// Refuses CPUs that a machine of `cpus` CPUs does not have.
    ///
    /// # Errors
    /// Names the first such CPU.
    pub fn check_cpus(&self, cpus: u32) -> Result<()> {
        let mut wanted = self.exec_cpus.iter();
        match wanted.find(|cpu| **cpu >= cpus as usize) {
            Some(cpu) => bad_input!(
                "--exec-cpus: there is no CPU {cpu}; use 0 to {}, or --cpus",
                cpus - 1
            ),
            None => Ok(()),
        }
    }

    /// Returns the longest time of a run, in seconds.
    fn longest_run_seconds(&self) -> u64 {
        self.exec_seconds.unwrap_or(SECONDS)
    }

    /// Returns the longest time that the guest may take for a pass of a command. Without commands, this is zero.
    pub fn longest_pass(&self, plan: &Plan) -> Duration {
        let runs = self.warm_up.unwrap_or(WARM_UP) + if plan.settle { 1 } else { plan.iterations };
        match self.is_given() {
            true => Duration::from_secs(self.longest_run_seconds()) * runs,
            false => Duration::ZERO,
        }
    }

    /// Returns an archive with the commands and their files, which becomes a part of the initial RAM disk. Enters the
    /// names of the commands into the plan. `None` if there are no commands.
    ///
    /// # Errors
    /// If a command, a file or a package can't be used. The message names the option.
    pub fn archive(&self, plan: &mut Plan) -> Result<Option<Vec<u8>>> {
        if !self.runs_commands(plan)? {
            return Ok(None);
        }
        let (commands, packages) = self.read_commands()?;
        enter_names(&commands, plan)?;
        let mut archive = Archive::default();
        if let Some(folder) = packages::provide_packages(&packages)? {
            root::add_packages(&mut archive, &folder)?;
        }
        let given = match &self.rootfs {
            Some(given) => root::add_rootfs(&mut archive, given, !packages.is_empty())?,
            None => Vec::new(),
        };
        archive.file(FILE, 0o644, &serde_json::to_vec(&commands)?);
        Ok(Some(archive::joined(given, &archive.end())))
    }

    /// Returns whether the plan runs commands. If there are commands and no workload is named, changes the plan so that
    /// it runs them.
    fn runs_commands(&self, plan: &mut Plan) -> Result<bool> {
        let workloads = &mut plan.lists.workload;
        let exec = Workload::LinuxExec;
        match (self.is_given(), workloads.values.contains(&exec)) {
            (false, false) => {
                let options = [
                    ("--rootfs", self.rootfs.is_some()),
                    ("--packages", !self.packages.is_empty()),
                    ("--exec-cpus", !self.exec_cpus.is_empty()),
                    ("--warm-up", self.warm_up.is_some()),
                    ("--exec-seconds", self.exec_seconds.is_some()),
                ];
                match options.iter().find(|(_, given)| *given) {
                    Some((option, _)) => {
                        bad_input!("{option} is for the commands of --exec; name one")
                    }
                    None => Ok(false),
                }
            }
            (false, true) => {
                bad_input!("--workload linux-exec runs the commands of --exec COMMAND; name one")
            }
            (true, true) => Ok(true),
            (true, false) if workloads.named => {
                bad_input!(
                    "--exec: its workload is linux-exec; add it to --workload, or leave that out"
                )
            }
            (true, false) => {
                workloads.values = List::from_iter([exec]);
                workloads.named = true;
                Ok(true)
            }
        }
    }

    /// Returns the commands, and the packages that they need.
    fn read_commands(&self) -> Result<(Vec<Command>, Vec<String>)> {
        let mut packages = self.packages.clone();
        let mut named: Vec<(String, &str)> = Vec::new();
        for name in &self.exec_preset {
            let Some((name, package, command)) = PRESETS.iter().find(|one| one.0 == name) else {
                let known = PRESETS.map(|one| one.0).join(", ");
                bad_input!("--exec-preset: there is no `{name}`; use {known}");
            };
            packages.extend(package.split(',').map(str::to_owned));
            named.push(((*name).into(), command));
        }
        for text in &self.exec {
            named.push(split_name(text)?);
        }
        let most = List::<CommandName>::new().capacity();
        if named.len() > most {
            bad_input!(
                "--exec: {} commands are too many; {most} fit in a run",
                named.len()
            );
        }
        let mut commands: Vec<Command> = Vec::new();
        for (name, text) in named {
            if commands.iter().any(|other| other.name == name) {
                bad_input!("--exec: two commands have the name {name}; use --exec NAME=COMMAND");
            }
            // If the first word contains `=`, it sets a variable, which needs a shell.
            let sets = text
                .split_whitespace()
                .next()
                .is_some_and(|word| word.contains('='));
            let arguments = match sets || text.contains(|c| SHELLS.contains(c)) {
                true => ["/bin/sh", "-c", text].map(Into::into).into(),
                false => text.split_whitespace().map(Into::into).collect(),
            };
            commands.push(Command {
                name,
                arguments,
                seconds: self.longest_run_seconds(),
                warm_up: self.warm_up.unwrap_or(WARM_UP),
                cpus: self.exec_cpus.clone(),
            });
        }
        Ok((commands, packages))
    }
}

/// Enters the names of the commands into the plan, unless the plan already names some of them.
fn enter_names(commands: &[Command], plan: &mut Plan) -> Result<()> {
    let list = &mut plan.lists.command;
    if !list.named {
        let names = commands.iter().map(|one| CommandName::parse(&one.name));
        list.values = names.flatten().collect();
        list.named = true;
    }
    let is_known = |name: &&CommandName| {
        let name = name.to_string();
        commands.iter().any(|one| one.name == name)
    };
    match list.values.iter().find(|name| !is_known(name)) {
        Some(wrong) => bad_input!("--command: --exec and --exec-preset name no {wrong}"),
        None => Ok(()),
    }
}

/// Splits `NAME=COMMAND`. Without a name, the command gets the name of its program.
fn split_name(text: &str) -> Result<(String, &str)> {
    if let Some((name, command)) = text.split_once('=')
        // A name without lower-case letters is that of a shell variable.
        && name.contains(|c: char| c.is_ascii_lowercase())
        && CommandName::parse(name).is_some_and(|name| name != CommandName::NONE)
        && !command.trim().is_empty()
    {
        return Ok((name.into(), command));
    }
    let program = text.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    match CommandName::parse(name) {
        Some(parsed) if parsed != CommandName::NONE => Ok((name.into(), text)),
        _ => bad_input!(
            "--exec: `{text}` has no name of 1 to 24 letters, digits, -, _ and .; use --exec NAME=COMMAND"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(exec: &[&str]) -> ExecArgs {
        ExecArgs {
            exec: exec.iter().map(|text| (*text).to_owned()).collect(),
            ..ExecArgs::default()
        }
    }

    #[test]
    fn commands_have_names_and_words() {
        let given = args(&["/usr/bin/perf bench  sched pipe", "two=a | b", "x=FOO=1 y"]);
        let (commands, packages) = given.read_commands().unwrap();
        let shown = commands
            .iter()
            .map(|one| (&*one.name, one.arguments.join(",")));
        let shown: Vec<(&str, String)> = shown.collect();
        let expected = [
            ("perf", "/usr/bin/perf,bench,sched,pipe"),
            ("two", "/bin/sh,-c,a | b"),
            ("x", "/bin/sh,-c,FOO=1 y"),
        ];
        assert_eq!(shown, expected.map(|(name, text)| (name, text.into())));
        assert!(packages.is_empty());
    }

    #[test]
    fn what_can_t_be_a_command_is_refused_with_the_remedy() {
        let refused = |args: ExecArgs| args.archive(&mut Plan::default()).unwrap_err().to_string();
        assert!(refused(args(&["a b", "a c"])).contains("--exec NAME=COMMAND"));
        assert!(refused(args(&["(a)"])).contains("has no name"));
        let preset = ExecArgs {
            exec_preset: vec!["perf".into()],
            ..args(&[])
        };
        assert!(refused(preset).contains("perf-pipe"));
        let alone = ExecArgs {
            packages: vec!["bash".into()],
            ..args(&[])
        };
        assert!(refused(alone).contains("--exec"));
    }

    #[test]
    fn commands_are_in_the_plan_and_in_the_archive() {
        let mut plan = Plan::default();
        let files = args(&["a", "b=c"]).archive(&mut plan).unwrap().unwrap();
        assert_eq!(plan.lists.workload.values[..], [Workload::LinuxExec]);
        let names = plan.lists.command.values.iter().map(ToString::to_string);
        assert!(names.eq(["a", "b"]));
        let text = String::from_utf8_lossy(&files);
        assert!(
            text.contains("\"name\":\"b\",\"arguments\":[\"c\"]"),
            "{text}"
        );
    }
}
