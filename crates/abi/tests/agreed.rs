// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both images rely on without saying so.

use abi::{Counter, Info, Knob, NoPayload, PayloadHeader, Traced};

fn distinct(names: &[&str]) {
    for (n, name) in names.iter().enumerate() {
        assert!(!name.is_empty() && !names[n + 1..].contains(name), "{name}");
    }
}

#[test]
fn numbers_are_places_and_names_are_distinct() {
    assert!(
        Knob::ALL
            .iter()
            .enumerate()
            .all(|(n, &one)| one as usize == n)
    );
    assert!(
        Counter::ALL
            .iter()
            .enumerate()
            .all(|(n, &one)| one as usize == n)
    );
    assert!(
        Info::ALL
            .iter()
            .enumerate()
            .all(|(n, &one)| one as usize == n)
    );
    assert!(
        Traced::ALL
            .iter()
            .enumerate()
            .all(|(n, &one)| one as usize == n)
    );
    distinct(&Knob::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
    distinct(
        &Counter::ALL
            .iter()
            .map(|one| one.name())
            .collect::<Vec<_>>(),
    );
    distinct(&Info::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
    distinct(&Traced::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
}

#[test]
fn a_payload_is_behind_its_magic_and_fits() {
    let header = |magic, length| PayloadHeader { magic, length };
    let good = header(PayloadHeader::MAGIC, 100);
    assert_eq!(good.image(100), Ok(100));
    assert_eq!(good.image(99), Err(NoPayload::Length(100)));
    let longest = header(PayloadHeader::MAGIC, u64::MAX);
    assert_eq!(longest.image(1 << 40), Err(NoPayload::Length(u64::MAX)));
    assert_eq!(
        header(PayloadHeader::MAGIC, 0).image(1),
        Err(NoPayload::Length(0))
    );
    let none = header(0, 100).image(100).unwrap_err();
    assert_eq!(none.to_string(), "no guest in this image");
    assert!(good.image(1).unwrap_err().to_string().contains("0x64"));
}
