// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the stays at EL2 in a window. A stay begins at a vector and ends with the ERET.

use cost::{Level, Path};
use critical::branch_target;

use super::instruction_kind::{InstructionKind, kind};
use super::trace::{Executed, Window};

/// Why a CPU entered EL2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// HVC or SMC.
    Call,
    /// Write of ICC_SGI1R_EL1 or GICD_SGIR.
    Sgi,
    Wfi,
    Wfe,
    /// An access that stage 2 does not permit.
    Memory,
    /// A physical interrupt.
    Interrupt,
    /// Any other cause.
    Other,
}

/// Offsets, in the vector table, of the vectors for synchronous exceptions and interrupts from a lower level (DDI
/// 0487K.a, D1.3.1.5).
const SYNCHRONOUS: u64 = 0x400;
const INTERRUPT: u64 = 0x480;
/// Offset of the vector for an interrupt that is taken at the current level.
const OWN_INTERRUPT: u64 = 0x280;
const TABLE: u64 = 0x7ff;

/// Returns the causes of the stays in `window`, in order.
pub fn stay_causes(window: &Window) -> Vec<Cause> {
    let mut found = Vec::new();
    let mut last: Option<&Executed> = None;
    let mut rest = window.steps.as_slice();
    while let Some(start) = rest.iter().position(|step| step.level == Level::El2) {
        last = rest[..start].last().or(last);
        rest = &rest[start..];
        let same = rest.iter().take_while(|step| step.level == Level::El2);
        let before_return = same
            .clone()
            .position(|step| kind(step.word) == InstructionKind::Return);
        let length = before_return.map_or(same.count(), |before| before + 1);
        let (steps, after) = rest.split_at(length);
        found.push(stay_cause(steps[0].pc & TABLE, last));
        rest = after;
    }
    found
}

/// Returns the cause of a stay that began at `vector`. `last` is the guest's last instruction before the stay.
fn stay_cause(vector: u64, last: Option<&Executed>) -> Cause {
    match (vector, last.map(|step| kind(step.word))) {
        (INTERRUPT, _) => Cause::Interrupt,
        (SYNCHRONOUS, Some(InstructionKind::Hvc | InstructionKind::Smc)) => Cause::Call,
        (SYNCHRONOUS, Some(InstructionKind::SendSgi | InstructionKind::StoreSgi)) => Cause::Sgi,
        (SYNCHRONOUS, Some(InstructionKind::Wfi)) => Cause::Wfi,
        (SYNCHRONOUS, Some(InstructionKind::Wfe)) => Cause::Wfe,
        (SYNCHRONOUS, Some(InstructionKind::Other)) => Cause::Memory,
        _ => Cause::Other,
    }
}

/// Returns the guest's interrupt handlers in `window`, each from its vector to its ERET.
pub fn handlers(window: &Window) -> Vec<Vec<&Executed>> {
    let mut found: Vec<Vec<&Executed>> = Vec::new();
    let mut inside = false;
    let mut last: Option<&Executed> = None;
    for step in window.steps.iter().filter(|step| step.level == Level::El1) {
        // A window begins after its mark, at any address, but never inside a handler.
        let interrupted = last.is_some_and(|last| !leads_to(last, step.pc));
        last = Some(step);
        if !inside && interrupted && step.pc & TABLE == OWN_INTERRUPT {
            found.push(Vec::new());
            inside = true;
        }
        if let (true, Some(handler)) = (inside, found.last_mut()) {
            handler.push(step);
            inside = kind(step.word) != InstructionKind::Return;
        }
    }
    found
}

/// Whether `pc` may follow `last` without an exception: as the next instruction in memory, as the target of a direct
/// branch, or after any indirect branch. Ordinary guest code may be at the offset of a vector.
fn leads_to(last: &Executed, pc: u64) -> bool {
    let is_indirect = matches!(last.word & !0x3e0, 0xd61f_0000 | 0xd63f_0000 | 0xd65f_0000);
    is_indirect || pc == last.pc + 4 || branch_target(last.word, last.pc) == Some(pc)
}

/// Returns what a window of `path` must contain with injected interrupts: the stays, and the number of interrupts that
/// the guest takes, if this number is fixed.
pub fn expected_stays(path: Path) -> (&'static [Cause], Option<usize>) {
    match path {
        Path::Hypercall
        | Path::Service
        | Path::CpuOn
        | Path::CpuStart
        | Path::FloorCall
        | Path::FloorStart => (&[Cause::Call], Some(0)),
        Path::SgiSend | Path::DoorbellSend | Path::Broadcast | Path::WfiSend | Path::FloorSend => {
            (&[Cause::Sgi], Some(0))
        }
        Path::SgiReceive | Path::DoorbellReceive | Path::Timer | Path::FloorReceive => {
            (&[Cause::Interrupt], Some(1))
        }
        Path::Wfi | Path::FloorWait => (&[Cause::Wfi], Some(1)),
        Path::Switch => (&[Cause::Wfi, Cause::Interrupt], Some(1)),
        Path::Wfe => (&[Cause::Wfe], Some(0)),
        Path::Maintenance => (&[Cause::Interrupt], None),
        Path::Mmio | Path::FloorRead => (&[Cause::Memory], Some(0)),
    }
}

