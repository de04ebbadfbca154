// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posted-poll-limit`: runs `perf bench sched` with each poll limit, which a module parameter of the patch sets.

use anyhow::Result;
use plan::Under;
use running::options::Metric;

use super::arm_poll_idle::PAIRS;
use super::{ARGUMENTS, KERNEL, UNTRAPPED, ipis_per_operation, two_cpu_boot};
use crate::Experiment;
use crate::boot::Boot;
use crate::outcome::{
    ByBoot, Claim, Outcome, Series, Table, Test, percent_change, two_decimals, without_decimals,
};
use crate::runs::Runs;

pub const EXPERIMENT: Experiment = Experiment {
    name: "posted-poll-limit",
    question: "how long should the driver arm_poll_idle poll, in Linux 6.12?",
    source: "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: perf bench \
             sched improves with limits from 10 us, and is equal for all of them within 3 %",
    boots: &[
        two_cpu_boot(
            BEFORE,
            Under::Kvm,
            400,
            &[(KERNEL, "6.12"), WORKLOADS, UNTRAPPED],
        ),
        limit_boot("10", &boot_lists("cpuidle_arm_polling.poll_limit=10")),
        limit_boot("25", &boot_lists("cpuidle_arm_polling.poll_limit=25")),
        limit_boot("50", &boot_lists("cpuidle_arm_polling.poll_limit=50")),
        limit_boot("100", &boot_lists("cpuidle_arm_polling.poll_limit=100")),
        limit_boot("200", &boot_lists("cpuidle_arm_polling.poll_limit=200")),
        limit_boot("300", &boot_lists("cpuidle_arm_polling.poll_limit=300")),
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "which limits are long enough for the waits of perf bench sched, in a VM. Not the queries of MLPerf, whose waits are \
                 unknown: `poll-limit` has them for waits of known lengths.",
};

const BEFORE: &str = "before";
const WORKLOADS: (&str, &str) = ("workload", "linux-pipe,linux-seccomp-notify");
/// The noise that the source states, in per cent.
const NOISE: f64 = 3.0;

const fn limit_boot(label: &'static str, lists: &'static [(&'static str, &'static str)]) -> Boot {
    two_cpu_boot(label, Under::Kvm, 400, lists)
}

const fn boot_lists(arguments: &'static str) -> [(&'static str, &'static str); 4] {
    [
        (KERNEL, "6.12+000"),
        WORKLOADS,
        UNTRAPPED,
        (ARGUMENTS, arguments),
    ]
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let median = |label: &str, test: &str| -> Result<ByBoot<f64>> {
        let workload = &*format!("linux-{test}");
        runs.by_boot(|run| Ok(run.cell(label, &[("workload", workload)])?.median()))
    };
    let mut table = Table::new(
        "Instructions of an operation in a VM, for each limit",
        &["pipe", "", "interrupts", "seccomp-notify", "", "interrupts"],
    );
    for boot in EXPERIMENT.boots {
        let mut texts = Vec::new();
        for test in PAIRS {
            let before = median(BEFORE, test)?.median();
            let ours = median(boot.label, test)?.median();
            let workload = &*format!("linux-{test}");
            let cell = runs.cell(boot.label, &[("workload", workload)])?;
            texts.extend([
                without_decimals(ours),
                percent_change(before, ours),
                two_decimals(ipis_per_operation(&cell)),
            ]);
        }
        let name = match boot.label {
            BEFORE => "without the patch".into(),
            limit => format!("{limit} us"),
        };
        table.add_row(&name, texts);
    }
    let mut claims = Vec::new();
    for test in PAIRS {
        for boot in &EXPERIMENT.boots[1..] {
            let limit = boot.label;
            let ours = (&*format!("{limit} us"), median(limit, test)?);
            claims.push(
                Claim::new_below(
                    format!("{test} improves with a limit of {limit} us"),
                    (ours.0, median(limit, test)?),
                    ("without the patch", median(BEFORE, test)?),
                )
                .at_least(NOISE),
            );
            if limit != "100" {
                claims.push(Claim::new(
                    format!("{test} with {limit} us is as with 100 us, within {NOISE} %"),
                    Test::Equality { band: NOISE },
                    ours,
                    ("100 us", median("100", test)?),
                ));
            }
        }
    }
    Ok(Outcome::of_table(
        table,
        ("Change of an operation by the patch", "change, %"),
        &[Series::Here(1, "pipe"), Series::Here(4, "seccomp-notify")],
        claims,
        &["the VM is a guest of KVM with VHE that does not trap WFI"],
    ))
}
