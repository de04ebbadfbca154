// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHA-256 (FIPS 180-4), by which the page's policy names the one script that may run.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2).
const ROUNDS: [u32; 64] = roots(3);
/// Likewise for the square roots of the first eight (5.3.3).
const BEGIN: [u32; 8] = roots(2);

/// The first 32 bits of the fractional parts of the roots of primes.
const fn roots<const N: usize>(degree: u32) -> [u32; N] {
    let mut bits = [0; N];
    let mut place = 0;
    let mut candidate: u128 = 2;
    while place < N {
        let mut divisor = 2;
        while !candidate.is_multiple_of(divisor) {
            divisor += 1;
        }
        if divisor == candidate {
            // The root of the prime shifted by 32 bits, without fraction.
            let power = candidate << (32 * degree);
            let (mut low, mut high): (u128, u128) = (0, 1 << 38);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if middle.pow(degree) <= power {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            bits[place] = low as u32;
            place += 1;
        }
        candidate += 1;
    }
    bits
}

/// The digest of a text, in base64 (RFC 4648, 4).
pub fn sha256(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let bits = 8 * bytes.len() as u64;
    bytes.push(0x80);
    while bytes.len() % 64 != 56 {
        bytes.push(0);
    }
    bytes.extend(bits.to_be_bytes());
    let mut state = BEGIN;
    for block in bytes.chunks(64) {
        add(&mut state, block);
    }
    let digest: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
    base64(&digest)
}

/// Adds a block of 64 bytes (6.2.2).
fn add(state: &mut [u32; 8], block: &[u8]) {
    let words = block.chunks(4);
    let mut schedule: Vec<u32> = words
        .map(|word| {
            word.iter()
                .fold(0, |bits, byte| bits << 8 | u32::from(*byte))
        })
        .collect();
    for at in 16..64 {
        let (near, far) = (schedule[at - 2], schedule[at - 15]);
        let near = near.rotate_right(17) ^ near.rotate_right(19) ^ near >> 10;
        let far = far.rotate_right(7) ^ far.rotate_right(18) ^ far >> 3;
        let sum = near
            .wrapping_add(far)
            .wrapping_add(schedule[at - 7])
            .wrapping_add(schedule[at - 16]);
        schedule.push(sum);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, round) in schedule.iter().zip(ROUNDS) {
        let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let first = h
            .wrapping_add(mixed)
            .wrapping_add(e & f ^ !e & g)
            .wrapping_add(round)
            .wrapping_add(*word);
        let mixed = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = mixed.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits: u32, at| {
            bits << 8 | u32::from(three.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at > three.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST's examples of SHA-256: one block, two blocks, and nothing.
    #[test]
    fn digests_are_those_of_the_standard_s_examples() {
        let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        for (text, digest) in [
            ("abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
            (long, "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE="),
            ("", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
        ] {
            assert_eq!(sha256(text), digest, "{text}");
        }
    }
}
