// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks assumptions that both images make silently.

use abi::{
    Counter, Deliver, Extent, Images, Info, Knob, KnobValue, Neighbour, NoPayload, PayloadHeader,
    Traced, Trap,
};

fn assert_distinct(names: &[&str]) {
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
    assert_distinct(&Knob::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
    assert_distinct(
        &Counter::ALL
            .iter()
            .map(|one| one.name())
            .collect::<Vec<_>>(),
    );
    assert_distinct(&Info::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
    assert_distinct(&Traced::ALL.iter().map(|one| one.name()).collect::<Vec<_>>());
}

#[test]
fn a_payload_is_behind_its_magic_and_fits() {
    let header = |magic, llsc, lse| PayloadHeader {
        magic,
        llsc,
        lse,
        initrd: 0,
        source: 0,
    };
    let of = |length, lse| header(PayloadHeader::MAGIC, length, lse);
    let one = of(100, 0);
    let first = Extent {
        offset: 0,
        length: 100,
    };
    let only = Images {
        llsc: Some(first),
        lse: None,
        initrd: None,
    };
    assert_eq!(one.images(100), Ok(only));
    assert_eq!(one.images(99), Err(NoPayload::Length(100)));
    let longest = of(u64::MAX, 0);
    assert_eq!(longest.images(1 << 40), Err(NoPayload::Length(u64::MAX)));
    assert_eq!(of(0, 0).images(1), Err(NoPayload::Length(0)));
    let only = Images {
        llsc: None,
        lse: Some(first),
        initrd: None,
    };
    assert_eq!(of(0, 100).images(100), Ok(only));
    assert_eq!(of(0, 100).images(99), Err(NoPayload::Length(100)));
    let none = header(0, 100, 0).images(100).unwrap_err();
    assert_eq!(none.to_string(), "no guest in this image");
    assert!(one.images(1).unwrap_err().to_string().contains("0x64"));
}

#[test]
fn the_second_image_of_a_payload_begins_on_a_page() {
    let of = |llsc, lse| PayloadHeader {
        magic: PayloadHeader::MAGIC,
        llsc,
        lse,
        initrd: 0,
        source: 0,
    };
    let images = of(100, 50).images(4146).unwrap();
    let lse = Extent {
        offset: 4096,
        length: 50,
    };
    assert_eq!((images.lse, images.length()), (Some(lse), 4146));
    assert_eq!(of(4096, 50).images(4146).unwrap().lse, Some(lse));
    assert_eq!(of(100, 50).images(4145), Err(NoPayload::Length(50)));
    for (length, lse) in [(100, u64::MAX), (u64::MAX, 1), (u64::MAX - 4096, u64::MAX)] {
        assert!(of(length, lse).images(u64::MAX).is_err());
    }
}

#[test]
fn the_initial_ram_disk_of_a_payload_is_behind_its_images() {
    let of = |lse, initrd| PayloadHeader {
        magic: PayloadHeader::MAGIC,
        llsc: 5000,
        lse,
        initrd,
        source: 0,
    };
    for (lse, offset) in [(0, 8192), (4096, 12288), (4097, 16384)] {
        let end = offset + 7;
        let images = of(lse, 7).images(end).unwrap();
        let initrd = Extent { offset, length: 7 };
        assert_eq!((images.initrd, images.length()), (Some(initrd), end));
        assert_eq!(of(lse, 7).images(end - 1), Err(NoPayload::Length(7)));
    }
    assert!(of(u64::MAX - 8192, u64::MAX).images(u64::MAX).is_err());
}

#[test]
fn values_of_knobs_are_passed_as_words() {
    let trap = |wfi, wfe| KnobValue::Trap(Trap { wfi, wfe });
    let passed = [
        (trap(false, false), Knob::Trap, 0),
        (trap(true, false), Knob::Trap, 1),
        (trap(false, true), Knob::Trap, 2),
        (trap(true, true), Knob::Trap, 3),
        (KnobValue::Deliver(Deliver::Inject), Knob::Deliver, 0),
        (KnobValue::Deliver(Deliver::Direct), Knob::Deliver, 1),
        (KnobValue::HostPoll(0), Knob::HostPoll, 0),
        (KnobValue::HostPoll(1 << 40), Knob::HostPoll, 1 << 40),
        (
            KnobValue::HostPollAdaptive(false),
            Knob::HostPollAdaptive,
            0,
        ),
        (KnobValue::HostPollAdaptive(true), Knob::HostPollAdaptive, 1),
        (KnobValue::GuestPolls(false), Knob::GuestPolls, 0),
        (KnobValue::GuestPolls(true), Knob::GuestPolls, 1),
        (KnobValue::EventStream(0xf4), Knob::EventStream, 0xf4),
        (KnobValue::Trace(false), Knob::Trace, 0),
        (KnobValue::Trace(true), Knob::Trace, 1),
        (KnobValue::RecheckTimers(false), Knob::RecheckTimers, 0),
        (KnobValue::RecheckTimers(true), Knob::RecheckTimers, 1),
        (KnobValue::Neighbour(Neighbour::Work), Knob::Neighbour, 1),
        (
            KnobValue::Neighbour(Neighbour::Cache(256)),
            Knob::Neighbour,
            256 << 8 | 2,
        ),
        (KnobValue::Slice(4000), Knob::Slice, 4000),
        (KnobValue::YieldOnWfe(true), Knob::YieldOnWfe, 1),
    ];
    for (value, knob, word) in passed {
        assert_eq!(value.encode(), (knob, word));
        assert_eq!(KnobValue::decode(knob, word), Some(value));
    }
}

#[test]
fn words_that_mean_nothing_are_no_values() {
    for &knob in Knob::ALL {
        let (first, any) = match knob {
            Knob::Trap => (4, false),
            Knob::Deliver
            | Knob::HostPollAdaptive
            | Knob::GuestPolls
            | Knob::Trace
            | Knob::RecheckTimers
            | Knob::Neighbour
            | Knob::YieldOnWfe => (2, false),
            Knob::HostPoll | Knob::EventStream | Knob::Slice => (2, true),
        };
        for word in [first, u64::MAX] {
            assert_eq!(
                KnobValue::decode(knob, word).is_some(),
                any,
                "{knob:?} {word}"
            );
        }
        assert!(KnobValue::decode(knob, first - 1).is_some());
    }
}
