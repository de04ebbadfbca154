// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives both images, the hypervisor at EL2 and the guest at EL1, their access to the architecture:
//! one-instruction wrappers ([`insn`]), the system registers that `aarch64-cpu` lacks ([`regs`]),
//! the position-independent entry ([`image`]) with its [`layout`], EL2's controls of EL1
//! ([`controls`]), the registers that firmware may withhold ([`optional`]), the saving of registers
//! ([`frame`]), a spin lock ([`lock`]), the GICv3 CPU interface ([`gic_cpu`]) and its replacement on a GICv2 ([`gicv2`]).
//!
//! On other architectures, the crate is nearly empty, so that the workspace's host tests build.

#![no_std]

#[cfg(target_arch = "aarch64")]
pub mod controls;
#[cfg(target_arch = "aarch64")]
pub mod el1;
#[cfg(target_arch = "aarch64")]
pub mod el2;
#[cfg(target_arch = "aarch64")]
pub mod frame;
#[cfg(target_arch = "aarch64")]
pub mod gic_cpu;
#[cfg(target_arch = "aarch64")]
mod gic_regs;
pub mod gicv2;
#[cfg(target_arch = "aarch64")]
pub mod hold;
#[cfg(target_arch = "aarch64")]
pub mod id;
pub mod image;
#[cfg(target_arch = "aarch64")]
pub mod insn;
#[cfg(target_arch = "aarch64")]
pub mod layout;
#[cfg(target_arch = "aarch64")]
pub mod lock;
pub mod needs;
#[cfg(target_arch = "aarch64")]
pub mod optional;
pub mod place;
#[cfg(target_arch = "aarch64")]
pub mod regs;
