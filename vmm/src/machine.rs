// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creates the machine from the options, and runs it until the guest ends.
//!
//! Each vCPU has its own thread on its own CPU. The first thread runs on other CPUs if there are any, and waits until a
//! vCPU ends or the console has been silent for too long. Before the guest starts, `filter` restricts the system calls
//! that the program may make.

mod breach;
mod bus;
mod console;
mod cpu;
mod exits;
mod files;
mod filter;
mod gic;
pub mod init;
mod mode;
mod pins;
mod pmu;
mod registers;
mod vm;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};
use vmm_sys_util::signal::Killable;

use crate::options::{Mode, Options};
use bus::Bus;
use cpu::{Cause, Cpu, Left};
use files::Files;
use vm::Vm;

/// Returns the mode of KVM on this host, if this process can read it in the kernel's log.
#[must_use]
pub fn kvm_mode() -> Option<Mode> {
    mode::mode_in_log().ok().flatten()
}

/// Keeps the calling thread, and all threads that it starts, away from the CPUs of a guest's
/// vCPUs if there are other CPUs. Returns the CPUs of the vCPUs, which the caller passes to
/// the process that runs them.
///
/// # Errors
/// [`Obstacle`] if there are too few CPUs or `pins` is wrong.
pub fn keep_off_vcpu_cpus(cpus: usize, pins: Option<&[usize]>) -> Result<Vec<usize>, Obstacle> {
    let places = pins::choose_cpus(cpus, pins)?;
    pins::run_on(&places.rest)?;
    Ok(places.vcpus)
}

/// Why a guest could not be started. One line names the problem, the place and the remedy.
#[derive(Debug)]
pub struct Obstacle(String);

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The guest turned its machine off.
    Off,
    /// The guest reset its machine.
    Reset,
    /// The guest failed. The text to print has the registers of all vCPUs.
    Badly(String),
}

impl End {
    /// Returns the exit status of this program.
    #[must_use]
    pub const fn status(&self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Badly(_) => 1,
            Self::Reset => RESET,
        }
    }

    /// Returns the message to print about the guest's end, if any.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Off => None,
            Self::Reset => Some("rouse-kvm: the guest has reset its machine\n"),
            Self::Badly(words) => Some(words),
        }
    }
}

/// Exit status if the guest reset its machine.
pub const RESET: u8 = 3;

/// The interval between signals to a vCPU that has to stop, and the maximum number of these signals.
const KICK: Duration = Duration::from_millis(10);
const KICKS: usize = 500;

/// Runs a guest.
///
/// # Errors
/// [`Obstacle`] if the guest could not be started.
pub fn run(options: &Options) -> Result<End, Obstacle> {
    if options.with_parent {
        end_with_parent()?;
    }
    let files = Files::read(options)?;
    if let Some(mode) = options.mode {
        mode::require_mode(mode)?;
    }
    let places = pins::choose_cpus(options.cpus, options.pins.as_deref())?;
    let (vm, cpus) = Vm::new(options, &files)?;
    let bus = Arc::new(Bus::new(vm.fd.clone(), options.console, options.source));
    let (tell, told) = mpsc::channel();
    let together = Arc::new(Together {
        start: Barrier::new(cpus.len() + 1),
        stop: AtomicBool::new(false),
    });
    cpu::install_handler()
        .map_err(|error| Obstacle(format!("signals can't be set up ({error})")))?;
    let mut threads = Vec::new();
    for (cpu, &place) in cpus.into_iter().zip(&places.vcpus) {
        // The new thread inherits this affinity.
        pins::run_on(&[place])?;
        threads.push(start_thread(cpu, &bus, &together, &tell));
    }
    pins::run_on(&places.rest)?;
    filter::install()?;
    if let Some(breach) = options.break_bound {
        return Err(breach::make_call(breach));
    }
    thread::sleep(options.rest);
    together.start.wait();
    let machine = RunningGuest {
        threads,
        told,
        together,
    };
    let end = machine.wait_for_end(options.timeout, &bus);
    bus.flush();
    // The memory of the guest has to outlive its vCPUs, whose threads still exist.
    drop(vm);
    Ok(end)
}

/// Makes the host's kernel end this program when its parent ends.
fn end_with_parent() -> Result<(), Obstacle> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Obstacle(format!("--with-parent: {error}; leave it out")))
}

/// State that the threads share.
struct Together {
    /// Makes all threads start at once, after the filter is installed.
    start: Barrier,
    /// Whether the threads must stop.
    stop: AtomicBool,
}

/// Starts the thread of `cpu`, which sends the state after the vCPU's last exit to `tell`.
fn start_thread(
    mut cpu: Cpu,
    bus: &Arc<Bus>,
    together: &Arc<Together>,
    tell: &Sender<Left>,
) -> JoinHandle<()> {
    let (bus, together, tell) = (bus.clone(), together.clone(), tell.clone());
    thread::spawn(move || {
        together.start.wait();
        let left = cpu.run(&bus, &together.stop);
        // If there is no receiver, the program is about to end.
        let _ = tell.send(left);
    })
}

/// A running guest.
struct RunningGuest {
    threads: Vec<JoinHandle<()>>,
    told: Receiver<Left>,
    together: Arc<Together>,
}

impl RunningGuest {
    /// Waits until the guest ends, or its console is silent for `timeout`.
    fn wait_for_end(self, timeout: Duration, bus: &Bus) -> End {
        let mut written = bus.bytes_written();
        loop {
            match self.told.recv_timeout(timeout) {
                Ok(left) => return self.end_of_guest(left),
                Err(RecvTimeoutError::Timeout) if bus.bytes_written() != written => {
                    written = bus.bytes_written();
                }
                Err(_) => {
                    let why = format!(
                        "the guest hangs: its console was silent for {} s; --timeout gives it longer",
                        timeout.as_secs()
                    );
                    return self.end_badly(&why, Vec::new());
                }
            }
        }
    }

    fn end_of_guest(&self, left: Left) -> End {
        match &left.cause {
            Cause::Off => End::Off,
            Cause::Reset => End::Reset,
            Cause::Stopped => self.end_badly("a vCPU stopped by itself", vec![left]),
            Cause::Badly(why) => {
                let why = format!("vCPU {}: {why}", left.index);
                self.end_badly(&why, vec![left])
            }
        }
    }

    /// Stops every vCPU, and reports the registers of each.
    fn end_badly(&self, why: &str, mut left: Vec<Left>) -> End {
        self.together.stop.store(true, Relaxed);
        // One signal is not enough, because a signal that arrives just before a vCPU is entered has no effect.
        for _ in 0..KICKS {
            if left.len() == self.threads.len() {
                break;
            }
            for thread in &self.threads {
                // A thread that has ended needs no signal.
                let _ = thread.kill(cpu::exit_signal());
            }
            left.extend(self.told.recv_timeout(KICK));
            left.extend(self.told.try_iter());
        }
        left.sort_by_key(|left| left.index);
        let mut words = format!("rouse-kvm: {why}\n");
        for left in &left {
            words += &format!("rouse-kvm: vCPU {}\n{}", left.index, left.registers);
        }
        End::Badly(words)
    }
}
