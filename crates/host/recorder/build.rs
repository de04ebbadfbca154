// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's calls to the emulator are resolved when the emulator loads the plugin. ELF linkers leave such symbols
//! to the loader; Apple's linker needs an option to do so.

fn main() {
    if std::env::var_os("CARGO_CFG_TARGET_VENDOR").is_some_and(|vendor| vendor == "apple") {
        println!("cargo::rustc-cdylib-link-arg=-undefined");
        println!("cargo::rustc-cdylib-link-arg=dynamic_lookup");
    }
}
