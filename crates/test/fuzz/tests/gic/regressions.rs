// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors that the random sequences found, each with the shortest sequence that shows it.

use fuzz::gic::{Bits, GuestAction, World};

/// Returns the step in which CPU 2 writes the bit of INTID 32, or of CPU 0's SGI 0.
fn write(bits: Bits, first: u32) -> GuestAction {
    let (by, of) = (2, if first == 0 { 0 } else { 2 });
    GuestAction::Write {
        by,
        of,
        bits,
        first,
        value: 1,
    }
}

fn run(steps: impl IntoIterator<Item = GuestAction>) {
    let mut world = World::started(2);
    for step in steps {
        world.step(&step);
        world.compare();
    }
    world.settle();
}

fn run_without_exits(steps: impl IntoIterator<Item = GuestAction>) {
    let mut world = World::started(2);
    for step in steps {
        world.step(&step);
    }
    world.settle();
}

#[test]
fn a_priority_that_is_changed_while_pending_counts() {
    for first in [0, 32] {
        run([
            GuestAction::Priority(0, 0, first, 0xf8),
            write(Bits::SetPending, first),
            GuestAction::Acknowledge(0),
            GuestAction::Priority(0, 0, first, 0x40),
            GuestAction::Acknowledge(0),
        ]);
    }
}

#[test]
fn a_priority_that_is_changed_while_active_counts_when_it_comes_again() {
    run([
        GuestAction::Priority(0, 0, 0, 0x40),
        GuestAction::Send(0, 1),
        GuestAction::Acknowledge(0),
        GuestAction::Priority(0, 0, 0, 0xa0),
        GuestAction::Send(0, 1),
        GuestAction::Send(1, 1),
        GuestAction::Priority(0, 0, 1, 0x80),
        GuestAction::End(0),
        GuestAction::Acknowledge(0),
    ]);
}

#[test]
fn an_spi_that_is_set_active_while_it_is_ends_as_usual() {
    run([
        write(Bits::SetPending, 32),
        GuestAction::Acknowledge(0),
        write(Bits::SetActive, 32),
        GuestAction::End(0),
    ]);
}

/// An SPI becomes pending again while a CPU handles it, after its route has changed.
#[test]
fn an_spi_that_is_rerouted_while_active_comes_when_it_is_ended() {
    run_without_exits([
        write(Bits::SetPending, 32),
        GuestAction::Acknowledge(0),
        GuestAction::Route(2, 32, 1),
        write(Bits::SetPending, 32),
        GuestAction::Acknowledge(1),
        GuestAction::End(0),
        GuestAction::Acknowledge(1),
    ]);
}

/// The physical interrupt is active while the guest handles an active state that software set. The end of this state
/// does not end the physical interrupt, and the interrupt line is still high.
#[test]
fn a_line_comes_again_after_what_software_set_meanwhile() {
    const TIMER: u32 = 27;
    for bits in [Bits::SetPending, Bits::SetActive] {
        run_without_exits([
            GuestAction::Line(0, TIMER, bits == Bits::SetPending),
            GuestAction::Acknowledge(0),
            GuestAction::Write {
                by: 0,
                of: 0,
                bits,
                first: 0,
                value: 1 << TIMER,
            },
            GuestAction::Line(0, TIMER, true),
            GuestAction::End(0),
            GuestAction::Acknowledge(0),
            GuestAction::End(0),
            GuestAction::Acknowledge(0),
            GuestAction::End(0),
            GuestAction::Acknowledge(0),
        ]);
    }
}

/// More interrupts are active than there are list registers, and the guest ends each by its own INTID.
#[test]
fn nested_ones_come_and_end_however_few_registers_there_are() {
    const TIMER: u32 = 27;
    for two_steps in [false, true] {
        let nest = [15, 7, 1, 0].into_iter().zip([0xf0u8, 0xa0, 0x80, 0x40]);
        let begin = [GuestAction::Split(0, two_steps)].into_iter();
        let sent = nest.flat_map(|(intid, priority)| {
            [
                GuestAction::Priority(0, 0, intid, priority),
                GuestAction::Send(intid, 1),
                GuestAction::Acknowledge(0),
            ]
        });
        let timer = [
            GuestAction::Line(0, TIMER, true),
            GuestAction::Acknowledge(0),
        ];
        let timer = timer
            .into_iter()
            .chain([GuestAction::Line(0, TIMER, false)]);
        let ends = (0..5).map(|_| GuestAction::End(0));
        let again = [
            GuestAction::Send(7, 1),
            GuestAction::Deactivate(0, 3),
            GuestAction::Acknowledge(0),
        ];
        run_without_exits(begin.chain(sent).chain(timer).chain(ends).chain(again));
    }
}

/// Hardware ends only an interrupt that has the dropped priority.
#[test]
fn what_comes_again_with_another_priority_still_ends() {
    run_without_exits([
        GuestAction::Send(0, 1),
        GuestAction::Acknowledge(0),
        GuestAction::Priority(0, 0, 0, 0x40),
        GuestAction::Send(0, 1),
        GuestAction::End(0),
        GuestAction::Acknowledge(0),
    ]);
}

/// A handler may end an SPI that software has set active meanwhile, wherever the SPI is routed by then.
#[test]
fn an_spi_that_is_set_active_by_register_ends_by_an_end() {
    run([
        write(Bits::SetPending, 32),
        GuestAction::Acknowledge(0),
        write(Bits::ClearActive, 32),
        write(Bits::SetActive, 32),
        GuestAction::Route(2, 32, 1),
        write(Bits::SetPending, 32),
        GuestAction::Acknowledge(1),
        GuestAction::End(0),
        GuestAction::Acknowledge(1),
    ]);
}
