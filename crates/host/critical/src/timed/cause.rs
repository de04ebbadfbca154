// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the store or the interrupt of another core that ended a wait.

use super::Timeline;
use crate::cutter::releases::sgi_is_for;
use crate::halt::{first_halt, resume_index};
use crate::{Reasons, Via};

/// Largest number of cycles that does not count as a halt, between two instructions near a WFI.
const REST: u64 = 64;
/// Largest number of instructions in a loop that waits for a store. Also the largest number of instructions from a load
/// to the halt that waits for a store to the loaded word.
const LOOP: usize = 64;
/// Largest number of instructions in a loop that pauses, and that also reads a clock. Such a loop stays at its
/// exception level.
const LONG: usize = 512;

impl Timeline<'_> {
    /// Returns the WFI or WFE that makes a core halt between the previous instruction and this one: a WFI or WFE is
    /// near, and no pause near it is longer.
    fn halt_before(&self, core: usize, at: usize) -> Option<u32> {
        let committed = &self.cores[core].committed;
        let is_halt = |n: &usize| self.marks.reasons(core, *n).has(Reasons::HALT);
        let halt = (first_halt(at)..=at).rfind(is_halt)?;
        let resumed = resume_index(halt, committed.len(), |n| committed[n].tick);
        let one = &committed[halt];
        let block = &self.cores[core].blocks[one.block as usize];
        (resumed == Some(at)).then(|| block.words[usize::from(one.index)])
    }

    /// Whether a core halts for some time before an instruction. A WFI does not halt the core while an interrupt is
    /// pending.
    pub fn is_after_halt(&self, core: usize, at: usize) -> bool {
        let committed = &self.cores[core].committed;
        let long = |at: usize| committed[at].tick - committed[at - 1].tick > REST * self.period;
        self.halt_before(core, at).is_some() && long(at)
    }

    /// Returns what ended the wait before an instruction: whether the path reaches the waiting core by a store or an
    /// interrupt, from which core, and the index of that core's instruction. Returns `None` if the core did not wait
    /// for another one.
    pub fn cause_of_resume(&self, core: usize, at: usize) -> Option<(Via, usize, usize)> {
        let this = &self.cores[core];
        let now = this.committed[at].tick;
        if let Some(halt) = self.halt_before(core, at) {
            let since = this.committed[at - 1].tick;
            let watched = self.watched_word(core, at).filter(|_| is_event_wait(halt));
            let store = watched.and_then(|word| self.first_store(core, word, since, now));
            let send = self.first_send(core, since, now);
            let first = [(Via::Interrupt, send), (Via::Store, store)].into_iter();
            let first =
                first.filter_map(|(via, found)| found.map(|(tick, n, at)| (tick, via, n, at)));
            return first
                .min_by_key(|(tick, ..)| *tick)
                .map(|(_, via, n, at)| (via, n, at));
        }
        let word = self.loaded_word(core, at)?;
        // Other cores store to only a few words, so this check excludes most loads.
        self.first_store(core, word, self.begin, now)?;
        let before = self.previous_load(core, at, word)?;
        let since = this.committed[before].tick;
        let (_, other, release) = self.first_store(core, word, since, now)?;
        Some((Via::Store, other, release))
    }

    /// Returns the index of the previous load of `word` by the same instruction, if both loads belong to a loop that
    /// waits.
    fn previous_load(&self, core: usize, at: usize, word: u64) -> Option<usize> {
        let here = self.level_and_address(core, at);
        let mut paused = false;
        for before in (at.saturating_sub(LONG)..at).rev() {
            paused |= self.marks.reasons(core, before).has(Reasons::PAUSE);
            let place = self.level_and_address(core, before);
            if place.0 != here.0 {
                return None;
            }
            if place == here {
                let waits = paused || at - before <= LOOP;
                return (waits && self.loaded_word(core, before) == Some(word)).then_some(before);
            }
        }
        None
    }

    /// Returns the exception level and the address of an instruction.
    fn level_and_address(&self, core: usize, at: usize) -> (u8, u64) {
        let one = &self.cores[core].committed[at];
        let block = &self.cores[core].blocks[one.block as usize];
        (block.level, block.address + 4 * u64::from(one.index))
    }

    /// Returns the word that an instruction loads.
    fn loaded_word(&self, core: usize, at: usize) -> Option<u64> {
        let this = &self.cores[core];
        let found = this.loads.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(this.loads[found].1)
    }

    /// Returns the word that a core loaded last with an exclusive or ordered load, before it halted.
    fn watched_word(&self, core: usize, at: usize) -> Option<u64> {
        let mut near = (at.saturating_sub(LOOP)..at).rev();
        near.find_map(|n| {
            let loads = self.marks.reasons(core, n).has(Reasons::SYNC);
            loads.then(|| self.loaded_word(core, n)).flatten()
        })
    }

    /// Returns the time of the first store to `word` by another core after `since` and before `now`, with that core and
    /// the index of its instruction.
    fn first_store(
        &self,
        core: usize,
        word: u64,
        since: u64,
        now: u64,
    ) -> Option<(u64, usize, usize)> {
        let others = self.cores.iter().enumerate().filter(|(n, _)| *n != core);
        let stores = others.filter_map(|(n, other)| {
            let tick = |at: usize| other.committed[at].tick;
            let first = other
                .stores
                .partition_point(|(to, at)| (*to, tick(*at)) <= (word, since));
            let (to, at) = *other.stores.get(first)?;
            (to == word && tick(at) < now).then(|| (tick(at), n, at))
        });
        stores.min()
    }

    /// Returns the time of the first interrupt that another core sent to `core` after `since` and before `now`, with
    /// that core and the index of its instruction. A write of ICC_SGI1R_EL1 that trapped has sent nothing: the level
    /// that handles the trap sends the SGI.
    fn first_send(&self, core: usize, since: u64, now: u64) -> Option<(u64, usize, usize)> {
        let others = self.cores.iter().enumerate().filter(|(n, _)| *n != core);
        let sends = others.filter_map(|(n, other)| {
            let tick = |at: usize| other.committed[at].tick;
            let first = other.sends.partition_point(|(at, _)| tick(*at) <= since);
            let sends = other.sends[first..].iter();
            let mut sends = sends.take_while(|(at, _)| tick(*at) < now);
            let found = sends.find(|(_, value)| sgi_is_for(*value, core as u64));
            found.map(|(at, _)| (tick(*at), n, *at))
        });
        sends.min()
    }
}

/// Whether an instruction is WFE or WFET. A store to the monitored word ends these, but not WFI (DDI 0487K.a, C6.2 and
/// D1.7.1).
const fn is_event_wait(word: u32) -> bool {
    word == 0xd503_205f || word & !0x1f == 0xd503_1000
}
