// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the guest's GICv2: senders of SGIs, groups, targets, and the interface while it is closed.

use std::cell::RefCell;

use vgic::version2::{Changed, Frame, Sgi, Target};
use vgic::{Access, Bank, Delivery, Distributor, Due, Interface, Maintenance};

use super::delivery::{TestCpu, on_a_cpu};
use super::{ACTIVE, PENDING, word};

type OnCpu<'a, 'b> = Delivery<'a, TestCpu, &'b RefCell<Distributor>>;

/// The vCPU of these tests has interface 2, and there is one other vCPU.
const CPUS: [Target; 2] = [
    Target {
        interface: 2,
        affinity: 0,
    },
    Target {
        interface: 5,
        affinity: 0x100,
    },
];

fn access(delivery: &mut OnCpu<'_, '_>, access: Access) -> (u64, Changed) {
    let mut distributor = delivery.shared.borrow_mut();
    let mut frame = Frame {
        distributor: &mut distributor,
        private: delivery.private,
        me: 2,
        lines: 0,
        cpus: &CPUS,
    };
    frame.access(access)
}

fn read(delivery: &mut OnCpu<'_, '_>, offset: u64) -> u64 {
    access(delivery, word(offset, None)).0
}

fn write(delivery: &mut OnCpu<'_, '_>, offset: u64, value: u64) {
    store(delivery, word(offset, Some(value)));
}

fn store(delivery: &mut OnCpu<'_, '_>, one: Access) {
    let (_, changed) = access(delivery, one);
    if changed == Changed::Everywhere {
        delivery.shared.borrow_mut().forward(delivery.private);
    }
    if changed != Changed::Nothing {
        let _ = delivery.evaluate();
    }
}

/// Runs `test` on a vCPU that has enabled every interrupt of Group 0, as Linux does.
fn on_a_gicv2(test: impl FnOnce(OnCpu<'_, '_>)) {
    on_a_cpu(|mut delivery| {
        *delivery.shared.borrow_mut() = Distributor::new(2);
        delivery.shared.borrow_mut().become_version2();
        delivery.private.become_version2();
        delivery.interface.settings = 1 | 0xf8 << 24;
        for (offset, value) in [
            (0x180, 0xffff_ffff),
            (0x100, 0xffff_ffff),
            (0x104, 0xffff_ffff),
            (0, 1),
        ] {
            write(&mut delivery, offset, value);
        }
        test(delivery);
    });
}

/// The INTID, sender and state of each register in use.
fn listed(delivery: &OnCpu<'_, '_>) -> Vec<(u32, u32, u64)> {
    let bank = &delivery.interface.bank;
    let used = bank.used().into_iter();
    used.map(|(n, intid, state)| (intid, bank.read(n).sender(), state))
        .collect()
}

fn send(delivery: &mut OnCpu<'_, '_>, intid: u32, sender: u32) {
    delivery.private.send(intid, sender);
    delivery.inject_sgis();
}

/// Lets the guest acknowledge and end the interrupt of register `n`, and serves the maintenance interrupt.
fn take(delivery: &mut OnCpu<'_, '_>, n: usize) {
    delivery.interface.bank.acknowledge(n);
    delivery.interface.bank.end(n);
    if delivery.maintain() == Maintenance::Ended {
        let _ = delivery.evaluate();
    }
}

#[test]
fn each_sender_is_listed_in_its_turn() {
    on_a_gicv2(|mut delivery| {
        for sender in [5, 2, 7, 2] {
            send(&mut delivery, 3, sender);
        }
        assert_eq!(listed(&delivery), [(3, 5, PENDING)]);
        assert_eq!(read(&mut delivery, 0x200), 1 << 3);
        let senders = |delivery: &mut OnCpu<'_, '_>| delivery.access_senders(word(0xf20, None));
        assert_eq!(senders(&mut delivery), (1 << 5 | 1 << 2 | 1 << 7) << 24);
        take(&mut delivery, 0);
        assert_eq!(listed(&delivery).len(), 1);
        assert_eq!(senders(&mut delivery).count_ones(), 2);
        for left in [1, 0] {
            let slot = delivery.interface.bank.used()[0].0;
            take(&mut delivery, slot);
            assert_eq!(senders(&mut delivery).count_ones(), left);
        }
        assert_eq!(listed(&delivery), []);
        assert!(delivery.audit(true, false).is_ok());
    });
}

