// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lines of the board's console mean.

use abi::Ended;
use results::records::Collector;

use crate::symbols::Symbols;

/// What starts a line of the hypervisor or the guest that is no record.
const OURS: &str = "rouse: ";

/// What starts the line that names a deadline, and the lines of its dump.
const LATE: &str = results::capture::LATE;

/// What Linux says when it gives up.
const KERNEL_PANIC: &str = "Kernel panic - not syncing: ";

/// What EDK2, whose boot manager has this name, says when it does not start the
/// image, and what that means. Guests may say such things too, without the name.
const BOOT_MANAGER: &str = "BdsDxe: ";
const NOT_STARTED: [(&str, &str); 4] = [
    (": Access Denied", SECURE_BOOT),
    (": Security Violation", SECURE_BOOT),
    ("No bootable option or device was found", NOTHING),
    ("\"EFI Internal Shell\"", NOTHING),
];
const SECURE_BOOT: &str = "firmware's Secure Boot does not let the image start, as it is not \
    signed: turn Secure Boot off, or sign the image with a key that the firmware has";
const NOTHING: &str = "firmware finds nothing that it can start; serial.log says what it tried";

/// What a line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A record, or the remains of one.
    Record,
    /// Part of the dump of a crash, or of a machine whose time is over.
    Crash,
    /// The images' report that they are done.
    Exit,
    /// The machine is none to run on.
    Refused,
    /// What the machine is, for a first boot.
    Survey,
    /// Something else.
    Other,
}

/// Everything that is known from the console.
#[derive(Debug, Default)]
pub struct Console {
    /// Records.
    pub collector: Collector,
    /// The last boot stage: its name and what it said.
    pub stage: Option<String>,
    /// The exit status that the images reported.
    pub status: Option<u32>,
    /// How the guest ended the machine, where it did so without an exit status.
    pub ended: Option<Ended>,
    /// Why the machine is none to run on.
    pub refused: Option<String>,
    /// What the machine is, line by line, if it was asked for.
    pub survey: Vec<String>,
    /// Which deadline of the hypervisor's is over.
    pub late: Option<String>,
    /// Lines of a dump, the functions' names added.
    pub crash: Vec<String>,
    /// Why Linux, as another guest, has panicked.
    pub kernel_panic: Option<String>,
    /// Names of functions.
    pub symbols: Symbols,
}

impl Console {
    /// A console of images with these symbols.
    pub fn new(symbols: Symbols) -> Self {
        Self {
            symbols,
            ..Self::default()
        }
    }

    /// Reads a line.
    pub fn feed(&mut self, line: &str) -> Kind {
        if self.collector.feed(line) {
            return Kind::Record;
        }
        if let Some((_, why)) = line.split_once(LATE)
            && self.crash.is_empty()
        {
            self.late.get_or_insert_with(|| why.trim().to_owned());
        }
        // A crash may begin in the middle of another CPU's line.
        if !self.crash.is_empty() || line.contains("panic:") || self.late.is_some() {
            self.crash.push(self.symbols.annotate(line, None));
            return Kind::Crash;
        }
        if let Some((_, why)) = line.split_once(KERNEL_PANIC) {
            self.kernel_panic
                .get_or_insert_with(|| why.trim().to_owned());
        }
        if let Some(why) = not_started(line) {
            self.refuse(why);
            return Kind::Refused;
        }
        let Some((_, text)) = line.split_once(OURS) else {
            return Kind::Other;
        };
        if let Some(stage) = text.strip_prefix("stage ") {
            self.stage = Some(stage.to_owned());
        } else if let Some(base) = text.strip_prefix("base ") {
            self.note_base(base);
        } else if let Some(status) = text.strip_prefix("exit status ") {
            self.status = status.trim().parse().ok();
            return Kind::Exit;
        } else if let Some(ended) = Ended::parse(text) {
            self.ended = Some(ended);
            return Kind::Exit;
        } else if let Some(line) = text.strip_prefix("survey ") {
            self.survey.push(line.to_owned());
            return Kind::Survey;
        } else if let Some(why) = text.strip_prefix("refused: ") {
            self.refuse(why.trim());
            return Kind::Refused;
        }
        Kind::Other
    }

