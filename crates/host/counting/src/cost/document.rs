// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/cost.md`, made of the baselines that were kept.

use std::fmt::Write;

use cost::Path;
use page::Column;

use super::card::Card;
use super::costs::{Costs, Mode, Row, guest_insns};
use super::in_cycles;
use super::missed;
use super::tally::Tally;

const HEAD: &str = "\
<!-- Written by `cargo xtask cost --save LABEL` from the baselines in docs/cost/; a test checks it. -->

# What each path costs

The numbers are counted from execution by `cargo xtask cost`, not estimated. The guest takes each path again and again between two
marks (`guest-kernel-shim/trials/cost.rs`). A plugin of the emulator (`crates/host/recorder`) records every instruction that a CPU executes
between the marks, with its exception level and memory accesses. `xtask/src/cost/` counts them. The CPUs run in parallel. A row is the
median pass. `cargo xtask asm PATH` shows the instructions.

The columns are: instructions at EL2; system registers read / written; DSB / ISB / DMB; exceptions taken to EL2 / returns from it;
instructions that load / store; 64-byte lines of data / code; then the guest's own instructions (those of the interrupt handler where
the path is an interrupt), and the same on the bare machine, where there is no EL2. In rows with `direct`, interrupts are delivered
directly and no wait traps: a 0 there was counted, not assumed. `-` means that the path can't be taken.

Comments in the code explain the barriers and registers of a path: `hypervisor/src/exits/fast_paths.rs` for the fast paths, up to 50 instructions
long; `crates/target/arch/src/gic_cpu.rs` for the DSB and ISB around a doorbell (`doorbell-send`, `cpu-on`); `hypervisor/src/exits/enter.rs` for those of
`cpu-start`. No path takes a lock except `mmio` and `cpu-start`, which access the guest's one distributor.

Each saved set of numbers is a baseline, a file in `docs/cost/`. `cargo xtask cost --save LABEL` adds one. The tests compare with the newest
baseline.
";

const COLUMNS: &str = "\
| path | deliver | EL2 insns | sysregs r/w | DSB/ISB/DMB | in/out | ld/st | lines d/c | guest | bare |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// Above the cards in cycles.
const CYCLES: &str = "
## In cycles

`cargo xtask cost --board gem5` counts what the same paths take on cores that gem5 simulates (`boards/gem5`, two cores of 2 GHz): `minor` and `hpi`
in order, `o3` out of order. Each core's tracer writes down when an instruction is committed (`xtask/src/cost/tarmac.rs`). A path takes the cycles from the
commit of the guest's last instruction before an exit to that of its first one behind it (`xtask/src/cost/cycles.rs`). So the exception, the return, and what the
pipeline needs to fill again are in it. What a core waits in WFI is not. An interrupt is counted from EL2's first instruction: what the guest did before
has nothing to do with it. A row is the median pass.

`x least` holds it against a floor that is measured in the same boot. The floor is an exit to vectors that check nothing and do only what the architecture
requires (`hypervisor/src/exits/floor.rs`, `rouse.floor`): `floor-call` is an exception to EL2 and back, `floor-send`, `floor-receive` and `floor-wait` have the system
registers that an SGI at its sender, an SGI at its receiver and a trapped WFI need. For `cold`, every line of code and data of EL2 and of the guest is
cleaned from all caches before each pass, and TLBs are emptied.

What the fast paths do against that was tried by traces of single passes. Each was then undone alone; cycles that this adds, warm, on `minor` and `o3`:

| undone | send | receive | WFI |
|---|---:|---:|---:|
| two registers are saved, not four | 12, 3 | 5, 1 | 10, 3 |
| ELR_EL2 is read before the SGI is sent, with what else is read | 3, 1 | | |
| an interrupt is counted behind its deactivation, not before it | | 2, 4 | -1, 2 |
| the same, not before its priority is dropped | | 2, 2 | 1, 2 |
| the end of a wait stands behind its begin, without a branch | | | 9, 5 |
| a wait begins with a line | | | 10, not measured |
| ICH_ELRSR_EL2 is not read again behind a wait, in which nothing is listed | | | 5, 8 |
| a halt and what ended it are counted at once, not a halt before it | | | 40 (30 of them by the place of its ERET), 6 |

Not kept: a prefetch of the data at the vector's begin, 7 cycles more for a receiver on `minor`, warm (cold was not measured); DSB and ISB behind an ERET, no cycle either way.

Where an ERET was the fourth instruction of its line, `minor` took 30 cycles more: it began to fetch the next line as the return took effect, and looked for it in the guest's translation. Two paths still have that on `minor`, of
which little depends: `wfe`, whose ERET is the last but one of its line, takes 39 cycles to return where others take 10; `hypercall` takes 43 to its vector where `wfe` takes 16, as its HVC follows a branch so closely that
the next line is not fetched yet. What is left above the floor: the syndrome compared with what it may be, ICH_ELRSR_EL2, which the floor does not look at, the bounds of the interrupt's number, and one counter.

`cargo xtask cost --board gem5 --save LABEL` adds a baseline to `docs/cost/cycles/`; `--compare` fails if a path takes 2 % more than in the newest.
";

/// Above the parts of a wake-up.
const WAKE_UPS: &str = "The parts of an injected IPI, warm, to a CPU that runs and to one that waits in a WFI that traps: `send` is from the guest's write that traps to
EL2's; `deliver` to the receiver's first instruction at EL2 behind that; `list` to EL2's return; `take` to the guest's vector, which one that waits unmasks first; `acknowledge` to its read of
ICC_IAR1_EL1; `handle` to its write of ICC_EOIR1_EL1; `end` to its handler's ERET; `return` to what was interrupted; `idle exit` to where its idle loop has
found that there is something to do (`xtask/src/cost/parts.rs`).

