// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the image from UEFI: asks firmware, while its services run, for everything that only firmware knows.
//!
//! Firmware calls [`efi_start`] at EL2, or at EL1 where there is no EL2 for us, with the MMU on and firmware's stack
//! and services in use. This module asks firmware for the boot arguments, for the tables that describe the machine and,
//! in the call that ends its services, for the free memory. Then it turns MMU and caches off and starts the hypervisor
//! like any other loader does, in [`crate::boot::start`] or [`crate::boot::alone`]. So there is one way of taking over
//! a machine, and no device is accessed through firmware's own page tables, which lack whatever firmware did not need.
//!
//! Refusals occur before that point, and are printed on firmware's console. On some servers, nobody sees that
//! console, so refusals are then also printed on the port that the boot arguments or the description name, unless
//! the console is on that port ([`console::pack_refusal`]). After a refusal, the machine is turned off, because a
//! machine that waits in firmware's menu costs as much as one that runs.

mod arguments;
mod console;
mod memory;
pub mod tables;

use core::ffi::c_void;
use core::fmt::{self, Write};

use acpi::Description;
use arch::layout;
use plan::{Arguments, Names};
use platform::{Platform, Region};
use spin::once::Once;
use uefi::mem::memory_map::{MemoryMapOwned, MemoryType};
use uefi::runtime::ResetType;
use uefi::{Handle, Status, boot, runtime, system, table};

use crate::boot::discovery::{self, Acpi, Discovered, Level};
use crate::boot::entry;
use crate::console::log::{self, Firmware};
use crate::machine::payload;
use crate::{planted, say};

pub use console::print_kept_refusal;

/// The findings of [`efi_start`], for [`crate::boot::start`].
static DISCOVERED: Once<Discovered> = Once::new();

/// Functions that the console calls while firmware is in charge.
static FIRMWARE: Firmware = Firmware {
    print: print_to_firmware,
    power_off: shut_down,
};

