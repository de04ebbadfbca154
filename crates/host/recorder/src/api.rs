// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of QEMU's plugin interface, version 7, that this plugin uses. The interface is declared here from the
//! emulator's exports, so that the emulator's headers are not needed.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Version of the interface.
pub const VERSION: c_int = 7;

/// A block of translated code, during its translation.
#[repr(C)]
pub struct Block([u8; 0]);
/// An instruction of a block.
#[repr(C)]
pub struct Instruction([u8; 0]);
/// A register that can be read.
#[repr(C)]
pub struct Handle([u8; 0]);
/// The physical location that an instruction accessed: memory or a device.
#[repr(C)]
pub struct Place([u8; 0]);

/// Identifies the plugin.
pub type Id = u64;
/// Data passed to every callback.
pub type Data = *mut c_void;

/// Description of a register.
#[repr(C)]
pub struct Register {
    /// Argument for [`qemu_plugin_read_register`].
    pub handle: *mut Handle,
    /// The register's name.
    pub name: *const c_char,
    _feature: *const c_char,
    _reserved: *const c_void,
}

/// GLib's array, with its elements' type.
#[repr(C)]
pub struct Array<T> {
    /// The array's elements.
    pub data: *mut T,
    /// The number of elements.
    pub length: c_uint,
}

/// The value that an access loaded or stored.
#[repr(C)]
pub struct Stored {
    /// The base-2 logarithm of the value's number of bytes.
    pub size: c_int,
    /// The value; if it has fewer than 8 bytes, the other bytes are undefined.
    pub value: [u64; 2],
}

/// Selects interrupts that CPUs take.
pub const INTERRUPT: c_int = 1;
/// Selects exceptions that CPUs take.
pub const EXCEPTION: c_int = 2;

/// The callback neither changes nor reads registers.
pub const NO_REGISTERS: c_int = 0;
/// The callback reads registers.
pub const READS_REGISTERS: c_int = 1;
/// Selects both loads and stores.
pub const LOADS_AND_STORES: c_int = 3;

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_init_cb(
        id: Id,
        callback: extern "C" fn(c_uint, Data),
        data: Data,
    );
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(
        id: Id,
        callback: extern "C" fn(*mut Block, Data),
        data: Data,
    );
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        callback: extern "C" fn(c_uint, Data),
        flags: c_int,
        data: Data,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: extern "C" fn(c_uint, Data),
        flags: c_int,
        data: Data,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: extern "C" fn(c_uint, u32, u64, Data),
        flags: c_int,
        which: c_int,
        data: Data,
    );
    pub fn qemu_plugin_register_vcpu_discon_cb(
        id: Id,
        kinds: c_int,
        callback: extern "C" fn(c_uint, c_int, u64, u64, Data),
        data: Data,
    );
    pub fn qemu_plugin_register_atexit_cb(id: Id, callback: extern "C" fn(Data), data: Data);
    pub fn qemu_plugin_reset(id: Id, callback: extern "C" fn(Data), data: Data);
    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    pub fn qemu_plugin_insn_data(
        instruction: *const Instruction,
        place: *mut c_void,
        length: usize,
    ) -> usize;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub fn qemu_plugin_insn_haddr(instruction: *const Instruction) -> *const c_void;
    pub fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    pub fn qemu_plugin_mem_is_store(info: u32) -> bool;
    pub fn qemu_plugin_mem_get_value(info: u32) -> Stored;
    pub fn qemu_plugin_hwaddr_device_name(place: *const Place) -> *const c_char;
    pub fn qemu_plugin_get_hwaddr(info: u32, address: u64) -> *mut Place;
    pub fn qemu_plugin_hwaddr_is_io(place: *const Place) -> bool;
    pub fn qemu_plugin_hwaddr_phys_addr(place: *const Place) -> u64;
    pub fn qemu_plugin_read_memory_hwaddr(
        address: u64,
        bytes: *mut Array<u8>,
        length: usize,
    ) -> c_int;
    pub fn qemu_plugin_translate_vaddr(address: u64, physical: *mut u64) -> bool;
    pub fn qemu_plugin_get_registers() -> *mut Array<Register>;
    pub fn qemu_plugin_read_register(handle: *mut Handle, value: *mut Array<u8>) -> bool;

    // These functions belong to GLib, which is in the same process.
    pub fn g_byte_array_new() -> *mut Array<u8>;
    pub fn g_byte_array_set_size(array: *mut Array<u8>, length: c_uint) -> *mut Array<u8>;
}
