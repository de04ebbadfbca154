// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's GICv2, model-checked: two vCPUs send SGIs to each other and write the distributor, while each of them
//! acknowledges and ends interrupts.
//!
//! [`vgic::version2`] and [`vgic::Delivery`] are the real code. The steps between them follow
//! `hypervisor/src/interrupts/version2.rs`: a request of another vCPU is a word that comes with an
//! interrupt, which a vCPU takes between its actions. At the end, interrupts are enabled, and the
//! vCPUs handle what is left without any further request. By then, each SGI of each sender has been
//! acknowledged at least once and at most as often as it was sent; so has each SPI, by one vCPU.
//!
//! SGIs below the doorbell are not modelled: they reach a vCPU as physical interrupts, and no other CPU changes their
//! state. [`HOW`](Cpus) breaks a rule of these steps.

use std::panic::catch_unwind;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::Ordering::{Relaxed, SeqCst};
use loom::sync::atomic::{AtomicU8, AtomicU32};
use vgic::version2::{Changed, Frame, SENDERS, Target};
use vgic::{
    Access, Delivery, Distributor, Due, Interface, List, Maintenance, Private, Shared, ones,
};

use crate::caught_by;
use crate::version2_hardware::Hardware;

/// Ways in which [`Cpus`] can break a rule.
const NONE: u32 = 0;
/// A sender makes the SGI pending before it enters itself among the senders.
const PENDING_FIRST: u32 = 1;
/// The target takes the senders before it takes the pending state.
const SENDERS_FIRST: u32 = 2;
/// A sender requests the evaluation before it sends.
const REQUESTS_FIRST: u32 = 3;
/// The request does not order the stores before it.
const RELAXED: u32 = 4;
/// A write of the distributor requests the evaluation before it changes the register.
const WRITES_LATE: u32 = 5;
/// A vCPU that releases an SPI requests no evaluation by the others.
const KEEPS_QUIET: u32 = 6;
/// A write of the distributor does not reach the vCPU that holds the SPI.
const SKIPS_HOLDER: u32 = 7;
/// A write of GICD_CTLR does not bring the enables of the other vCPU in line.
const FORWARDS_ITSELF: u32 = 8;

/// The SGI and the SPI of all scenarios.
const SGI: u32 = 9;
const SPI: u32 = 32;
/// CPU interfaces of the vCPUs.
const INTERFACES: [u32; 2] = [1, 4];

/// An action of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Sends the SGI to the other vCPU.
    Send,
    /// Acknowledges the most urgent interrupt and ends it.
    Take,
    /// Writes GICD_ICENABLER0 and GICD_ISENABLER0 for the SGI.
    Disable,
    Enable,
    /// Writes the byte of the SGI in GICD_CPENDSGIR and GICD_SPENDSGIR, with the other vCPU as sender.
    Clear,
    Set,
    /// Writes GICD_CTLR: forwards Group 1, which no interrupt has, or Group 0.
    Stop,
    Forward,
    /// Writes GICD_ISPENDR1, GICD_ICENABLER1 and GICD_ISENABLER1 for the SPI.
    Raise,
    DisableSpi,
    EnableSpi,
    /// Writes GICD_ITARGETSR of the SPI, with this vCPU or the other.
    TargetMe,
    TargetOther,
}

use Does::{
    Clear, Disable, DisableSpi, Enable, EnableSpi, Forward, Raise, Send, Set, Stop, Take, TargetMe,
    TargetOther,
};

/// The distributor in a lock of loom.
struct Locked(Mutex<Distributor>);

impl Shared for &Locked {
    fn with<R>(&self, use_it: impl FnOnce(&mut Distributor) -> R) -> R {
        use_it(&mut self.0.lock().expect("no holder panics"))
    }
}

/// The state that both vCPUs share.
struct Cpus<const HOW: u32> {
    privates: [Private; 2],
    /// The requests, with their interrupt.
    requests: [AtomicU32; 2],
    distributor: Locked,
    /// Like [`Private`]'s pending state and senders, to break rules that [`Private::send`] keeps.
    pending: [AtomicU32; 2],
    senders: [AtomicU8; 2],
}

