// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that Rouse set aside for neighbours when it booted.

use std::fs;

use plan::{Arguments, Names, Neighbour, Word};

/// Maximum KiB that a neighbour can walk through; `None` if Rouse has no memory for a neighbour.
#[derive(Clone, Copy, Debug)]
pub struct Room(Option<u32>);

impl Room {
    /// Reads the boot arguments from the kernel's command line. Rouse also read these arguments when it
    /// booted.
    #[must_use]
    pub fn here() -> Self {
        Self::told(&fs::read_to_string("/proc/cmdline").unwrap_or_default())
    }

    fn told(arguments: &str) -> Self {
        Self(Arguments::<Names>::read(arguments).0.plan.neighbours)
    }

    /// If Rouse has no memory for `neighbour`, returns the reason.
    #[must_use]
    pub fn why_no_room(&self, neighbour: Neighbour) -> Option<String> {
        let fits = !neighbour.is_there() || self.0.is_some_and(|most| neighbour.kib() <= most);
        (!fits).then(|| {
            let name = neighbour.name();
            format!(
                "neighbour: Rouse was booted without room for it; boot with rouse.neighbour={name}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_booted_with_room_for_more_has_room_for_less() {
        let lacks =
            |arguments: &str, neighbour| Room::told(arguments).why_no_room(neighbour).is_some();
        for (arguments, none, work, cache_16, cache) in [
            ("quiet", false, true, true, true),
            ("rouse.neighbour=none", false, true, true, true),
            ("a rouse.neighbour=work b", false, false, true, true),
            ("rouse.neighbour=none,cache:64", false, false, false, true),
            ("rouse.neighbour=cache:all", false, false, false, false),
        ] {
            let found = [
                Neighbour::None,
                Neighbour::Work,
                Neighbour::Cache16,
                Neighbour::Cache,
            ]
            .map(|neighbour| lacks(arguments, neighbour));
            assert_eq!(found, [none, work, cache_16, cache], "{arguments}");
        }
        let why = Room::told("").why_no_room(Neighbour::Cache64).unwrap();
        assert!(why.ends_with("boot with rouse.neighbour=cache:64"), "{why}");
    }
}
