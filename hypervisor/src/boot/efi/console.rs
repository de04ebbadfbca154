// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints a refusal on a port besides firmware's console.

use core::fmt::{Display, Write};

use arrayvec::ArrayString;
use plan::{Arguments, Names};
use platform::uart::Named;
use platform::{Conduit, Report, Uart};
use spin::once::Once;
use uefi::boot::{self, MemoryType};
use uefi::cstr16;
use uefi::proto::device_path::{DevicePath, DeviceSubType, DeviceType};
use uefi::runtime::{self, VariableVendor};

use super::{arguments, tables};
use crate::boot::discovery;
use crate::console::log;
use crate::machine::memory::pa_space_end;
use crate::machine::power::note_conduit;

/// A refusal, to be printed again without firmware.
pub struct Refused {
    /// The text of the refusal.
    why: ArrayString<400>,
    /// The port on which to print the refusal, if the boot arguments name no port.
    uart: Option<Uart>,
    /// The PSCI conduit, through which the machine is turned off.
    psci: Conduit,
}

/// The refusal that [`print_kept_refusal`] prints.
static REFUSED: Once<Refused> = Once::new();

/// Keeps a refusal for [`print_kept_refusal`].
pub fn keep_refusal(refused: Refused) {
    REFUSED.call_once(|| refused);
}

/// If a refusal was kept, prints it and turns the machine off.
pub fn print_kept_refusal() {
    let Some(refused) = REFUSED.get() else { return };
    note_conduit(Some(refused.psci));
    let uart = discovery::open_named_uart(uart_argument()).or(refused.uart);
    if let Some(uart) = uart {
        // SAFETY: the description names the UART, or the boot arguments do, and the MMU is off.
        unsafe { log::start_output(uart) };
    }
    crate::refuse!("{}", refused.why);
}

/// Returns the refusal with everything needed to print it without firmware, whose translation may
/// not map the UART. `None` if firmware's console is the only console, or is at the refusal's port.
pub fn pack_refusal(refusal: &impl Display) -> Option<Refused> {
    let (described, psci) = find_uart()?;
    let named = uart_argument().and_then(Named::parse);
    let is_other = match (named, is_serial()) {
        (_, false) => named.is_some() || described.is_some(),
        // The port that the machine's description names is the one that firmware's console uses.
        (Some(named), true) => described.is_none_or(|uart| named != Named::Ready(uart)),
        (None, true) => false,
    };
    let mut why = ArrayString::new();
    // Firmware's console has already shown the whole text, so a text that is too long may be cut here.
    let _ = write!(why, "{refusal}");
    is_other.then_some(Refused {
        why,
        uart: described,
        psci,
    })
}

/// Returns the value of the boot argument that names a UART.
fn uart_argument() -> Option<&'static str> {
    let (arguments, _) = Arguments::<Names>::read(arguments::last_arguments());
    arguments.uart
}

/// Returns the UART that the machine's description names, and PSCI's conduit, without which only
/// firmware can turn the machine off.
fn find_uart() -> Option<(Option<Uart>, Conduit)> {
    let (uart, psci) = match tables::find_description() {
        tables::Source::Acpi(rsdp) => {
            let map = boot::memory_map(MemoryType::LOADER_DATA).ok()?;
            let tables = tables::Mapped(&map);
            (
                acpi::console(&tables, rsdp, pa_space_end()),
                acpi::conduit(&tables, rsdp),
            )
        }
        tables::Source::Tree(address) => {
            // SAFETY: firmware publishes a device tree under this GUID.
            let blob = unsafe { discovery::device_tree(address) }.ok()?;
            let report = Report::from_fdt(blob, pa_space_end());
            (report.uart, report.psci)
        }
        tables::Source::Nothing => return None,
    };
    Some((uart, psci?))
}

/// Whether firmware's console uses a serial port, with or without a screen: whether one of the
/// paths in the variable ConOut goes through a UART (UEFI Specification 2.10, 3.3 and 10.3.4.15). A
/// path does not say which port it is.
fn is_serial() -> bool {
    let mut room = [0; 1024];
    let vendor = &VariableVendor::GLOBAL_VARIABLE;
    let Ok((value, _)) = runtime::get_variable(cstr16!("ConOut"), vendor, &mut room) else {
        return false;
    };
    let Ok(path) = <&DevicePath>::try_from(&*value) else {
        return false;
    };
    let uart = (DeviceType::MESSAGING, DeviceSubType::MESSAGING_UART);
    path.node_iter().any(|node| node.full_type() == uart)
}