impl<const HOW: u32> Cpus<HOW> {
    fn new() -> Self {
        let mut distributor = Distributor::new(2);
        distributor.become_version2();
        let privates = [Private::new(), Private::new()];
        privates.iter().for_each(Private::become_version2);
        Self {
            privates,
            requests: [AtomicU32::new(0), AtomicU32::new(0)],
            distributor: Locked(Mutex::new(distributor)),
            pending: [AtomicU32::new(0), AtomicU32::new(0)],
            senders: [AtomicU8::new(0), AtomicU8::new(0)],
        }
    }

    fn request(&self, cpu: usize) {
        let order = if HOW == RELAXED { Relaxed } else { SeqCst };
        self.requests[cpu].fetch_or(1, order);
    }

    fn send(&self, me: usize) {
        let (to, sender) = (1 - me, INTERFACES[me]);
        if HOW == REQUESTS_FIRST {
            self.request(to);
        }
        match HOW {
            PENDING_FIRST => {
                self.pending[to].fetch_or(1, SeqCst);
                self.senders[to].fetch_or(1 << sender, SeqCst);
            }
            SENDERS_FIRST => {
                self.senders[to].fetch_or(1 << sender, SeqCst);
                self.pending[to].fetch_or(1, SeqCst);
            }
            _ => self.privates[to].send(SGI, sender),
        }
        if HOW != REQUESTS_FIRST {
            self.request(to);
        }
    }

    /// Hands the SGIs that [`Self::send`] withheld from [`Private`] over to it.
    fn collect(&self, me: usize) {
        let senders = match HOW {
            PENDING_FIRST if self.pending[me].swap(0, SeqCst) != 0 => {
                self.senders[me].swap(0, SeqCst)
            }
            SENDERS_FIRST => {
                let senders = self.senders[me].swap(0, SeqCst);
                match self.pending[me].swap(0, SeqCst) {
                    0 => return,
                    _ => senders,
                }
            }
            _ => 0,
        };
        ones(senders.into()).for_each(|sender| self.privates[me].send(SGI, sender));
    }

    /// Like `access_distributor`.
    fn access(&self, me: usize, access: Access) {
        let targets = [0, 1].map(|cpu| Target {
            interface: INTERFACES[cpu],
            affinity: cpu as u64,
        });
        if HOW == WRITES_LATE {
            (0..2).for_each(|cpu| self.request(cpu));
        }
        let changed = (&self.distributor).with(|distributor| {
            let mut frame = Frame {
                distributor,
                private: &self.privates[me],
                me: INTERFACES[me],
                lines: 0,
                cpus: &targets,
            };
            let (_, changed) = frame.access(access);
            if changed == Changed::Everywhere {
                let all = self.privates.iter().enumerate();
                let all = all.filter(|(cpu, _)| HOW != FORWARDS_ITSELF || *cpu == me);
                all.for_each(|(_, private)| distributor.forward(private));
            }
            changed
        });
        match changed {
            _ if HOW == WRITES_LATE => {}
            Changed::Nothing => {}
            Changed::Everywhere if HOW != SKIPS_HOLDER => {
                (0..2).for_each(|cpu| self.request(cpu));
            }
            _ => self.request(me),
        }
    }
}

/// A vCPU on its CPU.
struct Cpu<'a, const HOW: u32> {
    shared: &'a Cpus<HOW>,
    number: usize,
    list: List,
    hardware: Hardware,
    /// Values of GICC_IAR.
    taken: Vec<u32>,
}

impl<'a, const HOW: u32> Cpu<'a, HOW> {
    fn new(shared: &'a Cpus<HOW>, number: usize) -> Self {
        Self {
            shared,
            number,
            list: List::new(),
            hardware: Hardware::new(number),
            taken: Vec::new(),
        }
    }

