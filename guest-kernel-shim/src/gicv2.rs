// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves accesses to a GICv3's CPU interface on a machine with a GICv2: `arch::gicv2` makes them
//! call [`access_register`]. Measured code does not come here: it uses the GICv2's registers directly.

use arch::gicv2::WRITE;
use arch::regs::Register;
use core::sync::atomic::Ordering::Relaxed;
use gic::gich::{self, Sgi};

use crate::percpu::PerCpu;

/// Reads or writes the register. The write that ends an SGI names its sender (IHI 0048B, 4.4.5):
/// the sender of the last SGI acknowledged with this INTID.
pub extern "C" fn access_register(number: u32, value: u64) -> u64 {
    let register = Register::ALL.get((number & !WRITE) as usize);
    match (register, number & WRITE != 0) {
        (Some(Register::ICC_IAR1_EL1), _) => {
            let acknowledged = gich::read(number);
            let Some(Sgi { intid, sender }) = Sgi::acknowledged(acknowledged as u32) else {
                return acknowledged;
            };
            PerCpu::this().senders[intid as usize].store(sender, Relaxed);
            intid.into()
        }
        (Some(Register::ICC_EOIR1_EL1 | Register::ICC_DIR_EL1), _) => {
            let senders = &PerCpu::this().senders;
            let sender = senders
                .get(value as usize)
                .map_or(0, |sender| sender.load(Relaxed));
            gich::write(number & !WRITE, value | u64::from(sender) << 10);
            value
        }
        (
            Some(
                Register::ICC_PMR_EL1
                | Register::ICC_BPR1_EL1
                | Register::ICC_CTLR_EL1
                | Register::ICC_IGRPEN1_EL1,
            ),
            true,
        ) => {
            gich::write(number & !WRITE, value);
            value
        }
        (
            Some(
                Register::ICC_PMR_EL1
                | Register::ICC_BPR1_EL1
                | Register::ICC_CTLR_EL1
                | Register::ICC_IGRPEN1_EL1
                | Register::ICC_RPR_EL1,
            ),
            false,
        ) => gich::read(number),
        // The other registers belong to a hypervisor, or do not exist in a GICv2.
        _ => value,
    }
}
