// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes `docs/cost.md` from the stored baselines.

use std::fmt::Write;

use cost::Path;
use page::Column;

use super::cache_misses;
use super::card::Card;
use super::costs::{Costs, Mode, PathCosts, guest_insns};
use super::cycle_card;
use super::tally::Tally;

const HEAD: &str = "\
<!-- Written by `cargo xtask cost --save LABEL` from the baselines in docs/cost/; a test checks it. -->

# The cost of each path

A [path](glossary.md) is a piece of hypervisor code that the guest enters for one reason, such as `sgi-send`. `cargo xtask cost` counts what each path
executes; nothing is estimated. `--asm PATH` prints its instructions. `--save LABEL` adds a baseline to `docs/cost/`, with which the tests compare.
[Cycles](#in-cycles) come from the [gem5 board](#the-gem5-board).

The guest repeats each path between two marks (`guest-kernel-shim/trials/src/cost.rs`). A plugin of the emulator (`crates/host/recorder`) records every
instruction between the marks, with its exception level and its memory accesses. The CPUs run in parallel. A row is the median repetition.

| column | counts |
|---|---|
| `EL2 insns` | instructions at EL2 |
| `sysregs r/w` | system registers read / written |
| `in/out` | exceptions taken to EL2 / returns from it |
| `ld/st` | instructions that load / store |
| `lines d/c` | 64-byte lines of data / code |
| `guest` | the guest's own instructions; for an interrupt, those of its handler |
| `bare` | the guest's instructions on the bare machine, where there is no EL2 |

With `direct`, interrupts are delivered directly and no wait traps. A 0 there is counted, not assumed. `-` means that the path can't be taken.

Comments in the code explain the barriers and registers of a path: `hypervisor/src/exits/fast_paths.rs` for the fast paths,
`crates/no_std/arch/src/gic_cpu.rs` for the DSB and ISB around a doorbell (`doorbell-send`, `cpu-on`), `hypervisor/src/exits/enter.rs` for `cpu-start`.
Only `mmio` and `cpu-start` take a lock, because they access the guest's one distributor. The neighbour of `switch` has its stage 1 off; one that has turned
[it](isolation.md#stage-1-of-a-neighbour) on would have six more registers exchanged.

A `floor-` row is the floor of another path: the exit with vectors that check nothing and do only what the architecture requires
(`hypervisor/src/planted/with/floor.rs`). Three paths are handled in Rust, and have these parts above their floors:

| path | parts above the floor |
|---|---|
| `maintenance` | x1 to x18 and x30 are saved and restored; the interrupt is recognised; EISR and ELRSR tell what to do; ICH_HCR_EL2 changes; the level falls before the deactivation (ISB); the pending word is emptied |
| `mmio` | x1 to x18 and x30 are saved and restored, and the callee's registers; the syndrome and the address are decoded; the distributor is locked; the register is found; the value is sized for the guest's register |
| `cpu-on` | x1 to x18 and x30 are saved and restored; the call is recognised; the target is found by any affinity; its entry is checked to be in RAM; the target is claimed and counted, since several CPUs may call; the request goes into its pending word |
";

const COLUMNS: &str = "\
| code path | deliver | EL2 insns | sysregs r/w | DSB/ISB/DMB | in/out | ld/st | lines d/c | guest | bare |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// Text above the cards with cycles.
const CYCLES: &str = "
## The gem5 board

QEMU counts instructions exactly and models no time ([fidelity](fidelity.md)). gem5 simulates cores, caches and a crossbar cycle by cycle: a store wakes a
WFE through the monitor, the event stream ends a WFE at its period, and waiting takes time. Both run the same image.

```
cargo xtask run --board gem5 --gem5 PATH --quick                               # two in-order cores, 3 to 5 minutes
cargo xtask run --board gem5 --cpu-model o3 --preset graviton-like --quick     # out of order, sized like a server's core
cargo xtask run --board gem5 --quick --set interconnect-cycles=60              # one parameter changed
cargo xtask report RUN-VIRT RUN-GEM5                                           # instructions and cycles of the same cells
```

You build gem5 yourself: 24.0 or newer, for Arm (`scons build/ARM/gem5.opt`; Ruby is not needed; about an hour on two cores). `--gem5 PATH`, the
variable `GEM5` or the search path names the program; `experiment` and `test` use only the last two. `cargo xtask doctor` reports what it found. gem5
simulates 100,000 to 500,000 instructions a second. `boards/gem5/machine.py` uses its Python interface.

Each core has a first-level and a second-level cache. The cores share a coherent crossbar, a last-level cache and a memory of fixed latency. There are a
GICv3 with 16 list registers, the generic timer and a PL011, but no firmware. Every core enters the image at EL2 with the device tree in x0, and the image
holds all but the first (`crates/no_std/arch/src/hold.rs`). EOT on the PL011 ends the simulation. [Linux](linux.md#on-simulated-cores) runs under Rouse,
with nothing below it, or as the host of KVM.

| `--cpu-model` | core |
|---|---|
| `atomic` | one instruction per cycle; memory takes no time: for trying things out |
| `minor` | in order, gem5's MinorCPU |
| `hpi` | MinorCPU with the parameters of gem5's `configs/common/cores/arm/HPI.py`, which xtask looks for in the folders above the program |
| `o3` | out of order, gem5's O3 with the widths of the preset |

`boards/gem5/parameters.toml` gives each parameter a value and its source, for two presets. In `plain` the counter ticks with the cores (2 GHz), so
values are exact. `graviton-like` has Graviton3's clock, counter and caches, and assumptions where nothing is published. `--set NAME=VALUE` changes
one parameter. `results.json` has all of them under `machine.emulator.parameters`. `irq-ns` and `wake-ns` need a gem5 whose source has
`boards/gem5/gem5.patch`: an interrupt then takes `irq-ns` from the interrupt controller to a core, and `wake-ns` more while the core waits. With
`irq-ns=1000`, a round trip of two interrupts takes 4,005 cycles of 0.5 ns more (351 and 4,356, `minor`, WFI, direct, 30 November 2026, commit 9a41f199), and
so it does with `wake-ns=1000`: the delay of `posted-irq-delay` stands for the sum of both.

A value is elapsed time in cycles of the core's clock, between two readings of the counter by the CPU that measures. All CPUs share the counter, and
it keeps counting while they wait. The PMU's cycle counter does neither, so `pmu.cycles` counts only the cycles in which a CPU was not waiting. The
guest measures the cycles per tick at boot ([records](records.md)). With `graviton-like` a tick is 2.476 cycles, which is also the resolution.

### Limits of gem5

Trust the order of cells on one machine, the ratios between them, and the direction in which a parameter moves them. Do not read a value as
nanoseconds of a Graviton.

| not modelled | consequence |
|---|---|
| the path of an interrupt | an SGI reaches the other core's interface at once. On a server it takes hundreds of nanoseconds (KVM, kvm-unit-tests). `irq-ns` adds a delay |
| power states | a waiting core is awake at once, and its clock never changes. Hardware needs time to leave WFI, and much more for deeper states. `wake-ns` adds some |
| a server's interconnect | one crossbar, whose latency is a parameter, replaces it. Only the cores cause contention |
| a real core's prefetchers, predictors and store buffers | `minor` and `o3` are generic; the widths of `graviton-like` do not make a Neoverse |
| FEAT_WFxT | `wfet` cells are skipped |

On `minor` every [probe](fidelity.md) answers as hardware should. On `o3` the probe `wfe_halts` stays undecided (`something else ended the wait`). So
the probes that depend on it do not run, and cells that wait by event have a star. Six properties of gem5 24.0.0.1 matter:

- **`minor` and `hpi` do not survive LSE atomics.** Soon after an LDCLRAL the emulator ends with `Do not expect cross-cache-line atomic memory
  request`, although the guest's words are aligned. On these models the guest runs with load and store exclusive, and `--atomics lse` is refused
  (`breaks_lse` in the board's file). For another kernel the machine has no FEAT_LSE there.
- **`o3` loses interrupts.** An event that reaches a core (a store to the monitored line, the event stream) flushes its pipeline, even a read of
  ICC_IAR1_EL1 that has already acknowledged an interrupt. The repeated read returns 0x3ff, the interrupt stays active, and the CPU gets no other one
  of that priority. So on `o3`, cells that interrupt a CPU while it waits for events (`wfe`, `poll-wfi` with wake `ipi`) are skipped.
- **A maintenance interrupt that software sets pending can be lost.** A guest's SGIs 8 to 15 use one (GICR_ISPENDR0). gem5 clears the pending state
  together with the interrupt's line, when the target writes a list register. So the check `sgi-overflow` fails. Measurements use SGIs 0 and 1 only.
- **An event ends WFI too**, which the architecture allows. After a poll has given up, the next period of the event stream, or a store to the line
  that was monitored, ends the halt, and the CPU polls again. So `poll-wfi` with a pause longer than the limit shows more than one `timeout` a wake-up.
  With gem5.patch, no event ends WFI.
- **ID_AA64PFR0_EL1.GIC is 0**, although there is a GICv3. Rouse trusts the device tree.
- **`m5.switchCpus` drops the event stream.** So boot and measurement are two machines with a checkpoint between them, where the guest first starts a
  cycle counter. The image must detect properties of the core after that.

### Round trips in cycles

Commit 012bc87a (30 November 2026), gem5 24.0.0.1 with gem5.patch, preset `plain`, 2 CPUs, 24 samples a cell:
`--quick --workload pingpong,ipi --shape one --wait wfi,poll-wfi --trap none,wfi`. The table has p50 in cycles; `o3` uses LSE atomics.

| wait | trap | deliver | wake | `pingpong`: `minor` | `o3` | `ipi` one: `minor` | `o3` |
|---|---|---|---|---:|---:|---:|---:|
| `wfi` | none | inject | ipi | 581 | 711 | 534 | 586 |
| `wfi` | wfi | inject | ipi | 513 | 552 | 482 | 616 |
| `wfi` | none | direct | ipi | 356 | 320 | 413 | 486 |
| `wfi` | wfi | direct | ipi | 421 | 390 | 428 | 537 |
| `poll-wfi` | none | inject | ipi | 588 | - | 542 | - |
| `poll-wfi` | none | inject | elide | 362 | 276 | 391 | 366 |
| `poll-wfi` | none | direct | ipi | 471 | - | 452 | - |
| `poll-wfi` | none | direct | elide | 360 | 276 | 391 | 366 |

- In `pingpong` an injected IPI to a CPU in WFI costs 1.6 (`minor`) and 2.6 (`o3`) times the elided wake-up of `poll-wfi`; with a trapped WFI 1.4 and
  2.0; delivered directly 1.0 and 1.2. The last pair is too low for hardware, where leaving WFI and the path of the interrupt take time.
- Trapping WFI makes an injected round trip cheaper: the CPU is at EL2 already when the interrupt comes. With direct delivery the trap only adds.
- Most of an elided wake-up is the cache line that moves to the other core and back, so `spin`, `wfe` and `poll-wfi` cost nearly the same.
- Under WFE and an event stream, a poll's limit is rounded up to the next whole period, and limits below a period do not differ. That is why limits of
  10 to 100 us could not be told apart in the tests of `arm_poll_idle`, where the period is 62 to 131 us (`cargo xtask experiment event-stream`).

### Cold and warm

A [cold](fidelity.md#cold-samples) sample begins with nothing that the guest and EL2 use in a cache. Commit 012bc87a (30 November 2026), `plain`, 2 CPUs,
20 samples on `minor`, 6 on `o3`: `--workload ipi,pingpong --shape one --wait wfi --trap none --deliver inject,direct --wake ipi
--cache warm,cold --stages off`. p50 in cycles:

| workload | deliver | `minor`: warm | cold | times | `o3`: warm | cold | times |
|---|---|---:|---:|---:|---:|---:|---:|
| `ipi` one | direct | 406 | 3213 | 7.9 | 633 | 2013 | 3.2 |
| `ipi` one | inject | 539 | 4428 | 8.2 | 643 | 3123 | 4.9 |
| `pingpong` | direct | 354 | 2738 | 7.7 | 702 | 2230 | 3.2 |
| `pingpong` | inject | 578 | 5029 | 8.7 | 1095 | 4075 | 3.7 |

A line from memory takes 189 cycles (probe `caches_modelled`); `o3` has several lines under way at once. The way back of a round trip finds the code that
the way there brought in. `poll-wfi` needs `--poll-limit-us 2000`, since a poll of 100 us gives up while the caches are emptied.

### Against Graviton3

H. Okanovic's pipe tests (April 2024, c7g.metal and c7g.16xlarge) show what a wake-up by WFI and IPI costs more than one that finds the CPU polling: 0.36 us
on the bare machine, 1.24 us under a hypervisor. gem5 has 0.007 us, and 0.09 us under Rouse (commit 9a41f199, 30 November 2026, `--cpu-model o3 --preset
graviton-like --quick --under none,rouse --workload pingpong`: 396 cycles where the guest polls, 430 out of WFI, 851 with injected IPIs). So the direction
agrees, and the absolute cost of WFI is one to two orders of magnitude too small, for the [reasons above](#limits-of-gem5). Trapping WFI is much dearer under
KVM; here it is 19 % cheaper (690 cycles), because Rouse waits at EL2 and has no scheduler to call.

## In cycles

`cargo xtask cost --board gem5` measures the same paths on two simulated cores of 2 GHz: `minor` and `hpi` in order, `o3` out of order. Each core's
tracer records when an instruction commits. A path takes the cycles from the commit of the guest's last instruction before the exit to the commit of its
first one after it. So the exception, the return and the refill of the pipeline count; the time in WFI does not. An interrupt counts from EL2's first
instruction. A row is the median repetition. `--save LABEL` adds a baseline to `docs/cost/cycles/`; `--compare` fails if a path takes 2 % more.

| column | is |
|---|---|
| `x least` | the cycles as a multiple of the floor, which only an image for tests has: it is measured in a boot of its own |
| `floor-...` | an exit to vectors that check nothing and do only what the architecture requires (`hypervisor/src/planted/with/floor.rs`, `rouse.floor`): an exception to EL2 and back (`floor-call`), or with the system registers of an SGI's sender, an SGI's receiver, a trapped WFI, a read of the distributor. The floor of a CPU_ON is not measured here, since its vectors serve an SMC, and the guest calls by HVC where there is no EL3 |
| `cold` | before each repetition every line of EL2's and the guest's code and data is cleaned from all caches, and the TLBs are emptied |
| `missed` | first-level misses of EL2, code/data, in lines of 64 bytes, with cold caches; of each path the repetition with the most |
| `second` | how many of these lines the second-level cache missed too |
| `walked` | lines of translation tables, the guest's stage 1 included, which stay in the caches |

The fast paths add to the floor a check of the syndrome, a read of ICH_ELRSR_EL2, a check of the interrupt's number, and one counter. The place of an ERET
in its line matters on `minor`: if the next line is fetched while the return takes effect, the core looks it up in the guest's translation. `wfe` pays
that on its return.

An injected IPI has these parts, each from the end of the one before. Its receiver runs, or waits in a trapped WFI:

| part | ends at |
|---|---|
| `send` | EL2's write of the SGI; begins at the guest's write, which traps |
| `deliver` | the receiver's first instruction at EL2 |
| `list` | EL2's return |
| `take` | the guest's vector; a receiver that waits unmasks interrupts first |
| `acknowledge` | the guest's read of ICC_IAR1_EL1 |
| `handle` | its write of ICC_EOIR1_EL1 |
| `end` | its handler's ERET |
| `return` | the interrupted instruction |
| `idle exit` | where the idle loop has found work |

The waker has just written the receiver's request word. So after each WFI the guest prefetches that line for a store (PRFM PSTL1KEEP), and the line
arrives while the interrupt is taken. The cold figures of the first baseline are too low for a comparison: some paths left EL2's code and per-CPU memory
in the second-level cache. `--compare` compares cold figures only between baselines that both have misses.
";

/// Text above the table with the parts of a wake-up.
const WAKE_UPS: &str = "The parts of an injected IPI, warm:\n";

/// Text above the table with the lines that paths miss.
const LINES: &str = "Lines that EL2 misses when cold:\n";

/// Text below the table of single numbers.
const BOOT: &str = "
`insns: reset to the guest's first` is the length of a boot, which zeroes the guest's RAM.
";

/// Text above the table of a board with a GICv2.
const VERSION_2: &str = "
## On a GICv2

Instructions at EL2 with `inject`, and those of the path's floor, on both versions of the interrupt controller
([how](architecture.md#a-gicv2)). Where a path is Rust, each access to a register of a GICv2's interface calls the code that translates it.

| path | `virt` | floor | `virt-gic2` | floor |
|---|---:|---:|---:|---:|
";

/// Returns the page: the costs of the usual board by baseline, the `cards` with cycles, and the costs of a board with a
/// GICv2.
pub fn page(baselines: &[Costs], cards: &[Card], version2: Option<&Costs>) -> String {
    let mut page = HEAD.to_owned();
    if let Some(now) = baselines.last() {
        write_table(&mut page, &format!("Now: {}", now.label), now);
        if let Some(version2) = version2 {
            write_versions(&mut page, now, version2);
        }
    }
    if let [before, .., _] = baselines {
        write_table(&mut page, &format!("Before: {}", before.label), before);
    }
    write_cycles(&mut page, cards);
    write_numbers(&mut page, baselines);
    if let Some(costs) = baselines.iter().rev().find(|costs| !costs.scale.is_empty()) {
        write_scale(&mut page, costs);
    }
    write_history(&mut page, baselines);
    page
}

/// Writes the costs of paths on both versions of the GIC.
fn write_versions(page: &mut String, version3: &Costs, version2: &Costs) {
    page.push_str(VERSION_2);
    let insns = |costs: &Costs, path: Option<Path>| {
        let row = path.and_then(|path| costs.row(path, Mode::Inject));
        let tally = row.and_then(|row| row.el2);
        tally.map_or("-".into(), |tally| tally.insns.to_string())
    };
    for &path in Path::ALL.iter().filter(|path| !path.is_floor()) {
        let _ = write!(page, "| `{}` |", path.name());
        for costs in [version3, version2] {
            let (own, floor) = (insns(costs, Some(path)), insns(costs, path.floor()));
            let _ = write!(page, " {own} | {floor} |");
        }
        page.push('\n');
    }
}

/// Writes the newest and the first card with cycles.
fn write_cycles(page: &mut String, cards: &[Card]) {
    let (Some(first), Some(last)) = (cards.first(), cards.last()) else {
        return;
    };
    page.push_str(CYCLES);
    write_card(page, "Now", last);
    if cards.len() > 1 {
        write_card(page, "Before", first);
    }
}

fn write_card(page: &mut String, when: &str, card: &Card) {
    let (label, emulator, rustc) = (&card.label, &card.emulator, &card.rustc);
    let _ = write!(
        page,
        "\n### {when}, in cycles: {label}\n\n{emulator}, {rustc}\n\n"
    );
    write_markdown(page, &cycle_card::columns(card));
    page.push('\n');
    for sentence in cycle_card::describe_ipis(card) {
        let _ = writeln!(page, "- {sentence}");
    }
    if !card.wake_ups.is_empty() {
        let _ = write!(page, "\n{WAKE_UPS}\n");
        write_markdown(page, &cycle_card::wake_ups(card));
    }
    if !card.missed.is_empty() {
        let _ = write!(page, "\n{LINES}\n");
        write_markdown(page, &cache_misses::columns(&card.missed));
    }
}

fn write_markdown(page: &mut String, columns: &[Column]) {
    let titles = columns.iter().map(|column| {
        let title = format!("{} {}", column.group(), column.title());
        format!(" {} |", title.trim())
    });
    let rules = columns.iter().map(|column| match column.is_left() {
        true => "---|",
        false => "---:|",
    });
    let (titles, rules): (String, String) = (titles.collect(), rules.collect());
    let _ = write!(page, "|{titles}\n|{rules}\n");
    let rows = columns.first().map_or(0, |column| column.texts().len());
    for row in 0..rows {
        let cells = columns
            .iter()
            .map(|column| format!(" {} |", column.texts()[row]));
        let _ = writeln!(page, "|{}", cells.collect::<String>());
    }
}

fn write_table(page: &mut String, title: &str, costs: &Costs) {
    // Writing to a string can't fail, neither here nor below.
    let _ = write!(
        page,
        "\n## {title}\n\n{}, {}\n\n{COLUMNS}",
        costs.emulator, costs.rustc
    );
    for &path in Path::ALL {
        for mode in [Mode::Inject, Mode::Direct] {
            if let Some(row) = costs.row(path, mode) {
                let _ = writeln!(page, "{}", row_text(path, row, costs.row(path, Mode::None)));
            }
        }
    }
}

fn row_text(path: Path, row: &PathCosts, bare: Option<&PathCosts>) -> String {
    let start = format!(
        "| {} (`{}`) | {} |",
        path.about(),
        path.name(),
        row.mode.name()
    );
    match (row.el2, &row.skipped) {
        (Some(el2), _) => {
            let (guest, bare) = (guest_insns(Some(row)), guest_insns(bare));
            format!("{start} {} | {guest} | {bare} |", hypervisor_cells(&el2))
        }
        (None, why) => format!("{start} - | {} | | | | | | |", why.as_deref().unwrap_or("")),
    }
}

/// Returns the hypervisor's cells of a row, in the order of [`COLUMNS`].
fn hypervisor_cells(el2: &Tally) -> String {
    let [insns, groups @ ..] = el2.columns();
    let [
        reads,
        writes,
        dsb,
        isb,
        dmb,
        entries,
        returns,
        loads,
        stores,
        lines,
        code,
    ] = groups;
    format!(
        "**{insns}** | {reads}/{writes} | {dsb}/{isb}/{dmb} | {entries}/{returns} | {loads}/{stores} | {lines}/{code}"
    )
}

/// Writes the table of single numbers. The first baseline's numbers are next to the last baseline's
/// numbers.
fn write_numbers(page: &mut String, baselines: &[Costs]) {
    let (Some(before), Some(now)) = (baselines.first(), baselines.last()) else {
        return;
    };
    let _ = write!(
        page,
        "\n## Footprint and round trips\n\n| | before | now |\n|---|---:|---:|\n"
    );
    for (name, is) in &now.numbers {
        let was = before.numbers.get(name);
        let was = was.map_or("-".into(), u64::to_string);
        let _ = writeln!(page, "| {name} | {was} | {is} |");
    }
    page.push_str(BOOT);
}

/// Writes the cost of each operation by number of vCPUs.
fn write_scale(page: &mut String, costs: &Costs) {
    let counts = super::scale::vcpu_counts(&costs.scale);
    let _ = write!(
        page,
        "\n## Scale: {}\n\nInstructions per operation, by number of vCPUs. `--scale` fails if the cost of an SGI to one CPU depends on \
         that number, or if a broadcast is not linear in it. Rows with `EL2` count the hypervisor's own instructions on all \
         CPUs that take part. The other rows are medians of the guest's workloads waiting in WFI, in instructions of all CPUs; \
         workloads whose samples may contain time in which all are idle are left out. In `ipistorm`, the guest's mask of CPUs \
         has a word for every 64.\n\n| |",
        costs.label
    );
    counts.iter().for_each(|cpus| {
        let _ = write!(page, " {cpus} |");
    });
    let _ = write!(page, "\n|---|{}\n", "---:|".repeat(counts.len()));
    for (name, values) in &costs.scale {
        let _ = write!(page, "| {name} |");
        for cpus in &counts {
            let value = values.get(cpus).map_or("-".into(), u64::to_string);
            let _ = write!(page, " {value} |");
        }
        page.push('\n');
    }
}

/// Writes how many EL2 instructions every path with injected interrupts takes, for each baseline.
fn write_history(page: &mut String, baselines: &[Costs]) {
    let _ = write!(
        page,
        "\n## History\n\nInstructions at EL2 with `inject`, by baseline.\n\n| baseline |"
    );
    Path::ALL.iter().for_each(|path| {
        let _ = write!(page, " {} |", path.name());
    });
    let _ = write!(page, "\n|---|{}\n", "---:|".repeat(Path::ALL.len()));
    for costs in baselines {
        let _ = write!(page, "| {} |", costs.label);
        for &path in Path::ALL {
            let row = costs.row(path, Mode::Inject);
            let insns = row
                .and_then(|row| row.el2)
                .map(|tally| tally.insns.to_string());
            let _ = write!(page, " {} |", insns.unwrap_or("-".into()));
        }
        page.push('\n');
    }
}
