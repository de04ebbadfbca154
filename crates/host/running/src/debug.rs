// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run --debug`: a machine that waits for a debugger and ends together with it.

mod bridge;
pub mod debugger;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plan::Under;

use crate::boot::Ready;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::options::JobArgs;
use debugger::{Debugger, Symbols};
use shell::failure::bad_input;
use shell::interrupt;
use shell::partial_files::Scratch;
use shell::terminal::say;

/// Interval between checks of whether the machine has ended.
const TICK: Duration = Duration::from_millis(50);

/// Starts the emulator with its CPUs stopped and its console on the terminal.
pub fn debug(args: &JobArgs, port: u16) -> Result<()> {
    let job = Job::new(args)?;
    job.board().qemu("--debug")?;
    if let Some(under) = job.unders.iter().find(|under| under.is_other()) {
        bad_input!(
            "--under {under}: a debugger would see that, and not the guest; use rouse or none"
        );
    }
    let listener = listen(port)?;
    let Ready { emulator, built } = Ready::make(&job)?;
    let debugger = debugger::find();
    let place = Scratch::new()?;
    let stub = place.path().join("stub");
    let gone = bridge::serve(listener, stub.clone());
    for variant in job.variants()? {
        let mut command = emulator.command(&job, variant, &built, place.path())?;
        wait_for_debugger(&mut command, &stub);
        print_usage(
            variant,
            debugger.as_ref(),
            symbols(&job, variant, &built),
            port,
        );
        let machine = command.spawn().context("QEMU can't be started")?;
        wait_for_end(machine, &gone)?;
        if interrupt::requested() {
            break;
        }
    }
    Ok(())
}

/// Opens the port before anything is built, so that a port in use is reported early.
fn listen(port: u16) -> Result<TcpListener> {
    match TcpListener::bind(("127.0.0.1", port)) {
        Ok(listener) => Ok(listener),
        Err(error) => bad_input!("--debug: port {port} can't be used ({error}); name another one"),
    }
}

/// Makes the machine stop before its first instruction, and makes its debugger stub listen at `stub`.
fn wait_for_debugger(command: &mut Command, stub: &Path) {
    let device = format!(
        "socket,id=stub,server=on,wait=off,path={}",
        stub.display().to_string().replace(',', ",,")
    );
    command.args(["-S", "-chardev", &device, "-gdb", "chardev:stub"]);
}

/// Returns the symbols to load and their address. `None` if the first instructions are not ours, or if the address is
/// not fixed.
fn symbols<'b>(job: &Job, variant: Variant, built: &'b Built) -> Option<Symbols<'b>> {
    let elf = match variant.under {
        Under::Rouse => &built.hypervisor,
        Under::None => built.guest_elf(job.image(variant))?,
        // The first instructions are not ours.
        Under::Xen | Under::Bao | Under::Kvm | Under::KvmNvhe | Under::KvmProtected => return None,
    };
    // Firmware chooses the image's address; the console shows it.
    let base = job.board().machine.image_base()?;
    Some(Symbols { elf, base })
}

/// Prints the commands to type.
fn print_usage(variant: Variant, debugger: Option<&Debugger>, symbols: Option<Symbols>, port: u16) {
    say!("The machine, {variant}, waits for a debugger to let the CPUs go. In another terminal:");
    say!("");
    match debugger {
        Some(debugger) => say!("{}", debugger.command(symbols, port)),
        None => {
            say!("{}", debugger::usual_debugger().command(symbols, port));
            say!("");
            say!(
                "(No debugger that knows arm64 is here: {}.)",
                debugger::how_to_install()
            );
        }
    }
    say!("");
    say!(
        "The console says where an image is (`base guest` and so on): add its symbols the same way."
    );
    say!("The machine ends with the debugger, unless that detaches, and with Ctrl-C here.");
    say!("");
}

/// Waits until the machine ends. Ends the machine when `gone` reports that the debugger has disconnected, or on a
/// signal.
fn wait_for_end(mut machine: Child, gone: &Receiver<()>) -> Result<()> {
    loop {
        if let Some(status) = machine.try_wait().context("QEMU can't be waited for")? {
            if !status.success() && gone.try_recv().is_err() && !interrupt::requested() {
                bail!("QEMU ended with {status}; its output is above");
            }
            return Ok(());
        }
        let left = gone.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout);
        if left || interrupt::requested() {
            // These two calls fail only if the machine has ended on its own.
            let _ = machine.kill();
            let _ = machine.wait();
            return Ok(());
        }
    }
}
