// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads QEMU's input for this machine: the next image, and the state to leave. This module uses
//! the DMA interface of QEMU's fw_cfg device (QEMU, docs/specs/fw_cfg.rst).

/// Address of the device on QEMU's `virt`.
const BASE: u64 = 0x0902_0000;
/// The device's register that starts a transfer: the lower half of the address, big-endian.
const START: u64 = BASE + 20;
/// Numbers of items.
const KERNEL_SIZE: u16 = 0x08;
const KERNEL: u16 = 0x11;
const FILES: u16 = 0x19;
/// Commands, and the error state.
const ERROR: u32 = 1;
const READ: u32 = 1 << 1;
const SELECT: u32 = 1 << 3;

/// A transfer, as the device reads it: big-endian.
#[repr(C)]
struct Transfer {
    control: u32,
    length: u32,
    address: u64,
}

/// The device, and memory that it can access.
#[derive(Debug)]
pub struct FwCfg {
    memory: *mut Transfer,
}

/// An item with its size.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    key: u16,
    /// The size in bytes.
    pub size: u32,
}

impl FwCfg {
    /// Returns the device, for which 4 KiB are reserved at address `memory`, below 4 GiB.
    ///
    /// # Safety
    /// Only this program may use the memory.
    pub const unsafe fn new(memory: u64) -> Self {
        let memory = memory as *mut Transfer;
        Self { memory }
    }

    /// Returns the file that was given as the kernel.
    pub fn kernel_item(&self) -> Item {
        let size = u32::from_le_bytes(self.read_small::<4>(KERNEL_SIZE, 0));
        Item { key: KERNEL, size }
    }

    /// Returns the file `name`.
    pub fn find_file(&self, name: &str) -> Option<Item> {
        let count = u32::from_be_bytes(self.read_small::<4>(FILES, 0));
        (0..count).find_map(|n| {
            let entry = self.read_small::<64>(FILES, 4 + 64 * n);
            let end = entry[8..].iter().position(|&byte| byte == 0)?;
            (&entry[8..8 + end] == name.as_bytes()).then(|| Item {
                key: u16::from_be_bytes([entry[4], entry[5]]),
                size: u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]),
            })
        })
    }

    /// Copies an item to `address`.
    ///
    /// # Safety
    /// Only this program may use the memory.
    pub unsafe fn copy_item(&self, item: Item, address: u64) {
        self.transfer_dma(
            u32::from(item.key) << 16 | SELECT | READ,
            item.size,
            address,
        );
    }

    /// Reads `N` bytes of item `key` from offset `from` on. At least 64 bytes of the memory must remain.
    fn read_small<const N: usize>(&self, key: u16, from: u32) -> [u8; N] {
        const SKIP: u32 = 1 << 2;
        self.transfer_dma(u32::from(key) << 16 | SELECT | SKIP, from, 0);
        let to = self.memory as u64 + 64;
        self.transfer_dma(READ, N as u32, to);
        // SAFETY: the caller of `new` has given this memory to the device.
        unsafe { (to as *const [u8; N]).read_volatile() }
    }

    fn transfer_dma(&self, control: u32, length: u32, address: u64) {
        // SAFETY: the caller of `new` has given the memory to the device, and the callers of this
        // function own the destination.
        unsafe {
            self.memory.write_volatile(Transfer {
                control: control.to_be(),
                length: length.to_be(),
                address: address.to_be(),
            });
            arch::insn::dsb_sy();
            (START as *mut u32).write_volatile((self.memory as u32).to_be());
            let control = &raw const (*self.memory).control;
            while u32::from_be(control.read_volatile()) & !ERROR != 0 {}
        }
        arch::insn::dsb_sy();
    }
}
