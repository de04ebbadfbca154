// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page by which Rouse shows programs what it counts ([`abi::exits`]), mapped by /dev/mem.

use std::arch::asm;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;

use abi::exits::{self, COMPATIBLE};
use abi::{Counter, Knob, KnobValue};
use rustix::fs::OFlags;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::counts::Counts;

/// Where the kernel shows the device tree.
const TREE: &str = "/sys/firmware/devicetree/base";
/// Bytes of the page that are used.
const SIZE: usize = 0x1000;

/// The page, mapped until the process ends.
#[derive(Debug)]
pub struct Page(*mut u8);

// SAFETY: it is mapped for as long as the process is, and each access is one load or store of a
// device's register, for which threads need not agree.
unsafe impl Sync for Page {}
// SAFETY: as above.
unsafe impl Send for Page {}

impl Page {
    /// The page, where Rouse is below; `None` where the tree has none.
    ///
    /// # Errors
    /// It is there, and can't be mapped.
    pub fn open() -> io::Result<Option<Self>> {
        let Some(base) = address() else {
            return Ok(None);
        };
        let flags = OFlags::SYNC.bits() as i32;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open("/dev/mem");
        let memory = opened.map_err(|error| {
            io::Error::other(format!(
                "/dev/mem: {error}; Rouse is asked by it, so run this as root"
            ))
        })?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, where nothing of this process is.
        let mapped = unsafe {
            mmap(
                ptr::null_mut(),
                SIZE,
                access,
                MapFlags::SHARED,
                &memory,
                base,
            )
        };
        match mapped {
            Ok(place) => Ok(Some(Self(place.cast()))),
            Err(error) => Err(io::Error::other(format!(
                "/dev/mem: {error}: the kernel does not let it map Rouse's page at {base:#x}; boot it with iomem=relaxed"
            ))),
        }
    }

    /// What Rouse has counted, of all vCPUs together.
    pub fn counts(&self) -> Counts {
        let counters = Counter::ALL.iter();
        counters
            .map(|&counter| {
                (
                    counter.name().to_owned(),
                    self.read(exits::counter(counter)),
                )
            })
            .collect()
    }

    /// Sets a knob of the vCPU that this thread runs on; whether it has the value now, where that
    /// can be read.
    pub fn set(&self, value: KnobValue) -> bool {
        let (knob, word) = value.encode();
        self.write(exits::knob(knob), word);
        !matches!(knob, Knob::Trap | Knob::Deliver) || self.read(exits::knob(knob)) == word
    }

    /// Whether what Rouse knows of the interrupts of this thread's vCPU agrees with its registers.
    /// What does not it prints.
    pub fn audit(&self) -> bool {
        self.read(exits::AUDIT) == exits::AGREES
    }

    fn read(&self, offset: u64) -> u64 {
        let value;
        let register = self.0.wrapping_add(offset as usize);
        // SAFETY: within the mapping, whose reads change nothing. By one load without writeback,
        // as only such a one tells the hypervisor what it is (DDI 0487K.a, ESR_EL2.ISV).
        unsafe { asm!("ldr {}, [{}]", out(reg) value, in(reg) register, options(nostack)) };
        value
    }

    fn write(&self, offset: u64, value: u64) {
        let register = self.0.wrapping_add(offset as usize);
        // SAFETY: within the mapping, whose writes change nothing of this process.
        unsafe { asm!("str {}, [{}]", in(reg) value, in(reg) register, options(nostack)) };
    }
}

/// The page's address, from the device tree.
fn address() -> Option<u64> {
    let nodes = fs::read_dir(TREE).ok()?.flatten();
    let read = |path: &Path, name| fs::read(path.join(name)).ok();
    let mut pages = nodes.map(|node| node.path()).filter(|path| {
        let compatible = read(path, "compatible").unwrap_or_default();
        compatible.strip_suffix(b"\0") == Some(COMPATIBLE.as_bytes())
    });
    let reg = read(&pages.next()?, "reg")?;
    // The root has two cells for an address.
    Some(u64::from_be_bytes(reg.get(..8)?.try_into().ok()?))
}
