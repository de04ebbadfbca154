// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes how a guest ended, as printed on the console.

use core::fmt;

/// The way in which a guest ended the machine if it reported no exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// PSCI SYSTEM_OFF.
    Off,
    /// PSCI SYSTEM_RESET.
    Reset,
    /// PSCI CPU_OFF on the last CPU that was on.
    NoCpu,
    /// The hypervisor has stopped the last CPU, because its exception vector itself faults.
    Stopped,
}

impl End {
    /// All kinds of end, with their names.
    const ALL: [(Self, &'static str); 4] = [
        (Self::Off, "off"),
        (Self::Reset, "reset"),
        (Self::NoCpu, "no CPU on"),
        (Self::Stopped, "vector faults itself"),
    ];
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(end, _)| end == self);
        f.write_str(named.map_or("", |(_, name)| name))
    }
}

/// How the guest ended and on which vCPU: the console's last line, after `rouse: `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The way in which the guest ended.
    pub how: End,
    /// The number of the vCPU that ended the machine.
    pub vcpu: usize,
    /// The affinity of that vCPU, in PSCI's format.
    pub mpidr: u64,
}

impl Ended {
    const STARTS: &str = "guest ended: ";

    /// Parses a line of the console, given without its `rouse: `.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (how, by) = line.strip_prefix(Self::STARTS)?.split_once(" by vCPU ")?;
        let (vcpu, mpidr) = by
            .trim_ascii_end()
            .strip_suffix(')')?
            .split_once(" (MPIDR 0x")?;
        Some(Self {
            how: End::ALL.iter().find(|(_, name)| *name == how)?.0,
            vcpu: vcpu.parse().ok()?,
            mpidr: u64::from_str_radix(mpidr, 16).ok()?,
        })
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { how, vcpu, mpidr } = self;
        write!(f, "{}{how} by vCPU {vcpu} (MPIDR {mpidr:#x})", Self::STARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_reads_back() {
        for (how, _) in End::ALL {
            let (vcpu, mpidr) = (63, 0x1_0000_0203);
            let ended = Ended { how, vcpu, mpidr };
            assert_eq!(Ended::parse(&ended.to_string()), Some(ended));
        }
        for other in [
            "guest ended: off",
            "guest ended: x by vCPU 0 (MPIDR 0x0)",
            "exit status 0",
        ] {
            assert_eq!(Ended::parse(other), None, "{other}");
        }
    }
}