    fn with<R>(&mut self, use_it: impl FnOnce(&mut Delivery<'_, Hardware, &Locked>) -> R) -> R {
        let empty = Hardware::new(self.number);
        let mut delivery = Delivery {
            private: &self.shared.privates[self.number],
            list: &mut self.list,
            interface: core::mem::replace(&mut self.hardware, empty),
            shared: &self.shared.distributor,
        };
        let result = use_it(&mut delivery);
        self.hardware = delivery.interface;
        result
    }

    fn evaluate(&mut self) {
        self.shared.collect(self.number);
        if self.with(|delivery| delivery.evaluate()) && HOW != KEEPS_QUIET {
            self.shared.request(1 - self.number);
        }
    }

    /// Serves requests that came; returns whether there was one.
    fn serve(&mut self) -> bool {
        let order = if HOW == RELAXED { Relaxed } else { SeqCst };
        let came = self.shared.requests[self.number].swap(0, order) != 0;
        if came {
            self.evaluate();
        }
        came
    }

    fn write(&mut self, offset: u64, size: u32, value: u64) {
        let write = Some(value);
        let access = Access {
            offset,
            size,
            write,
        };
        if SENDERS.contains(&offset) {
            self.with(|delivery| delivery.access_senders(access));
            return self.evaluate();
        }
        self.shared.access(self.number, access);
    }

    fn does(&mut self, what: Does) {
        self.serve();
        let (bit, n) = (1 << SGI, u64::from(SGI));
        let sender = 1 << INTERFACES[1 - self.number];
        match what {
            Send => self.shared.send(self.number),
            Take => drop(self.take()),
            Disable => self.write(0x180, 4, bit),
            Enable => self.write(0x100, 4, bit),
            Clear => self.write(0xf10 + n, 1, sender),
            Set => self.write(0xf20 + n, 1, sender),
            Stop => self.write(0, 4, 2),
            Forward => self.write(0, 4, 1),
            Raise => self.write(0x204, 4, 1),
            DisableSpi => self.write(0x184, 4, 1),
            EnableSpi => self.write(0x104, 4, 1),
            TargetMe => self.write(0x820, 1, 1 << INTERFACES[self.number]),
            TargetOther => self.write(0x820, 1, sender),
        }
    }

    /// Acknowledges an interrupt, and ends it; returns whether there was one.
    fn take(&mut self) -> bool {
        let interface = |offset, write| Access {
            offset,
            size: 4,
            write,
        };
        let (value, _) = self.with(|delivery| delivery.access_interface(interface(0xc, None)));
        if value == 1023 {
            return false;
        }
        self.taken.push(value as u32);
        let end = interface(0x10, Some(value));
        match self.with(|delivery| delivery.access_interface(end)).1 {
            Due::Nothing => {}
            Due::Here => self.evaluate(),
            Due::Everywhere => panic!("no SPI was set active"),
        }
        while self.hardware.ended() != 0 {
            assert_eq!(
                self.with(|delivery| delivery.maintain()),
                Maintenance::Ended
            );
            self.evaluate();
        }
        true
    }
}

/// Actions of the two vCPUs.
type Scenario = [&'static [Does]; 2];

/// Checks every execution.
fn check<const HOW: u32>(scenario: Scenario) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.check(move || {
        let shared = Arc::new(Cpus::<HOW>::new());
        let first = Arc::clone(&shared);
        let [mut a, mut b] = [0, 1].map(|number| Cpu::new(&first, number));
        for cpu in [&mut a, &mut b] {
            for (offset, value) in [(0x100, 1 << SGI), (0x104, 1), (0, 1)] {
                cpu.write(offset, 4, value);
            }
        }
        a.write(0x820, 1, 1 << INTERFACES[0]);
        while a.serve() || b.serve() {}
        let other = Arc::clone(&shared);
        let (list, hardware) = (b.list, b.hardware);
        let other = loom::thread::spawn(move || {
            let mut b = Cpu {
                shared: &other,
                number: 1,
                list,
                hardware,
                taken: Vec::new(),
            };
            scenario[1].iter().for_each(|&what| b.does(what));
            (b.list, b.hardware, b.taken)
        });
        scenario[0].iter().for_each(|&what| a.does(what));
        let (list, hardware, taken) = other.join().expect("a vCPU does not fail");
        let mut b = Cpu {
            shared: &first,
            number: 1,
            list,
            hardware,
            taken,
        };
        let early = [&a, &b].map(|cpu| times(&cpu.taken, SPI)).iter().sum();
        while a.serve() || b.serve() || a.take() || b.take() {}
        compare(scenario, [&a.taken, &b.taken], early);
        for cpu in [&mut a, &mut b] {
            let audit = cpu.with(|delivery| delivery.audit(true, false));
            assert_eq!(audit, Ok(()), "it is left");
        }
    });
}

/// Compares the interrupts that the vCPUs took with the ones sent; the vCPUs took `early` SPIs before they settled.
fn compare(scenario: Scenario, taken: [&[u32]; 2], early: usize) {
    let count = |cpu: usize, of: Does| scenario[cpu].iter().filter(|&&one| one == of).count();
    let both = |of| count(0, of) + count(1, of);
    let came = |value| taken.map(|taken| times(taken, value));
    for cpu in 0..2 {
        let n = came(SGI | INTERFACES[1 - cpu] << 10)[cpu];
        let sent = count(1 - cpu, Send) + count(cpu, Set);
        let least = usize::from(sent > 0 && count(cpu, Clear) == 0);
        assert!(
            (least..=sent).contains(&n),
            "the SGI came {n} times of {sent}"
        );
    }
    let (raised, n): (_, usize) = (both(Raise), came(SPI).iter().sum());
    let is_off = both(DisableSpi) > both(EnableSpi);
    let least = usize::from(raised > 0 && !is_off);
    assert!(
        (least..=raised).contains(&n),
        "the SPI came {n} times of {raised}"
    );
    assert!(!is_off || n == early, "the SPI came while it was disabled");
}

fn times(taken: &[u32], value: u32) -> usize {
    taken.iter().filter(|&&one| one == value).count()
}

/// Scenarios in which every rule holds.
const SCENARIOS: &[Scenario] = &[
    [&[Send], &[Take]],
    [&[Send, Send], &[Take, Take]],
    [&[Send, Take], &[Send, Take]],
    [&[Send], &[Disable, Take, Enable]],
    [&[Send], &[Stop, Forward]],
    [&[Send, Stop, Forward], &[Take]],
    [&[Send], &[Clear, Take]],
    [&[Send], &[Set, Take, Clear]],
    [&[Raise], &[TargetMe, Take]],
    [&[Raise, TargetOther], &[Take, TargetOther]],
    [&[Raise, Take], &[TargetMe]],
    [&[Raise, Take], &[DisableSpi, EnableSpi]],
    [&[Raise, Take, Raise], &[Stop, Forward]],
    [&[Raise, Take], &[TargetMe, Raise, Take]],
];

#[test]
fn gicv2_of_two_cpus() {
    for &scenario in SCENARIOS {
        println!("{scenario:?}");
        check::<NONE>(scenario);
    }
}

/// Asserts that loom finds an execution of `scenario` that breaks the rule `HOW`, with the message `how`.
fn caught<const HOW: u32>(scenario: Scenario, how: &str) {
    check::<NONE>(scenario);
    caught_by(catch_unwind(|| check::<HOW>(scenario)), how);
}

/// Declares the tests of broken rules.
macro_rules! caught {
    ($($name:ident: $rule:ident, $a:expr, $b:expr, $how:literal;)*) => {
        $(#[test]
        fn $name() {
            caught::<$rule>([const { &$a }, const { &$b }], $how);
        })*
    };
}

caught! {
    gicv2_mutant_pending_first: PENDING_FIRST, [Forward, Send], [Take], "the SGI came 0 times";
    gicv2_mutant_senders_first: SENDERS_FIRST, [Forward, Send], [Take], "the SGI came 0 times";
    gicv2_mutant_requests_first: REQUESTS_FIRST, [Send], [Take], "the SGI came 0 times";
    gicv2_mutant_relaxed: RELAXED, [Send], [Take], "the SGI came 0 times";
    gicv2_mutant_writes_late:
        WRITES_LATE, [Send, Stop, Forward], [Take, Take], "the SGI came 0 times";
    gicv2_mutant_keeps_quiet: KEEPS_QUIET, [Raise, Send], [TargetMe, Take], "the SPI came 0 times";
    gicv2_mutant_skips_holder: SKIPS_HOLDER, [Raise, Send], [DisableSpi], "while it was disabled";
    gicv2_mutant_forwards_itself:
        FORWARDS_ITSELF, [Stop, Send, Forward], [Enable, Take], "the SGI came 0 times";
}
