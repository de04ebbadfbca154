// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges SErrors: their severity according to the syndrome, and whether EL2 may continue.
//!
//! The syndrome is in ESR_EL2 (D23.2.39, ISS encoding for an SError exception). For an SError that
//! an error synchronization barrier has deferred, DISR_EL1 has the same fields in the same places.
//! The chapter on the RAS PE architecture, PE error state classification, defines the kinds of
//! errors.

use core::fmt;

use crate::esr::Esr;

/// IDS: the rest of the syndrome is IMPLEMENTATION DEFINED.
const IDS: u32 = 1 << 24;
/// DFSC of an SError that AET describes (needs FEAT_RAS). DFSC 0 means uncategorized.
const DFSC_ASYNCHRONOUS: u32 = 0b01_0001;
/// DFSC of an SError about which nothing is known.
const DFSC_UNCATEGORIZED: u32 = 0;
/// DISR_EL1.A: an error synchronization barrier has deferred an SError.
const DEFERRED: u64 = 1 << 31;

/// Kind of an SError, by its syndrome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// CE: the error was corrected.
    Corrected,
    /// UEO: nothing has used the wrong data, and the CPU can continue where it was interrupted.
    Restartable,
    /// UER: nothing has used the wrong data, but the next instruction would. The PE can continue
    /// only after the error is repaired.
    Recoverable,
    /// UEU: wrong data was used, within the CPU.
    Unrecoverable,
    /// UC: wrong data may be anywhere.
    Uncontainable,
    /// The syndrome does not classify the error, as for every SError taken without FEAT_RAS.
    Uncategorized,
    /// The syndrome is IMPLEMENTATION DEFINED.
    OwnSyndrome,
    /// The syndrome has a reserved value.
    Reserved,
}

/// Where or when an SError was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The SError was pending when the CPU entered the hypervisor.
    AtStart,
    /// The guest was interrupted.
    InGuest,
    /// EL2 was interrupted.
    InEl2,
}

/// The action to take next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The interrupted code continues.
    GoOn,
    /// EL2 can continue, but the guest can't.
    EndGuest,
    /// Neither EL2 nor the guest can continue, because the error may belong to either. A guest can cause
    /// such an error at will.
    EndBoth,
    /// EL2 is no longer reliable.
    Fail,
}

/// Judges the syndrome `esr` of an SError, on a CPU with or without FEAT_RAS.
#[must_use]
pub const fn judge(esr: Esr, has_ras: bool) -> Verdict {
    let iss = esr.iss();
    if iss & IDS != 0 {
        return Verdict::OwnSyndrome;
    }
    match (iss & 0x3f, has_ras) {
        (DFSC_ASYNCHRONOUS, true) => match iss >> 10 & 7 {
            0b000 => Verdict::Uncontainable,
            0b001 => Verdict::Unrecoverable,
            0b010 => Verdict::Restartable,
            0b011 => Verdict::Recoverable,
            0b110 => Verdict::Corrected,
            _ => Verdict::Reserved,
        },
        (DFSC_UNCATEGORIZED, true) | (_, false) => Verdict::Uncategorized,
        _ => Verdict::Reserved,
    }
}

