// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DSB must come between a store and an SGI if the receiver of the SGI reads the stored data.
//!
//! A write of ICC_SGI1R_EL1 is not ordered after earlier stores. Data that the receiver may read must be visible first,
//! which needs a DSB for stores. No register shows which data this is, so the rule watches what the receiver reads. For
//! each SGI, the rule keeps, until the next SGI, the last earlier stores that no DSB has completed. If a CPU
//! acknowledges an interrupt in this time and soon afterwards reads one of the stored words, only luck made the data
//! visible. Data that only the sender reads, like an exception frame or the sender's own counters, needs no DSB. Nor
//! does an SGI of the guest announce earlier stores of the hypervisor. No SGI announces the stores of a handler that
//! has interrupted the sender and returned, perhaps between the barrier and the SGI.
//!
//! The finding names the store. For example, a log is read after each wake-up, although the SGI does not announce the
//! log's contents. So the comment that allows such stores belongs to the code that writes the log, not to the code that
//! sends the SGI.
//!
//! A store to the interrupt controller that makes an interrupt pending (a doorbell) is treated like an SGI, because
//! another CPU takes the interrupt. Every SGI of a GICv2 is such a store, to GICD_SGIR, and a load from GICC_IAR
//! acknowledges it. Both are accesses to memory, so a DMB orders an earlier store before the SGI (DDI 0487K.a, B2.3), and
//! no DSB is needed.
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
use crate::gic::{Mapped, Step};
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

/// A store that no DSB has completed.
#[derive(Clone, Copy, Debug)]
struct Store {
    word: u64,
    place: Place,
    /// The depth of exceptions at its level.
    depth: i64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct SgiAfterStores {
    stores: VecDeque<Store>,
    /// How many of these stores, from the first on, a DMB orders before later accesses to memory.
    ordered: usize,
    /// For each level, the number of exceptions from which it has not yet returned. The code after a reset ends with a
    /// return that has no matching exception.
    depth: [i64; 4],
    /// Whether this CPU has an entry in [`Sends`].
    sent: bool,
    /// Number of reads that are still to be checked.
    reads: u32,
}

impl Rule for SgiAfterStores {
    const ABOUT: About = About {
        name: "sgi-after-stores",
        says: "a DSB between a store that the receiver of an SGI reads, and the SGI; a DMB suffices before a store to a GICv2",
        cites: "IHI 0069H, 12.1.6 (observability of accesses to the GIC's registers); IHI 0048B, 4.3.15 (GICD_SGIR); \
                DDI 0487K.a, B2.3 and the DSB and DMB instructions",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        match operation {
            Operation::Dsb(barrier) if barrier.stores && !barrier.alone => {
                self.stores.clear();
                self.ordered = 0;
                if std::mem::take(&mut self.sent) {
                    now.shared.sends.forget_sends(now.cpu);
                }
            }
            Operation::Dmb(barrier) if barrier.stores && !barrier.alone => {
                self.ordered = self.stores.len();
            }
            msr!(ICC_SGI1R_EL1 | ICC_SGI0R_EL1 | ICC_ASGI1R_EL1) => self.note_send(now, 0),
            mrs!(ICC_IAR1_EL1) => self.note_acknowledge(now),
            Operation::Return => *self.depth(now.place.level) -= 1,
            _ => {}
        }
    }