#[test]
fn an_active_sgi_becomes_pending_from_its_sender_alone() {
    on_a_gicv2(|mut delivery| {
        send(&mut delivery, 1, 5);
        delivery.interface.bank.acknowledge(0);
        send(&mut delivery, 1, 5);
        assert_eq!(listed(&delivery), [(1, 5, ACTIVE | PENDING)]);
        send(&mut delivery, 1, 2);
        assert_eq!(listed(&delivery), [(1, 5, ACTIVE | PENDING)]);
        // The SGI ends, is acknowledged and ends again; then the other sender's turn has come.
        delivery.interface.bank.end(0);
        take(&mut delivery, 0);
        assert_eq!(listed(&delivery).len(), 1);
        assert_eq!(listed(&delivery)[0].1, 2);
    });
}

#[test]
fn a_sender_is_cleared_alone() {
    on_a_gicv2(|mut delivery| {
        let byte = |offset, value| Access {
            offset,
            size: 1,
            write: Some(value),
        };
        delivery.access_senders(byte(0xf24, 1 << 2 | 1 << 5));
        let _ = delivery.evaluate();
        assert_eq!(listed(&delivery), [(4, 2, PENDING)]);
        // The listed sender goes, and the other one takes its place.
        delivery.access_senders(byte(0xf14, 1 << 2));
        let _ = delivery.evaluate();
        assert_eq!(listed(&delivery), [(4, 5, PENDING)]);
        delivery.access_senders(byte(0xf14, 1 << 5));
        let _ = delivery.evaluate();
        assert_eq!((listed(&delivery), read(&mut delivery, 0x200)), (vec![], 0));
        // ICPENDR and ISPENDR do not affect SGIs.
        write(&mut delivery, 0x200, 1 << 4);
        assert_eq!(read(&mut delivery, 0x200), 0);
    });
}

#[test]
fn a_disabled_sgi_keeps_its_senders() {
    on_a_gicv2(|mut delivery| {
        send(&mut delivery, 6, 7);
        write(&mut delivery, 0x180, 1 << 6);
        assert_eq!(
            (listed(&delivery), read(&mut delivery, 0x200)),
            (vec![], 1 << 6)
        );
        send(&mut delivery, 6, 1);
        write(&mut delivery, 0x100, 1 << 6);
        assert_eq!(listed(&delivery), [(6, 1, PENDING)]);
        take(&mut delivery, 0);
        assert_eq!(listed(&delivery)[0].1, 7);
    });
}

#[test]
fn groups_are_forwarded_and_listed() {
    on_a_gicv2(|mut delivery| {
        write(&mut delivery, 0x080, 1 << 3);
        assert_eq!(read(&mut delivery, 0x080), 1 << 3);
        send(&mut delivery, 3, 2);
        assert_eq!(listed(&delivery), [], "Group 1 is not forwarded");
        assert_eq!(read(&mut delivery, 0x100), 0xffff_ffff);
        write(&mut delivery, 0, 2);
        assert_eq!(listed(&delivery), [(3, 2, PENDING)]);
        assert_eq!(
            delivery.interface.bank.read(0).priority(),
            1,
            "the group is bit 0"
        );
        send(&mut delivery, 4, 2);
        assert_eq!(listed(&delivery).len(), 1, "Group 0 is not forwarded");
        write(&mut delivery, 0x403, 0);
        assert_eq!(read(&mut delivery, 0x400), 0);
        write(&mut delivery, 0x400, 0xff00_0000);
        assert_eq!(read(&mut delivery, 0x400), 0xf800_0000);
        assert_eq!(delivery.interface.bank.read(0).priority(), 0xf9);
    });
}

