// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends at which a program is put on this kernel. Which one it is, is known
//! when it is linked, so that no path asks.

/// Makes a program of its number ([`plan::Program`]), of what it does when all CPUs
/// run ([`crate::start::Run`]), and of what every other CPU does first of all.
#[macro_export]
macro_rules! program {
    ($program:expr, $run:path, $started:path) => {
        /// Where the first CPU gets from assembly.
        #[unsafe(no_mangle)]
        extern "C" fn el1_start(dtb: u64) -> ! {
            $crate::start::first(dtb, $program, $run)
        }

        /// Where every other CPU gets.
        #[unsafe(no_mangle)]
        extern "C" fn el1_start_secondary() -> ! {
            $started();
            $crate::smp::other()
        }
    };
}
