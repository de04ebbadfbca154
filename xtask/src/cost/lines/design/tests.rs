// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

/// As many lines as `path` has by design.
fn whole(path: Path) -> Missed {
    let parts = design(path).iter();
    let lines = parts.flat_map(|part| {
        let line = Line {
            kind: part.kinds[0],
            name: part.of.into(),
            second: true,
        };
        vec![line; part.lines]
    });
    Missed {
        used: lines.collect(),
        ..Missed::default()
    }
}

#[test]
fn a_line_that_is_not_in_the_design_is_told() {
    for &path in Path::ALL {
        let designed = whole(path);
        assert_eq!(check(path, &designed), [""; 0], "{}", path.name());
        for (kind, name) in [
            (Kind::Cpu, "vcpu.private.planted"),
            (Kind::Vector, "fast_sync_plain+0x40"),
            (Kind::Handler, "slow_sync"),
            (Kind::Memory, "0x80000000"),
        ] {
            let planted = Line {
                kind,
                name: name.into(),
                second: false,
            };
            let mut more = designed.clone();
            more.used.push(planted.clone());
            let why = check(path, &more);
            assert_eq!(why, [format!("{} {name}", kind.name())], "{}", path.name());
            let mut ahead = designed.clone();
            ahead.ahead.push(planted);
            assert_eq!(check(path, &ahead), [""; 0]);
        }
    }
}

#[test]
fn a_path_may_miss_fewer() {
    let mut fewer = whole(Path::Wfi);
    fewer.used.truncate(2);
    assert_eq!(check(Path::Wfi, &fewer), [""; 0]);
    assert!(
        check(Path::FloorSend, &fewer).len() == 2,
        "it has none cold"
    );
}