/// Returns the syndrome of the deferred SError in `disr`, DISR_EL1, if there was one.
#[must_use]
pub const fn deferred(disr: u64) -> Option<Esr> {
    match disr & DEFERRED {
        0 => None,
        _ => Some(Esr(disr & 0x1ff_ffff)),
    }
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 8] = [
        Self::Corrected,
        Self::Restartable,
        Self::Recoverable,
        Self::Unrecoverable,
        Self::Uncontainable,
        Self::Uncategorized,
        Self::OwnSyndrome,
        Self::Reserved,
    ];

    /// Decides how to continue after the SError.
    ///
    /// The exits have no error synchronization barrier (ESB, or SCTLR_EL2.IESB), which would make
    /// each exit slower. So an error of EL2 may be taken when the guest is already running, and if
    /// wrong data was used within the CPU, it is unknown whether EL2 or the guest used it. This is
    /// also true if the syndrome does not classify the error, for instance after a guest's
    /// exclusive access to memory that it has made Non-cacheable. If no wrong data was used, EL2 is
    /// not affected, and the next instruction is the guest's.
    ///
    /// An SError that is pending when the CPU enters the hypervisor was caused by software that no longer runs:
    /// nothing uses its data any more, and RAM that is still wrong reports its error again when it is read.
    #[must_use]
    pub const fn next(self, taken: Taken) -> Next {
        match (self, taken) {
            (Self::Corrected | Self::Restartable, _) => Next::GoOn,
            (Self::Uncontainable | Self::Reserved, _) => Next::Fail,
            (_, Taken::AtStart) => Next::GoOn,
            (Self::Recoverable, Taken::InGuest) => Next::EndGuest,
            (_, Taken::InGuest) => Next::EndBoth,
            _ => Next::Fail,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Corrected => "corrected",
            Self::Restartable => "restartable",
            Self::Recoverable => "recoverable",
            Self::Unrecoverable => "unrecoverable",
            Self::Uncontainable => "uncontainable",
            Self::Uncategorized => "of no category",
            Self::OwnSyndrome => "with a syndrome of the implementation's own",
            Self::Reserved => "with a reserved syndrome",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The syndrome of an SError: class 0x2f, IL.
    const SERROR: u64 = 0x2f << 26 | 1 << 25;

    fn syndrome(aet: u64, dfsc: u64) -> Esr {
        Esr(SERROR | aet << 10 | dfsc)
    }

    #[test]
    fn the_type_says_how_bad_it_is_where_there_is_one() {
        let verdicts = [
            Verdict::Uncontainable,
            Verdict::Unrecoverable,
            Verdict::Restartable,
            Verdict::Recoverable,
            Verdict::Reserved,
            Verdict::Reserved,
            Verdict::Corrected,
            Verdict::Reserved,
        ];
        for (aet, verdict) in (0..).zip(verdicts) {
            assert_eq!(judge(syndrome(aet, 0x11), true), verdict);
            assert_eq!(judge(syndrome(aet, 0), true), Verdict::Uncategorized);
            assert_eq!(judge(syndrome(aet, 0x11), false), Verdict::Uncategorized);
            for dfsc in (1..64).filter(|dfsc| *dfsc != 0x11) {
                assert_eq!(judge(syndrome(aet, dfsc), true), Verdict::Reserved);
                assert_eq!(judge(syndrome(aet, dfsc), false), Verdict::Uncategorized);
            }
        }
    }

    /// Combines all values of the decisive fields with each of the remaining bits, and with all of them.
    #[test]
    fn no_other_bit_says_anything() {
        let says = 7 << 10 | 0x3f | u64::from(IDS);
        for (aet, dfsc, ras) in
            (0..8).flat_map(|a| (0..64).flat_map(move |d| [(a, d, false), (a, d, true)]))
        {
            let bare = judge(syndrome(aet, dfsc), ras);
            for other in (0..64).map(|bit| 1_u64 << bit).chain([u64::MAX]) {
                let more = Esr(syndrome(aet, dfsc).0 ^ (other & !says));
                assert_eq!(judge(more, ras), bare, "{other:#x}");
            }
            let own = Esr(syndrome(aet, dfsc).0 | u64::from(IDS));
            assert_eq!(judge(own, ras), Verdict::OwnSyndrome);
        }
    }

    #[test]
    fn only_what_is_known_to_be_harmless_goes_on() {
        let goes_on = |taken| -> Vec<Verdict> {
            let all = Verdict::ALL.into_iter();
            all.filter(|verdict| verdict.next(taken) == Next::GoOn)
                .collect()
        };
        let harmless = [Verdict::Corrected, Verdict::Restartable];
        assert_eq!(goes_on(Taken::InGuest), harmless);
        assert_eq!(goes_on(Taken::InEl2), harmless);
        let all_but = Verdict::ALL
            .into_iter()
            .filter(|verdict| !matches!(verdict, Verdict::Uncontainable | Verdict::Reserved));
        assert_eq!(goes_on(Taken::AtStart), all_but.collect::<Vec<_>>());
    }

    #[test]
    fn only_a_guest_ends_and_only_of_what_it_would_have_used() {
        for taken in [Taken::AtStart, Taken::InGuest, Taken::InEl2] {
            for verdict in Verdict::ALL {
                let ends = verdict.next(taken) == Next::EndGuest;
                let may = (verdict, taken) == (Verdict::Recoverable, Taken::InGuest);
                assert_eq!(ends, may, "{verdict} {taken:?}");
            }
        }
    }

    #[test]
    fn what_a_guest_can_cause_is_not_said_to_be_of_el2() {
        for verdict in Verdict::ALL {
            let both = verdict.next(Taken::InGuest) == Next::EndBoth;
            let unknown = matches!(
                verdict,
                Verdict::Unrecoverable | Verdict::Uncategorized | Verdict::OwnSyndrome
            );
            assert_eq!(both, unknown, "{verdict}");
            for taken in [Taken::AtStart, Taken::InEl2] {
                assert_ne!(verdict.next(taken), Next::EndBoth, "{verdict} {taken:?}");
            }
        }
    }

    #[test]
    fn what_was_deferred_has_the_same_fields() {
        assert_eq!(deferred(0x11), None);
        let disr = 1 << 31 | 0b010 << 10 | 0x11;
        assert_eq!(judge(deferred(disr).unwrap(), true), Verdict::Restartable);
        assert_eq!(deferred(disr | 1 << 40), deferred(disr));
        let own = deferred(1 << 31 | 1 << 24 | 0x11).unwrap();
        assert_eq!(judge(own, true), Verdict::OwnSyndrome);
    }
}