/// The part of the guest's own instructions that belongs to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    All,
    /// The interrupt handler. The other instructions only wait for the interrupt.
    Handler,
    /// The instructions after the last call.
    AfterCall,
    /// Nothing, because the instructions can't be compared.
    Nothing,
}

/// Returns the part of the guest's instructions that belongs to `path`.
pub fn part_to_count(path: Path) -> Own {
    match path {
        // The neighbour's instructions are at EL1, too.
        Path::Switch => Own::Handler,
        Path::SgiReceive | Path::DoorbellReceive | Path::Timer | Path::FloorReceive => Own::Handler,
        Path::CpuStart => Own::AfterCall,
        Path::Maintenance => Own::Nothing,
        _ => Own::All,
    }
}

/// Returns the hypervisor's steps that belong to the path of `window`.
pub fn hypervisor_steps(window: &Window) -> Vec<&Executed> {
    let steps = window.steps.iter().filter(|step| step.level == Level::El2);
    let steps: Vec<&Executed> = steps.collect();
    // A CPU that is off halts at EL2, and its start begins when it wakes from this halt.
    let halted = match window.path {
        Path::CpuStart => steps
            .iter()
            .rposition(|step| kind(step.word) == InstructionKind::Wfi),
        _ => None,
    };
    steps[halted.map_or(0, |halt| halt + 1)..].to_vec()
}

/// Returns the guest's steps that belong to the path of `window`. Returns `None` if they can't be compared.
pub fn guest_steps(window: &Window) -> Option<Vec<&Executed>> {
    let steps = || window.steps.iter().filter(|step| step.level == Level::El1);
    match part_to_count(window.path) {
        Own::All => (!window.spun).then(|| steps().collect()),
        Own::Handler => Some(handlers(window).concat()),
        Own::AfterCall => {
            let is_call = |step: &&Executed| {
                matches!(kind(step.word), InstructionKind::Hvc | InstructionKind::Smc)
            };
            let steps: Vec<&Executed> = steps().collect();
            let call = steps.iter().rposition(is_call)?;
            Some(steps[call + 1..].to_vec())
        }
        Own::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;
    const ERET: u32 = 0xd69f_03e0;
    const WFI: u32 = 0xd503_207f;

    fn window(path: Path, steps: &[(Level, u64, u32)]) -> Window {
        let steps = steps
            .iter()
            .map(|&(level, pc, word)| Executed::new(level, word, pc, 0));
        Window {
            path,
            cpu: 0,
            steps: steps.collect(),
            spun: false,
        }
    }

    #[test]
    fn a_stay_ends_with_its_return_also_where_the_next_follows_at_once() {
        let window = window(
            Path::Wfi,
            &[
                (Level::El1, 0x10, WFI),
                (Level::El2, 0x1400, NOP),
                (Level::El2, 0x1404, ERET),
                (Level::El2, 0x1480, NOP),
                (Level::El2, 0x1484, ERET),
                (Level::El1, 0x14, NOP),
            ],
        );
        assert_eq!(stay_causes(&window), [Cause::Wfi, Cause::Interrupt]);
    }

    #[test]
    fn a_handler_is_told_from_code_that_runs_through_such_an_address() {
        let window = window(
            Path::SgiReceive,
            &[
                (Level::El1, 0x27c, NOP),
                (Level::El1, 0x280, NOP),
                (Level::El1, 0x284, NOP),
                (Level::El1, 0x1280, NOP),
                (Level::El1, 0x9000, NOP),
                (Level::El1, 0x9004, ERET),
                (Level::El1, 0x284, NOP),
            ],
        );
        let handlers = handlers(&window);
        assert_eq!(handlers.len(), 1);
        assert_eq!(handlers[0].len(), 3);
        assert_eq!(guest_steps(&window).unwrap().len(), 3);
    }

    #[test]
    fn a_window_that_begins_at_such_an_address_has_no_handler() {
        let window = window(
            Path::Broadcast,
            &[
                (Level::El1, 0x4020_0280, NOP),
                (Level::El1, 0x4020_0284, NOP),
            ],
        );
        assert!(handlers(&window).is_empty());
    }

    #[test]
    fn a_branch_to_the_offset_of_a_vector_is_no_interrupt() {
        // B 0x4020_0280; RET.
        for (at, word) in [(0x4020_0200, 0x1400_0020), (0x4020_9000, 0xd65f_03c0)] {
            let steps = [
                (Level::El1, at, word),
                (Level::El1, 0x4020_0280, NOP),
                (Level::El1, 0x4020_0284, NOP),
            ];
            assert!(handlers(&window(Path::WfiSend, &steps)).is_empty());
            // After another instruction, that address is the vector.
            let other = [(Level::El1, at, NOP), steps[1], steps[2]];
            assert_eq!(handlers(&window(Path::WfiSend, &other)).len(), 1);
        }
    }

    #[test]
    fn a_start_is_counted_from_the_halt_and_from_the_call() {
        let window = window(
            Path::CpuStart,
            &[
                (Level::El1, 0x0, 0xd400_0002),
                (Level::El2, 0x1400, NOP),
                (Level::El2, 0x1404, WFI),
                (Level::El2, 0x1408, ERET),
                (Level::El1, 0x40, NOP),
                (Level::El1, 0x44, NOP),
            ],
        );
        assert_eq!(hypervisor_steps(&window).len(), 1);
        assert_eq!(guest_steps(&window).unwrap().len(), 2);
    }
}
