// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtual machine monitor for one purpose: it runs a guest's image under KVM in the same way as the image
//! runs on the bare machine and under Rouse, so that the three can be compared.
//!
//! The monitor gives a guest RAM, vCPUs that are each pinned to a CPU of the host, KVM's own GICv3, timers and PSCI,
//! and a console. A guest has no disk, no network and no input. Code that does not depend on KVM builds on every host,
//! so that it can be tested anywhere:
//!
//! | module | |
//! |---|---|
//! | [`options`] | the command line |
//! | [`layout`] | the guest's memory map |
//! | [`tree`] | the device tree that describes it |
//! | [`statistics`] | KVM's statistics, in the form in which the guest reads them |
//! | [`archive`] | an initramfs with a program as its first process |
//! | [`payload`] | guests appended to a program's file |
//! | `machine` | the machine itself; arm64 Linux only |

pub mod archive;
pub mod layout;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub mod machine;
pub mod options;
pub mod payload;
pub mod statistics;
pub mod tree;
