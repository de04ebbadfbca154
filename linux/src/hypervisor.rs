// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the level below the kernel from the device tree and the boot arguments.

use std::fs;
use std::path::Path;

use abi::exits;
use plan::{Arguments, Given, Under};
use platform::MONITOR;

/// The folder in which the kernel shows the device tree.
const TREE: &str = "/sys/firmware/devicetree/base";
/// Compatible string of Xen's node (Linux, Documentation/devicetree/bindings/arm/xen.txt).
const XEN: &str = "xen,xen";

/// The level below, as found in the device tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelBelow {
    /// No known hypervisor is in the device tree.
    Nothing,
    /// Rouse, with the address of its page.
    Rouse(u64),
    /// Our monitor under KVM, with the address of its page.
    Kvm(u64),
    /// Xen.
    Xen,
    /// Bao, which this project names in the device tree that it makes for Bao's guest.
    Bao,
}

/// The level below the kernel, and its knobs if they are fixed for the whole boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Below {
    /// The level's name in records.
    pub under: Under,
    /// The level's knobs, if cells can't set them.
    pub given: Option<Given>,
}

impl LevelBelow {
    /// Finds the level in the device tree of this machine.
    #[must_use]
    pub fn of_machine() -> Self {
        Self::in_tree(Path::new(TREE))
    }

    fn in_tree(tree: &Path) -> Self {
        let nodes = fs::read_dir(tree).into_iter().flatten().flatten();
        let found = nodes.filter_map(|node| {
            let node = node.path();
            let names = fs::read(node.join("compatible")).ok()?;
            let has = |name: &str| names.split(|&byte| byte == 0).any(|n| n == name.as_bytes());
            if has(XEN) {
                return Some(Self::Xen);
            }
            if Under::Bao.vendor().is_some_and(has) {
                return Some(Self::Bao);
            }
            let kind = if has(exits::COMPATIBLE) {
                Self::Rouse
            } else if has(MONITOR) {
                Self::Kvm
            } else {
                return None;
            };
            // An address in the root node has two cells.
            let reg = fs::read(node.join("reg")).ok()?;
            let address = reg.get(..8)?.try_into().ok()?;
            Some(kind(u64::from_be_bytes(address)))
        });
        found.last().unwrap_or(Self::Nothing)
    }

    /// Adds the facts in `arguments`, if they agree with the level that was found.
    ///
    /// # Errors
    /// The arguments contradict the device tree or are incomplete.
    pub fn with_arguments(self, arguments: &Arguments<'_>) -> Result<Below, String> {
        let given = arguments.given_trap.map(|trap| Given {
            trap,
            host_poll_us: arguments.given_host_poll_us.unwrap_or(0) as u32,
            alone: arguments.given_alone,
        });
        let is = |under: Under| match self {
            Self::Nothing => under == Under::None,
            Self::Rouse(_) => under == Under::Rouse,
            Self::Kvm(_) => under.kvm_mode().is_some(),
            Self::Xen => under == Under::Xen,
            Self::Bao => under == Under::Bao,
        };
        let under = match (arguments.under, self) {
            (Some(told), _) if is(told) => told,
            (Some(told), _) => {
                return Err(format!(
                    "under={told}: below is {}; boot this kernel under what it names",
                    self.name()
                ));
            }
            (None, Self::Nothing) => Under::None,
            (None, Self::Rouse(_)) => Under::Rouse,
            (None, Self::Kvm(_) | Self::Xen | Self::Bao) => Under::None,
        };
        let is_other = matches!(self, Self::Kvm(_) | Self::Xen | Self::Bao);
        if is_other && (arguments.under.is_none() || given.is_none()) {
            return Err(format!(
                "below is {}, which says neither how it runs nor what traps; say so by under and given-trap, as \
                 rouse.under=kvm rouse.given-trap=wfi",
                self.name()
            ));
        }
        Ok(Below { under, given })
    }

    /// Returns the level's name for messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => {
                "nothing that names itself (of KVM the monitor names itself by its page of exits, for which the host needs \
                 statistics of vCPUs: Linux 5.14)"
            }
            Self::Rouse(_) => "Rouse",
            Self::Kvm(_) => "KVM",
            Self::Xen => "Xen",
            Self::Bao => "Bao",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Trap;

    /// Returns the level that is found in a tree with a node whose compatible strings are `names`.
    fn found(names: &str) -> LevelBelow {
        let kept = tempfile::tempdir().unwrap();
        let place = kept.path();
        let node = place.join("node@9010000");
        fs::create_dir_all(&node).unwrap();
        fs::create_dir_all(place.join("chosen")).unwrap();
        fs::write(node.join("compatible"), names).unwrap();
        fs::write(
            node.join("reg"),
            [0, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0],
        )
        .unwrap();
        LevelBelow::in_tree(place)
    }

    fn told(found: LevelBelow, text: &str) -> Result<Below, String> {
        found.with_arguments(&Arguments::parse(text).unwrap())
    }

    #[test]
    fn the_tree_names_what_is_below() {
        assert_eq!(found("rouse,exits\0"), LevelBelow::Rouse(0x901_0000));
        assert_eq!(found("rouse,kvm-exits-2\0"), LevelBelow::Kvm(0x901_0000));
        assert_eq!(found("xen,xen-4.20\0xen,xen\0"), LevelBelow::Xen);
        assert_eq!(found("bao\0"), LevelBelow::Bao);
        assert_eq!(found("arm,pl011\0"), LevelBelow::Nothing);
        // A monitor of another version has other registers, and is not recognized.
        assert_eq!(found("rouse,kvm-exits-1\0"), LevelBelow::Nothing);
    }

    #[test]
    fn what_is_said_has_to_be_there() {
        let kvm = LevelBelow::Kvm(0);
        let text = "rouse.under=kvm-nvhe rouse.given-trap=none rouse.given-host-poll-us=5";
        let below = told(kvm, text).unwrap();
        assert_eq!(below.under, Under::KvmNvhe);
        let given = below.given.unwrap();
        assert_eq!((given.trap, given.host_poll_us), (Trap::None, 5));
        assert_eq!(told(LevelBelow::Rouse(0), "").unwrap().under, Under::Rouse);
        assert_eq!(told(LevelBelow::Nothing, "x=1").unwrap().under, Under::None);
        let xen = "rouse.under=xen rouse.given-trap=wfi";
        assert_eq!(told(LevelBelow::Xen, xen).unwrap().under, Under::Xen);
        for (found, text, why) in [
            (LevelBelow::Nothing, text, "below is nothing"),
            (LevelBelow::Xen, text, "below is Xen"),
            (LevelBelow::Bao, xen, "below is Bao"),
            (kvm, xen, "below is KVM"),
            (LevelBelow::Rouse(0), xen, "below is Rouse"),
            (kvm, "", "rouse.given-trap=wfi"),
            (kvm, "rouse.under=kvm", "rouse.given-trap=wfi"),
            (LevelBelow::Xen, "", "rouse.given-trap=wfi"),
        ] {
            let error = told(found, text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
