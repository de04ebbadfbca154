// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the two functions that connect a program to this kernel. The linker decides which
//! program that is, so no path has to check this at run time.

/// Makes a program from its number ([`plan::Program`]), its main function ([`crate::start::Run`]), and a function that
/// every other CPU runs first.
#[macro_export]
macro_rules! program {
    ($program:expr, $run:path, $started:path) => {
        /// The entry of the first CPU from assembly.
        #[unsafe(no_mangle)]
        extern "C" fn el1_start(dtb: u64) -> ! {
            $crate::start::run_first_cpu(dtb, $program, $run)
        }

        /// The entry of every other CPU.
        #[unsafe(no_mangle)]
        extern "C" fn el1_start_secondary() -> ! {
            $started();
            $crate::smp::run_other_cpu()
        }
    };
}
