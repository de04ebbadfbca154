// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves the page from which a guest reads the numbers of its vCPUs' exits by cause (see [`abi::monitor`]).

use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use kvm_ioctls::VcpuFd;
use vmm_sys_util::ioctl::ioctl;
use vmm_sys_util::ioctl_io_nr;

use crate::layout::{EXITS, EXITS_SIZE};
use crate::statistics::{Noted, Places, Values, sums};

ioctl_io_nr!(KVM_GET_STATS_FD, kvm_bindings::KVMIO, 0xce);

/// The statistics of a vCPU.
#[derive(Debug)]
struct Counted {
    file: File,
    places: Places,
    /// Number of the vCPU's accesses to the page.
    own: AtomicU64,
}

/// A vCPU's view of all statistics.
#[derive(Debug)]
pub struct Exits {
    all: Arc<[Counted]>,
    index: usize,
    noted: Noted,
}

impl Exits {
    /// Opens a view for each of `vcpus`. Returns no views if this KVM lacks a needed statistic.
    pub fn open<'v>(vcpus: impl Iterator<Item = &'v VcpuFd>) -> Vec<Self> {
        let all: Option<Arc<[Counted]>> = vcpus.map(Counted::open).collect();
        let all = all.unwrap_or_default();
        let one = |index| Self {
            all: all.clone(),
            index,
            noted: Noted::default(),
        };
        (0..all.len()).map(one).collect()
    }

    /// Returns whether `address` is in the page of exit counts.
    pub fn contains(address: u64) -> bool {
        (EXITS..EXITS + EXITS_SIZE).contains(&address)
    }

    /// Serves the guest's read at `address`. The value is 0 where no register begins, and if the
    /// statistics can't be read any more.
    pub fn read(&mut self, address: u64, data: &mut [u8]) {
        let all = &self.all;
        let own = &all[self.index];
        own.own.fetch_add(1, Relaxed);
        let together = || sums(all.iter().map(Counted::read));
        let value = self
            .noted
            .read(address - EXITS, || own.read(), together)
            .to_le_bytes();
        for (byte, answer) in data.iter_mut().zip(value) {
            *byte = answer;
        }
    }
}

impl Counted {
    fn open(vcpu: &VcpuFd) -> Option<Self> {
        // SAFETY: the call takes no argument, and changes no memory.
        let fd = unsafe { ioctl(vcpu, KVM_GET_STATS_FD()) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the call has created this descriptor, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        let places = Places::find(|at, into| file.read_exact_at(into, at).is_ok())?;
        let own = AtomicU64::new(0);
        Some(Self { file, places, own })
    }

    fn read(&self) -> Values {
        let read = |at, into: &mut [u8]| self.file.read_exact_at(into, at).is_ok();
        let values = self.places.registers(self.own.load(Relaxed), read);
        values.unwrap_or_default()
    }
}
