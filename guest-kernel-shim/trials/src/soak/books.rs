// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the interrupts that were sent and taken.
//!
//! A [`Channel`] is one INTID at one receiver. If only one CPU sends on a channel, and only after
//! the last interrupt was taken, two interrupts can't merge into one, and the number taken has to
//! equal the number sent. Interrupts that may have merged, or may have been withdrawn, are counted:
//! the number taken may fall short of the number sent by that many, but may never exceed it.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use gic::Spi;
use platform::MAX_CPUS;

use super::state::wait_for;
use super::violation::{Kind, stop_machine};
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu;
use guest_kernel_shim::percpu::PerCpu;

/// The first SGI that this kernel does not use outside blocks of tasks. Only CPU n sends number `OWN + n`; any CPU may
/// send the SGIs from [`first_shared_sgi`] on.
pub const OWN: u32 = 2;

/// Returns the first SGI that any CPU may send; see [`OWN`]. If fewer SGIs are usable, there are fewer of both kinds.
pub fn first_shared_sgi() -> u32 {
    OWN + sender_count()
}

/// Returns the number of CPUs with an SGI that no other CPU sends.
pub fn sender_count() -> u32 {
    match usable_sgi_count() {
        SGIS => MAX_SENDERS,
        // Any CPU may send the last two SGIs.
        fewer => fewer - OWN - 2,
    }
}

/// Returns the first INTID that can't be used: it is not an SGI, or belongs to the secure world.
pub fn usable_sgi_count() -> u32 {
    guest_kernel_shim::interrupts::usable_sgi_count()
}

/// Maximum number of CPUs with an SGI and an SPI that no other CPU sends.
pub const MAX_SENDERS: u32 = 8;
/// The first INTID that is not an SGI.
pub const SGIS: u32 = 16;
/// A PPI that no device uses.
pub const PPI: u32 = 20;
/// The first of the SPIs in use, one per CPU; no device that has a driver here uses them.
pub const SPI: u32 = 40;

/// One INTID at one receiver, with the numbers of its interrupts.
pub struct Channel {
    sent: AtomicU32,
    taken: AtomicU32,
    uncertain: AtomicU32,
}

impl Channel {
    const fn new() -> Self {
        Self {
            sent: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            uncertain: AtomicU32::new(0),
        }
    }

    /// Records that the only sender is about to send. Returns `false` if it must not send, because
    /// the last interrupt has not been taken yet and `merge` is not set.
    pub fn note_send(&self, merge: bool) -> bool {
        let open = self.is_open();
        if open && !merge {
            return false;
        }
        self.uncertain.fetch_add(u32::from(open), AcqRel);
        self.sent.fetch_add(1, AcqRel);
        true
    }

    /// Records that one of several senders is about to send.
    pub fn note_shared_send(&self) {
        if self.sent.fetch_add(1, AcqRel) != 0 {
            self.uncertain.fetch_add(1, AcqRel);
        }
    }

    /// Records that the sender is about to withdraw the interrupts that have not been taken yet.
    pub fn note_withdrawal(&self) {
        let open = self.sent.load(Acquire) - self.taken.load(Acquire);
        self.uncertain.fetch_max(open, AcqRel);
    }

    /// Whether an interrupt may still arrive.
    pub fn is_open(&self) -> bool {
        self.taken.load(Acquire) != self.sent.load(Acquire)
    }

    /// Records that an interrupt was taken; returns whether one had been sent.
    fn note_taken(&self) -> bool {
        let taken = self.taken.fetch_add(1, AcqRel) + 1;
        taken <= self.sent.load(Acquire)
    }

    /// Whether every interrupt that must arrive has arrived.
    fn is_settled(&self) -> bool {
        let least = self.sent.load(Acquire) - self.uncertain.load(Acquire);
        self.taken.load(Acquire) >= least
    }

    fn reset(&self) {
        for count in [&self.sent, &self.taken, &self.uncertain] {
            count.store(0, Release);
        }
    }
}

