// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page in which the level below Linux shows its counts to programs, mapped through /dev/mem. The page is Rouse's
//! ([`abi::exits`]) or the page of our monitor under KVM ([`abi::monitor`]).

use std::arch::asm;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

use abi::monitor::{self, REGISTERS};
use abi::{Counter, Knob, KnobValue, Shared, exits};
use rustix::fs::OFlags;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::counts::Counts;
use crate::hypervisor::LevelBelow;

/// Number of bytes of the page that are mapped.
const SIZE: usize = 0x1000;

/// The page, mapped until the process ends.
#[derive(Debug)]
pub struct Page {
    place: *mut u8,
    /// Whether this is Rouse's page, which has knobs.
    is_rouses: bool,
}

// SAFETY: the page stays mapped as long as the process runs, and each access is one load or store of a device's
// register, which needs no agreement between threads.
unsafe impl Sync for Page {}
// SAFETY: as above.
unsafe impl Send for Page {}

impl Page {
    /// Maps the page of the level below. Returns `None` if that level has no page.
    ///
    /// # Errors
    /// The level below has a page, but the page can't be mapped.
    pub fn open(found: LevelBelow) -> io::Result<Option<Self>> {
        let (base, is_rouses) = match found {
            LevelBelow::Rouse(base) => (base, true),
            LevelBelow::Kvm(base) => (base, false),
            LevelBelow::Nothing | LevelBelow::Xen | LevelBelow::Bao => return Ok(None),
        };
        let flags = OFlags::SYNC.bits() as i32;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open("/dev/mem");
        let memory = opened.map_err(|error| {
            io::Error::other(format!(
                "/dev/mem: {error}; what is below is asked by it, so run this as root"
            ))
        })?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: this is a new mapping, which overlaps no memory of this process.
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
            Ok(place) => Ok(Some(Self {
                place: place.cast(),
                is_rouses,
            })),
            Err(error) => Err(io::Error::other(format!(
                "/dev/mem: {error}: the kernel does not let it map the page of exits at {base:#x}; boot it with iomem=relaxed"
            ))),
        }
    }

    /// Returns whether this is Rouse's page, which has knobs.
    pub const fn is_rouses(&self) -> bool {
        self.is_rouses
    }

    /// Returns the counts of all vCPUs together.
    pub fn counts(&self) -> Counts {
        let named = |counter: Counter, at| (counter.name().to_owned(), self.read(at));
        if self.is_rouses {
            let counters = Counter::ALL.iter();
            return counters
                .map(|&counter| named(counter, exits::counter(counter)))
                .collect();
        }
        // Registers are read in this order because a read of the first one latches all of them.
        let registers = REGISTERS.into_iter().enumerate();
        registers
            .map(|(n, counter)| named(counter, monitor::together(n)))
            .collect()
    }

    /// Returns the neighbours' counts, summed over all vCPUs, or no counts if the page is not Rouse's.
    pub fn neighbours(&self) -> Counts {
        let counts = Shared::ALL.iter().filter(|_| self.is_rouses);
        counts
            .map(|&count| (count.name().to_owned(), self.read(exits::shared(count))))
            .collect()
    }

    /// Sets a knob of this thread's vCPU. Returns false if the knob can be read back and has another
    /// value.
    pub fn set(&self, value: KnobValue) -> bool {
        let (knob, word) = value.encode();
        self.write(exits::knob(knob), word);
        !matches!(knob, Knob::Trap | Knob::Deliver) || self.read(exits::knob(knob)) == word
    }

    /// Makes Rouse compare its state of this vCPU's interrupts with the registers, and returns whether
    /// they agree. Rouse prints any difference.
    pub fn audit_interrupts(&self) -> bool {
        self.read(exits::AUDIT) == exits::AGREES
    }

    fn read(&self, offset: u64) -> u64 {
        let value;
        let register = self.place.wrapping_add(offset as usize);
        // SAFETY: the address is within the mapping, whose reads change nothing. The code uses one load without
        // writeback, since only such loads have a valid syndrome (DDI 0487K.a, ESR_EL2.ISV).
        unsafe { asm!("ldr {}, [{}]", out(reg) value, in(reg) register, options(nostack)) };
        value
    }

    fn write(&self, offset: u64, value: u64) {
        let register = self.place.wrapping_add(offset as usize);
        // SAFETY: the address is within the mapping, and a write there changes no memory of this process.
        unsafe { asm!("str {}, [{}]", in(reg) value, in(reg) register, options(nostack)) };
    }
}
