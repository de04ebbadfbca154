// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls that `rustix` does not have. Each function returns its call's result or a negative error number.

use std::arch::asm;

/// Makes a system call with at most three arguments. The call is part of the samples, so this function sets no other
/// registers.
///
/// # Safety
/// The caller fulfils the conditions of the system call itself.
#[inline(always)]
pub unsafe fn system_call(number: u64, arguments: [u64; 3]) -> i64 {
    let [first, second, third] = arguments;
    let result;
    // SAFETY: the caller fulfils the conditions. Linux keeps every register except X0 (Linux,
    // Documentation/arch/arm64).
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second,
            in("x2") third,
            options(nostack)
        );
    }
    result
}

/// Makes a system call with five arguments.
///
/// # Safety
/// The caller fulfils the conditions of the system call itself.
pub unsafe fn system_call_of_five(number: u64, arguments: [u64; 5]) -> i64 {
    let [first, second, third, fourth, fifth] = arguments;
    let result;
    // SAFETY: the caller fulfils the conditions. Linux keeps every register except X0 (Linux,
    // Documentation/arch/arm64).
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second,
            in("x2") third,
            in("x3") fourth,
            in("x4") fifth,
            options(nostack)
        );
    }
    result
}
