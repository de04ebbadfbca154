// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries timers that expire in the past, now, and at the end of time, in every state of their
//! control bits, with their interrupts enabled at the redistributor or not (DDI 0487K.a, D12.2).

use aarch64_cpu::registers::{
    CNTP_CTL_EL0, CNTP_CVAL_EL0, CNTPCT_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, Readable, Writeable,
};
use arch::{gic_cpu, insn};

use super::tally::Tally;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, interrupts};
use sched::random::Random;

/// CNTx_CTL_EL0: ENABLE, IMASK, ISTATUS.
const ENABLE: u64 = 1;
const MASK: u64 = 2;
const STATUS: u64 = 4;

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    for virt in [true, false] {
        for control in 0..8 {
            for enabled in [false, true] {
                let now = CNTPCT_EL0.get();
                let past = [0, 1, now / 2, now - 1, now];
                let future = [
                    now + clock::frequency() * 1000,
                    1 << 62,
                    1 << 63,
                    u64::MAX - 1,
                    u64::MAX,
                    (random.draw() | 1 << 62) & !(1 << 63),
                ];
                for deadline in past {
                    try_case(tally, virt, control, enabled, deadline, true);
                }
                for deadline in future {
                    try_case(tally, virt, control, enabled, deadline, false);
                }
            }
        }
    }
}

/// Tries a timer in one state: checks ISTATUS, and whether the timer's interrupt becomes pending.
fn try_case(tally: &mut Tally, virt: bool, control: u64, enabled: bool, deadline: u64, over: bool) {
    let redistributor = interrupts::redistributor(PerCpu::this());
    let timer = &platform().timer;
    let intid = if virt { timer.virt } else { timer.phys };
    if enabled {
        redistributor.enable_all(1 << intid);
    }
    write_timer(virt, deadline, control);
    let status = read_control(virt) & STATUS != 0;
    // Without ENABLE, ISTATUS is UNKNOWN.
    let right = control & ENABLE == 0 || status == over;
    let due = over && enabled && control & (ENABLE | MASK) == ENABLE;
    let came = take_interrupt(intid, due);
    write_timer(virt, u64::MAX, 0);
    redistributor.disable_all(1 << intid);
    // Interrupts from before the timer was turned off may still be in list registers.
    while take_interrupt(intid, false) {}
    redistributor.clear_pending(1 << intid);
    tally.case(
        right && came == due,
        format_args!(
            "INTID {intid}, control {control}, enabled {enabled}, deadline {deadline:#x}: status {status}, came {came}"
        ),
    );
}

/// Takes the timer's interrupt if it is pending. With `soon`, waits until it is pending.
fn take_interrupt(intid: u32, soon: bool) -> bool {
    let look = || {
        let taken = gic_cpu::acknowledge();
        if taken != gic_cpu::SPURIOUS {
            if taken == intid {
                // The timer's level has to fall before the end of the interrupt, or the interrupt would be taken again.
                write_timer(intid == platform().timer.virt, u64::MAX, 0);
            }
            gic_cpu::end(taken);
        }
        taken == intid
    };
    if soon { clock::wait_for(look) } else { look() }
}

fn write_timer(virt: bool, deadline: u64, control: u64) {
    if virt {
        CNTV_CVAL_EL0.set(deadline);
        CNTV_CTL_EL0.set(control);
    } else {
        CNTP_CVAL_EL0.set(deadline);
        CNTP_CTL_EL0.set(control);
    }
    insn::isb();
}

fn read_control(virt: bool) -> u64 {
    if virt {
        CNTV_CTL_EL0.get()
    } else {
        CNTP_CTL_EL0.get()
    }
}
