// SPDX-License-Identifier: MIT OR Apache-2.0
//! The caches that a CPU reports (CLIDR_EL1, CSSELR_EL1; DDI 0487K.a, D24.2).

/// Whether `csselr` selects a cache that `clidr` reports. For any other cache, a read of CCSIDR_EL1 may be undefined.
#[must_use]
pub const fn exists(clidr: u64, csselr: u64) -> bool {
    /// CSSELR_EL1.InD and Level; CLIDR_EL1 has three bits for each of seven levels.
    const INSTRUCTION: u64 = 1;
    const LEVEL_BITS: u64 = 3;
    const LEVELS: u64 = 7;
    let level = csselr >> 1;
    if level >= LEVELS {
        return false;
    }
    // 1: instructions, 2: data, 3: one cache for each, 4: unified.
    match clidr >> (LEVEL_BITS * level) & 7 {
        1 => csselr & INSTRUCTION != 0,
        2 | 4 => csselr & INSTRUCTION == 0,
        3 => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_described_caches_exist() {
        // Separate caches at the first level, a unified one at the second.
        let clidr = 0o43;
        let existing: Vec<u64> = (0..64).filter(|&csselr| exists(clidr, csselr)).collect();
        assert_eq!(existing, [0, 1, 2]);
        // An instruction cache alone, and a data cache alone at the last level.
        assert!(exists(1, 1) && !exists(1, 0));
        assert!(exists(0o2_000_000, 12) && !exists(0o2_000_000, 13));
        assert!(!exists(u64::MAX, 14) && !exists(u64::MAX, u64::MAX));
    }
}