/// The channels of a receiver.
pub struct Books {
    /// The channels of SGIs, by INTID.
    pub sgi: [Channel; SGIS as usize],
    /// The channels of the virtual timer and the physical timer.
    pub timer: [Channel; 2],
    /// The channel of [`PPI`].
    pub ppi: Channel,
}

static BOOKS: [Books; MAX_CPUS] = [const {
    Books {
        sgi: [const { Channel::new() }; SGIS as usize],
        timer: [const { Channel::new() }; 2],
        ppi: Channel::new(),
    }
}; MAX_CPUS];

/// The channels of the SPIs, by sender, because any CPU may take an SPI.
static SPIS: [Channel; MAX_SENDERS as usize] = [const { Channel::new() }; MAX_SENDERS as usize];

/// Returns the channels whose receiver is `cpu`.
pub fn books_of(cpu: &PerCpu) -> &'static Books {
    &BOOKS[cpu.index]
}

/// Returns the channel of the SPI that only `cpu` sends.
pub fn spi_channel(cpu: &PerCpu) -> &'static Channel {
    &SPIS[cpu.index]
}

/// Returns the channel of `intid` at `cpu`, if the soak uses that INTID.
fn channel(cpu: &PerCpu, intid: u32) -> Option<&'static Channel> {
    let timer = &platform().timer;
    let books = books_of(cpu);
    match intid {
        OWN..SGIS => Some(&books.sgi[intid as usize]),
        PPI => Some(&books.ppi),
        _ if intid == timer.virt => Some(&books.timer[0]),
        _ if intid == timer.phys => Some(&books.timer[1]),
        _ => SPIS.get(intid.checked_sub(SPI)? as usize),
    }
}

/// Records that `cpu` has acknowledged `intid`; the interrupt handler calls this.
pub fn note_interrupt(cpu: &PerCpu, intid: u32) {
    match channel(cpu, intid) {
        None => stop_machine(Kind::Delivery, format_args!("INTID {intid} is nobody's")),
        Some(channel) if !channel.note_taken() => {
            let (taken, sent) = (channel.taken.load(Acquire), channel.sent.load(Acquire));
            stop_machine(
                Kind::Delivery,
                format_args!("INTID {intid} was taken {taken} times and sent {sent} times"),
            )
        }
        Some(_) => {}
    }
}

/// Waits until every interrupt that must arrive at `cpu` has arrived; the time limit suffices on any machine.
pub fn wait_settled(cpu: &PerCpu) {
    for intid in OWN..SPI {
        if let Some(channel) = channel(cpu, intid) {
            wait_one_settled(channel, intid);
        }
    }
}

/// Waits until every SPI that must arrive has arrived, at whichever CPU takes it.
pub fn wait_spis_settled() {
    for (channel, intid) in SPIS.iter().zip(SPI..) {
        wait_one_settled(channel, intid);
    }
}

fn wait_one_settled(channel: &Channel, intid: u32) {
    if !wait_for(|| channel.is_settled()) {
        let (taken, sent) = (channel.taken.load(Acquire), channel.sent.load(Acquire));
        let uncertain = channel.uncertain.load(Acquire);
        stop_machine(
            Kind::Loss,
            format_args!(
                "INTID {intid} was sent {sent} times, {uncertain} of them uncertain, and taken {taken} times"
            ),
        )
    }
}

/// Resets the books after every interrupt has arrived.
pub fn reset_books() {
    for cpu in percpu::all() {
        let books = books_of(cpu);
        books.sgi.iter().for_each(Channel::reset);
        books.timer.iter().for_each(Channel::reset);
        books.ppi.reset();
    }
    SPIS.iter().for_each(Channel::reset);
}

/// Returns the SPI that only `me` sends.
pub fn spi_of(me: &PerCpu) -> Spi {
    // SAFETY: the description is true and its devices are mapped; only this CPU uses the
    // SPI.
    unsafe { Spi::new(&platform().gic, SPI + me.index as u32) }
}
