// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of which QEMU logs what is executed in the blocks of samples, and nothing else: a
//! debugger stops the machine where a block begins and where it ends.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Receiver;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use plan::Under;
use results::{Results, capture};

use super::log::{Reader, Sample};
use super::marks::Marks;
use super::stub::{Stop, Stub};
use crate::cli::{Cli, Verb};
use crate::emulator_process::{EmulatorProcess, Line};
use crate::failure;
use crate::images::{self, Built};
use crate::job::Job;
use crate::partial::Scratch;
use crate::{interrupt, launch, places, qemu};

const UNDER: Under = Under::Rouse;

/// What came of a run.
#[derive(Debug)]
pub struct Traced {
    /// What it printed.
    pub results: Results,
    /// What was counted of each cell that was measured, in their order, pass by pass.
    pub counted: Vec<Passes>,
}

/// Wake-ups of a cell in each of its passes, with those that are not recorded.
pub type Passes = Vec<Vec<Sample>>;

/// Boots with these options of `run`, with `count` wake-ups of each cell.
pub fn run(options: &[&str], count: u32) -> Result<Traced> {
    interrupt::catch()?;
    let job = job(options, count)?;
    let emulator = interrupt::or(qemu::ensure())?;
    let built = interrupt::or(images::build(&job.board().name, job.load.packed()))?;
    let place = Scratch::new()?;
    let (stub, log) = (place.path().join("stub"), place.path().join("log"));
    let mut command = launch::command(&job, job.variant(), &emulator, &built)?;
    attach(&mut command, &stub, &log);
    let (process, lines) = EmulatorProcess::start(&mut command)?;
    let mut machine = Machine {
        stub: Stub::connect(&stub, &log)?,
        marks: marks(&job, &built)?,
        log: &log,
        read: 0,
    };
    let counted = machine.count(measured(&job)?)?;
    let console = console(&lines);
    drop(process);
    Ok(Traced {
        results: capture::results(&console).ok_or_else(|| {
            failure::listed(
                "the machine has printed no results; its console said",
                &console,
            )
        })?,
        counted,
    })
}

/// All samples of a pass in one block, and each of them printed.
fn job(options: &[&str], count: u32) -> Result<Job> {
    let iterations = format!("--iterations={count}");
    let line = ["cargo xtask", "run", "--board=virt", "--metric=insns"];
    let always = ["--cell-ms=0", "--stages=off", "--raw", &iterations];
    let line = line.iter().chain(&always).chain(options);
    match Cli::try_parse_from(line)?.verb {
        Verb::Run(args) => Job::of_run(&args),
        _ => unreachable!("the verb is run"),
    }
}

/// How many cells will be measured.
fn measured(job: &Job) -> Result<usize> {
    let machine = job.machine(UNDER)?;
    let cells = job.load.plan.cells(&machine);
    Ok(cells
        .filter(|cell| cell.skip_reason(&machine).is_none())
        .count())
}

fn marks(job: &Job, built: &Built) -> Result<Marks> {
    // The hypervisor shows the guest its memory where it is itself.
    let base = job
        .board()
        .machine
        .image_base()
        .context("the board has no image_base")?;
    Marks::find(
        built
            .guest(job.image(job.variant()))
            .elf
            .as_ref()
            .context("the guest was not built")?,
        base,
    )
}

/// Has QEMU wait for a debugger, log to a file when it is told to, and end with us.
fn attach(command: &mut Command, stub: &Path, log: &Path) {
    let option = |path: &Path| path.display().to_string().replace(',', ",,");
    let device = format!("socket,id=stub,server=on,wait=off,path={}", option(stub));
    command.args(["-S", "-chardev", &device, "-gdb", "chardev:stub"]);
    command.arg("-D").arg(log);
    launch::end_with_us(command);
}

/// A machine that is being looked at.
struct Machine<'l> {
    stub: Stub,
    marks: Marks,
    log: &'l Path,
    /// Where in it the next line is that was not read.
    read: u64,
}

impl Machine<'_> {
    /// Counts the passes over `cells` cells, then lets the machine run to its end.
    fn count(&mut self, cells: usize) -> Result<Vec<Passes>> {
        let mut counted = vec![Vec::new(); cells];
        for pass in 0..plan::PASSES {
            for step in 0..cells {
                if self.stub.go_to(self.marks.block)? == Stop::Ended {
                    bail!("the machine ended after {step} of {cells} cells in pass {pass}");
                }
                let cell = match plan::is_forwards(pass) {
                    true => step,
                    false => cells - 1 - step,
                };
                counted[cell].push(self.count_block()?);
            }
        }
        let stop = self.stub.go_on()?;
        ensure!(stop == Stop::Ended, "the machine stopped once more");
        Ok(counted)
    }

    /// Counts what is executed until the function returns that is about to begin.
    fn count_block(&mut self) -> Result<Vec<Sample>> {
        let end = self.stub.return_address()?;
        self.stub.monitor("one-insn-per-tb on")?;
        self.stub.monitor("log exec,nochain,int")?;
        if self.stub.go_to(end)? == Stop::Ended {
            bail!("the machine ended in a block of samples");
        }
        self.stub.monitor("log none")?;
        self.stub.monitor("one-insn-per-tb off")?;
        self.read()
    }

    /// Reads what was logged since the last time, and frees the disk of it: QEMU keeps the file open and goes on
    /// behind it.
    fn read(&mut self) -> Result<Vec<Sample>> {
        let shown = || places::shown(self.log);
        let mut file = File::open(self.log).with_context(shown)?;
        file.seek(SeekFrom::Start(self.read)).with_context(shown)?;
        let mut lines = BufReader::new(file);
        let mut reader = Reader::new(&self.marks);
        let mut line = String::new();
        while lines.read_line(&mut line).with_context(shown)? > 0 {
            reader.feed(line.trim_end_matches('\n'))?;
            line.clear();
        }
        self.read = lines.stream_position().with_context(shown)?;
        File::create(self.log).with_context(shown)?;
        Ok(reader.samples)
    }
}

/// What the console said, to the end.
fn console(lines: &Receiver<Line>) -> String {
    let lines = lines.iter().filter_map(|line| match line {
        Line::Console(line) => Some(line + "\n"),
        Line::Emulator(_) => None,
    });
    lines.collect()
}
