// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_line_of_another_cores_state_is_told_from_its_own() {
    let mut names = Names::planted(BASE, &[], 1, STATE);
    names.cpus.insert(0, STATE + 0x8000);
    let other = STATE + 0x8040;
    let found = names.find(1, other / LINE, &[other]);
    assert_eq!(found, Some((Kind::Cpu, "other's field8".into())));
}

const BASE: u64 = 0x8020_0000;
const STATE: u64 = 0x8100_4000;

fn find(address: u64, used: &[u64]) -> Option<(Kind, String)> {
    let symbols = [
        (0x2000, "el2_vectors"),
        (0x2480, "fast_irq_plain"),
        (0x24ac, "fast_listed_plain"),
        (0x2800, "fast_wait"),
        (0x2900, "hypervisor::some"),
        (0xf010, "VARIABLE"),
    ];
    Names::planted(BASE, &symbols, 1, STATE).find(1, address / LINE, used)
}

#[test]
fn a_line_has_a_name() {
    let named = |kind, name: &str| Some((kind, name.to_owned()));
    // What was used in it says which, as several may lie there.
    let vector = BASE + 0x24c4;
    assert_eq!(
        find(vector, &[vector]),
        named(Kind::Vector, "fast_irq_plain+0x44")
    );
    assert_eq!(
        find(BASE + 0x2580, &[]),
        named(Kind::Vector, "fast_irq_plain+0x100")
    );
    assert_eq!(
        find(BASE + 0x2840, &[]),
        named(Kind::Handler, "fast_wait+0x40")
    );
    assert_eq!(
        find(BASE + 0x2900, &[]),
        named(Kind::Code, "hypervisor::some")
    );
    let variable = BASE + 0xf010;
    assert_eq!(find(variable, &[variable]), named(Kind::Image, "VARIABLE"));
    assert_eq!(find(BASE + 0xf000, &[]), named(Kind::Image, ".data"));
    assert_eq!(find(STATE - 0x100, &[]), named(Kind::Frame, "sp+0x0"));
    assert_eq!(find(STATE - 0x140, &[]), named(Kind::Stack, "top-0x140"));
    let fields = [STATE + 0x40, STATE + 0x48];
    assert_eq!(
        find(STATE + 0x40, &fields),
        named(Kind::Cpu, "field8 field9")
    );
    // Other memory is EL2's only where EL2 used it.
    assert_eq!(find(0x9000_0000, &[]), None);
    let other = 0x9000_0008;
    assert_eq!(find(other, &[other]), named(Kind::Memory, "0x90000000"));
}
