// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks PSCI (DEN0022F.b) and SMCCC (DEN0028F).

use super::outcome::{Failure, ensure};
use guest_kernel_shim::hypervisor::{self, call};
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{boot, clock, smp, workers};

const CPU_ON: u64 = 0xc400_0003;
const PSCI_FEATURES: u64 = 0x8400_000a;

const NOT_SUPPORTED: i32 = -1;
const INVALID_PARAMETERS: i32 = -2;
const ALREADY_ON: i32 = -4;
const OFF: i64 = 1;

fn call_psci(function: u64, arguments: [u64; 3]) -> i32 {
    call(function, arguments)[0] as i32
}

pub fn version_and_features() -> Result<(), Failure> {
    ensure(hypervisor::psci_ver() >= 0x1_0000, "PSCI older than 1.0")?;
    ensure(call_psci(PSCI_FEATURES, [CPU_ON, 0, 0]) >= 0, "no CPU_ON")?;
    ensure(
        call_psci(PSCI_FEATURES, [0x8400_00ff, 0, 0]) == NOT_SUPPORTED,
        "PSCI_FEATURES reports a function that does not exist",
    )
}

pub fn cpu_on_refuses() -> Result<(), Failure> {
    let entry = boot::secondary_entry();
    let running = percpu::all()[1].mpidr;
    let on = |mpidr| call_psci(CPU_ON, [mpidr, entry, 0]);
    ensure(on(running) == ALREADY_ON, "a running CPU")?;
    ensure(on(PerCpu::this().mpidr) == ALREADY_ON, "the caller itself")?;
    ensure(on(0xff_00ff_fff0) == INVALID_PARAMETERS, "an absent CPU")
}

pub fn off_and_on_again() -> Result<(), Failure> {
    let other = percpu::all()[1];
    for _ in 0..3 {
        other.set_offline();
        workers::run_on_2nd(hypervisor::cpu_off);
        let off = clock::wait_for(|| hypervisor::affinity_info(other.mpidr) == OFF);
        ensure(off, "not off after 5 s")?;
        ensure(smp::start_cpu(other) == 0, "CPU_ON failed")?;
        ensure(other.is_online(), "did not come back")?;
        workers::run_on_2nd(|| {});
        workers::wait_for_second();
    }
    Ok(())
}

pub fn standby_returns() -> Result<(), Failure> {
    use arch::{gic_cpu, insn};
    let me = PerCpu::this();
    insn::mask_irq();
    // A pending interrupt makes standby return at once, whether it is masked or not.
    gic_cpu::send_sgi(5, me.mpidr);
    let status = hypervisor::cpu_suspend();
    insn::unmask_irq();
    ensure(status == 0, "not SUCCESS")
}

pub fn unknown_calls_are_refused() -> Result<(), Failure> {
    for function in [0x8000_ffff, 0xc200_0001, 0x8300_0000, 0xc600_00ff] {
        ensure(call_psci(function, [0; 3]) == NOT_SUPPORTED, "not refused")?;
    }
    Ok(())
}
