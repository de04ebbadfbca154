// SPDX-License-Identifier: MIT OR Apache-2.0
//! The serial line to the real console, which EL2 and the guest share.
//!
//! The guest's characters are sent as soon as one of its CPUs writes them; EL2 holds none back. EL2's text begins on
//! a new line, and has marks that no guest but ours can print: see [`wire::Guard`].
//!
//! A line that our guest prints through hypercalls may take several of them, while the guest holds its own lock. Such a
//! line is first collected, so that no line of EL2's interrupts a record.

use core::fmt::{self, Write};

use arrayvec::ArrayVec;
use console::Port;
use wire::{Guard, Source};

/// The state of the line.
pub struct Line {
    port: Option<Port>,
    guard: Guard,
    source: Source,
    /// The last character that was sent.
    last: u8,
    /// The part of a line that our guest has printed through hypercalls so far.
    gathered: ArrayVec<u8, 256>,
}

impl Line {
    /// Creates a line that is not yet connected to a port.
    pub const fn new() -> Self {
        Self {
            port: None,
            guard: Guard::new(Source::Ours),
            source: Source::Ours,
            last: b'\n',
            gathered: ArrayVec::new_const(),
        }
    }

    /// Connects the line to `port`, and returns the previous port.
    pub const fn connect(&mut self, port: Port) -> Option<Port> {
        self.port.replace(port)
    }

    /// Records the source of the guest's text.
    pub const fn set_source(&mut self, source: Source) {
        self.source = source;
        self.guard = Guard::new(source);
    }

    /// Waits until everything is sent.
    pub fn drain(&mut self) {
        if let Some(port) = &mut self.port {
            port.drain();
        }
    }

    /// Sends a character that the guest has written.
    pub fn send_guest(&mut self, byte: u8) {
        if let Some(broken) = self.guard.pass(byte) {
            self.send_byte(broken);
        }
        self.send_byte(byte);
    }

    /// Sends text that the guest passed by a hypercall.
    pub fn print_call_text(&mut self, text: impl Iterator<Item = u8>) {
        for byte in text {
            if self.source != Source::Ours {
                self.send_guest(byte);
                continue;
            }
            self.gathered.push(byte);
            if byte == b'\n' || self.gathered.is_full() {
                self.show_gathered();
            }
        }
    }

    /// Sends the gathered part of a line that our guest prints through hypercalls.
    pub fn show_gathered(&mut self) {
        let gathered = core::mem::take(&mut self.gathered);
        gathered.into_iter().for_each(|byte| self.send_guest(byte));
    }

    fn send_byte(&mut self, byte: u8) {
        let Some(port) = &mut self.port else { return };
        if byte == b'\n' && self.last != b'\r' {
            port.byte(b'\r');
        }
        port.byte(byte);
        self.last = byte;
    }
}

/// Writes EL2's own text, in whole lines.
impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.last != b'\n' {
            self.send_byte(b'\n');
        }
        text.bytes().for_each(|byte| self.send_byte(byte));
        // The text follows an unfinished line.
        self.last = b'\n';
        Ok(())
    }
}