    /// Keeps why the machine is none to run on: the first reason, of which others follow.
    fn refuse(&mut self, why: &str) {
        self.refused.get_or_insert_with(|| why.to_owned());
    }

    fn note_base(&mut self, text: &str) {
        if let Some((name, base)) = text.split_once(" 0x")
            && let Ok(base) = u64::from_str_radix(base.trim(), 16)
        {
            self.symbols.set_base(name, base);
        }
    }

    /// Where a boot that did not end well got to.
    pub fn last_stage(&self) -> String {
        match &self.stage {
            Some(stage) => format!("the last boot stage was `{stage}`"),
            None => "it reported no boot stage".into(),
        }
    }
}

/// Why firmware does not start the image, if that is what the line says.
fn not_started(line: &str) -> Option<&'static str> {
    let (_, said) = line.split_once(BOOT_MANAGER)?;
    let mut known = NOT_STARTED.iter();
    let (_, why) = known.find(|(words, _)| said.contains(words))?;
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_status_and_crash_are_noticed() {
        let mut console = Console::default();
        assert_eq!(console.feed("rouse: stage mmu: on, 3 regions"), Kind::Other);
        assert_eq!(
            console.last_stage(),
            "the last boot stage was `mmu: on, 3 regions`"
        );
        assert_eq!(console.feed("rouse: base guest 0x44000000"), Kind::Other);
        assert_eq!(console.feed("@r1 0 boot #00000000"), Kind::Record);
        assert_eq!(console.feed("rouse: survey GICD 0x1"), Kind::Survey);
        assert_eq!(console.survey, ["GICD 0x1"]);
        assert_eq!(console.feed("rouse: exit status 3"), Kind::Exit);
        assert_eq!(console.status, Some(3));
        let ended = "half a linerouse: guest ended: reset by vCPU 1 (MPIDR 0x100)";
        assert_eq!(console.feed(ended), Kind::Exit);
        assert_eq!(console.ended.map(|ended| ended.mpidr), Some(0x100));
        assert_eq!(
            console.feed("rouse: refused: started at EL1"),
            Kind::Refused
        );
        assert_eq!(console.refused.as_deref(), Some("started at EL1"));
        assert_eq!(
            console.feed("[    1.0] Kernel panic - not syncing: No working init found."),
            Kind::Other
        );
        assert_eq!(
            console.kernel_panic.as_deref(),
            Some("No working init found.")
        );
        let firmware = "BdsDxe: failed to load Boot0001 \"disk\" from PciRoot(0x0): Access Denied";
        let nothing = "BdsDxe: No bootable option or device was found.";
        let mut at_firmware = Console::default();
        for line in [firmware, nothing] {
            assert_eq!(at_firmware.feed(line), Kind::Refused);
        }
        // The first says why.
        let refused = at_firmware.refused.unwrap();
        assert!(refused.contains("Secure Boot"), "{refused}");
        assert_eq!(
            console.feed("noise rouse: panic: EL2 on CPU 0x0"),
            Kind::Crash
        );
        assert_eq!(console.feed("rouse:   ELR 0x0"), Kind::Crash);
        assert_eq!(console.crash.len(), 2);
    }

    #[test]
    fn firmware_that_gives_up_is_told_from_guests_that_complain() {
        for (line, kind) in [
            (
                "BdsDxe: starting Boot0002 \"EFI Internal Shell\" from Fv(x)",
                Kind::Refused,
            ),
            (
                "BdsDxe: No bootable option or device was found.",
                Kind::Refused,
            ),
            (
                "BdsDxe: starting Boot0001 \"UEFI QEMU NVMe Ctrl\"",
                Kind::Other,
            ),
            ("/dev/kmsg: Access Denied", Kind::Other),
        ] {
            assert_eq!(Console::default().feed(line), kind, "{line}");
        }
    }

    #[test]
    fn a_silent_board_has_no_stage() {
        assert!(Console::default().last_stage().contains("no boot stage"));
    }
}