The waker has written the receiver's request word just before, so its line is in the waker's cache. Behind each WFI the guest asks for that line, to write to it (PRFM PSTL1KEEP, a hint), and it
comes while the interrupt is taken: one instruction more, and on `minor` 149 cycles in place of 221 from the SGI to the end of the idle loop (`return` 47 and `idle exit` 43 without).
";

/// Above the lines that paths miss.
const LINES: &str = "First-level misses of EL2, code/data, in lines of 64 bytes, with nothing in caches: of each path the pass with the most. The crossbars after the caches
recorded the requests (`xtask/src/cost/requests.rs`). `second`: how many of them the second cache missed too. `walked`: lines of translation tables, of the guest's stage 1 too, which
stay in caches.

The card before this one was measured with EL2's code and its memory of each CPU left in the second cache by some paths, so no cold figure of it is to be compared with one of today: `hypercall` on `minor` 419 then, 1206
now, with the same instructions. `--compare` compares only cards that both have lines.
";

/// Under the single numbers.
const BOOT: &str = "
`insns: reset to the guest's first` is the length of a boot. A third of it is the zeroing of the guest's RAM ([isolation](isolation.md#memory)).
";

pub fn page(baselines: &[Costs], cards: &[Card]) -> String {
    let mut page = HEAD.to_owned();
    if let Some(now) = baselines.last() {
        table(&mut page, &format!("Now: {}", now.label), now);
    }
    if let [before, .., _] = baselines {
        table(&mut page, &format!("Before: {}", before.label), before);
    }
    cycles(&mut page, cards);
    numbers(&mut page, baselines);
    if let Some(costs) = baselines.iter().rev().find(|costs| !costs.scale.is_empty()) {
        scale(&mut page, costs);
    }
    history(&mut page, baselines);
    page
}

/// The newest card in cycles, and the first one.
fn cycles(page: &mut String, cards: &[Card]) {
    let (Some(first), Some(last)) = (cards.first(), cards.last()) else {
        return;
    };
    page.push_str(CYCLES);
    card(page, "Now", last);
    if cards.len() > 1 {
        card(page, "Before", first);
    }
}

fn card(page: &mut String, when: &str, card: &Card) {
    let (label, emulator, rustc) = (&card.label, &card.emulator, &card.rustc);
    let _ = write!(
        page,
        "\n### {when}, in cycles: {label}\n\n{emulator}, {rustc}\n\n"
    );
    markdown(page, &in_cycles::columns(card));
    page.push('\n');
    for sentence in in_cycles::sentences(card) {
        let _ = writeln!(page, "- {sentence}");
    }
    if !card.wake_ups.is_empty() {
        let _ = write!(page, "\n{WAKE_UPS}\n");
        markdown(page, &in_cycles::wake_ups(card));
    }
    if !card.missed.is_empty() {
        let _ = write!(page, "\n{LINES}\n");
        markdown(page, &missed::columns(&card.missed));
    }
}

fn markdown(page: &mut String, columns: &[Column]) {
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

fn table(page: &mut String, title: &str, costs: &Costs) {
    // Writing to a string can't fail, here and below.
    let _ = write!(
        page,
        "\n## {title}\n\n{}, {}\n\n{COLUMNS}",
        costs.emulator, costs.rustc
    );
    for &path in Path::ALL {
        for mode in [Mode::Inject, Mode::Direct] {
            if let Some(row) = costs.row(path, mode) {
                let _ = writeln!(page, "{}", line(path, row, costs.row(path, Mode::None)));
            }
        }
    }
}

fn line(path: Path, row: &Row, bare: Option<&Row>) -> String {
    let start = format!(
        "| {} (`{}`) | {} |",
        path.about(),
        path.name(),
        row.mode.name()
    );
    match (row.el2, &row.skipped) {
        (Some(el2), _) => {
            let (guest, bare) = (guest_insns(Some(row)), guest_insns(bare));
            format!("{start} {} | {guest} | {bare} |", hypervisor(&el2))
        }
        (None, why) => format!("{start} - | {} | | | | | | |", why.as_deref().unwrap_or("")),
    }
}

/// The cells under [`COLUMNS`], the hypervisor's.
fn hypervisor(el2: &Tally) -> String {
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

/// The single numbers, the first baseline's beside the last one's.
fn numbers(page: &mut String, baselines: &[Costs]) {
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

/// Costs of operations with more vCPUs, from the last baseline that has them.
fn scale(page: &mut String, costs: &Costs) {
    let counts = super::scale::counts(&costs.scale);
    let _ = write!(
        page,
        "\n## Scale: {}\n\nInstructions per operation, by number of vCPUs. `--scale` fails if the cost of an SGI to one CPU depends on \
         that number, or if a broadcast is not linear in it. Rows with `EL2` count the hypervisor's own instructions on all \
         CPUs that take part. The other rows are medians of the guest's workloads waiting in WFI, in instructions of all CPUs; \
         workloads whose samples may contain time in which all are idle are left out.\n\n| |",
        costs.label
    );
    counts.iter().for_each(|cpus| {
        let _ = write!(page, " {cpus} |");
    });
    let _ = write!(page, "\n|---|{}\n", "---:|".repeat(counts.len()));
    let instructions = costs.scale.iter();
    for (name, values) in instructions.filter(|(name, _)| super::scale::is_instructions(name)) {
        let _ = write!(page, "| {name} |");
        for cpus in &counts {
            let value = values.get(cpus).map_or("-".into(), u64::to_string);
            let _ = write!(page, " {value} |");
        }
        page.push('\n');
    }
}

/// EL2 instructions of every path where interrupts are injected, baseline by baseline.
fn history(page: &mut String, baselines: &[Costs]) {
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
