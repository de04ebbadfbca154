// SPDX-License-Identifier: MIT OR Apache-2.0
//! The samples of a boot on gem5, whose tracers write each instruction with its time.

use std::io::BufRead;
use std::path::Path;

use ::critical::{Chart, Core, Traces, timed};
use anyhow::{Context, Result, bail};
use tarmac::{Fifo, Levels, Line};

use crate::gem5;
use crate::job::Job;
use shell::partial_files::Scratch;

/// Largest number of instructions to keep per core. They take 1 GiB.
const MOST: usize = 1 << 26;

/// The tracers of a boot.
#[derive(Debug)]
pub struct Tracers {
    folder: Scratch,
    cores: Vec<Fifo<Core>>,
    chart: Chart,
    /// Ticks per cycle.
    period: u64,
}

impl Tracers {
    /// Starts to read the traces of the machine's cores.
    pub fn new(job: &Job, chart: Chart) -> Result<Self> {
        let folder = Scratch::new()?;
        let listen = |core: u32| {
            Fifo::listen(&folder.path().join(format!("cpu{core}")), |trace| {
                read_core(trace)
            })
        };
        Ok(Self {
            cores: (0..job.cpus).map(listen).collect::<Result<_>>()?,
            chart,
            period: gem5::period(job)?,
            folder,
        })
    }

    /// Returns the folder to which the tracers write.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the samples of the boot, which has ended.
    pub fn read_traces(self) -> Result<Traces, String> {
        // End every thread, even if another one has failed. Otherwise, it would wait for more input for ever.
        let cores: Vec<Result<Core>> = self.cores.into_iter().map(Fifo::end).collect();
        let cores: Result<Vec<Core>> = cores.into_iter().collect();
        let cores = cores.map_err(|error| format!("{error:#}"))?;
        Ok(timed(&cores, self.chart, self.period))
    }
}

/// Reads the instructions of a core from its trace.
fn read_core(trace: &mut impl BufRead) -> Result<Core> {
    let mut core = Core::default();
    let mut levels = Levels::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = trace.read_until(b'\n', &mut line);
        if length.context("gem5's trace can't be read")? == 0 {
            core.finish();
            return Ok(core);
        }
        if core.committed.len() >= MOST {
            bail!(
                "a core executes more than {MOST} instructions; use a smaller --iterations, or fewer cells"
            );
        }
        match tarmac::parse(&String::from_utf8_lossy(&line))? {
            Some(Line::Instruction(one)) => {
                let level = levels.executed(&one) as u8;
                core.commits(one.tick, level, one.pc, one.word);
            }
            Some(Line::Access(access)) => {
                core.accesses(access.physical.unwrap_or(access.address), access.store);
            }
            Some(Line::Register(name, value)) => core.writes(name, value),
            None => {}
        }
    }
}
