// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the exits and interrupts of a sample from the instructions of its CPUs.

use std::collections::{BTreeMap, HashMap};

use critical::{Cause, is_access};
use serde::{Deserialize, Serialize};

/// Exits to EL2, and interrupts that CPUs sent, both on the path and off it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Events {
    /// Exits by cause.
    pub exits: BTreeMap<String, u64>,
    /// Number of writes to ICC_SGI1R_EL1, or to GICD_SGIR of a GICv2, that did not trap.
    pub sent: u64,
}

/// An instruction that a CPU executed.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'w> {
    /// The CPU.
    pub cpu: u16,
    /// Exception level.
    pub level: u8,
    /// The instruction's address.
    pub pc: u64,
    /// The instruction.
    pub instruction: Instruction,
    /// The instructions that may follow, as far as they are known.
    pub next: [Option<Instruction>; 2],
    /// The file that contains the instruction.
    pub image: &'w str,
}

/// An instruction that may cause an exception.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Its encoding.
    pub word: u32,
    /// Whether it sends an interrupt, unless it traps.
    pub sends: bool,
}

impl Events {
    /// Counts the events of a sample.
    pub fn count<'w>(instructions: impl Iterator<Item = Executed<'w>>) -> Self {
        let mut events = Self::default();
        let mut last: HashMap<u16, Executed<'w>> = HashMap::new();
        for now in instructions {
            match last.insert(now.cpu, now) {
                Some(before) => events.count_step(before, now),
                // The CPU had halted before the sample.
                None if now.level == 2 && is_interrupt(now.pc) => events.count_exit(Cause::Irq),
                None => {}
            }
        }
        let open = last.values().filter(|one| one.instruction.sends);
        events.sent += open.count() as u64;
        events
    }

    fn count_step(&mut self, before: Executed<'_>, now: Executed<'_>) {
        let rises = now.level > before.level;
        let cause = match is_interrupt(now.pc) {
            true => Cause::Irq,
            false => before.cause_of_exception(),
        };
        // KVM's host and its virtual machine monitor are not guests.
        let is_guest = !matches!(before.image, "host" | "rouse-kvm");
        if rises && now.level == 2 && is_guest {
            self.count_exit(cause);
        }
        let traps = rises && cause != Cause::Irq;
        self.sent += u64::from(before.instruction.sends && !traps);
    }

    fn count_exit(&mut self, cause: Cause) {
        *self.exits.entry(cause.name().into()).or_default() += 1;
    }
}

impl Executed<'_> {
    /// Returns the cause of an exception after this instruction. A load or store that aborts is not among the executed
    /// instructions of a recording.
    fn cause_of_exception(&self) -> Cause {
        let own = self.instruction.cause_of_exception();
        if !matches!(own, Cause::Mmio | Cause::Other) {
            return own;
        }
        let mut accesses = self
            .next
            .into_iter()
            .flatten()
            .filter(|next| is_access(next.word));
        accesses.next().map_or(own, Instruction::cause_of_exception)
    }
}

impl Instruction {
    /// Returns the cause of an exception that this instruction raises (DDI 0487K.a, C4.1.94).
    fn cause_of_exception(self) -> Cause {
        match self.word {
            0xd503_207f => Cause::Wfi,
            0xd503_205f => Cause::Wfe,
            word if word & !0x1f == 0xd503_1020 => Cause::Wfi,
            word if word & !0x1f == 0xd503_1000 => Cause::Wfe,
            _ if self.sends => Cause::Sgi,
            word if word & 0xffe0_001f == 0xd400_0002 => Cause::Hvc,
            word if word & 0xffe0_001f == 0xd400_0003 => Cause::Smc,
            word if word & 0xffd0_0000 == 0xd510_0000 => Cause::Sysreg,
            word if is_access(word) => Cause::Mmio,
            _ => Cause::Other,
        }
    }
}

