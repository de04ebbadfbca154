// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the words that name the state to leave.

/// Declares the words.
macro_rules! words {
    ($($(#[$doc:meta])* $field:ident = $word:literal;)*) => {
        /// The state to leave, as a flag for each word.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Words {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl Words {
            /// Reads words separated by commas.
            ///
            /// # Errors
            /// Returns the first unknown word.
            pub fn parse(text: &str) -> Result<Self, &str> {
                let mut words = Self::default();
                for word in text.split(',').filter(|word| !word.is_empty()) {
                    match word {
                        $($word => words.$field = true,)*
                        "all" => words = words.with_all(),
                        _ => return Err(word),
                    }
                }
                Ok(words)
            }
        }
    };
}

words! {
    /// A pattern in every register of EL2 and EL1 that is UNKNOWN after a reset.
    registers = "registers";
    /// HCR_EL2.E2H and TGE set, and PSTATE.PAN.
    e2h = "e2h";
    /// Data accesses of EL2 are big-endian (SCTLR_EL2.EE).
    endian = "big-endian";
    /// SP_EL0 is selected, and neither stack pointer is valid.
    spsel = "spsel";
    /// PSTATE.DAIF is clear.
    unmasked = "unmasked";
    /// An event in the event register.
    event = "event";
    /// Garbage in all free RAM.
    ram = "ram";
    /// SPIs enabled, pending and active.
    spis = "spis";
    /// SGIs and PPIs enabled, pending and active.
    ppis = "ppis";
    /// Active priorities, list registers in use, and a CPU interface that lets no interrupt through.
    priorities = "priorities";
    /// LPIs enabled, and one of them pending.
    lpis = "lpis";
    /// Timers enabled and expired, and event streams on.
    timers = "timers";
    /// Performance monitors counting, with overflows pending.
    pmu = "pmu";
    /// A running generic watchdog whose period is longer than any test.
    watchdog = "watchdog";
    /// A watchdog that resets the machine before a run is over.
    watchdog_soon = "watchdog-soon";
    /// The device tree ends where the RAM ends.
    tree_at_end = "tree-at-end";
    /// The device tree begins right after the image.
    tree_behind = "tree-behind-image";
    /// The device tree is aligned to only 8 bytes.
    tree_unaligned = "tree-unaligned";
    /// The device tree is in the second of two banks of RAM, with a hole between them.
    tree_second_bank = "tree-in-second-bank";
    /// The image is not at its default address.
    image_high = "image-high";
    /// CPUs are started through spin tables.
    spin_table = "spin-table";
    /// All CPUs enter the image at the same time.
    at_once = "at-once";
    /// SCR_EL3.FIQ is clear: Group 0 does not belong to EL3 alone.
    group0_open = "group0-open";
}

impl Words {
    /// Sets every word that can be combined.
    const fn with_all(self) -> Self {
        Self {
            registers: true,
            e2h: true,
            endian: true,
            spsel: true,
            unmasked: true,
            event: true,
            ram: true,
            spis: true,
            ppis: true,
            priorities: true,
            lpis: true,
            timers: true,
            pmu: true,
            ..self
        }
    }
}
