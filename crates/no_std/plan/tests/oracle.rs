// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares a plan's expansion with one written in the plainest way, as nested loops over the lists:
//! the slowest list is outermost, and each cell is kept only where it first occurs.

use plan::{Arguments, Cell, Machine, Plan, Shard, Wait, Workload};

const MACHINE: Machine = Machine::COMPLETE;

/// Returns every combination of the lists, in the order of the loops.
fn product(plan: &Plan) -> Vec<Cell> {
    let mut cells = vec![Cell::default()];
    macro_rules! nested {
        ($($field:ident)*) => {$(
            cells = cells
                .iter()
                .flat_map(|cell| {
                    let values = plan.lists.$field.values.iter();
                    values.map(|&$field| Cell { $field, ..*cell })
                })
                .collect();
        )*};
    }
    nested!(workload shape gap_us wait trap deliver wake poll_limit_us host_poll_us);
    nested!(event_stream_us host_poll hint atomics wfi_barrier cache noise arrival_us service_us hz states pair idle_poll idle_poll_by standby_us psd_ms psd_limit completion spread);
    nested!(device_us writes write_us call_by crowd call_wait cpulist mask offset calls groups);
    cells
}

/// Sets inapplicable dimensions of `cell` to neutral values, as the options' documentation says.
fn normalised(plan: &Plan, cell: &Cell) -> Cell {
    let neutral = Cell::default();
    let mut cell = *cell;
    let named = &plan.lists;
    match cell.workload {
        Workload::Timer | Workload::LinuxTimer if !named.gap_us.named => cell.gap_us = 1000,
        Workload::Frames if !named.gap_us.named => cell.gap_us = 16_667,
        Workload::Idle | Workload::LinuxIdle if !named.gap_us.named => cell.gap_us = 10_000,
        Workload::Ipistorm if !named.cpulist.named => cell.cpulist = plan::CpuSet::FIRST,
        _ => {}
    }
    if cell.wait == Wait::Haltpoll && !named.poll_limit_us.named {
        cell.poll_limit_us = 200;
    }
    let linux = cell.workload.to_string().starts_with("linux-");
    if linux {
        cell.wait = neutral.wait;
        cell.wake = neutral.wake;
        cell.noise = neutral.noise;
        cell.atomics = neutral.atomics;
    }
    let text = cell.wait.to_string();
    let governed = text.starts_with("governor:");
    let workload = cell.workload.to_string();
    let is = |any: &[&str]| any.contains(&workload.as_str());
    let states = cell.states.to_string();
    let driver = states.starts_with("arm_poll_idle");
    let may_poll = !governed || driver || states.contains("poll");
    let idle_poll = cell.idle_poll.to_string() != "none";
    let forced = governed && !is(&["ipi", "pingpong", "stream", "overshoot"]) && idle_poll;
    let limited = ["poll-wfi", "haltpoll", "governor:fixed"].contains(&text.as_str()) && may_poll;
    let events = governed && (may_poll || forced) || text.contains("wfe") || limited;
    let halts = governed && (driver || states.contains("wfi"))
        || !governed && limited
        || text == "wfi"
        || linux;
    if !is(&["ipi"]) {
        cell.shape = neutral.shape;
    }
    if is(&["stream", "overshoot"]) {
        cell.wake = neutral.wake;
    }
    if is(&["stream"]) || !limited && !is(&["overshoot"]) {
        cell.poll_limit_us = 0;
    }
    let traps = ["wfi", "both"].contains(&cell.trap.to_string().as_str());
    if !(halts && traps) || is(&["overshoot"]) {
        cell.host_poll_us = 0;
    }
    if cell.host_poll_us == 0 {
        cell.host_poll = neutral.host_poll;
        cell.hint = neutral.hint;
    }
    if !limited {
        cell.hint = neutral.hint;
    }
    if !is(&["linux-exec"]) {
        cell.command = neutral.command;
    }
    if !halts || linux || is(&["overshoot"]) {
        cell.wfi_barrier = neutral.wfi_barrier;
    }
    if !is(&["ipi", "pingpong"]) {
        cell.cache = neutral.cache;
    }
    if !(is(&["pingpong"]) || is(&["ipi"]) && cell.shape.to_string() == "one") {
        cell.pair = neutral.pair;
    }
    if !events {
        cell.event_stream_us = 0;
    }
    if !is(&["notify"]) {
        cell.arrival_us = 0;
        cell.service_us = 0;
    }
    let open = cell.arrival_us != 0;
    if is(&[
        "stream",
        "linux-pipe",
        "linux-futex",
        "linux-eventfd",
        "linux-membarrier",
        "linux-call",
        "linux-seccomp-notify",
        "linux-messaging",
        "linux-exec",
    ]) || open
    {
        cell.gap_us = 0;
    }
    if !is(&["messaging", "pipe", "notify"]) {
        cell.groups = neutral.groups;
    }
    let calls = cell.calls.to_string();
    if !is(&["ipistorm"]) || calls != "single" {
        cell.offset = neutral.offset;
    }
    if !is(&["ipistorm"]) || calls != "mask" {
        cell.mask = neutral.mask;
    }
    if is(&["ipistorm"]) {
        if cell.wake.to_string() == "ipi" {
            cell.call_by = plan::CallBy::Ipi;
        }
    } else {
        cell.calls = neutral.calls;
        cell.call_wait = neutral.call_wait;
        cell.call_by = neutral.call_by;
        cell.crowd = neutral.crowd;
    }
    if !is(&["ipistorm", "timer", "idle"]) {
        cell.cpulist = neutral.cpulist;
    }
    if !is(&["io"]) {
        cell.device_us = neutral.device_us;
        if !open {
            cell.spread = neutral.spread;
        } else if !named.spread.named {
            cell.spread = plan::Spread::Exponential;
        }
        cell.completion = neutral.completion;
        cell.writes = neutral.writes;
    }
    if cell.writes == 0 {
        cell.write_us = neutral.write_us;
    }
    if !is(&["io"]) || !governed {
        cell.psd_ms = neutral.psd_ms;
    }
    if cell.psd_ms == 0 {
        cell.psd_limit = neutral.psd_limit;
    }
    if !governed || !states.contains("standby") || states.contains("standby:") {
        cell.standby_us = neutral.standby_us;
    }
    if !governed {
        cell.states = neutral.states;
        cell.hz = neutral.hz;
    }
    if !governed || is(&["ipi", "pingpong", "stream", "overshoot"]) {
        cell.idle_poll = neutral.idle_poll;
    }
    if cell.idle_poll.is_empty() {
        cell.idle_poll_by = neutral.idle_poll_by;
    }
    cell
}

