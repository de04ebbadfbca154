// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings in the forms of the tools, and refused recordings.

use cpuidle::{FOREVER, Wake};

use super::*;

/// Output of `perf script`, from `perf record -a -e power:cpu_idle,irq:irq_handler_entry,ipi:ipi_entry`: events of two
/// CPUs and of a task with a misleading name.
const PERF: &str = "
         swapper     0 [000]  5000.000000100:                 power:cpu_idle: state=1 cpu_id=0
         swapper     0 [001]  5000.000000200:                 power:cpu_idle: state=0 cpu_id=1
         swapper     0 [001]  5000.000000700:                 power:cpu_idle: state=4294967295 cpu_id=1
         swapper     0 [000]  5000.000050100:                 power:cpu_idle: state=4294967295 cpu_id=0
         swapper     0 [000]  5000.000050900:                   ipi:ipi_entry: (Rescheduling interrupts)
 a [7] 1.5: task   211 [000]  5000.000051000:             sched:sched_waking: comm=x pid=1 prio=120 target_cpu=000
         swapper     0 [000]  5000.000060100:                 power:cpu_idle: state=2 cpu_id=0
         swapper     0 [000]  5000.000090100:                 power:cpu_idle: state=4294967295 cpu_id=0
         swapper     0 [000]  5000.000090200:          irq:irq_handler_entry: irq=42 name=nvme0q1
";

/// ftrace's file, with the headings of Linux 6.x.
const FTRACE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 9/250280   #P:2
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          <idle>-0       [001] d..1.    12.000100: cpu_idle: state=4294967295 cpu_id=1
          <idle>-0       [001] d..1.    12.000140: cpu_idle: state=1 cpu_id=1
##### CPU 0 buffer started ####
          <idle>-0       [001] d..1.    12.004140: cpu_idle: state=4294967295 cpu_id=1
          <idle>-0       [001] d.h1.    12.004142: irq_handler_entry: irq=11 name=arch_timer
          <idle>-0       [001] d.h1.    12.004143: hrtimer_expire_entry: hrtimer=00000000f2 function=tick_nohz_handler now=12004000000
          <idle>-0       [001] d..1.    12.004150: cpu_idle: state=2 cpu_id=1
          <idle>-0       [001] d..1.    12.005140: cpu_idle: state=4294967295 cpu_id=1
          <idle>-0       [001] d.h1.    12.005142: hrtimer_expire_entry: hrtimer=00000000f3 function=hrtimer_wakeup now=12005000000
          <idle>-0       [001] d..2.    12.005150: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=timers next_pid=90 next_prio=120
";

/// Output of `trace-cmd report`, version 3, without and with flags.
const TRACE_CMD: &str = "\
cpus=2
          <idle>-0     [001]   331.000100: cpu_idle:             state=1 cpu_id=1
          <idle>-0     [001]   331.000400: cpu_idle:             state=4294967295 cpu_id=1
          <idle>-0     [001] d..1.   331.000500: cpu_idle:             state=1 cpu_id=1
          <idle>-0     [001] d..1.   331.000500: cpu_idle:             state=4294967295 cpu_id=1
";

fn read(text: &str, cpu: Option<u32>) -> Result<Recorded, String> {
    parse(text, cpu)
}

/// Returns each interval's duration, its event, and the busy time before it; times are in nanoseconds.
fn told(recorded: &Recorded) -> Vec<(u64, Wake, u64)> {
    let intervals = recorded.intervals.iter();
    intervals
        .map(|one| (one.duration_ns, one.wake, one.busy_ns))
        .collect()
}

