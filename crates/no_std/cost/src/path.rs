// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths whose cost is counted.

macro_rules! paths {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $about:literal;)*) => {
        /// A path: an action of the guest, or an event in it, that repeats between two marks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Path { $($(#[$doc])* $variant,)* }

        impl Path {
            /// All paths, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the path's name on the command line and in files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Describes the path for people.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

paths! {
    /// A call of a function that does not exist.
    Hypercall = "hypercall", "null hypercall";
    /// A call of SMCCC_VERSION, which exists.
    Service = "service", "hypercall that is answered";
    /// A wake-up, up to the return from the write of ICC_SGI1R_EL1.
    SgiSend = "sgi-send", "SGI to another CPU, at the sender";
    /// The SGI of [`Path::SgiSend`], at a running target.
    SgiReceive = "sgi-receive", "the same, at a target that runs";
    /// Like [`Path::SgiSend`], for an SGI that goes through the target's pending word and a
    /// doorbell.
    DoorbellSend = "doorbell-send", "SGI by pending word and doorbell, at the sender";
    /// The doorbell interrupt, and the listing of the SGI.
    DoorbellReceive = "doorbell-receive", "the same, at a target that runs";
    /// A broadcast, at the sender.
    Broadcast = "broadcast", "SGI to all others, at the sender";
    /// WFI, ended by an SGI.
    Wfi = "wfi", "WFI, from entry to return, ended by an SGI";
    /// The SGI that ends the WFI, up to the return from the write of ICC_SGI1R_EL1.
    WfiSend = "wfi-send", "the SGI that ends it, at the sender";
    /// Like [`Path::Wfi`], on a CPU with a neighbour, which runs during the wait.
    Switch = "switch", "the same, which gives the CPU to a neighbour: to it and back";
    /// WFE with nothing to wait for.
    Wfe = "wfe", "WFE";
    /// The virtual timer expires.
    Timer = "timer", "timer interrupt";
    /// More interrupts are pending than there are list registers.
    Maintenance = "maintenance", "maintenance interrupt that lists one more";
    /// A read of GICD_IIDR.
    Mmio = "mmio", "read of the distributor";
    /// CPU_ON, at the caller.
    CpuOn = "cpu-on", "CPU_ON, at the caller";
    /// CPU_ON, at the started CPU.
    CpuStart = "cpu-start", "the same, at the CPU that is started";
    /// The floor: HVC to a vector that only returns.
    FloorCall = "floor-call", "floor: HVC to a vector that only returns";
    /// The floor of [`Path::SgiSend`].
    FloorSend = "floor-send", "floor of sgi-send: what the architecture requires";
    /// The floor of [`Path::SgiReceive`].
    FloorReceive = "floor-receive", "floor of sgi-receive: what the architecture requires";
    /// The floor of [`Path::Wfi`].
    FloorWait = "floor-wait", "floor of wfi: what the architecture requires";
    /// The floor of [`Path::Mmio`].
    FloorRead = "floor-read", "floor of mmio: what the architecture requires";
    /// The floor of [`Path::CpuOn`].
    FloorStart = "floor-start", "floor of cpu-on: what the architecture requires";
}

/// The names that older baselines use for paths.
const FORMER: [(&str, Path); 2] = [
    ("mail-send", Path::DoorbellSend),
    ("mail-receive", Path::DoorbellReceive),
];

impl Path {
    /// Whether the path is the floor of another path: the lowest possible cost.
    #[must_use]
    pub const fn is_floor(self) -> bool {
        matches!(
            self,
            Self::FloorCall
                | Self::FloorSend
                | Self::FloorReceive
                | Self::FloorWait
                | Self::FloorRead
                | Self::FloorStart
        )
    }

    /// Returns the floor of the path, if the floor is measured: the exit with the minimum that the
    /// architecture requires.
    #[must_use]
    pub const fn floor(self) -> Option<Self> {
        Some(match self {
            Self::SgiSend | Self::DoorbellSend | Self::Broadcast | Self::WfiSend => Self::FloorSend,
            Self::SgiReceive | Self::DoorbellReceive | Self::Timer | Self::Maintenance => {
                Self::FloorReceive
            }
            Self::Wfi => Self::FloorWait,
            Self::Hypercall | Self::Service | Self::Wfe => Self::FloorCall,
            Self::Mmio => Self::FloorRead,
            Self::CpuOn => Self::FloorStart,
            // A start has no exit with a floor, and a switch has two such exits.
            Self::CpuStart | Self::Switch => return None,
            Self::FloorCall
            | Self::FloorSend
            | Self::FloorReceive
            | Self::FloorWait
            | Self::FloorRead
            | Self::FloorStart => return None,
        })
    }

    /// Returns the path that is called `name`, now or in an older baseline.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut now = Self::ALL.iter().copied();
        let former = || FORMER.iter().find(|(former, _)| *former == name);
        now.find(|path| path.name() == name)
            .or_else(|| Some(former()?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_means_one_path() {
        for (n, path) in Path::ALL.iter().enumerate() {
            assert_eq!(Path::parse(path.name()), Some(*path));
            assert_eq!(*path as usize, n);
        }
        for (former, path) in FORMER {
            assert_eq!(Path::parse(former), Some(path));
        }
        assert_eq!(Path::parse("mail"), None);
    }
}
