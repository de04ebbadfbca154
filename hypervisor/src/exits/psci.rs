// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves the guest's PSCI calls (DEN0022F.b), as version 1.1. Only the vCPU's power state changes:
//! a CPU whose vCPU is off waits at EL2.

use abi::{Counter, End};
use arch::frame::Frame;
use arm_psci::{
    AffinityInfo, ErrorCode, Function, FunctionId, MigrateInfoType, Mpidr, PsciFeature, ReturnCode,
};

use crate::cpu::pending_word;
use crate::cpu::percpu::PerCpu;
use crate::cpu::trace::{Off, On};
use crate::cpu::traps;
use crate::cpu::vcpu::NotOff;
use crate::exits::{enter, wfx};
use crate::interrupts::kick;
use crate::machine::ending;
use crate::machine::vm::vm;

/// PSCI_VERSION: major 1, minor 1.
const VERSION: u32 = 0x1_0001;

/// The 64-bit call CPU_ON.
const CPU_ON_64: u32 = FunctionId::CpuOn64 as u32;

/// Serves the call in `frame`.
#[inline(never)] // Inlined, it would lengthen the other calls.
pub fn serve_call(cpu: &PerCpu, frame: &mut Frame) {
    let [function, a, b, c, ..] = frame.x;
    // This call is measured, and needs fewer registers than the others.
    if function as u32 == CPU_ON_64 {
        frame.x[0] = encode_answer(cpu_on(a, b, c));
    } else {
        serve_other_call(cpu, frame);
    }
}

#[inline(never)]
fn serve_other_call(cpu: &PerCpu, frame: &mut Frame) {
    let [function, a, b, c, ..] = frame.x;
    let answer = Function::try_from(&[function, a, b, c])
        .map_err(ErrorCode::from)
        .and_then(|function| serve_function(cpu, function));
    frame.x[0] = encode_answer(answer);
}

fn encode_answer(answer: Result<u32, ErrorCode>) -> u64 {
    match answer {
        Ok(value) => u64::from(value),
        // The error is sign-extended, so that callers of either width read a negative number.
        Err(error) => i64::from(i32::from(ReturnCode::Error(error))) as u64,
    }
}

fn serve_function(cpu: &PerCpu, function: Function) -> Result<u32, ErrorCode> {
    match function {
        Function::Version => Ok(VERSION),
        Function::Features { psci_func_id } => psci_features(psci_func_id),
        Function::CpuOn { target_cpu, entry } => cpu_on(
            target_cpu.into(),
            entry.entry_point_address(),
            entry.context_id(),
        ),
        Function::CpuOff => enter::turn_vcpu_off(cpu, End::NoCpu),
        Function::AffinityInfo {
            mpidr,
            lowest_affinity_level,
        } => affinity_info(mpidr, lowest_affinity_level),
        // The vCPU enters standby, even for a power-down request: the caller may always get a shallower state than it
        // asked for (DEN0022F.b, 5.4.1).
        Function::CpuSuspend { state, .. } => {
            let halts = cpu.vcpu.counters.get(Counter::Halt);
            // Tracing is tested here, because this is the only call that has more events to record.
            match traps::is_tracing() {
                true => wfx::idle::<On>(cpu, None),
                false => wfx::idle::<Off>(cpu, None),
            }
            // A CPU that did not halt has not been in the idle state.
            if cpu.vcpu.counters.get(Counter::Halt) != halts {
                vm().latencies.spend_exit_latency(state);
            }
            Ok(0)
        }
        Function::MigrateInfoType => Ok(MigrateInfoType::MigrationNotRequired.into()),
        Function::SystemOff => ending::end_machine(cpu, End::Off),
        Function::SystemReset => ending::end_machine(cpu, End::Reset),
        _ => Err(ErrorCode::NotSupported),
    }
}

fn psci_features(feature: PsciFeature) -> Result<u32, ErrorCode> {
    use FunctionId as F;
    match feature {
        PsciFeature::SmcccVersion => Ok(0),
        PsciFeature::PsciFunction(
            F::PsciVersion
            | F::PsciFeatures
            | F::CpuOn32
            | F::CpuOn64
            | F::CpuOff
            | F::AffinityInfo32
            | F::AffinityInfo64
            | F::CpuSuspend32
            | F::CpuSuspend64
            | F::MigrateInfoType
            | F::SystemOff
            | F::SystemReset,
        ) => Ok(0),
        PsciFeature::PsciFunction(_) => Err(ErrorCode::NotSupported),
    }
}

/// Turns on the vCPU with affinity `target` at `address` with x0 = `context`. No vCPU's affinity has a bit set that
/// has to be zero.
#[inline(always)]
fn cpu_on(target: u64, address: u64, context: u64) -> Result<u32, ErrorCode> {
    // Called only once, because each call of `vm()` checks that the VM exists.
    let vm = vm();
    let (_, target) = vm.find(target).ok_or(ErrorCode::InvalidParameters)?;
    if !vm.ram.contains(address) || !address.is_multiple_of(4) {
        return Err(ErrorCode::InvalidAddress);
    }
    let turned = target.vcpu.turn_on(address, context);
    turned.map_err(|state| match state {
        NotOff::On => ErrorCode::AlreadyOn,
        NotOff::Pending => ErrorCode::OnPending,
    })?;
    kick::send_requests(target, pending_word::WAKE);
    Ok(0)
}

fn affinity_info(mpidr: Mpidr, level: u32) -> Result<u32, ErrorCode> {
    // Above level 0, a group is on if any CPU in it is on.
    let ignored = (1u64 << (8 * level.min(3))) - 1;
    let wanted = u64::from(mpidr) & platform::AFFINITY & !ignored;
    let mut group = vm()
        .cpus
        .iter()
        .filter(|cpu| cpu.mpidr & !ignored == wanted);
    let first = group.next().ok_or(ErrorCode::InvalidParameters)?;
    let mut state = first.vcpu.is_on();
    for cpu in group {
        state = match (state, cpu.vcpu.is_on()) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, _) | (_, None) => None,
            (Some(false), Some(false)) => Some(false),
        };
    }
    Ok(u32::from(match state {
        Some(true) => AffinityInfo::On,
        Some(false) => AffinityInfo::Off,
        None => AffinityInfo::OnPending,
    }))
}