#[test]
fn an_sgi_without_a_sender_is_not_pending() {
    on_a_gicv2(|mut delivery| {
        write(&mut delivery, 0x180, 1 << 6);
        send(&mut delivery, 6, 7);
        assert_eq!(read(&mut delivery, 0x200), 1 << 6);
        // GICD_CPENDSGIR of SGIs 4 to 7.
        delivery.access_senders(word(0xf14, Some(1 << 7 << 16)));
        let _ = delivery.evaluate();
        assert_eq!(read(&mut delivery, 0x200), 0);
        assert_eq!(read(&mut delivery, 0x280), 0);
    });
}

#[test]
fn only_an_sgi_is_acknowledged_with_a_sender() {
    on_a_gicv2(|mut delivery| {
        // The physical INTID of a timer's interrupt has the bits of a sender.
        assert!(delivery.inject(27, Some(27)));
        assert_eq!(delivery.access_interface(word(0x18, None)).0, 27);
        assert_eq!(delivery.access_interface(word(0xc, None)).0, 27);
    });
}

#[test]
fn an_spi_without_targets_goes_to_no_vcpu_but_the_only_one() {
    on_a_gicv2(|mut delivery| {
        write(&mut delivery, 0x204, 1);
        assert_eq!(read(&mut delivery, 0x820), 0);
        assert_eq!(listed(&delivery), []);
        write(&mut delivery, 0x284, 1);
        *delivery.shared.borrow_mut() = Distributor::new(1);
        delivery.shared.borrow_mut().become_version2();
        write(&mut delivery, 0x104, 1);
        write(&mut delivery, 0, 1);
        write(&mut delivery, 0x204, 1);
        assert_eq!(listed(&delivery), [(32, 0, PENDING)]);
    });
}

#[test]
fn an_spi_goes_to_the_first_of_its_targets() {
    on_a_gicv2(|mut delivery| {
        assert_eq!(read(&mut delivery, 0x800), 0x0404_0404);
        write(&mut delivery, 0x820, 0xff);
        assert_eq!(read(&mut delivery, 0x820), 1 << 2 | 1 << 5);
        write(&mut delivery, 0x204, 1);
        assert_eq!(listed(&delivery), [(32, 0, PENDING)]);
        write(&mut delivery, 0x820, 1 << 5 | 1);
        assert_eq!(
            (listed(&delivery), read(&mut delivery, 0x820)),
            (vec![], 1 << 5)
        );
        write(&mut delivery, 0x820, 1);
        assert_eq!(read(&mut delivery, 0x820), 0);
        assert_eq!(read(&mut delivery, 0x204), 1, "it waits for a target");
        write(&mut delivery, 0x820, 1 << 2);
        assert_eq!(listed(&delivery), [(32, 0, PENDING)]);
    });
}

#[test]
fn an_sgi_names_its_targets() {
    let sgi = |intid, targets| Some(Sgi { intid, targets });
    let all = 1 << 2 | 1 << 5;
    assert_eq!(Sgi::decode(0x24_0003, 2, all), sgi(3, all));
    assert_eq!(Sgi::decode(0xfb_0003, 2, all), sgi(3, 1 << 5));
    assert_eq!(Sgi::decode(1 << 24 | 0xff_000f, 2, all), sgi(15, 1 << 5));
    assert_eq!(Sgi::decode(2 << 24 | 0xff_8001, 2, all), sgi(1, 1 << 2));
    assert_eq!(Sgi::decode(3 << 24, 2, all), None);
}

