// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interprets a refused number: `1e20`, `2.5`, `-1`.

/// Returns `word` rounded down to a whole number, at most the largest 64-bit value; 0 if it is negative.
/// Returns `None` if it is not a number.
///
/// ```
/// assert_eq!(plan::magnitude("1e3"), Some(1000));
/// assert_eq!(plan::magnitude("100000000000000000000"), Some(u64::MAX));
/// assert_eq!(plan::magnitude("many"), None);
/// ```
pub fn magnitude(word: &str) -> Option<u64> {
    let (is_negative, word) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (mantissa, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    if is_negative {
        return Some(0);
    }
    // This many digits precede the point once the exponent has moved it.
    let point = i64::try_from(whole.len()).ok()? + read_exponent(exponent)?;
    let mut value: u64 = 0;
    let mut digits = digits();
    for _ in 0..point {
        let digit = digits.next();
        if value == 0 && digit.is_none() {
            break;
        }
        let digit = digit.map_or(0, |digit| u64::from(digit - b'0'));
        let Some(next) = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(digit))
        else {
            return Some(u64::MAX);
        };
        value = next;
    }
    Some(value)
}

/// Reads an exponent; an out-of-range one becomes a very large one.
fn read_exponent(exponent: &str) -> Option<i64> {
    const FAR: i64 = 1 << 32;
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some(sign * digits.parse().map_or(FAR, |shift: i64| shift.min(FAR)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_they_mean() {
        for (word, value) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("100000000000000000000", Some(u64::MAX)),
            ("1e20", Some(u64::MAX)),
            ("1E+19", Some(10_000_000_000_000_000_000)),
            ("1e99999999999999999999", Some(u64::MAX)),
            ("0e99999999999999999999", Some(0)),
            ("1e-99999999999999999999", Some(0)),
            ("2.5", Some(2)),
            ("2.55e1", Some(25)),
            (".5e1", Some(5)),
            ("150e-1", Some(15)),
            ("+7", Some(7)),
            ("-1", Some(0)),
            ("-1e20", Some(0)),
            ("", None),
            ("-", None),
            (".", None),
            ("e5", None),
            ("1e", None),
            ("1e2e3", None),
            ("0x10", None),
            ("ten", None),
        ] {
            assert_eq!(magnitude(word), value, "{word}");
        }
    }
}
