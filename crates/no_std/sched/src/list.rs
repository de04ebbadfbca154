// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lock-free list to which many CPUs push and which one CPU empties at once: the stack of R. K.
//! Treiber ("Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986), which has no ABA
//! problem as long as no CPU pops a single element.
//!
//! Elements are numbers, and each has its own link, so there are no pointers and a push can't fail.
//! An element is in at most one list per link, and must not be pushed again before it has been
//! taken.

#[cfg(loom)]
use loom::sync::atomic::AtomicU32;

#[cfg(not(loom))]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Means no element. The value is 0, so that zeroed memory contains links that lead nowhere.
const NONE: u32 = 0;

/// The link from an element to the next element.
#[derive(Debug)]
pub struct Link(AtomicU32);

/// A list, which holds the number of its newest element plus one.
#[derive(Debug)]
pub struct List(AtomicU32);

macro_rules! constructors {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl $name {
            /// Creates a link to no element, or an empty list.
            #[must_use]
            #[cfg(not(loom))]
            pub const fn new() -> Self {
                Self(AtomicU32::new(NONE))
            }

            /// Creates a link to no element, or an empty list.
            #[must_use]
            #[cfg(loom)]
            pub fn new() -> Self {
                Self(AtomicU32::new(NONE))
            }
        }
    )*};
}

constructors!(Link List);

impl List {
    /// Adds element `number`, whose link is `link`; returns whether the list was empty.
    ///
    /// Earlier stores are visible to the CPU that takes the element. The operation is sequentially
    /// consistent, like [`Self::take`]. If one side adds itself and then checks a condition, and
    /// the other side makes the condition true and then empties the list, at least one side sees
    /// the other.
    #[inline]
    pub fn push(&self, number: u32, link: &Link) -> bool {
        let mut head = self.0.load(Relaxed);
        loop {
            link.0.store(head, Relaxed);
            match self
                .0
                .compare_exchange_weak(head, number + 1, SeqCst, Relaxed)
            {
                Ok(_) => return head == NONE,
                Err(now) => head = now,
            }
        }
    }

    /// Whether the list is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.load(SeqCst) == NONE
    }

    /// Empties the list and returns the elements in the order in which they were pushed; `link`
    /// returns the link of an element.
    #[inline]
    pub fn take<'l, F: Fn(u32) -> &'l Link>(&self, link: F) -> Taken<F> {
        let mut newest = self.0.swap(NONE, SeqCst);
        // The list begins with the newest element, so this reverses the links.
        let mut first = NONE;
        while let Some(number) = newest.checked_sub(1) {
            let link = link(number);
            let older = link.0.load(Relaxed);
            link.0.store(first, Relaxed);
            first = newest;
            newest = older;
        }
        Taken { next: first, link }
    }
}

/// The elements that were taken.
#[derive(Debug)]
pub struct Taken<F> {
    next: u32,
    link: F,
}

impl<'l, F: Fn(u32) -> &'l Link> Iterator for Taken<F> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let number = self.next.checked_sub(1)?;
        // Reads the link before it returns the element, because the element's owner may push it again.
        self.next = (self.link)(number).0.load(Relaxed);
        Some(number)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn elements_come_out_in_the_order_in_which_they_went_in() {
        let links = [const { Link::new() }; 4];
        let list = List::new();
        let pushed: Vec<bool> = [2, 0, 3]
            .iter()
            .map(|&n| list.push(n, &links[n as usize]))
            .collect();
        assert_eq!(pushed, [true, false, false]);
        let taken: Vec<u32> = list.take(|n| &links[n as usize]).collect();
        assert_eq!(taken, [2, 0, 3]);
        assert!(list.is_empty());
        assert_eq!(list.take(|n| &links[n as usize]).count(), 0);
    }

    #[test]
    fn what_was_taken_can_be_pushed_while_the_rest_is_read() {
        let links = [const { Link::new() }; 3];
        let list = List::new();
        (0..3).for_each(|n| assert_eq!(list.push(n, &links[n as usize]), n == 0));
        let mut seen = Vec::new();
        for n in list.take(|n| &links[n as usize]) {
            seen.push(n);
            list.push(n, &links[n as usize]);
        }
        assert_eq!(seen, [0, 1, 2]);
        assert_eq!(list.take(|n| &links[n as usize]).count(), 3);
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p sched`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    /// Two CPUs push and a third one empties twice: every element arrives exactly once.
    #[test]
    fn nothing_is_lost_and_nothing_comes_twice() {
        loom::model(|| {
            let shared = Arc::new((List::new(), [Link::new(), Link::new()]));
            let pushers: Vec<_> = (0..2u32)
                .map(|n| {
                    let shared = shared.clone();
                    thread::spawn(move || shared.0.push(n, &shared.1[n as usize]))
                })
                .collect();
            let take = |seen: &mut Vec<u32>| seen.extend(shared.0.take(|n| &shared.1[n as usize]));
            let mut seen = Vec::new();
            take(&mut seen);
            pushers
                .into_iter()
                .for_each(|pusher| assert!(pusher.join().is_ok()));
            take(&mut seen);
            seen.sort_unstable();
            assert_eq!(seen, [0, 1]);
        });
    }

    /// A waiter adds itself and checks a condition; another thread makes it true and empties the
    /// list: at least one of them sees the other.
    #[test]
    fn who_waits_is_seen_or_sees() {
        loom::model(|| {
            let shared = Arc::new((List::new(), Link::new(), AtomicU32::new(0)));
            let maker = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.2.fetch_add(1, SeqCst);
                    shared.0.take(|_| &shared.1).count() == 1
                })
            };
            shared.0.push(0, &shared.1);
            let saw = shared.2.fetch_add(0, SeqCst) != 0;
            assert!(maker.join().unwrap() || saw);
        });
    }

    /// Two CPUs call a function on a third, which polls for a moment and then halts. The caller
    /// that found the list empty wakes the target: by the request word if it polls, otherwise by
    /// interrupt. In every interleaving, no call is left in the list of a CPU that halts without an
    /// interrupt on its way.
    #[test]
    fn no_call_is_left_where_no_cpu_looks() {
        use loom::sync::atomic::AtomicBool;
        use wait::request::{CALL, Request};

        loom::model(|| {
            let shared = Arc::new((
                Request::new(),
                List::new(),
                [Link::new(), Link::new()],
                AtomicBool::new(false),
            ));
            let callers: Vec<_> = (0..2u32)
                .map(|n| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        let (request, list, links, interrupt) = &*shared;
                        if list.push(n, &links[n as usize]) && !request.wake_polling(CALL) {
                            interrupt.store(true, SeqCst);
                        }
                    })
                })
                .collect();
            let (request, list, links, interrupt) = &*shared;
            let drain = || list.take(|n| &links[n as usize]).count();
            let mut served = 0;
            request.start_polling();
            if request.stop_polling() & CALL != 0 {
                request.take(CALL);
                served += drain();
            }
            // The CPU halts: from here on, only an interrupt makes it look.
            callers
                .into_iter()
                .for_each(|caller| assert!(caller.join().is_ok()));
            if interrupt.load(SeqCst) {
                served += drain();
            }
            assert_eq!(served, 2);
        });
    }
}
