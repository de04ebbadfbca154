// SPDX-License-Identifier: MIT OR Apache-2.0
//! The EL1 guest kernel.
#![no_std]
