// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ipistorm`: what eliding the interrupt of a function call does to the call.

use anyhow::Result;
use plan::Under;

use super::{Boot, Experiment, ONCE};
use super::find::Runs;
use super::outcome::{Claim, Outcome, Table, two, whole};
use crate::cli::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "ipistorm",
    question: "a CPU that polls is asked to run a function: does it have to schedule for that?",
    source: "K. P. Nayak, \"[PATCH] sched/fair: Skip newidle_balance() when an idle CPU is woken up \
             to process an IPI\", January 2024, and its successors: normalised time of ipistorm \
             numipi=100000 single=1 wait=1",
    boots: &[
        Boot {
            label: "storm",
            under: Under::Rouse,
            cpus: Some(8),
            lists: &[
                ("workload", "ipistorm"),
                ("wait", "poll-wfi"),
                ("trap", "none"),
                ("deliver", "direct,inject"),
                ("wake", "elide"),
                ("call-by", "all"),
            ],
            iterations: 400,
            repeats: ONCE,
        },
        Boot {
            label: "wake",
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "pingpong"),
                ("wait", "poll-wfi"),
                ("trap", "none"),
                ("deliver", "inject"),
                ("wake", "ipi,elide"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the order of the systems. Not the distances: the scheduler's search looks at 8 CPUs \
                 in 3 domains here and at 256 in 4 or 5 there, and an interrupt costs other things. \
                 `direct` is nearer to the source, which ran on metal.",
};

/// Systems: ours, its name in the source, and published: EPYC4, EPYC3.
const SYSTEMS: [(&str, &str, Option<f64>, Option<f64>); 5] = [
    ("resched", "base", Some(1.0), Some(1.0)),
    ("ipi", "revert", Some(0.66), Some(0.40)),
    ("skip-newidle", "skip-newidle", Some(0.55), None),
    ("notify", "TIF_NOTIFY_IPI", None, Some(0.46)),
    ("sm-idle", "SM_IDLE", None, Some(0.25)),
];

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "Time of a call, normalised to base; what the idle loop did per call (direct)",
        &[
            "direct",
            "",
            "inject",
            "",
            "passes",
            "CPUs looked at",
            "IPIs",
            "EPYC4",
            "EPYC3",
        ],
    );
    let mut direct = Vec::new();
    let mut base = [0.0; 2];
    for (by, name, epyc4, epyc3) in SYSTEMS {
        let find = |deliver| runs.cell("storm", &[("call-by", by), ("deliver", deliver)]);
        let (found, injected) = (find("direct")?, find("inject")?);
        if by == "resched" {
            base = [found.median(), injected.median()];
        }
        let per_call = |group, name| two(found.count(group, name) / found.samples().max(1.0));
        let published = |value: Option<f64>| value.map_or("-".into(), two);
        direct.push(found.median() / base[0]);
        table.row(
            &format!("{name} ({by})"),
            vec![
                two(found.median() / base[0]),
                whole(found.median()),
                two(injected.median() / base[1]),
                whole(injected.median()),
                per_call("sched", "from-idle"),
                per_call("sched", "looked"),
                per_call("ipi", "sent"),
                published(epyc4),
                published(epyc3),
            ],
        );
    }
    let [_, revert, skip, notify, short] = direct[..] else {
        unreachable!("five systems");
    };
    let wake = |how| runs.cell("wake", &[("wake", how)]);
    let (always, elided) = (wake("ipi")?.median(), wake("elide")?.median());
    let pass = "a pass without the search still costs a little more than an interrupt that nothing traps; \
                with `inject` it is as in the source";
    let claims =
        vec![
        Claim::below(
            "always interrupting is better than base",
            ("revert", revert),
            ("base", 1.0),
        ),
        Claim::below(
            "not searching is better than always interrupting",
            ("skip-newidle", skip),
            ("revert", revert),
        )
        .else_because(pass),
        Claim::below("a bit of its own is better than base", ("notify", notify), ("base", 1.0)),
        Claim::below(
            "returning at once is better than always interrupting",
            ("SM_IDLE", short),
            ("revert", revert),
        ),
        Claim::below(
            "always interrupting is better than a bit of its own (EPYC3)",
            ("revert", revert),
            ("notify", notify),
        )
        .else_because(
            "sender and receiver are counted one after the other, so that what the interrupt costs \
             the receiver is always in the call",
        ),
        Claim::below(
            "returning at once is better than a bit of its own (EPYC3)",
            ("SM_IDLE", short),
            ("notify", notify),
        )
        .else_because(
            "here the bit leads past the scheduler altogether, and the short path is a few \
             instructions on top; there the bit's idle loop did more",
        ),
        Claim::below(
            "always interrupting costs tasks that wake each other (tbench 8 to 11 %)",
            ("elided", elided),
            ("interrupted", always),
        ),
    ];
    Ok(Outcome {
        tables: vec![table],
        charts: Vec::new(),
        claims,
        notes: Vec::new(),
    })
}
