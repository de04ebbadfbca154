// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies the hypervisor by the UID of its vendor-specific hypervisor service (DEN0028F, 6.2).

/// Hypervisors by their documented UIDs: KVM's hypercall documentation (Linux,
/// Documentation/virt/kvm/arm/hypercalls.rst) and Xen's public header arch-arm/smccc.h.
const KNOWN: [(u128, &str); 2] = [
    (0x28b4_6fb6_2ec5_11e9_a9ca_4b56_4d00_3a74, "KVM"),
    (0xa718_12dc_c698_4369_9acf_79d1_8dde_e667, "Xen"),
];

/// Returns the UID that a call returned in w0 to w3, with its bytes in ascending order, or `None`
/// for "not supported", which is -1 in w0.
#[must_use]
pub fn uid(words: [u32; 4]) -> Option<u128> {
    let mut bytes = [0; 16];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    (words[0] != u32::MAX).then_some(u128::from_be_bytes(bytes))
}

/// Returns the name of the hypervisor whose UID is `uid`, if it is known here.
#[must_use]
pub fn hypervisor(uid: u128) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(known, _)| *known == uid)?;
    Some(known.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_answer_is_named() {
        // These are the words that KVM returns in the registers.
        let kvm = [0xb66f_b428, 0xe911_c52e, 0x564b_caa9, 0x743a_004d];
        assert_eq!(uid(kvm).and_then(hypervisor), Some("KVM"));
        let xen = [0xdc12_18a7, 0x6943_98c6, 0xd179_cf9a, 0x67e6_de8d];
        assert_eq!(uid(xen).and_then(hypervisor), Some("Xen"));
        assert_eq!(uid(crate::UID).and_then(hypervisor), None);
        assert_eq!(uid([u32::MAX, 0, 0, 0]), None);
    }
}
