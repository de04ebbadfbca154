// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the sending CPU the leader of a cell's measurement.
//!
//! The first CPU goes through the cells one after another. If a cell has another sender, that CPU runs the cell's
//! passes in place of the first CPU: it posts the jobs, measures, and collects the other CPUs' counts. Meanwhile the
//! first CPU acts like any other CPU: it is the receiver or a bystander, or it halts.

use arch::lock::Lock;

use super::post::{self, POSTED, clear_wake_up};
use super::serve_jobs_until;
use crate::percpu::PerCpu;

/// Work that the next leader runs.
struct Work(*mut (dyn FnMut() + Send));

// SAFETY: another CPU may use the closure (`FnMut() + Send`), and only that CPU does: `run_on` does not touch the
// closure from the time when it hands it over until the closure has returned.
unsafe impl Send for Work {}

/// State shared by the CPU that hands over the lead and the CPU that takes it over.
struct Handed {
    /// The work, until it is taken.
    work: Option<Work>,
    /// The CPU that waits for the end of the work, until the work has ended.
    waits: Option<&'static PerCpu>,
}

/// The work that is handed over. Only [`wait::post::post`] changes it, as with other work, so a CPU
/// that sees the lead returned has already got the wake-up for this.
static HANDED: Lock<Handed> = Lock::new(Handed {
    work: None,
    waits: None,
});

/// Makes `leader` run `work`; unless `leader` is this CPU, serves jobs meanwhile.
pub fn run_on(leader: &'static PerCpu, work: &mut (dyn FnMut() + Send)) {
    let me = PerCpu::this();
    if core::ptr::eq(leader, me) {
        return work();
    }
    // The number is read before the other CPU can post any work.
    let seen = POSTED.lock().number;
    let work: *mut (dyn FnMut() + Send + '_) = work;
    // SAFETY: only the lifetime changes, and the work has ended when this function returns.
    let work: *mut (dyn FnMut() + Send + 'static) = unsafe { core::mem::transmute(work) };
    *HANDED.lock() = Handed {
        work: Some(Work(work)),
        waits: Some(me),
    };
    post::start_on(leader, run_handed_over);
    serve_jobs_until(me, seen, || HANDED.lock().waits.is_none());
    clear_wake_up(me);
}

/// Runs the closure that was handed over, on the CPU that leads now.
fn run_handed_over() {
    let work = HANDED.lock().work.take();
    let Some(Work(work)) = work else { return };
    // SAFETY: the work was taken, so no other CPU runs it, and `run_on` waits for its end. The lock
    // orders the work after that CPU's earlier accesses and before its later ones.
    unsafe { (*work)() };
    let waits = HANDED.lock().waits;
    let over = |handed: &mut Handed| handed.waits = None;
    let wake = || {
        waits
            .into_iter()
            .for_each(|cpu| post::wake(PerCpu::this(), cpu))
    };
    wait::post::post(HANDED.lock(), over, wake);
}