/// Plans that name every dimension whose cells could be left out, so that all cells are
/// listed.
const PLANS: [&str; 14] = [
    "rouse.workload=pingpong,overshoot rouse.wait=all,governor:teo rouse.trap=none,both \
     rouse.host-poll-us=0 rouse.wfi-barrier=all rouse.cache=cold,warm",
    "rouse.workload=pingpong rouse.wait=all rouse.trap=all rouse.host-poll-us=0,50 rouse.host-poll=all \
     rouse.hint=all rouse.poll-limit-us=10,20",
    "rouse.workload=all rouse.wait=wfi,poll-wfi,haltpoll rouse.trap=none,wfi rouse.gap-us=0,10 \
     rouse.host-poll-us=0,5",
    "rouse.workload=timer,idle,ipistorm,ipi rouse.wait=haltpoll,wfi rouse.trap=none rouse.host-poll-us=0",
    "rouse.workload=stream,overshoot,ipi rouse.wait=all rouse.trap=none,both rouse.event-stream-us=16,50 \
     rouse.poll-limit-us=5,10 rouse.host-poll-us=0,5",
    "rouse.workload=ipistorm,io,messaging rouse.wait=wfi,governor:menu rouse.calls=all rouse.offset=1,3 \
     rouse.mask=0,1 rouse.call-by=all rouse.crowd=none,2 rouse.spread=all rouse.groups=1,2 rouse.trap=none rouse.host-poll-us=0",
    "rouse.workload=io,notify rouse.wait=governor:teo,governor:fixed rouse.psd-ms=0,3 rouse.standby-us=0,9 rouse.hz=all \
     rouse.idle-poll=none,1 rouse.idle-poll-by=all rouse.device-us=5,9 rouse.completion=other,85,same rouse.trap=none rouse.host-poll-us=0 rouse.psd-limit=all",
    "rouse.workload=io,notify rouse.wait=wfi,governor:menu rouse.writes=0,50,100 rouse.write-us=7,9 rouse.completion=all \
     rouse.trap=none rouse.host-poll-us=0",
    "rouse.workload=notify,io rouse.wait=wfi rouse.trap=none rouse.arrival-us=0,10 rouse.service-us=0,5 \
     rouse.gap-us=0,7 rouse.groups=1,2 rouse.spread=all rouse.noise=none,tlbi",
    "rouse.workload=notify,io,overshoot rouse.wait=wfi,poll-wfi rouse.trap=none rouse.arrival-us=0,10 rouse.noise=all",
    "rouse.workload=pingpong,io rouse.wait=wfi,governor:teo,governor:fixed rouse.host-poll-us=0,5 rouse.hint=tell \
     rouse.states=poll+wfi+standby,poll+standby,wfi+deep,poll+wfi+standby:3:30,arm_poll_idle:9,standby rouse.standby-us=0,9 \
     rouse.idle-poll=none,1 rouse.wfi-barrier=dsb rouse.trap=wfi,wfe rouse.poll-limit-us=5",
    "rouse.workload=linux-all,pingpong rouse.wait=wfi,busy rouse.trap=none,wfi rouse.host-poll-us=0,5 rouse.host-poll=all \
     rouse.wfi-barrier=dsb rouse.noise=none,tlbi",
    "rouse.workload=linux-pipe,linux-timer rouse.trap=none,wfi rouse.host-poll-us=0 rouse.gap-us=5,10 rouse.cpulist=0,1",
    "rouse.shape=all rouse.wait=busy,wfi rouse.trap=all rouse.call-wait=all rouse.cpulist=0,1 \
     rouse.host-poll-us=0",
];

