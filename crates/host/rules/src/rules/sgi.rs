// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DSB must come between a store and an SGI if the receiver of the SGI reads the stored data.
//!
//! A write of ICC_SGI1R_EL1 is not ordered after earlier stores. Data that the receiver may read must be visible first,
//! which needs a DSB for stores. No register shows which data this is, so the rule watches what the receiver reads. For
//! each SGI, the rule keeps the last stores before the SGI that no DSB has completed, until the next SGI. If a CPU
//! acknowledges an interrupt in this time and soon afterwards reads one of the stored words, only luck made the data
//! visible. Data that only the sender reads, like an exception frame or the sender's own counters, needs no DSB. An SGI
//! of the guest also does not announce earlier stores of the hypervisor.
//!
//! The finding names the store. For example, a log is read after each wake-up, although the SGI does not announce its
//! contents. So the comment that allows such stores is at the code that writes the log, not at the code that sends the
//! SGI.
//!
//! A store to the interrupt controller that makes an interrupt pending (a doorbell) is treated like an SGI, because
//! another CPU takes the interrupt.
//!
//! Not seen: more than [`STORES`] stores before the SGI, more than [`READS`] reads after the acknowledgement, and which
//! CPUs are targets of the SGI. The two limits exist because stores long before the SGI and reads long after it are
//! ordered by other events.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::access::Access;
use crate::decode::{Operation, mrs, msr};
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule};
use crate::shared_state::lock;
#[cfg(test)]
use crate::testing::Examples;

/// Number of stores that are kept per SGI.
const STORES: usize = 16;
/// Number of reads that are checked after an acknowledgement.
const READS: u32 = 64;
/// Size of the words by which addresses are compared, in bytes.
const WORD: u64 = 8;

/// For each CPU, the last SGI that it sent after stores that no DSB has completed.
#[derive(Debug, Default)]
pub struct Sends {
    count: AtomicUsize,
    all: Mutex<Vec<Send>>,
}

#[derive(Debug)]
struct Send {
    sender: u16,
    place: Place,
    /// The stored word and the instruction of each store.
    stores: Vec<(u64, Place)>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct SgiAfterStores {
    stores: VecDeque<(u64, Place)>,
    /// Whether this CPU has an entry in [`Sends`].
    sent: bool,
    /// Number of reads that are still to be checked.
    reads: u32,
}

impl Rule for SgiAfterStores {
    const ABOUT: About = About {
        name: "sgi-after-stores",
        says: "a DSB between a store that the receiver of an SGI reads, and the SGI",
        cites: "IHI 0069H, 12.1.6 (observability of accesses to the GIC's registers); \
                DDI 0487K.a, B2.3 and the DSB instruction",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        match operation {
            Operation::Dsb(barrier) if barrier.stores && !barrier.alone => {
                self.stores.clear();
                if std::mem::take(&mut self.sent) {
                    now.shared.sends.forget_sends(now.cpu);
                }
            }
            msr!(ICC_SGI1R_EL1 | ICC_SGI0R_EL1 | ICC_ASGI1R_EL1) => self.note_send(now),
            mrs!(ICC_IAR1_EL1) if now.shared.sends.count.load(Relaxed) != 0 => {
                self.reads = READS;
            }
            _ => {}
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let Some(address) = access.physical else {
            if access.store && access.gic.is_some_and(|register| register.makes_pending()) {
                self.note_send(now);
            }
            return;
        };
        if access.store {
            if self.stores.len() == STORES {
                self.stores.pop_front();
            }
            self.stores.push_back((address / WORD, access.place));
        } else if self.reads != 0 {
            self.reads -= 1;
            now.shared.sends.check_read::<Self>(now, address / WORD);
        }
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("cached", "on; cpu 1; on; cpu 0"),
            ("received", "sent; cpu 1; mrs ICC_IAR1_EL1 = 0; ldr A"),
            ("sent", "msr ICC_SGI1R_EL1 1"),
            ("read", "cpu 1; mrs ICC_IAR1_EL1 = 1023; ldr A"),
        ],
        breaks: "
            no DSB: cached; str A; received
            a doorbell: cached; str A; gicr str 0x10200 0x2000000; cpu 1; mrs ICC_IAR1_EL1 = 25; ldr A
            a store after the DSB: cached; dsb ishst; str A; received
            a DSB for itself: cached; str A; dsb nsh; received
        ",
        keeps: "
            DSB: cached; str A; dsb ishst; sent; read
            a doorbell after a DSB: cached; str A; dsb ishst; gicr str 0x10200 0x2000000; read
            it reads something else: cached; str 0x40000008; sent; read
            before the interrupt: cached; str A; sent; cpu 1; ldr A
            the DSB came before the read: cached; str A; sent; dsb ish; read
            an SGI that traps, and its DSB: cached; msr SCTLR_EL1 5; el 1; str A; dsb ish; msr ICC_SGI1R_EL1 1; traps 2; el 2; str 0x40000100; sent; read
        ",
    };
}

impl SgiAfterStores {
    /// Handles an interrupt that the CPU sends by an SGI or a doorbell.
    fn note_send(&mut self, now: &Now<'_>) {
        let level = now.place.level;
        let own = self.stores.iter().filter(|(_, at)| at.level <= level);
        let stores: Vec<_> = own.copied().collect();
        if stores.is_empty() {
            return;
        }
        self.sent = true;
        now.shared.sends.keep_send(Send {
            sender: now.cpu,
            place: now.place,
            stores,
        });
    }
}

impl Sends {
    fn keep_send(&self, send: Send) {
        let mut all = lock(&self.all);
        all.retain(|one| one.sender != send.sender);
        all.push(send);
        self.count.store(all.len(), Relaxed);
    }

    fn forget_sends(&self, sender: u16) {
        let mut all = lock(&self.all);
        all.retain(|one| one.sender != sender);
        self.count.store(all.len(), Relaxed);
    }

    /// Handles a read of `word` by a CPU that has acknowledged an interrupt.
    #[cold]
    fn check_read<R: Rule>(&self, now: &Now<'_>, word: u64) {
        for send in lock(&self.all).iter().filter(|send| send.sender != now.cpu) {
            if let Some((_, stored)) = send.stores.iter().find(|(one, _)| *one == word) {
                let what = format!(
                    "an SGI is sent without a DSB after this store, and CPU {} reads what was stored when it has got it",
                    now.cpu
                );
                let sender = Now {
                    cpu: send.sender,
                    ..*now
                };
                sender.report_at::<R>(*stored, Some(send.place), what);
            }
        }
    }
}
