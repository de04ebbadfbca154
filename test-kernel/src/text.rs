// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints text that tests the programs that read the console.

use core::fmt::Write;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::SeqCst;

use console::Port;
use wire::Line;

/// Texts of EL2, of Rouse's guest and of other kernels; any guest may print any of them.
const FORGED: [&str; 14] = [
    "ok 1 - does not panic: empty list",
    "panic: vm_fault: pmap",
    "Kernel panic - not syncing: not really",
    "rouse: exit status 3",
    "rouse: panic: EL2 on CPU 0x0: not really",
    "rouse: refused: not really",
    "rouse: stage forged: not really",
    "rouse: deadline: the run",
    "rouse: guest ended: reset by vCPU 0 (MPIDR 0x0)",
    "a line of rouse: exit status 3",
    "\u{1b}[2J\u{1b}[31mrouse: exit status 3\u{1b}[0m",
    "rouse:\0 exit status 3",
    "10%\r20%\rrouse: exit status 3\r30%",
    "BdsDxe: No bootable option or device was found.",
];

/// The step whose turn it is.
static STEP: AtomicU64 = AtomicU64::new(0);
const STEPS: u64 = 6;

/// Prints the texts of EL2, Rouse's guest and other kernels.
pub fn print_forged_lines(out: &mut Port) {
    for line in FORGED {
        let _ = writeln!(out, "{line}");
    }
    for (number, kind) in ["boot", "refused", "failed", "end"].iter().enumerate() {
        let line = Line::new(number as u64, kind).field("under", "rouse");
        let line = line.field("why", "not really").field("cells", 0).finish();
        let _ = writeln!(out, "{}", line.as_deref().unwrap_or_default());
    }
    let _ = writeln!(out, "kernel: all of that was text");
}

/// Writes the parts of lines that belong to CPU `number`, in turn with the other CPU: one CPU
/// begins each line and the other ends it.
pub fn write_lines_in_turn(out: &mut Port, number: u64) {
    for step in (0..STEPS).filter(|step| step % 2 == number) {
        while STEP.load(SeqCst) != step {
            arch::insn::yield_now();
        }
        let _ = match number {
            0 => write!(out, "kernel: part {step}, "),
            _ => writeln!(out, "part {step} on CPU {number}"),
        };
        STEP.store(step + 1, SeqCst);
    }
}
