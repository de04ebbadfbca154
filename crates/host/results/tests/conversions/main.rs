// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the records below to results and to table rows, and converts several runs to one file and back. Checks
//! the outcome of each conversion.

mod boots;
mod cells;
mod runs;
mod tables;

use results::samples::number_records;
use results::{Results, capture};

/// Returns a boot under `under` in `unit`. One cell of the boot has every counter, and another cell was skipped.
fn boot(under: &str, unit: &str) -> Vec<String> {
    number_records([
        &format!("boot under={under} version=0.1.0"),
        "machine cpus=2 cntfrq_hz=1000000 midr=0x410fd034 gic=v3 list_registers=4 firmware=fdt core_hz=7 cache=64",
        "feature name=wfxt value=true",
        "probe name=wfe_halts value=not-sure detail=busy",
        "probe name=sev value=false",
        &format!("unit unit={unit} how=counted"),
        "plan cells=2 passes=4",
        "cell id=1 workload=pingpong wait=wfi trap=wfi cpus=2 iterations=40 event_stream_made_ns=11 not_modelled=a,b,",
        "stat id=1 name=total count=8 min=1 p50=2 p90=3 p99=4 p999=5 max=6 sum=20",
        "stat id=1 name=kick count=4 p50=1 sum=6",
        "stat id=1 name=traced count=4 p50=9 sum=36",
        "hist id=1 b=1:3,2:5,",
        "raw id=1 v=1,2,",
        "count id=1 exit.wfi=21 exit.wfe=22 exit.sgi=23 exit.irq=24 exit.hvc=25 exit.smc=26 exit.sysreg=27",
        "count id=1 exit.mmio=28 exit.maintenance=29 exit.other=30 ipi.sent=31 ipi.elided=32 ipi.coalesced=33",
        "count id=1 wake.event=41 wake.timeout=42 wake.irq=43 res.run=51 el2.kick=61 halts=71",
        "done id=1 records=10 passes=4 passes_planned=4 ended=budget",
        "cell id=0 workload=ipi wait=busy",
        "skipped id=0 why=no",
        "done id=0 records=3",
        "note text=hot",
        "end cells=2",
    ])
}

fn results_of(lines: &[String]) -> Results {
    capture::results(&lines.join("\n")).unwrap()
}

fn of(under: &str, unit: &str) -> Results {
    results_of(&boot(under, unit))
}
