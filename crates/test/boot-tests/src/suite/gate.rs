// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that run whole commands of this program and check their exit status and output: among them the gate on the
//! length of code paths, the listing of a path, the folder to publish, a comparison of exits with the emulator's log of
//! exceptions, the files that a killed program leaves, and several commands at once.

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::{
    concurrent_runs, dist_folder, exceptions, exclusives, jobs, kvm_program, mainline, monitor,
    refused, repetitions, signals, strict, workers,
};
use providing::gem5;
use running::boot_cache::BootCache;
use shell::{places, processor_time};

#[derive(Debug)]
pub struct Gate {
    pub name: &'static str,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// The test is one command.
    CommandLine(CommandLine),
    /// The test is more than one command.
    Code(fn() -> Result<()>),
    /// The test is code that needs a tool: the first function returns the reason if this computer lacks it.
    Tool(fn() -> Option<String>, fn() -> Result<()>),
    /// The test boots, and may reuse known outcomes.
    Boots(fn(&Arc<BootCache>) -> Result<()>),
}

/// A command that has to succeed.
#[derive(Debug)]
struct CommandLine {
    words: &'static [&'static str],
    /// A text that the command's output has to contain.
    says: &'static str,
}

const ALL: [Gate; 21] = [
    Gate {
        name: "atomics-of-both-images",
        body: Body::Code(exclusives::run),
    },
    Gate {
        name: "cost-is-not-more",
        body: Body::CommandLine(CommandLine {
            words: &["cost", "--compare"],
            says: "against `",
        }),
    },
    Gate {
        name: "cost-of-a-gicv2-is-not-more",
        body: Body::CommandLine(CommandLine {
            words: &["cost", "--board", "virt-gic2", "--compare"],
            says: "against `",
        }),
    },
    Gate {
        name: "cost-shows-instructions",
        body: Body::CommandLine(CommandLine {
            words: &["cost", "--asm", "sgi-send"],
            says: "msr     ICC_SGI1R_EL1",
        }),
    },
    Gate {
        name: "cycles-are-not-more",
        body: Body::CommandLine(CommandLine {
            words: &["cost", "--board", "gem5", "--cpu", "minor", "--compare"],
            says: "against `",
        }),
    },
    Gate {
        name: "dist-is-the-same-anywhere",
        body: Body::Code(dist_folder::run),
    },
    Gate {
        name: "documents-are-of-this-tree",
        body: Body::CommandLine(CommandLine {
            words: &["dev", "publish", "--check"],
            says: "every figure is as this tree measures it",
        }),
    },
    Gate {
        name: "exits-are-exceptions-to-el2",
        body: Body::Code(exceptions::run),
    },
    Gate {
        name: "jobs-change-nothing",
        body: Body::Code(jobs::run),
    },
    Gate {
        name: "mainlines-trees-are-read",
        body: Body::Code(mainline::run),
    },
    Gate {
        name: "killed-by-int-keeps",
        body: Body::Code(|| signals::keeps_results("INT", 130)),
    },
    Gate {
        name: "killed-by-term-keeps",
        body: Body::Code(|| signals::keeps_results("TERM", 143)),
    },
    Gate {
        name: "killed-outright-leaves-no-emulator",
        body: Body::Code(signals::leaves_no_emulator),
    },
    Gate {
        name: "killed-twice-ends-at-once",
        body: Body::Code(signals::second_ends_at_once),
    },
    Gate {
        name: "kvm-ends-of-guests",
        body: Body::Boots(monitor::run),
    },
    Gate {
        name: "kvm-program-measures",
        body: Body::Boots(kvm_program::run),
    },
    Gate {
        name: "planted-faults-are-refused",
        body: Body::Code(refused::run),
    },
    Gate {
        name: "repeated-runs-are-compared",
        body: Body::Code(repetitions::run),
    },
    Gate {
        name: "rules-are-kept",
        body: Body::Code(strict::run_few),
    },
    Gate {
        name: "runs-at-once-boot-their-own-guests",
        body: Body::Code(concurrent_runs::run),
    },
    Gate {
        name: "workers-share-a-sweep",
        body: Body::Tool(workers::lacks, workers::run),
    },
];

/// Returns the tests whose name contains `filter`.
pub fn matching(filter: &str) -> Vec<&'static Gate> {
    let named = ALL.iter().filter(|gate| gate.name.contains(filter));
    named.collect()
}

impl Gate {
    /// Returns the name of the tool that the test needs but this computer lacks.
    pub fn lacks(&self) -> Option<String> {
        match &self.body {
            Body::CommandLine(line) if line.words.contains(&"gem5") => {
                gem5::find(None).err().map(|why| format!("{why:#}"))
            }
            Body::Tool(lacks, _) => lacks(),
            Body::CommandLine(_) | Body::Code(_) | Body::Boots(_) => None,
        }
    }

    /// Runs the test. With `again`, repeats even boots whose outcome can't have changed. Returns a note to print on
    /// success.
    pub fn run(&self, again: bool) -> Result<String> {
        match &self.body {
            Body::CommandLine(line) => line.run().map(|()| String::new()),
            Body::Code(code) | Body::Tool(_, code) => code().map(|()| String::new()),
            Body::Boots(boots) => {
                let ((), as_before) = BootCache::of_test(self.name, again, boots)?;
                Ok(as_before.map_or_else(String::new, |boots| format!(" ({boots})")))
            }
        }
    }
}

impl CommandLine {
    /// Runs the command, and compares its status and output.
    fn run(&self) -> Result<()> {
        let mut command = Command::new(places::program()?);
        command.args(self.words);
        let output =
            processor_time::output(&mut command).context("this program can't be started again")?;
        let [said, complained] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let line = self.words.join(" ");
        if !output.status.success() {
            bail!(
                "`cargo xtask {line}` ended with {}; it printed:\n{said}{complained}",
                output.status
            );
        }
        if !said.contains(self.says) && !complained.contains(self.says) {
            bail!(
                "`cargo xtask {line}` did not print `{}`:\n{said}{complained}",
                self.says
            );
        }
        Ok(())
    }
}
