// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `debug`: a machine that waits for gdb.

use anyhow::{Context, Result, bail};
use plan::Under;

use crate::cli::DebugArgs;
use crate::job::Job;
use crate::terminal::say;
use crate::{images, launch, places, qemu};

/// Starts the emulator stopped, its console on the terminal.
pub fn debug(args: &DebugArgs) -> Result<()> {
    let job = Job::new(&args.job)?;
    let emulator = qemu::ensure_for(job.board(), "debug")?;
    let built = images::build(&job.board().name, job.load.guest.as_deref())?;
    let base = job.board().image_base;
    for &under in &job.unders {
        let mut command = launch::command(&job, under, &emulator, &built)?;
        command.args(["-S", "-gdb", &format!("tcp::{}", args.port)]);
        let elf = match under {
            Under::Rouse => Some(&built.hypervisor),
            Under::None => built.guest.as_ref(),
        };
        // Firmware puts the image anywhere; the console says where.
        let symbols = elf.zip(base).map(|(elf, base)| {
            format!("-ex 'add-symbol-file {} -o {base:#x}' ", places::shown(elf))
        });
        say!("The machine under {under} waits for gdb to let the CPUs go. In another terminal:\n");
        say!(
            "gdb-multiarch {}-ex 'target remote :{}'\n",
            symbols.unwrap_or_default(),
            args.port
        );
        say!(
            "The console says where an image is (`base guest` and so on): add its symbols the same way."
        );
        say!("Ctrl-C ends the machine.\n");
        let status = command.status().context("QEMU can't be started")?;
        if !status.success() {
            bail!(
                "QEMU ended with {status}; is port {} taken? --port chooses another",
                args.port
            );
        }
    }
    Ok(())
}