/// Whether the vector at `pc` is for interrupts from a lower level (DDI 0487K.a, D1.3.1.5).
const fn is_interrupt(pc: u64) -> bool {
    matches!(pc & 0x7ff, 0x480 | 0x500 | 0x680 | 0x700)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: u32 = 0xd518_cba1;
    const WFI: u32 = 0xd503_207f;
    const NOP: u32 = 0xd503_201f;
    /// `STR W5, [X3, #0xf00]`
    const STORE: u32 = 0xb90f_0065;

    fn instruction(word: u32) -> Instruction {
        let sends = [SEND, STORE].contains(&word);
        Instruction { word, sends }
    }

    fn events(steps: &[(u16, u8, u64, u32, &'static str)]) -> (Vec<(String, u64)>, u64) {
        let steps = steps.iter().map(|&(cpu, level, pc, word, image)| Executed {
            cpu,
            level,
            pc,
            instruction: instruction(word),
            next: [None; 2],
            image,
        });
        let Events { exits, sent } = Events::count(steps);
        (exits.into_iter().collect(), sent)
    }

    #[test]
    fn a_write_that_traps_is_an_exit_and_what_el2_writes_is_sent() {
        let steps = [
            (0, 1, 0x1000, SEND, "guest"),
            // An instruction of another CPU is in between.
            (1, 1, 0x1000, WFI, "guest"),
            (0, 2, 0x8400, SEND, "hypervisor"),
            (0, 2, 0x8404, NOP, "hypervisor"),
            (1, 2, 0x8480, NOP, "hypervisor"),
        ];
        let exits = vec![("irq".into(), 1), ("sgi".into(), 1)];
        assert_eq!(events(&steps), (exits, 1));
        // The first write does not trap, and an interrupt follows it. The second write is the last instruction of the
        // sample.
        let direct = [
            (0, 1, 0x1000, SEND, "guest"),
            (0, 2, 0x8480, NOP, "hypervisor"),
            (1, 1, 0x1000, SEND, "guest"),
        ];
        assert_eq!(events(&direct), (vec![("irq".into(), 1)], 2));
    }

    #[test]
    fn a_cpu_that_had_halted_before_the_sample_exits() {
        let first = [(0, 2, 0x8480, NOP, "hypervisor")];
        assert_eq!(events(&first), (vec![("irq".into(), 1)], 0));
        // 0x8280 is the vector for an interrupt that EL2 itself takes; 0x9000 is not a vector.
        for pc in [0x8280, 0x9000] {
            assert_eq!(events(&[(0, 2, pc, NOP, "host")]), (vec![], 0));
        }
    }

    #[test]
    fn a_host_does_not_exit() {
        let steps = [
            (0, 0, 0x1000, 0xd400_0001, "rouse-kvm"),
            (0, 2, 0x8400, NOP, "host"),
            (0, 1, 0x1000, WFI, "linux"),
            (0, 2, 0x8400, NOP, "host"),
            (0, 1, 0x1000, 0xd400_0002, "host"),
            (0, 2, 0x8400, NOP, "host"),
        ];
        assert_eq!(events(&steps), (vec![("wfi".into(), 1)], 0));
    }

    #[test]
    fn a_store_that_aborts_is_the_cause_and_sends_nothing() {
        let before_store = |word| Executed {
            cpu: 0,
            level: 1,
            pc: 0x1000,
            instruction: instruction(word),
            next: [None, Some(instruction(STORE))],
            image: "guest",
        };
        let vector = Executed {
            level: 2,
            pc: 0x8400,
            next: [None; 2],
            ..before_store(NOP)
        };
        // An access before the store did not abort, since it was executed. A WFI traps, even though it was executed.
        for (word, name) in [(NOP, "sgi"), (0xf940_1d54, "sgi"), (WFI, "wfi")] {
            let Events { exits, sent } = Events::count([before_store(word), vector].into_iter());
            assert_eq!(exits.into_iter().collect::<Vec<_>>(), [(name.into(), 1)]);
            assert_eq!(sent, 0);
        }
    }

    #[test]
    fn causes_follow_from_the_instruction() {
        for (word, name) in [
            (0xd503_1021, "wfi"),
            (0xd503_1003, "wfe"),
            (0xd400_0002, "hvc"),
            (0xd400_0003, "smc"),
            (0xd538_d080, "sysreg"), // mrs x0, tpidr_el1
            (0xd51b_e220, "sysreg"), // msr cntp_ctl_el0, x0
            (0xf940_1d54, "mmio"),   // ldr x20, [x10, #0x38]
            (0xb900_1d54, "mmio"),   // str w20, [x10, #0x1c]
            (NOP, "other"),
        ] {
            assert_eq!(
                instruction(word).cause_of_exception().name(),
                name,
                "{word:08x}"
            );
        }
    }
}