#[test]
fn perf_is_read_for_the_cpu_with_the_most_or_the_one_named() {
    let most = read(PERF, None).unwrap();
    assert_eq!((most.cpu, most.cpus), (0, 2));
    let wanted = [
        (50_000, Wake::Request, 0),
        (30_000, Wake::Interrupt, 10_000),
    ];
    assert_eq!(told(&most), wanted);
    assert!(
        most.intervals
            .iter()
            .all(|one| one.next_timer_ns == FOREVER)
    );
    let other = read(PERF, Some(1)).unwrap();
    assert_eq!(told(&other), [(500, Wake::Interrupt, 0)]);
    let error = read(PERF, Some(2)).unwrap_err();
    assert!(error.ends_with("of its intervals: 0 (2), 1 (1)"), "{error}");
}

/// The first exit belongs to an interval that began before the recording. The tick ends no interval.
#[test]
fn a_file_of_ftrace_is_read_and_the_tick_ends_no_interval() {
    let recorded = read(FTRACE, None).unwrap();
    assert_eq!(told(&recorded), [(5_000_000, Wake::Timer, 40_000)]);
    assert_eq!(recorded.intervals[0].next_timer_ns, 5_000_000);
}

/// An interval that begins and ends in the same microsecond still counts.
#[test]
fn a_report_of_trace_cmd_is_read() {
    let recorded = read(TRACE_CMD, None).unwrap();
    let wanted = [(300_000, Wake::Interrupt, 0), (1, Wake::Interrupt, 100_000)];
    assert_eq!(told(&recorded), wanted);
}

