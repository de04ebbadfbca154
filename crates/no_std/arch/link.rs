// SPDX-License-Identifier: MIT OR Apache-2.0
//! The build script of both images: links them with the layout that they share.

use std::env;

fn main() {
    // Where the package is now: this program is not compiled again when it is moved.
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../crates/no_std/arch/image.ld");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    println!("cargo:rustc-link-arg-bins=-pie");
    println!("cargo:rustc-link-arg-bins=--no-dynamic-linker");
    println!("cargo:rustc-link-arg-bins=-zmax-page-size=4096");
}