#[test]
fn a_closed_interface_does_what_hardware_does() {
    on_a_gicv2(|mut delivery| {
        let access = |delivery: &mut OnCpu<'_, '_>, offset, write| {
            let (value, due) = delivery.access_interface(word(offset, write));
            assert_eq!(due, Due::Nothing);
            value
        };
        assert_eq!(access(&mut delivery, 0xc, None), 1023);
        write(&mut delivery, 0x400, 0xa0a0_a0a0);
        send(&mut delivery, 1, 5);
        assert_eq!(access(&mut delivery, 0x18, None), 5 << 10 | 1);
        assert_eq!(access(&mut delivery, 0x20, None), 1023, "it is of Group 0");
        assert_eq!(access(&mut delivery, 0xc, None), 5 << 10 | 1);
        assert_eq!(access(&mut delivery, 0x14, None), 0xa0);
        send(&mut delivery, 2, 2);
        assert_eq!(
            access(&mut delivery, 0xc, None),
            1023,
            "the priority is the same"
        );
        access(&mut delivery, 0x10, Some(5 << 10 | 1));
        assert_eq!(access(&mut delivery, 0x14, None), 0xff);
        assert_eq!(access(&mut delivery, 0xc, None), 2 << 10 | 2);
        access(&mut delivery, 0x10, Some(2 << 10 | 2));
        // Group 1, acknowledged by the alias or with AckCtl.
        write(&mut delivery, 0, 3);
        write(&mut delivery, 0x080, 1 << 1);
        access(&mut delivery, 0, Some(3));
        send(&mut delivery, 1, 5);
        assert_eq!(access(&mut delivery, 0xc, None), 1022);
        access(&mut delivery, 0, Some(7));
        assert_eq!(access(&mut delivery, 0x18, None), 5 << 10 | 1);
        access(&mut delivery, 0, Some(3));
        assert_eq!(access(&mut delivery, 0x20, None), 5 << 10 | 1);
        access(&mut delivery, 0x24, Some(5 << 10 | 1));
        assert_eq!(listed(&delivery), []);
    });
}

/// The specification of SGIs: each SGI is pending or not, separately for each sender.
#[derive(Debug, Default)]
struct Spec {
    pending: [u8; 16],
    enabled: u16,
    priority: [u8; 16],
    forwarded: bool,
    /// The acknowledged interrupts, the most recent one last.
    active: Vec<u64>,
}

impl Spec {
    /// The priority with which an SGI can be acknowledged.
    fn due(&self) -> Option<u8> {
        let running = self
            .active
            .last()
            .map_or(0xff, |iar| self.priority[(iar & 0xf) as usize]);
        let due = |n: &usize| {
            let is_active = self.active.iter().any(|iar| (iar & 0xf) as usize == *n);
            let ready = self.forwarded && self.enabled >> n & 1 != 0;
            ready && !is_active && self.pending[*n] != 0 && self.priority[*n] < running
        };
        (0..16).filter(due).map(|n| self.priority[n]).min()
    }
}

/// Does what hardware requests, and nothing else: the next interrupt must not need more.
fn serve_maintenance(delivery: &mut OnCpu<'_, '_>) {
    loop {
        let bank = &delivery.interface.bank;
        let waits = |(n, ..): &(usize, u32, u64)| bank.read(*n).is_waiting();
        let refill = bank.asked.refill && !bank.used().iter().any(waits);
        if delivery.interface.ended() == 0 && !refill {
            return;
        }
        if delivery.maintain() == Maintenance::Ended {
            let _ = delivery.evaluate();
        }
    }
}

