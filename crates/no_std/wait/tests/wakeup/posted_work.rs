// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that [`wait::post`] posts work correctly for a CPU that parks: the wake-up of the post
//! never comes during the work.
//!
//! The poster posts, waits until the work has begun, hands over a payload and wakes the CPU for it.
//! Whenever the CPU ends a wait during the work, the payload must be there. The mutant posts first and
//! then wakes; [`post`] excludes that order.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::Mutex;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{Acquire, Release};
use wait::post::{clear_wake_up, post};
use wait::request::RESCHED;

use crate::PREEMPTIONS;
use crate::machine::{LoomCpu, Wake, World};
use crate::protocol::Real;
use crate::ways::Way;

/// Indices of the two wake-ups: the one for the work, and the one within it.
const POSTED: usize = 0;
const HANDED: usize = 1;

/// The mutant's message when it fails.
const FOR_NOTHING: &str = "in the work it is woken for nothing";

/// State that both sides share.
struct Shared {
    world: Arc<World>,
    /// Number of the last posted piece of work; 0 before the first.
    number: Mutex<u32>,
    /// 1 once the work has begun.
    begun: AtomicU32,
}

impl Shared {
    fn wake(&self, index: usize) {
        let wake = Wake {
            bit: RESCHED,
            elide: false,
        };
        self.world.wake::<Real>(index, wake);
    }
}

/// A way to post: the guest's, or a mutant.
type Posting = fn(&Shared);

fn woken_before_it_is_seen(shared: &Shared) {
    let number = shared.number.lock().unwrap();
    post(number, |number| *number = 1, || shared.wake(POSTED));
}

fn seen_before_it_is_woken(shared: &Shared) {
    *shared.number.lock().unwrap() = 1;
    shared.wake(POSTED);
}

/// Explores executions with up to [`PREEMPTIONS`] preemptions; returns how many found work before and after parking.
fn explore(way: Way, posting: Posting) -> [u64; 2] {
    let found = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let counted = Arc::clone(&found);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.check(move || {
        let world = Arc::new(World::new(vec![RESCHED; 2], Arc::default()));
        let shared = Arc::new(Shared {
            world: Arc::clone(&world),
            number: Mutex::new(0),
            begun: AtomicU32::new(0),
        });
        let poster = Arc::clone(&shared);
        loom::thread::spawn(move || {
            posting(&poster);
            while poster.begun.load(Acquire) == 0 {
                loom::thread::yield_now();
            }
            poster.wake(HANDED);
        });
        let cpu = LoomCpu::<Real>::new(world, false);
        let mut idle = way.idle(RESCHED);
        let mut parked = 0;
        while *shared.number.lock().unwrap() == 0 {
            idle.wait(&cpu);
            parked = 1;
        }
        counted[parked].fetch_add(1, Relaxed);
        clear_wake_up(&cpu);
        shared.begun.store(1, Release);
        idle.wait(&cpu);
        assert!(shared.world.has_handed(HANDED), "{FOR_NOTHING}");
    });
    [0, 1].map(|n| found[n].load(Relaxed))
}

/// Asserts that, with this `way` of waiting, work is found both before parking and after it.
fn assert_holds(way: Way) {
    let found = explore(way, woken_before_it_is_seen);
    println!("{way:?}: found without parking and after it: {found:?}");
    assert!(found.iter().all(|&times| times != 0), "{found:?}");
}

#[test]
fn posted_work_is_woken_once_wfi() {
    assert_holds(Way::Wfi);
}

#[test]
fn posted_work_is_woken_once_poll_wfi() {
    assert_holds(Way::PollWfi);
}

#[test]
fn mutant_seen_before_it_is_woken() {
    let panic = catch_unwind(|| explore(Way::Wfi, seen_before_it_is_woken));
    let panic = panic.expect_err("the model does not see this mutant");
    let message = panic.downcast_ref::<String>().map(String::as_str);
    assert_eq!(message, Some(FOR_NOTHING));
}
