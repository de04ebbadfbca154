// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's functions are found when it loads the plugin. Linkers of ELF
//! leave such symbols to the loader; Apple's has to be told.

fn main() {
    if std::env::var_os("CARGO_CFG_TARGET_VENDOR").is_some_and(|vendor| vendor == "apple") {
        println!("cargo::rustc-cdylib-link-arg=-undefined");
        println!("cargo::rustc-cdylib-link-arg=dynamic_lookup");
    }
}