/// Lines after [`TRACE_CMD`], the line of the error, and the error.
#[test]
fn what_can_not_be_is_refused_with_line_and_remedy() {
    let idle = |time: &str, state: &str| {
        format!(
            "          <idle>-0     [001]   {time}: cpu_idle:             state={state} cpu_id=1\n"
        )
    };
    let exit = "4294967295";
    for (more, told) in [
        (
            "Processed 4711 events and lost 2 chunks!\n".into(),
            "line 6: events were lost, and it does not say where",
        ),
        (
            idle("331.000600", exit),
            "line 6: CPU 1 leaves an idle state, and has left one in line 5: an entry is missing",
        ),
        (
            idle("331.000600", "1") + &idle("331.000700", "2"),
            "line 7: CPU 1 enters an idle state, and is in one since line 6: an exit is missing",
        ),
        (idle("331.000300", "1"), "line 6: time goes back on CPU 1"),
        (
            idle("3310000000", "1"),
            "line 6: `3310000000` is a time without a unit",
        ),
        (idle("331.000600", "x"), "has no numbers state="),
        (
            idle("331.000600", "1") + &idle("1332.000600", exit) + &idle("1332.000700", "1"),
            "line 8: a CPU is in one state for more than 1000 s",
        ),
    ] {
        let error = read(&format!("{TRACE_CMD}{more}"), None).unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn what_has_no_intervals_says_how_to_record_some() {
    for (text, told) in [
        ("# tracer: nop\n#\n", "perf record -a -e power:cpu_idle"),
        (
            "x-1 [000] ..... 1.5: sched_wakeup: comm=y\n",
            "no event cpu_idle",
        ),
        (
            "<idle>-0 [000] d..1. 1.5: cpu_idle: state=1 cpu_id=0\n",
            "record for longer",
        ),
    ] {
        let error = read(text, None).unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn what_is_not_of_linux_is_quoted_cut() {
    let json = format!("{{\"a\":[{}]}}", "{\"ts\":1 \"x\":2},".repeat(200_000));
    for text in [&json[..], "<!DOCTYPE html>\n<p>\u{1b}[2J</p>\n"] {
        let error = read(text, None).unwrap_err();
        assert!(
            error.contains("neither a trace") && error.len() < 600,
            "{error}"
        );
    }
}

/// Returns the intervals of CPU 0, which enters a state, has the events in `lines` (including its exit `X`), and enters
/// the next state. CPU 1 has all kinds of events.
fn ended(state: u32, lines: &[&str]) -> Vec<(u64, Wake, u64)> {
    let mut text = String::from(
        "<idle>-0 [001] d.h1. 1.000000: irq_handler_entry: irq=1 name=IPI\n\
         <idle>-0 [001] d.h1. 1.000000: irq_handler_entry: irq=11 name=arch_timer\n",
    );
    let enter = format!("cpu_idle: state={state} cpu_id=0");
    let exit = "cpu_idle: state=4294967295 cpu_id=0";
    let events = [&enter[..]].into_iter().chain(lines.iter().copied());
    let events = events.chain([&enter, "X", "ipi_entry: (Rescheduling interrupts)", &enter]);
    for (event, at) in events.zip(2..) {
        let event = if event == "X" { exit } else { event };
        text += &format!("<idle>-0 [000] d..1. 1.{at:06}: {event}\n");
    }
    told(&read(&text, Some(0)).unwrap())
}

/// Events before and after the exit, as ftrace, perf and trace-cmd print them, and the wake-up that the events show.
#[test]
fn each_event_tells_what_it_can_wherever_it_stands() {
    use Wake::{Interrupt, Request, Timer};
    let timer = "irq_handler_entry: irq=11 name=arch_timer";
    let hrtimer = "hrtimer_expire_entry: hrtimer=0 function=hrtimer_wakeup now=1";
    let tick = "hrtimer_expire_entry: hrtimer=0 function=tick_nohz_handler now=1";
    let switch = "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_state=R ==> next_comm=a:b next_pid=7 next_prio=120";
    for (lines, wake) in [
        (&[timer, switch][..], Timer),
        (&[timer], Timer),
        (&[timer, timer, hrtimer, switch], Timer),
        (&[timer, tick, hrtimer], Timer),
        (&[timer, tick, switch], Timer),
        (
            &[
                timer,
                tick,
                "timer_expire_entry: timer=0 function=process_timeout now=1",
            ],
            Timer,
        ),
        (&["irq_handler_entry: irq=0 name=Timer", switch], Timer),
        (&["irq_handler_entry: irq=9 name=mct_tick0"], Timer),
        (
            &["irq_vectors:local_timer_entry: vector=236", switch],
            Timer,
        ),
        (&["softirq_entry: vec=1 [action=TIMER]", switch], Timer),
        (
            &["hrtimer_expire_entry: hrtimer=0 function=bc_handler/0x0 now=1"],
            Timer,
        ),
        (
            &[
                "irq_handler_entry: irq=1 name=IPI",
                "ipi_entry: (Timer broadcast interrupts)",
            ],
            Timer,
        ),
        (&["irq_handler_entry: irq=1 name=IPI", switch], Request),
        (&["ipi_entry: (Function call interrupts)", timer], Request),
        (&["ipi_exit: (Rescheduling interrupts)"], Request),
        (&["irq_vectors:reschedule_entry: vector=253"], Request),
        (
            &[
                "irq_vectors:call_function_single_entry: vector=251",
                timer,
                tick,
            ],
            Request,
        ),
        (&["irq_vectors:call_function_entry: vector=252"], Request),
        (
            &[timer, tick, "ipi_entry: (Rescheduling interrupts)"],
            Request,
        ),
        (&[switch], Request),
        (
            &["sched_switch: swapper/0:0 [120] R ==> a:b:7 [120]"],
            Request,
        ),
        (
            &["PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:   100/100"],
            Request,
        ),
        (
            &["PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:     7/8"],
            Request,
        ),
        (
            &["PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:     0/0"],
            Request,
        ),
        (
            &["irq_handler_entry: irq=42 name=nvme0q1", switch],
            Interrupt,
        ),
        (
            &["irq_vectors:irq_work_entry: vector=246", switch],
            Interrupt,
        ),
        // None of these events shows why the CPU woke.
        (
            &[
                "sched_switch: prev_comm=next_pid=9 ==> next_comm=swapper/0 next_pid=0 next_prio=120",
            ],
            Interrupt,
        ),
        (
            &["sched_switch: a:7 [120] S ==> swapper/0:0 [120]"],
            Interrupt,
        ),
        (
            &["PERF_RECORD_SWITCH_CPU_WIDE OUT          next pid/tid:     0/0"],
            Interrupt,
        ),
        (
            &["PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:   100/100"],
            Interrupt,
        ),
        (
            &["ipi_raise: target_mask=00000000,00000002 (Rescheduling interrupts)"],
            Interrupt,
        ),
        (&["softirq_entry: vec=3 [action=NET_RX]"], Interrupt),
        (&[], Interrupt),
    ] {
        let inside = ended(1, &[lines, &["X"]].concat());
        let after = ended(1, &[&["X"], lines].concat());
        for got in [inside, after] {
            assert_eq!(
                got.iter().map(|one| one.1).collect::<Vec<_>>(),
                [wake, Request],
                "{lines:?}"
            );
        }
    }
}

/// An interval that was interrupted only by the tick, or by the end of a poll, is a single interval.
#[test]
fn the_tick_and_the_end_of_a_poll_end_no_interval() {
    let tick = "hrtimer_expire_entry: hrtimer=0 function=tick_sched_timer now=1";
    let timer = "irq_vectors:local_timer_entry: vector=236";
    let whole = [(5000, Wake::Request, 0)];
    assert_eq!(ended(1, &[timer, tick, "X"])[..], whole);
    assert_eq!(ended(1, &["X", timer, tick])[..], whole);
    assert_eq!(
        ended(0, &["X", "sched_wakeup: comm=x", "ipi_raise: x"])[..],
        whole
    );
    // A stay in a halting state always ends for a reason. A stay in a polling state may end for a reason that is not in
    // the recording, if interrupts are not recorded.
    assert_eq!(ended(1, &["X"]).len(), 2);
    let poll = "a-1 [000] 1.1: cpu_idle: state=0 cpu_id=0\na-1 [000] 1.2: cpu_idle: state=4294967295 cpu_id=0\n";
    let text = format!("{poll}{}", poll.replace("1.", "2."));
    assert_eq!(read(&text, None).unwrap().intervals.len(), 2);
}

/// On x86, the event of the interrupt handler precedes the event of the exit from the state. This recording has an IPI,
/// the tick, and a timer.
#[test]
fn a_recording_of_x86_is_read_as_by_hand() {
    let text = "\
 swapper 0 [000]  4113.665034747:                         power:cpu_idle: state=1 cpu_id=0
 swapper 0 [000]  4113.665662199: irq_vectors:call_function_single_entry: vector=251
 swapper 0 [000]  4113.665667827:                         power:cpu_idle: state=4294967295 cpu_id=0
 swapper 0 [000]  4113.665670211: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=task next_pid=100 next_prio=120
 swapper 0 [000]  4117.452008958:                         power:cpu_idle: state=1 cpu_id=0
 swapper 0 [000]  4117.454027708:          irq_vectors:local_timer_entry: vector=236
 swapper 0 [000]  4117.454029231:             timer:hrtimer_expire_entry: hrtimer=0xffff888627c1c6f8 function=tick_nohz_handler now=4117456026542
 swapper 0 [000]  4117.454046396:                         power:cpu_idle: state=4294967295 cpu_id=0
 swapper 0 [000]  4127.294024359:                         power:cpu_idle: state=1 cpu_id=0
 swapper 0 [000]  4127.294885361:          irq_vectors:local_timer_entry: vector=236
 swapper 0 [000]  4127.294886403:             timer:hrtimer_expire_entry: hrtimer=0xffffc900023cfca8 function=hrtimer_wakeup now=4127296887829
 swapper 0 [000]  4127.294893504:                         power:cpu_idle: state=4294967295 cpu_id=0
 swapper 0 [000]  4127.294895336: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=task next_pid=100 next_prio=120
";
    let wanted = [
        (633_080, Wake::Request, 0),
        (9_842_884_546, Wake::Timer, 3_786_341_131),
    ];
    assert_eq!(told(&read(text, None).unwrap()), wanted);
    // Tabs and Windows line ends make no difference.
    let tabs = text.replace(' ', "\t").replace('\n', "\r\n");
    assert_eq!(told(&read(&tabs, None).unwrap()), wanted);
}

/// Returns how many intervals of each of two CPUs remain if `said` is inserted before a line. Each CPU has four
/// intervals of 10 us, and each interval has three lines: its entry, its exit and its reason to end.
fn with_loss(said: &str, line: usize) -> [usize; 2] {
    let mut lines = vec![];
    for n in 1..5 {
        for (us, event) in [
            (10, "cpu_idle: state=1 cpu_id="),
            (20, "cpu_idle: state=4294967295 cpu_id="),
            (21, "irq_handler_entry: irq=42 name=eth"),
        ] {
            lines.push(
                [0, 3]
                    .map(|cpu| format!("<idle>-0 [00{cpu}] 1.{n}000{us}: {event}{cpu}\n"))
                    .concat(),
            );
        }
    }
    lines.insert(line, format!("{said}\n"));
    let text = lines.concat();
    [0, 3].map(|cpu| {
        let recorded = read(&text, Some(cpu)).unwrap();
        assert_eq!(recorded.losses, 1);
        assert!(
            recorded
                .intervals
                .iter()
                .all(|one| one.duration_ns == 10_000)
        );
        recorded.intervals.len()
    })
}

#[test]
fn a_loss_takes_what_is_around_it_on_its_cpu() {
    for said in [
        "CPU:3 [LOST 12 EVENTS]",
        "CPU:3 [LOST EVENTS]",
        "CPU:3 [204600 EVENTS DROPPED]",
        "CPU:3 [EVENTS DROPPED]",
        " perf 24788 [003]  1.200015456: PERF_RECORD_LOST lost 13",
        " a [0] 1.5: b 24788 [003]  1.200015456: PERF_RECORD_LOST lost 13",
    ] {
        // The loss is at the beginning, in the second interval, after its exit, after its reason to end, or at the end.
        for (line, left) in [(0, 4), (4, 3), (5, 3), (6, 4), (12, 4)] {
            assert_eq!(with_loss(said, line), [4, left], "{said}, {line}");
        }
    }
    assert_eq!(with_loss("PERF_RECORD_LOST lost 13", 4), [3, 3]);
}

/// perf prints the number of lost events when it ends. Only perf's records of the losses, if the text has them, show
/// where the events were lost.
#[test]
fn a_loss_that_is_marked_may_be_summed_up() {
    let text = format!(
        "{PERF} perf 9 [001] 5000.1: PERF_RECORD_LOST lost 3\nProcessed 9 events and lost 1 chunks!\n"
    );
    assert_eq!(read(&text, None).unwrap().intervals.len(), 2);
}

/// A flaw on one CPU does not prevent the replay of another.
#[test]
fn a_flaw_is_of_its_cpu() {
    let twice = "a-0 [007] 1.1: cpu_idle: state=1 cpu_id=7\n";
    let text = format!("{PERF}{twice}{}", twice.replace("1.1", "1.2"));
    assert_eq!(read(&text, None).unwrap().intervals.len(), 2);
    assert_eq!(read(&text, None).unwrap().cpus, 3);
    let error = read(&text, Some(7)).unwrap_err();
    assert!(
        error.contains("CPU 7 enters") && error.ends_with(": 0 (2), 1 (1)"),
        "{error}"
    );
}

/// The text may be anywhere in a page or in JSON, even inside strings.
#[test]
fn text_is_found_in_pages_and_json() {
    let page = format!(
        "<!DOCTYPE html>\n{}<script>\n{TRACE_CMD}</script></html>",
        "// viewer\n".repeat(2000)
    );
    let script = format!(
        "<html>\nvar linuxPerfData = \"\\\n{}\";",
        TRACE_CMD.replace('\n', "\\n\\\n")
    );
    let json = format!(
        "{{\"systemTraceEvents\":\"# tracer: nop\\n{}\"}}",
        TRACE_CMD.replace('\n', "\\n")
    );
    let lines = format!("[\n\"{}\"]", TRACE_CMD.trim_end().replace('\n', "\",\n\""));
    let close = TRACE_CMD.trim_end().to_owned() + "</script>";
    let wanted = told(&read(TRACE_CMD, None).unwrap());
    for text in [page, script, json, lines, close] {
        let got = read(&text, None).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(told(&got), wanted);
    }
}

/// Options of perf add columns, and a task's name may look like any column.
#[test]
fn columns_of_perf_and_names_of_tasks_do_not_confuse() {
    let wanted = told(&read(PERF, None).unwrap());
    for (from, to) in [
        ("swapper     0 [", "["),
        ("swapper     0 [", "swapper     0/0     ["),
        ("swapper     0 [", "[1] 1.5: x:     0 ["),
        ("swapper     0 [", "[1] 9999.5:     0 ["),
        ("swapper     0 [", "cpu_idle: 1.5:  0 ["),
        ("power:cpu_idle", "       1 power:cpu_idle"),
        ("]  5000", "] K  5000"),
    ] {
        let text = PERF.replace(from, to);
        assert_ne!(text, PERF);
        assert_eq!(told(&read(&text, None).unwrap()), wanted, "{text}");
    }
    let marker =
        "x-1 [000] .... 4999.5: tracing_mark_write: [000] 1.5: cpu_idle: state=1 cpu_id=0\n";
    assert_eq!(
        told(&read(&format!("{marker}{PERF}"), None).unwrap()),
        wanted
    );
}

/// The error for an unknown form names the form, and does not say that the event is missing.
#[test]
fn a_form_that_is_not_read_is_named() {
    for (text, told) in [
        (
            "<idle>-0       2d..1    0us : cpu_idle: state=1 cpu_id=2\n",
            "line 1: `<idle>-0       2d..1    0us : cpu_idle: state=1 cpu_id=2` has no time in seconds",
        ),
        (
            "<idle>-0  0d..2. 1198146483us#: cpu_idle: state=1 cpu_id=0\n",
            "latency-format",
        ),
        (
            "<idle>-0  0d..2. 1198.146483: cpu_idle: state=1 cpu_id=0\n",
            "no CPU in brackets",
        ),
        (
            "swapper 0 5000.000000100: power:cpu_idle: state=1 cpu_id=0\n",
            "perf script -F comm,pid,cpu,time",
        ),
        (
            "a-0 [000] 5000.1: cpu_idle: state=0x1 cpu_id=0x0\n",
            "has no numbers state=",
        ),
    ] {
        let error = read(text, None).unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
    }
}

/// The beginning of a recording is missing if its ring buffer has wrapped, which does no harm.
#[test]
fn a_ring_that_was_overwritten_is_read() {
    let text = FTRACE.replace("9/250280", "10/200");
    assert_eq!(
        told(&read(&text, None).unwrap()),
        told(&read(FTRACE, None).unwrap())
    );
}

/// Output of a kernel with two CPUs. The first exit of CPU 0 has no entry, and the last entry of each CPU has no exit.
#[test]
fn a_recording_of_debian_is_read_as_by_hand() {
    use Wake::{Request, Timer};
    let text = include_str!("debian.txt");
    let us = |cpu| {
        let recorded = read(text, Some(cpu)).unwrap();
        let told = told(&recorded).into_iter();
        told.map(|(long, wake, busy)| (long / 1000, wake, busy / 1000))
            .collect::<Vec<_>>()
    };
    let first = [
        (843, Request, 17),
        (2110, Timer, 40),
        (20, Request, 16),
        (1622, Timer, 27),
        (19, Request, 16),
    ];
    assert_eq!(us(0), first);
    let second = [
        (867, Timer, 0),
        (2141, Request, 20),
        (13, Request, 18),
        (1643, Request, 11),
        (14, Request, 17),
    ];
    assert_eq!(us(1), second);
}
