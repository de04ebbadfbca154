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
    what: What,
}

#[derive(Debug)]
enum What {
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
    /// A text that its output has to contain.
    says: &'static str,
}

const ALL: [Gate; 21] = [
    Gate {
        name: "atomics-of-both-images",
        what: What::Code(exclusives::run),
    },
    Gate {
        name: "cost-is-not-more",
        what: What::CommandLine(CommandLine {
            words: &["cost", "--compare"],
            says: "against `",
        }),
    },
    Gate {
        name: "cost-of-a-gicv2-is-not-more",
        what: What::CommandLine(CommandLine {
            words: &["cost", "--board", "virt-gic2", "--compare"],
            says: "against `",
        }),
    },
    Gate {
        name: "cost-shows-instructions",
        what: What::CommandLine(CommandLine {
            words: &["cost", "--asm", "sgi-send"],
            says: "msr     ICC_SGI1R_EL1",
        }),
    },
    Gate {
        name: "cycles-are-not-more",
        what: What::CommandLine(CommandLine {
            words: &["cost", "--board", "gem5", "--cpu", "minor", "--compare"],
            says: "against `",
        }),
    },
    Gate {
        name: "dist-is-the-same-anywhere",
        what: What::Code(dist_folder::run),
    },
    Gate {
        name: "documents-are-of-this-tree",
        what: What::CommandLine(CommandLine {
            words: &["dev", "publish", "--check"],
            says: "every figure is as this tree measures it",
        }),
    },
    Gate {
        name: "exits-are-exceptions-to-el2",
        what: What::Code(exceptions::run),
    },
    Gate {
        name: "jobs-change-nothing",
        what: What::Code(jobs::run),
    },
    Gate {
        name: "mainlines-trees-are-read",
        what: What::Code(mainline::run),
    },
    Gate {
        name: "killed-by-int-keeps",
        what: What::Code(|| signals::keeps_results("INT", 130)),
    },
    Gate {
        name: "killed-by-term-keeps",
        what: What::Code(|| signals::keeps_results("TERM", 143)),
    },
    Gate {
        name: "killed-outright-leaves-no-emulator",
        what: What::Code(signals::leaves_no_emulator),
    },
    Gate {
        name: "killed-twice-ends-at-once",
        what: What::Code(signals::second_ends_at_once),
    },
    Gate {
        name: "kvm-ends-of-guests",
        what: What::Boots(monitor::run),
    },
    Gate {
        name: "kvm-program-measures",
        what: What::Boots(kvm_program::run),
    },
    Gate {
        name: "planted-faults-are-refused",
        what: What::Code(refused::run),
    },
    Gate {
        name: "repeated-runs-are-compared",
        what: What::Code(repetitions::run),
    },
    Gate {
        name: "rules-are-kept",
        what: What::Code(strict::run_few),
    },
    Gate {
        name: "runs-at-once-boot-their-own-guests",
        what: What::Code(concurrent_runs::run),
    },
    Gate {
        name: "workers-share-a-sweep",
        what: What::Tool(workers::lacks, workers::run),
    },
];

/// Returns the tests whose name contains `filter`.
pub fn matching(filter: &str) -> Vec<&'static Gate> {
    let named = ALL.iter().filter(|gate| gate.name.contains(filter));
    named.collect()
}

impl Gate {
    /// Returns the name of the tool that the test needs and this computer lacks.
    pub fn lacks(&self) -> Option<String> {
        match &self.what {
            What::CommandLine(line) if line.words.contains(&"gem5") => {
                gem5::find(None).err().map(|why| format!("{why:#}"))
            }
            What::Tool(lacks, _) => lacks(),
            What::CommandLine(_) | What::Code(_) | What::Boots(_) => None,
        }
    }

    /// Runs the test. With `again`, repeats even boots that can only have the known outcome. Returns a note to print on
    /// success.
    pub fn run(&self, again: bool) -> Result<String> {
        match &self.what {
            What::CommandLine(line) => line.run().map(|()| String::new()),
            What::Code(code) | What::Tool(_, code) => code().map(|()| String::new()),
            What::Boots(boots) => {
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
