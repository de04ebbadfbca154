// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths.

macro_rules! paths {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $about:literal;)*) => {
        /// A path: something that the guest does, or that happens to it, again and
        /// again between two marks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Path { $($(#[$doc])* $variant,)* }

        impl Path {
            /// Every one, in the order of the card.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name on the command line and in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it is, for people.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

paths! {
    /// A call of a function that nobody has.
    Hypercall = "hypercall", "null hypercall";
    /// A call of SMCCC_VERSION, which is answered.
    Service = "service", "hypercall that is answered";
    /// A wake-up, up to the return from the write of ICC_SGI1R_EL1.
    SgiSend = "sgi-send", "SGI to another CPU, at the sender";
    /// The same, at a target that runs.
    SgiReceive = "sgi-receive", "the same, at a target that runs";
    /// As [`Path::SgiSend`], of an SGI that goes through the mailbox.
    MailSend = "mail-send", "SGI by the mailbox, at the sender";
    /// The kick that announces it, and its listing.
    MailReceive = "mail-receive", "the same, at a target that runs";
    /// A broadcast, at the sender.
    Broadcast = "broadcast", "SGI to all others, at the sender";
    /// WFI, ended by an SGI.
    Wfi = "wfi", "WFI, from entry to return, ended by an SGI";
    /// WFE with nothing to wait for.
    Wfe = "wfe", "WFE";
    /// The virtual timer expires.
    Timer = "timer", "timer interrupt";
    /// More interrupts than list registers.
    Maintenance = "maintenance", "maintenance interrupt that lists one more";
    /// A read of GICD_IIDR.
    Mmio = "mmio", "read of the distributor";
    /// CPU_ON, at the caller.
    CpuOn = "cpu-on", "CPU_ON, at the caller";
    /// CPU_ON, at the CPU that is started.
    CpuStart = "cpu-start", "the same, at the CPU that is started";
}

impl Path {
    /// The path called `name`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|path| path.name() == name)
    }
}