#[test]
fn a_plan_expands_to_the_product_of_its_lists() {
    for text in PLANS {
        let text = format!("{text} rouse.deliver=inject,direct rouse.wake=all rouse.shape=all");
        let plan = Arguments::parse(&text).unwrap().plan;
        let all = product(&plan);
        assert_eq!(plan.combinations(), all.len());
        let mut expected: Vec<Cell> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for cell in &all {
            let cell = normalised(&plan, cell);
            if seen.insert(format!("{cell:?}")) {
                expected.push(cell);
            }
        }
        let cells: Vec<Cell> = plan.cells(&MACHINE).collect();
        // Cells that can't run are not listed unless the plan names the dimension that prevents
        // them.
        let listed = |cell: &&Cell| cells.contains(cell) || cell.skip_reason(&MACHINE).is_none();
        let expected: Vec<Cell> = expected.iter().filter(listed).copied().collect();
        assert_eq!(cells.len(), expected.len(), "{text}");
        assert!(cells == expected, "{text}");
    }
}

#[test]
fn the_shards_are_the_whole_dealt_out() {
    let cells = |text: &str| -> Vec<Cell> {
        let plan = Arguments::parse(text).unwrap().plan;
        plan.cells(&MACHINE).collect()
    };
    let whole = cells("");
    let parts = ["rouse.shard=1/3", "rouse.shard=2/3", "rouse.shard=3/3"].map(cells);
    assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), whole.len());
    // Each round is dealt in the direction opposite to the round before.
    let order = [0, 1, 2, 2, 1, 0];
    for (number, cell) in whole.iter().enumerate() {
        assert_eq!(parts[order[number % 6]][number / 3], *cell);
        let index = order[number % 6] as u32 + 1;
        assert_eq!(Shard { index, of: 3 }.cell(number / 3), number);
    }
    // A part can be divided again.
    let halves = [
        "rouse.shard=2/3 rouse.part=1/2",
        "rouse.shard=2/3 rouse.part=2/2",
    ]
    .map(cells);
    for (number, cell) in parts[1].iter().enumerate() {
        assert_eq!(halves[[0, 1, 1, 0][number % 4]][number / 2], *cell);
    }
    let sizes = halves.each_ref().map(Vec::len);
    assert_eq!(sizes[0] + sizes[1], parts[1].len());
}
