// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes of RAM in QEMU's format: whole numbers of KiB, MiB or GiB.

/// The largest number of bytes that a CPU can address, with 52 bits (DDI 0487, FEAT_LPA).
const MOST: u64 = 1 << 52;

/// Parses a size, by default in MiB, and returns it in bytes. `None` if no machine can have so much RAM.
pub fn parse(size: &str) -> Option<u64> {
    let (number, unit) = match size.char_indices().last()? {
        (at, 'k' | 'K') => (&size[..at], 1 << 10),
        (at, 'm' | 'M') => (&size[..at], 1 << 20),
        (at, 'g' | 'G') => (&size[..at], 1 << 30),
        _ => (size, 1 << 20),
    };
    // `parse` of the standard library would accept a sign.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|_| digits)?;
    let bytes = number.checked_mul(unit)?;
    (1..=MOST).contains(&bytes).then_some(bytes)
}

/// Returns the number of bytes of `size`, which was checked when the board's file or the option was read.
pub fn bytes(size: &str) -> u64 {
    parse(size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_emulator_reads_them() {
        assert_eq!(
            [bytes("20M"), bytes("2g"), bytes("7"), bytes("524288k")],
            [20 << 20, 2 << 30, 7 << 20, 512 << 20]
        );
        assert_eq!(parse("4194304G"), Some(MOST));
        for none in [
            "",
            "M",
            "0",
            "0G",
            "-1G",
            "+1G",
            "64MM",
            "64MG",
            "1.5G",
            " 1G",
            "much",
            "4194305G",
            "17179869184G",
            "99999999999999999999M",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
