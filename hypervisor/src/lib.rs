// SPDX-License-Identifier: MIT OR Apache-2.0
//! The EL2 image.
#![no_std]