/// Why the machine is not taken over.
enum Refusal {
    /// The CPU can't run a hypervisor.
    Level(discovery::Unfit),
    /// A call to firmware failed.
    Firmware(&'static str, uefi::Error),
    /// The boot arguments can't be read.
    Arguments(arguments::Error),
    /// The boot arguments are not valid for this image.
    BootArguments(plan::Error<'static>),
    /// The machine can't be used.
    Machine(&'static str),
    /// The ACPI tables are wrong.
    Acpi(acpi::Error),
    /// The device tree is wrong.
    Tree(platform::Error),
    /// There are neither ACPI tables nor a device tree.
    NoDescription,
    /// There is no guest.
    Payload(abi::NoPayload),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(unfit) => write!(f, "{unfit}"),
            Self::Firmware(call, error) => write!(f, "UEFI: {call}: {error}"),
            Self::Arguments(error) => write!(f, "{error}"),
            Self::BootArguments(error) => write!(f, "boot arguments: {error}"),
            Self::Machine(why) => f.write_str(why),
            Self::Acpi(error) => write!(f, "{error}"),
            Self::Tree(error) => write!(f, "{error}"),
            Self::Payload(error) => write!(f, "{error}: {}", payload::PACK_IT),
            Self::NoDescription => {
                write!(
                    f,
                    "UEFI: firmware has neither ACPI 2.0 tables nor a device tree"
                )
            }
        }
    }
}

/// The first Rust code that runs when firmware starts the image; `_efi_entry` calls it.
#[unsafe(no_mangle)]
extern "C" fn efi_start(image: *mut c_void, system: *const c_void) -> ! {
    // SAFETY: firmware passes its system table and this image's handle (UEFI Specification 2.10,
    // 4.1), and nothing has used the two before.
    unsafe {
        table::set_system_table(system.cast());
        if let Some(image) = Handle::from_ptr(image) {
            boot::set_image_handle(image);
        }
    }
    log::use_firmware(Some(&FIRMWARE));
    say!("hypervisor {} in UEFI", env!("CARGO_PKG_VERSION"));
    match describe_machine() {
        Ok(discovered) => take_over_machine(discovered),
        Err(refusal) => refuse_machine(&refusal),
    }
}

/// Prints why the machine is not taken over, and turns it off.
fn refuse_machine(refusal: &Refusal) -> ! {
    say!("refused: {refusal}");
    // At an unsupported exception level, this code can't leave firmware's translation.
    let can_leave = !matches!(refusal, Refusal::Level(discovery::Unfit::Level(_)));
    match can_leave.then(|| console::pack_refusal(refusal)).flatten() {
        Some(refused) => {
            console::keep_refusal(refused);
            // SAFETY: nothing that belongs to firmware is used after this.
            unsafe { exit_and_start() }
        }
        None => shut_down(),
    }
}

/// Describes the machine: asks firmware for everything except the final memory map.
fn describe_machine() -> Result<Discovered, Refusal> {
    // The arguments are read first, because they may name the port on which later refusals are printed.
    let bootargs = arguments::read();
    let level = discovery::find_el().map_err(Refusal::Level)?;
    payload::find_payload().map_err(Refusal::Payload)?;
    let failed = |call| move |error| Refusal::Firmware(call, error);
    let bootargs = bootargs.map_err(Refusal::Arguments)?;
    let (asked, wrong) = Arguments::<Names>::read(bootargs);
    let wrong = wrong.or(planted::read_arguments(&asked));
    // The boot manager's timer would reset the machine after five minutes. Firmware without this
    // timer returns UNSUPPORTED (UEFI Specification 2.10, 7.5.1).
    match boot::set_watchdog_timer(0, 0x1_0000, None) {
        Err(error) if error.status() != Status::UNSUPPORTED => {
            return Err(Refusal::Firmware("SetWatchdogTimer", error));
        }
        _ => {}
    }
    if let Some(wrong) = wrong {
        return Err(Refusal::BootArguments(wrong));
    }
    let map = boot::memory_map(MemoryType::LOADER_DATA).map_err(failed("GetMemoryMap"))?;
    // SAFETY: this function runs once, and on this entry path, `el2_start` does not run.
    let room = unsafe { discovery::take_list_storage() };
    let (mut platform, acpi) = match tables::find_description() {
        tables::Source::Acpi(rsdp) => {
            let ram = memory::free_ram(&map);
            let tables = tables::Mapped(&map);
            let Description { platform, notes } =
                acpi::read(&tables, rsdp, &ram, bootargs, room).map_err(Refusal::Acpi)?;
            let tables = acpi::list(&tables, rsdp);
            (platform, Some(Acpi { notes, tables }))
        }
        tables::Source::Tree(address) => {
            // SAFETY: firmware publishes a device tree under this GUID.
            let blob = unsafe { discovery::device_tree(address) }.map_err(Refusal::Tree)?;
            // Firmware's memory map, not the tree, shows where RAM is.
            let ram = memory::free_ram(&map);
            let ram = ram.memory().map_err(Refusal::Acpi)?.clone();
            let platform = Platform::from_fdt_with_ram(blob, ram, room);
            (platform.map_err(Refusal::Tree)?, None)
        }
        tables::Source::Nothing => return Err(Refusal::NoDescription),
    };
    platform.bootargs = bootargs;
    discovery::check_usable(&platform, level).map_err(Refusal::Machine)?;
    Ok(Discovered {
        platform,
        acpi,
        tree: None,
    })
}

/// Ends firmware's services and starts the hypervisor, or the guest alone.
fn take_over_machine(mut discovered: Discovered) -> ! {
    say!("firmware's services end here; what follows comes from the console that the tables name");
    // SAFETY: nothing that belongs to firmware is used after this: the platform holds no reference to
    // firmware's memory.
    let map = unsafe { exit_services() };
    memory::free_ram(&map).describe(&mut discovered.platform);
    DISCOVERED.call_once(|| discovered);
    start_hypervisor()
}

/// Ends firmware's services. From now on, output does not go to firmware's console.
///
/// # Safety
/// Nothing that belongs to firmware may be used after this.
unsafe fn exit_services() -> MemoryMapOwned {
    log::use_firmware(None);
    // SAFETY: as the caller promises.
    unsafe { boot::exit_boot_services(Some(MemoryType::LOADER_DATA)) }
}

/// Ends firmware's services and starts the hypervisor.
///
/// # Safety
/// Like [`exit_services`].
unsafe fn exit_and_start() -> ! {
    // SAFETY: as the caller promises.
    let _ = unsafe { exit_services() };
    start_hypervisor()
}

/// Starts the hypervisor after firmware's services have ended.
fn start_hypervisor() -> ! {
    // Firmware loaded the image through its caches, and the relocations and the findings were
    // written to the caches too.
    pages::clean(Region::from(layout::base()..payload::payload_end()));
    // SAFETY: firmware's services have ended, and the image is clean.
    unsafe {
        match discovery::find_el() {
            Ok(Level::El1) => entry::leave_firmware_at_el1(),
            _ => entry::leave_firmware(),
        }
    }
}

/// Returns the findings of [`efi_start`].
///
/// # Panics
/// Panics if [`efi_start`] did not run.
pub fn description() -> &'static Discovered {
    DISCOVERED.get().expect("firmware was asked before")
}

/// Writes to firmware's console.
fn print_to_firmware(text: fmt::Arguments<'_>) {
    // An error of the console can't be reported anywhere.
    let _ = system::with_stdout(|console| console.write_fmt(text));
}

/// Turns the machine off through firmware, which is still in charge.
fn shut_down() -> ! {
    runtime::reset(ResetType::SHUTDOWN, Status::ABORTED, None)
}
