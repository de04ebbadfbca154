// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which boot has which cells, and why it lacks other cells.

use super::*;

/// If there is a boot for each set of knobs, each cell is in one boot; a cell that can't run is in the first boot.
#[test]
fn boots_with_other_knobs_share_the_cells() {
    let mut plan = Plan::default();
    plan.set("trap", "none,wfi,both").unwrap();
    plan.set("host-poll-us", "0,50").unwrap();
    plan.set("deliver", "inject,direct").unwrap();
    plan.set("host-poll", "fixed,adaptive").unwrap();
    let mut kvm = Machine {
        under: plan::Under::Kvm,
        ..MACHINE
    };
    let all: Vec<Cell> = plan.cells(&kvm).collect();
    let mut parts = Vec::new();
    for trap in [plan::Trap::None, plan::Trap::Wfi, plan::Trap::Both] {
        for host_poll_us in [0, 50] {
            kvm.given = Some(plan::Given {
                trap,
                host_poll_us,
                alone: false,
            });
            let part: Vec<Cell> = plan.cells(&kvm).collect();
            let first = trap == plan::Trap::None && host_poll_us == 0;
            for cell in &part {
                let runs = cell.skip_reason(&kvm).is_none();
                assert!(first || runs, "{cell:?}");
                assert!(!runs || (cell.trap, cell.host_poll_us) == (trap, host_poll_us));
                assert!(!runs || cell.deliver == plan::Deliver::Inject);
                assert!(
                    !runs || cell.host_poll_us == 0 || cell.host_poll == plan::HostPoll::Adaptive
                );
            }
            parts.extend(part);
        }
    }
    assert_eq!(parts.len(), all.len());
    assert!(all.iter().all(|cell| parts.contains(cell)));
}

/// The only boot of a run has every cell whose waits trap in this boot as the cell wants, and reports why
/// it lacks the other cells.
#[test]
fn a_boot_alone_has_what_its_trap_makes_no_difference_to() {
    let mut plan = Plan::default();
    plan.set("workload", "pingpong").unwrap();
    plan.set("wait", "busy,wfe,wfi").unwrap();
    let cells = |plan: &Plan, trap| {
        let kvm = Machine {
            under: plan::Under::Kvm,
            given: Some(plan::Given {
                trap,
                host_poll_us: 0,
                alone: true,
            }),
            ..MACHINE
        };
        let cells = plan.cells(&kvm).map(|cell| {
            let trap = cell
                .skip_reason(&kvm)
                .map_or(format!("{}", cell.trap), |why| format!("{why}"));
            (cell.wait.to_string(), trap)
        });
        cells.collect::<std::collections::BTreeSet<_>>()
    };
    let pairs = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|&(wait, trap)| (wait.to_owned(), trap.to_owned()));
        pairs.collect::<std::collections::BTreeSet<_>>()
    };
    use plan::Trap;
    let trapped = pairs(&[("busy", "none"), ("wfe", "none"), ("wfi", "wfi")]);
    assert_eq!(cells(&plan, Trap::Wfi), trapped);
    let free = pairs(&[("busy", "none"), ("wfe", "none"), ("wfi", "none")]);
    assert_eq!(cells(&plan, Trap::None), free);
    // A trap that the plan names and this boot lacks is reported, once.
    plan.set("trap", "none,wfi").unwrap();
    let told = cells(&plan, Trap::Wfi);
    let mut skipped = told.difference(&trapped);
    assert!(skipped.any(|(wait, why)| wait == "wfi" && why.contains("kvm-arm.wfi_trap_policy")));
}
