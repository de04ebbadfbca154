// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells with a neighbour.

use super::*;

#[test]
fn neighbours_are_rouses_and_interrupts_end_their_turns() {
    use plan::Under;
    let reasons = |text: &str, under| {
        let machine = Machine { under, ..MACHINE };
        let plan = plan(&format!(
            "rouse.workload=pingpong rouse.gap-us=50 rouse.trap=none {text}"
        ));
        let cells = plan.cells(&machine).map(|cell| cell.skip_reason(&machine));
        cells.collect::<Vec<_>>()
    };
    let work = "rouse.wait=wfi rouse.neighbour=work";
    assert_eq!(reasons(work, Under::Rouse), [None]);
    for under in [Under::None, Under::Kvm, Under::Xen] {
        let all = reasons(work, under);
        let no_neighbour = Some(SkipReason::NoNeighbour(under));
        // On the bare machine, the delivery may forbid a cell, too.
        assert!(
            all.contains(&no_neighbour) && !all.contains(&None),
            "{all:?}"
        );
        // The cells without a neighbour are still listed.
        let both = reasons("rouse.wait=wfi rouse.neighbour=none,work", under);
        assert!(
            both.contains(&None) && both.contains(&no_neighbour),
            "{both:?}"
        );
    }
    let direct = format!("{work} rouse.deliver=inject,direct");
    assert_eq!(
        reasons(&direct, Under::Rouse),
        [None, Some(SkipReason::NeighbourInjects)]
    );
    // The end of a slice ends a yield.
    let yields =
        "rouse.wait=wfe rouse.trap=both rouse.wake=elide rouse.neighbour=work rouse.yield-on=wfe";
    assert_eq!(reasons(yields, Under::Rouse), [None]);
    assert_eq!(
        reasons(&format!("{yields} rouse.slice-us=0,20"), Under::Rouse),
        [Some(SkipReason::YieldsForEver), None]
    );
}

/// Slices and yields add no cells without a neighbour; yields add none if no WFE traps.
#[test]
fn slices_and_yields_apply_beside_neighbours() {
    let cells = |text: &str| {
        let plan = plan(&format!(
            "rouse.workload=pingpong rouse.wake=ipi rouse.deliver=inject {text}"
        ));
        let cells: Vec<Cell> = plan.cells(&MACHINE).collect();
        let words = cells
            .iter()
            .map(|cell| (cell.slice_us, cell.yield_on == YieldOn::Wfe));
        words.collect::<Vec<_>>()
    };
    let all = "rouse.slice-us=20,4000 rouse.yield-on=all";
    let wfi = "rouse.wait=wfi rouse.trap=wfi rouse.host-poll-us=0";
    assert_eq!(cells(&format!("{wfi} {all}")), [(0, false)]);
    assert_eq!(
        cells(&format!("{wfi} rouse.neighbour=work")),
        [(4000, false)]
    );
    assert_eq!(
        cells(&format!("{wfi} rouse.neighbour=work {all}")),
        [(20, false), (4000, false)]
    );
    let wfe = "rouse.wait=wfe rouse.trap=both rouse.neighbour=work rouse.slice-us=20";
    assert_eq!(
        cells(&format!("{wfe} rouse.yield-on=all")),
        [(20, false), (20, true)]
    );
}
