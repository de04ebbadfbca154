// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules. A rule that is missing from the table is not called. A rule without a citation or without examples does
//! not compile.

mod active_priorities;
pub(crate) mod caches;
pub(crate) mod code;
mod counter;
mod device;
mod exclusive;
mod gich_read_back;
mod interrupt_end;
mod list_registers;
mod new_regime;
mod rwp;
pub(crate) mod sgi;
mod synchronization;
pub(crate) mod tables;
mod tlbi;
pub(crate) mod unknown;
mod wait;

use crate::access::Access;
use crate::decode::Operation;
use crate::rule::{About, Now, Rule};

/// Defines the table of rules, and the type that calls them all.
macro_rules! rules {
    ($($module:ident :: $rule:ident,)*) => {
        /// State of every rule for a CPU.
        #[derive(Debug, Default)]
        pub struct Rules { $($module: $module::$rule,)* }

        impl Rules {
            pub fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
                $(self.$module.on_instruction(now, operation, value);)*
            }

            #[inline]
            pub fn on_access(&mut self, now: &Now<'_>, access: &Access) {
                $(self.$module.on_access(now, access);)*
            }

            pub fn on_failed_access(&mut self, now: &Now<'_>, address: u64) {
                $(self.$module.on_failed_access(now, address);)*
            }

            pub fn on_fetch(&mut self, now: &Now<'_>, line: u64) {
                $(self.$module.on_fetch(now, line);)*
            }

            pub fn on_trap(&mut self, now: &Now<'_>, operation: Operation) {
                $(self.$module.on_trap(now, operation);)*
            }

            pub fn on_level_entry(&mut self, now: &Now<'_>, level: u8) {
                $(self.$module.on_level_entry(now, level);)*
            }
        }

        /// The rules, in the order of the documentation.
        pub const RULES: &[About] = &[$(<$module::$rule as Rule>::ABOUT),*];

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn each_rule_is_broken_by_what_breaks_it_and_by_nothing_else() {
                $(check::<$module::$rule>();)*
            }
        }
    };
}

rules! {
    wait::WaitCanEnd,
    synchronization::Synchronised,
    sgi::SgiAfterStores,
    tlbi::TlbiCompleted,
    new_regime::TlbInvalidated,
    tables::BreakBeforeMake,
    caches::CachesAgree,
    code::CodeFetched,
    exclusive::ExclusiveMemory,
    interrupt_end::InterruptEnded,
    active_priorities::ActivePriorities,
    list_registers::ListRegisters,
    gich_read_back::GichReadBack,
    rwp::WritesDone,
    unknown::WrittenBeforeRead,
    counter::CounterInOrder,
    device::DeviceAccess,
}

#[cfg(test)]
fn check<R: Rule>() {
    let About { name, says, cites } = R::ABOUT;
    assert!(
        ["DDI 0487", "IHI 0069", "IHI 0048"]
            .iter()
            .any(|one| cites.contains(one)),
        "{name}: {cites}"
    );
    let examples = R::EXAMPLES;
    let (breaks, keeps) = (
        examples.programs(examples.breaks),
        examples.programs(examples.keeps),
    );
    let (breaks, keeps): (Vec<_>, Vec<_>) = (breaks.collect(), keeps.collect());
    assert!(
        !says.is_empty() && !breaks.is_empty() && !keeps.is_empty(),
        "{name}"
    );
    for (example, program) in breaks {
        let found = program.run();
        let is = found.iter().any(|one| one.rule == name);
        assert!(is, "{name} misses: {example}: {found:?}");
    }
    for (example, program) in keeps {
        // The findings include the findings of all other rules: code that one rule requires must not break another
        // rule.
        let found = program.run();
        assert!(found.is_empty(), "{name}: {example}: {found:?}");
    }
}
