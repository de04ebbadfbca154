// SPDX-License-Identifier: MIT OR Apache-2.0
//! The build script of every image: links the image with the layout that all images share.

use std::env;
use std::path::Path;

fn main() {
    // Reads the package's path at run time, so that moving the package causes no recompilation of this program.
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folders = Path::new(&package).ancestors();
    let mut scripts = folders.map(|folder| folder.join("crates/no_std/arch/image.ld"));
    let script = scripts.find(|script| script.is_file());
    let script = script.expect("a folder above has it");
    let script = script.display();
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    println!("cargo:rustc-link-arg-bins=-pie");
    println!("cargo:rustc-link-arg-bins=--no-dynamic-linker");
    println!("cargo:rustc-link-arg-bins=-zmax-page-size=4096");
    // Keeps a table if the image refers to its start symbol.
    println!("cargo:rustc-link-arg-bins=-znostart-stop-gc");
}
