// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of the host that affect the boots.

use plan::{Trap, Under};

use crate::command_line::Words;
use crate::failure::Failure;

/// The program's message on a machine where it can't use KVM.
#[cfg_attr(all(target_os = "linux", target_arch = "aarch64"), allow(dead_code))]
pub const ELSEWHERE: &str =
    "KVM runs arm64 guests on arm64 Linux only; copy this file to such a machine";

/// The host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// The mode of the host's KVM.
    pub under: Under,
    /// Instructions that the host's KVM traps.
    pub trap: Trap,
    /// Whether the host's CPUs have FEAT_LSE.
    pub lse: bool,
    /// Frequency of the counter, in Hz.
    pub frequency: u64,
}

impl Host {
    /// Inspects this machine.
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    pub fn find() -> Result<Self, Failure> {
        use aarch64_cpu::registers::{CNTFRQ_EL0, Readable};
        use vmm::options::Mode;

        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let names = [
            "/sys/class/dmi/id/product_name",
            "/sys/firmware/devicetree/base/model",
        ];
        let names = names.map(read);
        let mut names = names
            .iter()
            .map(|name| name.trim_matches(['\0', '\n', ' ']));
        Ok(Self {
            name: names
                .find(|name| !name.is_empty())
                .unwrap_or("machine")
                .to_owned(),
            under: match vmm::machine::kvm_mode() {
                Some(Mode::Nvhe) => Under::KvmNvhe,
                Some(Mode::Protected) => Under::KvmProtected,
                Some(Mode::Vhe) | None => Under::Kvm,
            },
            trap: trapped_waits(&read("/proc/cmdline")),
            lse: std::arch::is_aarch64_feature_detected!("lse"),
            frequency: CNTFRQ_EL0.get(),
        })
    }

    /// Keeps this process away from the CPUs of the vCPUs that `words` request, if there are
    /// other CPUs, so that its work does not disturb a measuring guest. Then names the vCPUs'
    /// CPUs in `words`.
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    pub fn keep_away(words: &mut Words) -> Result<(), Failure> {
        let places = vmm::machine::keep_off_vcpu_cpus(words.cpus as usize, words.pin.as_deref());
        words.pin = Some(places.map_err(Failure::bad_input)?);
        Ok(())
    }

    /// Fails, since there are no vCPUs.
    #[cfg(not(all(target_os = "linux", target_arch = "aarch64")))]
    pub fn keep_away(_: &mut Words) -> Result<(), Failure> {
        Err(Failure::bad_input(ELSEWHERE))
    }

    /// Fails, since only arm64 Linux can be a host.
    #[cfg(not(all(target_os = "linux", target_arch = "aarch64")))]
    pub fn find() -> Result<Self, Failure> {
        // Call `trapped_waits` here too, so that it is compiled and tested everywhere.
        let _ = trapped_waits("");
        Err(Failure::bad_input(ELSEWHERE))
    }
}

/// Returns what KVM traps on a host that was booted with `arguments` (Linux,
/// Documentation/admin-guide/kernel-parameters.txt). By default, WFI traps unless the guest
/// requests SGIs without active state, which ours does not. WFE traps only while another task
/// waits for the vCPU's CPU, and our vCPUs are pinned to CPUs of their own.
fn trapped_waits(arguments: &str) -> Trap {
    let policy = |instruction: &str| {
        let key = format!("kvm-arm.{instruction}_trap_policy=");
        // The kernel treats - and _ in a parameter's name alike. If a parameter is given several times, the last
        // value counts.
        let words = arguments.split_ascii_whitespace().map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            format!(
                "{}={value}",
                name.replace("kvm_arm", "kvm-arm")
                    .replace("trap-policy", "trap_policy")
            )
        });
        let mut values = words.filter_map(|word| Some(word.strip_prefix(&key)?.to_owned()));
        values.next_back()
    };
    let wfi = policy("wfi").is_none_or(|value| value != "notrap");
    let wfe = policy("wfe").is_some_and(|value| value == "trap");
    match (wfi, wfe) {
        (false, false) => Trap::None,
        (true, false) => Trap::Wfi,
        (false, true) => Trap::Wfe,
        (true, true) => Trap::Both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_traps_is_what_the_kernel_was_told() {
        for (arguments, expected) in [
            ("root=/dev/vda quiet", Trap::Wfi),
            ("kvm-arm.wfi_trap_policy=notrap", Trap::None),
            (
                "kvm_arm.wfi_trap_policy=notrap kvm-arm.wfe_trap_policy=trap",
                Trap::Wfe,
            ),
            ("kvm-arm.wfe_trap_policy=trap", Trap::Both),
            (
                "kvm-arm.wfi_trap_policy=notrap kvm-arm.wfi_trap_policy=trap",
                Trap::Wfi,
            ),
        ] {
            assert_eq!(trapped_waits(arguments), expected, "{arguments}");
        }
    }
}
