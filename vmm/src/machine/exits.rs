// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page by which a guest asks how often its vCPU was left, by cause: see
//! [`abi::monitor`].

use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

use abi::monitor::REGISTERS;
use kvm_ioctls::VcpuFd;
use vmm_sys_util::ioctl::ioctl;
use vmm_sys_util::ioctl_io_nr;

use crate::layout::{EXITS, EXITS_SIZE};
use crate::statistics::Places;

ioctl_io_nr!(KVM_GET_STATS_FD, kvm_bindings::KVMIO, 0xce);

/// The statistics of a vCPU, and what the guest has read of them.
#[derive(Debug)]
pub struct Exits {
    file: File,
    places: Places,
    /// Accesses to the page.
    own: u64,
    /// What was noted.
    noted: [u64; REGISTERS.len()],
}

impl Exits {
    /// Those of `vcpu`; `None` if this KVM has not all that is asked for.
    pub fn open(vcpu: &VcpuFd) -> Option<Self> {
        // SAFETY: the call takes no argument, and changes no memory.
        let fd = unsafe { ioctl(vcpu, KVM_GET_STATS_FD()) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the call has made this descriptor, and nothing else has it.
        let file = unsafe { File::from_raw_fd(fd) };
        let places = Places::find(|at, into| file.read_exact_at(into, at).is_ok())?;
        Some(Self {
            file,
            places,
            own: 0,
            noted: [0; REGISTERS.len()],
        })
    }

    /// Whether the page has `address`.
    pub fn has(address: u64) -> bool {
        (EXITS..EXITS + EXITS_SIZE).contains(&address)
    }

    /// The guest reads at `address`. There is 0 where no register begins, and where the
    /// statistics can't be read any more.
    pub fn read(&mut self, address: u64, data: &mut [u8]) {
        self.own += 1;
        if address == EXITS {
            let file = &self.file;
            let read = |at, into: &mut [u8]| file.read_exact_at(into, at).is_ok();
            self.noted = self.places.registers(self.own, read).unwrap_or_default();
        }
        let offset = (address - EXITS) as usize;
        let register = self
            .noted
            .get(offset / 8)
            .filter(|_| offset.is_multiple_of(8));
        let bytes = register.copied().unwrap_or_default().to_le_bytes();
        for (byte, answer) in data.iter_mut().zip(bytes) {
            *byte = answer;
        }
    }
}