#[test]
fn sgis_at_random_come_as_specified() {
    let mut draw = random();
    on_a_gicv2(|mut delivery| {
        let byte = |offset, value| Access {
            offset,
            size: 1,
            write: Some(value),
        };
        let mut spec = Spec {
            enabled: 0xffff,
            forwarded: true,
            ..Spec::default()
        };
        let mut taken = 0;
        for step in 0..20_000 {
            let (intid, sender) = (draw(16), draw(8));
            let bit = 1 << sender;
            let pending = &mut spec.pending[intid as usize];
            match draw(16) {
                0..4 => {
                    *pending |= bit;
                    send(&mut delivery, intid as u32, sender as u32);
                }
                4 => {
                    *pending |= bit;
                    delivery.access_senders(byte(0xf20 + intid, bit.into()));
                    let _ = delivery.evaluate();
                }
                5 => {
                    *pending &= !bit;
                    delivery.access_senders(byte(0xf10 + intid, bit.into()));
                    let _ = delivery.evaluate();
                }
                6 => {
                    spec.enabled ^= 1 << intid;
                    let offset = if spec.enabled >> intid & 1 != 0 {
                        0x100
                    } else {
                        0x180
                    };
                    write(&mut delivery, offset, 1 << intid);
                }
                7 if spec.active.is_empty() => {
                    let priority = draw(4) << 6;
                    spec.priority[intid as usize] = priority as u8;
                    store(&mut delivery, byte(0x400 + intid, priority));
                }
                8 => {
                    spec.forwarded ^= true;
                    write(&mut delivery, 0, spec.forwarded.into());
                }
                9..12 if !spec.active.is_empty() => {
                    let iar = spec.active.pop();
                    let (_, due) = delivery.access_interface(word(0x10, iar));
                    assert_ne!(due, Due::Everywhere);
                    if due == Due::Here {
                        let _ = delivery.evaluate();
                    }
                }
                _ => {
                    let (iar, _) = delivery.access_interface(word(0xc, None));
                    let due = spec.due();
                    if iar == 1023 {
                        assert_eq!(due, None, "step {step}: {spec:?}");
                    } else {
                        let (intid, sender) = ((iar & 0xf) as usize, iar >> 10);
                        assert_eq!(Some(spec.priority[intid]), due, "step {step}: {iar:#x}");
                        assert!(
                            spec.pending[intid] >> sender & 1 != 0,
                            "step {step}: {iar:#x}"
                        );
                        spec.pending[intid] &= !(1 << sender);
                        spec.active.push(iar);
                        taken += 1;
                    }
                }
            }
            serve_maintenance(&mut delivery);
            assert_eq!(delivery.audit(false, false), Ok(()));
            // A read that exits could hide a failure, if the next step works only after such an exit.
            if step % 8 != 0 {
                continue;
            }
            let sgis = (0..16).filter(|&n| spec.pending[n] != 0);
            let sgis = sgis.fold(0, |bits, n| bits | 1 << n);
            delivery.publish();
            assert_eq!(read(&mut delivery, 0x200) & 0xffff, sgis, "step {step}");
            for (n, pending) in spec.pending.iter().enumerate() {
                let offset = 0xf20 + n as u64;
                let read = delivery.access_senders(Access {
                    offset,
                    size: 1,
                    write: None,
                });
                assert_eq!(read, u64::from(*pending), "SGI {n}");
            }
        }
        assert!(taken > 1000, "{taken}");
    });
}

/// Draws pseudo-random numbers, the same ones in each run.
fn random() -> impl FnMut(u64) -> u64 {
    let mut state = 7u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 24) % below
    }
}

#[test]
fn no_access_breaks_a_rule() {
    let mut draw = random();
    on_a_gicv2(|mut delivery| {
        for _ in 0..50_000 {
            let offset = match draw(4) {
                0 => draw(0x1000),
                _ => {
                    [
                        0, 4, 0x80, 0x100, 0x180, 0x200, 0x280, 0x300, 0x380, 0x400, 0x800, 0xc00,
                    ][draw(12) as usize]
                        + draw(0x24)
                }
            };
            let any = Access {
                offset,
                size: 1 << draw(4),
                write: (draw(3) != 0).then(|| draw(1 << 40)),
            };
            match draw(8) {
                0 => send(&mut delivery, draw(16) as u32, draw(8) as u32),
                1 => drop(delivery.inject(27, Some(27))),
                2 => {
                    let offset = [0xc, 0x20, 0x10, 0x24, 0x1000, 0, 4, 8, 0x1c][draw(9) as usize];
                    let write = matches!(offset, 0x10 | 0x24 | 0x1000 | 0 | 4 | 8 | 0x1c)
                        .then(|| draw(0x2000));
                    let _ = delivery.access_interface(word(offset, write));
                }
                3 => drop(delivery.access_senders(Access {
                    offset: 0xf10 + draw(0x20),
                    ..any
                })),
                _ => {
                    let (_, changed) = access(&mut delivery, any);
                    if changed == Changed::Everywhere {
                        delivery.shared.borrow_mut().forward(delivery.private);
                    }
                }
            }
            delivery.sample();
            let _ = delivery.maintain();
            let _ = delivery.evaluate();
            assert_eq!(delivery.audit(false, false), Ok(()), "{any:x?}");
        }
    });
}
