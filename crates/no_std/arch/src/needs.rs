// SPDX-License-Identifier: MIT OR Apache-2.0
//! The amount of additional memory that an image needs, for the tool that packs and boots it:
//! symbols whose addresses are numbers of bytes. The symbols take no space in the image.

/// Declares the needs of an image: `needs!(symbol = bytes, ...)`.
///
/// | symbol | bytes |
/// |---|---|
/// | `__needs_fixed` | always |
/// | `__needs_per_cpu` | for each CPU |
/// | `__needs_per_neighbour` | for each CPU's neighbour, besides the memory that it works through |
/// | `__needs_per_pair` | for each pair of CPUs: the number of CPUs squared |
/// | `__needs_per_cell` | for each cell of the plan |
/// | `__needs_per_cell_and_cpu` | for each CPU in each cell of the plan |
/// | `__needs_per_measured` | for each cell that can run, in addition |
/// | `__needs_per_stamped` | for each cell that is measured in stages, in addition |
/// | `__needs_per_value` | for each value of a cell that is kept, in addition |
#[macro_export]
macro_rules! needs {
    ($($symbol:ident = $bytes:expr),* $(,)?) => {
        $(core::arch::global_asm!(
            concat!(".global ", stringify!($symbol)),
            concat!(".set ", stringify!($symbol), ", {}"),
            const $bytes,
        );)*
    };
}
