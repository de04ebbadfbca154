// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evicts EL2's memory from the caches, for samples that begin cold.

use arch::{insn, layout};
use arrayvec::ArrayVec;
use platform::Region;

use super::vm::vm;
use crate::cpu::percpu::{PerCpu, boot_stack_guard};

/// Evicts the part that [`abi::Call::Evict`] calls `what`; `None` if there is no such part.
pub fn evict(what: u64) -> Option<()> {
    match what {
        abi::EVICT_IMAGE => pages::evict(image_regions()),
        // The eviction is the last call before a sample, but the path here has brought code and this CPU's memory back
        // into caches. The path back to the guest does so again for its stubs and the top of the stack.
        abi::EVICT_TRANSLATIONS => {
            pages::evict([layout::text().into(), PerCpu::this().memory()]);
            // A TLBI has taken effect when the DSB completes (DDI 0487K.a, D8.17.5).
            insn::dsb_ishst();
            insn::tlbi_alle1is();
            insn::tlbi_alle2is();
            insn::dsb_ish();
            insn::isb();
        }
        number => {
            let cpu = vm().cpus.get(usize::try_from(number).ok()?)?;
            pages::evict([cpu.memory()]);
        }
    }
    Some(())
}

/// Returns code, constants and variables, without the unmapped page among them.
fn image_regions() -> ArrayVec<Region, 4> {
    let (guard, data) = (boot_stack_guard(), layout::data());
    ArrayVec::from([
        layout::text().into(),
        layout::rodata().into(),
        (data.start..guard.base).into(),
        (guard.end()..data.end).into(),
    ])
}
