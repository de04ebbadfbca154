// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries software-generated interrupts: every INTID, sent to this CPU, to the others, to all, and to CPUs that
//! do not exist, through every range of the target list and with every bit set (IHI 0069H, 12.2,
//! ICC_SGI1R_EL1).

mod version2;

use arch::insn;
use arch::regs::ICC_CTLR_EL1;

use super::attempt::run_attempt;
use super::bystanders::others_go_on;
use super::stubs;
use super::tally::Tally;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{clock, interrupts};
use sched::random::Random;

/// Writes of ICC_SGI1R_EL1, ICC_ASGI1R_EL1 and ICC_SGI0R_EL1 from X0.
const WRITES: [(&str, u32); 3] = [
    ("SGI1R", 0xd518_cba0),
    ("ASGI1R", 0xd518_cbc0),
    ("SGI0R", 0xd518_cbe0),
];
/// ICC_SGI1R_EL1.IRM.
const ALL_OTHERS: u64 = 1 << 40;

/// Returns the targets, in the form of ICC_SGI1R_EL1, and whether they include this CPU.
fn target_forms(me: u64, random: &mut Random) -> [(&'static str, u64, bool); 30] {
    let mine = 1 << (me & 15);
    // Without RSS (ICC_CTLR_EL1, bit 18), the range selector has no meaning.
    let ranges = ICC_CTLR_EL1.get() >> 18 & 1 != 0;
    let mut forms = [("a range that is not there", 0, false); 30];
    for (range, form) in forms.iter_mut().enumerate().take(16) {
        // The value has RS set; range 0 is the range of this CPU.
        *form = (
            "by range",
            (range as u64) << 44 | mine,
            range == 0 || !ranges,
        );
    }
    forms[16] = ("everybody but this one", ALL_OTHERS, false);
    forms[17] = ("everybody, and a list", ALL_OTHERS | 0xffff, false);
    forms[18] = (
        "everybody, and a range",
        ALL_OTHERS | 0xf << 44 | mine,
        false,
    );
    forms[19] = ("nobody", 0, false);
    forms[20] = ("the whole list", 0xffff, true);
    forms[21] = ("another Aff1", 0x01 << 16 | 0xffff, false);
    forms[22] = ("another Aff2", 0x01 << 32 | 0xffff, false);
    forms[23] = ("another Aff3", 0x01 << 48 | 0xffff, false);
    forms[24] = (
        "all affinities",
        0xff_00ff_00ff_ffff & !(0xf << 24) | 0xff << 48,
        false,
    );
    forms[25] = ("only absent CPUs", 0xff00, false);
    forms[26] = ("reserved bits too", 0xff00_0e00_f000_0000 | mine, true);
    forms[27] = ("itself and absent ones", 0xff00 | mine, true);
    for form in &mut forms[28..] {
        let value = random.draw() & 0x00ff_f0ff_00ff_ffff | 1 << 48;
        *form = ("chance", value, false);
    }
    forms
}

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let me = PerCpu::this();
    if platform().gic.version2.is_some() {
        return version2::run(tally, random);
    }
    assert!(
        percpu::all().len() < 9,
        "the list's upper half is for absent CPUs"
    );
    for (name, write) in WRITES {
        stubs::write_code(&[write, stubs::RET]);
        for intid in 0..16u64 {
            for (form, value, mine) in target_forms(me.mpidr, random) {
                clear_pending(me);
                // SAFETY: this sends interrupts that every CPU of this kernel takes.
                let outcome = unsafe { run_attempt(stubs::place(), value | intid << 24, 0) };
                insn::isb();
                // An SGI of the secure world is lost if the guest owns the CPU interface.
                let inject = tally.deliver() == plan::Deliver::Inject;
                let mine_to_send = interrupts::usable_sgis() >> intid & 1 != 0;
                let due = mine && name == "SGI1R" && (inject || mine_to_send);
                let got = is_pending(me, intid, due);
                // A guest that owns the CPU interface writes the machine's own registers through the other two names,
                // so the machine decides the effect.
                let checked = inject || name == "SGI1R" && mine_to_send;
                let right = !checked || got == (mine && name == "SGI1R");
                tally.case(
                    outcome.returned() && right,
                    format_args!("{name} {intid} to {form}: {outcome}, pending here: {got}"),
                );
            }
        }
    }
    send_storm(tally, random);
    clear_pending(me);
}

/// Sends as many SGIs as possible, to any CPU; the other CPUs must still make progress.
fn send_storm(tally: &mut Tally, random: &mut Random) {
    stubs::write_code(&[WRITES[0].1, stubs::RET]);
    for _ in 0..20 {
        for _ in 0..200 {
            let value = match random.below(4) {
                0 => ALL_OTHERS,
                1 => 0xffff,
                2 => random.below(0x1_0000),
                _ => random.draw(),
            };
            // SAFETY: as above.
            unsafe { run_attempt(stubs::place(), value, 0) };
        }
        tally.case(others_go_on(1), format_args!("nobody measures in a storm"));
    }
}

/// Returns whether `intid` is pending for this CPU; if it should become pending `soon`, waits for that.
fn is_pending(me: &PerCpu, intid: u64, soon: bool) -> bool {
    let look = || interrupts::redistributor(me).pending() >> intid & 1 != 0;
    if soon { clock::wait_for(look) } else { look() }
}

fn clear_pending(me: &PerCpu) {
    interrupts::redistributor(me).clear_pending(0xffff);
}
