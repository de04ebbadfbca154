// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes the lead to the CPU that sends, and back.
//!
//! The first CPU goes through the cells one after another. A pass of a cell with another sender runs on that CPU, like
//! it would here: that CPU posts the jobs, measures, and collects the others' counts. Meanwhile the first CPU serves
//! like any other: it is the receiver, a bystander, or halts.

use spin::mutex::SpinMutex;

use super::post::{self, POSTED, Turn, begin};
use super::serve_until;
use crate::percpu::PerCpu;

/// Work of the next leader.
struct Work(*mut (dyn FnMut() + Send));

// SAFETY: another CPU may use the closure (`FnMut() + Send`), and only that one does: `on` does not touch it between
// handing it over and its end.
unsafe impl Send for Work {}

/// State between the CPU that hands the lead over and the one that takes it.
struct Handed {
    /// The work, until it is taken.
    work: Option<Work>,
    /// The CPU that waits for its end, until it has ended.
    waits: Option<&'static PerCpu>,
}

/// Only [`wait::post::post`] changes it, like other work: a CPU that finds the lead returned has already got the
/// wake-up for it.
static HANDED: SpinMutex<Handed, Turn> = SpinMutex::new(Handed {
    work: None,
    waits: None,
});

/// Makes `leader` run `work`, and serves meanwhile, unless `leader` is this CPU.
pub fn on(leader: &'static PerCpu, work: &mut (dyn FnMut() + Send)) {
    let me = PerCpu::this();
    if core::ptr::eq(leader, me) {
        return work();
    }
    // Read before the other CPU can post any work.
    let seen = POSTED.lock().number;
    let work: *mut (dyn FnMut() + Send + '_) = work;
    // SAFETY: only the lifetime changes, and the work has ended when this function returns.
    let work: *mut (dyn FnMut() + Send + 'static) = unsafe { core::mem::transmute(work) };
    *HANDED.lock() = Handed {
        work: Some(Work(work)),
        waits: Some(me),
    };
    post::leave_to(leader, take);
    serve_until(me, seen, || HANDED.lock().waits.is_none());
    begin(me);
}

/// Runs the closure that was handed over, on the CPU that leads now.
fn take() {
    let work = HANDED.lock().work.take();
    let Some(Work(work)) = work else { return };
    // SAFETY: it was taken, so no other CPU runs it, and `on` waits for its end. The lock orders that CPU's accesses
    // before and after.
    unsafe { (*work)() };
    let waits = HANDED.lock().waits;
    let over = |handed: &mut Handed| handed.waits = None;
    let wake = || {
        waits
            .into_iter()
            .for_each(|cpu| post::call(PerCpu::this(), cpu))
    };
    wait::post::post(HANDED.lock(), over, wake);
}
