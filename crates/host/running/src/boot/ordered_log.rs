// SPDX-License-Identifier: MIT OR Apache-2.0
//! One log for parallel boots, which holds their console output in the order of the boots. The first boot that is still
//! running writes directly. The output of later boots is held back until their turn.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// The log, and the output that is held back.
#[derive(Debug)]
pub struct Turns<'l, L: Write>(Mutex<State<'l, L>>);

#[derive(Debug)]
struct State<'l, L> {
    log: &'l mut L,
    turn: usize,
    /// Output of the boots that come after the one that writes directly.
    held: BTreeMap<usize, Vec<u8>>,
}

impl<'l, L: Write> Turns<'l, L> {
    /// Starts at boot 0, which writes directly.
    pub fn new(log: &'l mut L) -> Self {
        Self(Mutex::new(State {
            log,
            turn: 0,
            held: BTreeMap::new(),
        }))
    }

    /// Returns the writer of the boot with index `place`.
    pub fn writer(&self, place: usize) -> Writer<'_, 'l, L> {
        Writer { turns: self, place }
    }

    /// Lets the next boot write directly, because the current boot has ended.
    ///
    /// # Errors
    /// If the log can't be written.
    pub fn next(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.turn += 1;
        let turn = state.turn;
        match state.held.remove(&turn) {
            Some(held) => state.log.write_all(&held),
            None => Ok(()),
        }
    }
}

/// Log of one boot.
#[derive(Debug)]
pub struct Writer<'t, 'l, L: Write> {
    turns: &'t Turns<'l, L>,
    place: usize,
}

impl<L: Write> Write for Writer<'_, '_, L> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.turn == self.place {
            return state.log.write(bytes);
        }
        state.held.entry(self.place).or_default().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_stand_one_after_another() {
        let mut log = Vec::new();
        let turns = Turns::new(&mut log);
        let mut writers: Vec<_> = (0..3).map(|place| turns.writer(place)).collect();
        let mut say = |place: usize, text: &str| writers[place].write_all(text.as_bytes()).unwrap();
        say(1, "b1 ");
        say(0, "a1 ");
        say(2, "c1 ");
        say(0, "a2 ");
        turns.next().unwrap();
        say(2, "c2 ");
        say(1, "b2 ");
        turns.next().unwrap();
        say(2, "c3");
        turns.next().unwrap();
        assert_eq!(String::from_utf8(log).unwrap(), "a1 a2 b1 b2 c1 c2 c3");
    }
}
