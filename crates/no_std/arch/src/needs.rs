// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much additional memory an image needs, for the tool that packs and boots it: symbols whose
//! addresses are numbers of bytes. They take no space in the image.

/// Declares the needs of an image: `needs!(symbol = bytes, ...)`.
///
/// | symbol | bytes |
/// |---|---|
/// | `__needs_fixed` | whatever it does |
/// | `__needs_per_cpu` | for each CPU |
/// | `__needs_per_neighbour` | for each CPU's neighbour, besides what it goes through |
/// | `__needs_per_pair` | for each pair of CPUs: as often as there are CPUs, squared |
/// | `__needs_per_cell` | for each cell of the plan |
/// | `__needs_per_cell_and_cpu` | for each CPU, of each cell of the plan |
/// | `__needs_per_measured` | for each that can run, besides |
/// | `__needs_per_stamped` | for each cell that is taken apart into stages, besides |
/// | `__needs_per_value` | for each value of a cell that is kept, besides |
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