    fn on_level_entry(&mut self, _: &Now<'_>, level: u8) {
        *self.depth(level) += 1;
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let Some(address) = access.physical else {
            if let Some(register) = access.gic {
                self.note_device_access(now, register, access.store);
            }
            return;
        };
        if access.store {
            if self.stores.len() == STORES {
                self.stores.pop_front();
                self.ordered = self.ordered.saturating_sub(1);
            }
            let depth = *self.depth(access.place.level);
            self.stores.push_back(Store {
                word: address / WORD,
                place: access.place,
                depth,
            });
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
            ("sent2", "gicd2 str 0xf00 0x20001"),
            ("acknowledged2", "cpu 1; gicc ldr 0xc 1"),
            ("read", "cpu 1; mrs ICC_IAR1_EL1 = 1023; ldr A"),
        ],
        breaks: "
            no DSB: cached; str A; received
            a doorbell: cached; str A; gicr str 0x10200 0x2000000; cpu 1; mrs ICC_IAR1_EL1 = 25; ldr A
            a store after the DSB: cached; dsb ishst; str A; received
            a DSB for itself: cached; str A; dsb nsh; received
            a DMB, and a system register: cached; str A; dmb ishst; received
            a DMB, and a doorbell of a GICv3: cached; str A; dmb ish; gicr str 0x10200 0x2000000; cpu 1; mrs ICC_IAR1_EL1 = 25; ldr A
            a handler that sends: cached; dsb ishst; irq 2; str A; received
            a GICv2: cached; str A; sent2; acknowledged2; ldr A
            a GICv2, acknowledged by a guest: cached; str A; sent2; cpu 1; gicv ldr 0xc 1; ldr A
            a GICv2's doorbell: cached; str A; gicd2 str 0x204 1; acknowledged2; ldr A
            a GICv2's SGI made pending: cached; str A; gicd2 str 0xf20 1; acknowledged2; ldr A
            a GICv2, a store after the DMB: cached; dmb ishst; str A; sent2; acknowledged2; ldr A
            a GICv2, a store between others after the DMB: cached; 10 * str 0x4000010#; dmb ish; str A; 10 * str 0x4000020#; sent2; acknowledged2; ldr A
            a GICv2, a DMB for loads: cached; str A; dmb ishld; sent2; acknowledged2; ldr A
            a GICv2, a DMB for itself: cached; str A; dmb nsh; sent2; acknowledged2; ldr A
        ",
        keeps: "
            DSB: cached; str A; dsb ishst; sent; read
            a doorbell after a DSB: cached; str A; dsb ishst; gicr str 0x10200 0x2000000; read
            a GICv2, DMB: cached; str A; dmb ishst; sent2; acknowledged2; ldr A
            a GICv2, DMB, and stores of its own: cached; str A; dmb ish; 10 * str 0x4000010#; sent2; acknowledged2; ldr A
            a GICv2, DSB: cached; str A; dsb ish; sent2; acknowledged2; ldr A
            a GICv2, nothing is sent: cached; str A; gicd2 str 0xf10 1; acknowledged2; ldr A
            a handler between the DSB and the SGI: cached; dsb ishst; irq 2; str A; eret; sent; read
            it reads something else: cached; str 0x40000008; sent; read
            before the interrupt: cached; str A; sent; cpu 1; ldr A
            the DSB came before the read: cached; str A; sent; dsb ish; read
            an SGI that traps, and its DSB: cached; msr SCTLR_EL1 5; el 1; str A; dsb ish; msr ICC_SGI1R_EL1 1; traps 2; el 2; str 0x40000100; sent; read
        ",
    };
}

impl SgiAfterStores {
    fn depth(&mut self, level: u8) -> &mut i64 {
        &mut self.depth[usize::from(level & 3)]
    }

    fn note_device_access(&mut self, now: &Now<'_>, register: Mapped, store: bool) {
        if store && register.makes_pending() {
            let ordered = if register.is_ordered_by_dmb() {
                self.ordered
            } else {
                0
            };
            self.note_send(now, ordered);
        } else if let Some((Step::Acknowledge, _)) = register.step(store) {
            self.note_acknowledge(now);
        }
    }

    /// Handles a read that acknowledges an interrupt.
    fn note_acknowledge(&mut self, now: &Now<'_>) {
        if now.shared.sends.count.load(Relaxed) != 0 {
            self.reads = READS;
        }
    }

    /// Handles an interrupt that the CPU sends by an SGI or a doorbell. The first `ordered` stores need no other barrier.
    fn note_send(&mut self, now: &Now<'_>, ordered: usize) {
        let level = now.place.level;
        let stores = self.stores.iter().skip(ordered);
        let own = stores.filter(|store| {
            store.place.level <= level
                && store.depth <= self.depth[usize::from(store.place.level & 3)]
        });
        let stores: Vec<_> = own.map(|store| (store.word, store.place)).collect();
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
                    "an SGI is sent without a barrier after this store, and CPU {} reads what was stored when it has got it",
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
