// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of the CPU for which a callback runs.

use std::ffi::CStr;
use std::ptr::null_mut;

use crate::api;

/// A buffer for the value of a register.
pub struct Value(*mut api::Array<u8>);

impl Value {
    /// A value without a buffer, from which nothing can be read.
    pub const NONE: Self = Self(null_mut());

    /// Creates a buffer.
    pub fn new() -> Self {
        // SAFETY: the function only makes an array.
        Self(unsafe { api::g_byte_array_new() })
    }

    /// Reads a register of the emulator's current CPU; `None` for a null handle. Call this function only in callbacks
    /// that may read registers.
    pub fn read(&self, handle: *mut api::Handle) -> Option<u64> {
        if handle.is_null() || self.0.is_null() {
            return None;
        }
        // SAFETY: the array belongs to this plugin, and the handle to the emulator.
        let read = unsafe {
            api::g_byte_array_set_size(self.0, 0);
            api::qemu_plugin_read_register(handle, self.0)
        };
        read.then(|| self.buffer_number())
    }

    /// Returns the word in memory at a physical address.
    pub fn read_memory(&self, physical: u64) -> Option<u64> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the array belongs to this plugin, and the emulator resizes it to the requested length; for an address
        // that is not memory, the emulator returns an error.
        let read = unsafe { api::qemu_plugin_read_memory_hwaddr(physical, self.0, 8) };
        (read == 0).then(|| self.buffer_number())
    }

    /// Returns the value in the buffer as a number.
    fn buffer_number(&self) -> u64 {
        // SAFETY: the array belongs to this plugin, and has been filled.
        let bytes = unsafe {
            let value = &*self.0;
            std::slice::from_raw_parts(value.data, value.length as usize)
        };
        let mut value = [0; 8];
        let length = bytes.len().min(value.len());
        value[..length].copy_from_slice(&bytes[..length]);
        u64::from_le_bytes(value)
    }
}

/// Finds the register called `name`. Handles are the same for all CPUs, since all CPUs are of one model. Call this
/// function when a CPU is created.
pub fn find(name: &str) -> Option<*mut api::Handle> {
    // SAFETY: the interface returns an array of descriptions that stay valid.
    let all = unsafe {
        let array = &*api::qemu_plugin_get_registers();
        std::slice::from_raw_parts(array.data, array.length as usize)
    };
    // SAFETY: names are strings.
    let is_it =
        |one: &&api::Register| unsafe { CStr::from_ptr(one.name).to_bytes() == name.as_bytes() };
    all.iter().find(is_it).map(|register| register.handle)
}

/// Finds the registers x0 to x30.
pub fn find_general() -> Option<[*mut api::Handle; 31]> {
    let mut general = [null_mut(); 31];
    for (number, handle) in general.iter_mut().enumerate() {
        *handle = find(&format!("x{number}"))?;
    }
    Some(general)
}

/// Returns the exception level in a PSTATE.
pub fn level_in_pstate(pstate: u64) -> u8 {
    (pstate >> 2 & 3) as u8
}
