// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings in the forms of the tools, and what is refused.

use cpuidle::{FOREVER, Wake};

use super::*;

/// `perf script`, of `perf record -a -e power:cpu_idle,irq:irq_handler_entry,ipi:ipi_entry`: events of two CPUs and of a
/// task with a bad name.
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

/// `trace-cmd report`, version 3, without and with flags.
const TRACE_CMD: &str = "\
cpus=2
          <idle>-0     [001]   331.000100: cpu_idle:             state=1 cpu_id=1
          <idle>-0     [001]   331.000400: cpu_idle:             state=4294967295 cpu_id=1
          <idle>-0     [001] d..1.   331.000500: cpu_idle:             state=1 cpu_id=1
          <idle>-0     [001] d..1.   331.000500: cpu_idle:             state=4294967295 cpu_id=1
";

fn read(text: &str, cpu: Option<u32>) -> Result<Recorded, String> {
    assert!(is(text.as_bytes()), "not recognised: {text}");
    parse(text.as_bytes(), cpu)
}

/// Duration, event and what was done before, in nanoseconds.
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

/// The exit that is the first belongs to an interval that began before. The tick ends none.
#[test]
fn a_file_of_ftrace_is_read_and_the_tick_ends_no_interval() {
    let recorded = read(FTRACE, None).unwrap();
    assert_eq!(told(&recorded), [(5_000_000, Wake::Timer, 40_000)]);
    assert_eq!(recorded.intervals[0].next_timer_ns, 5_000_000);
}

/// Too short for microseconds is not nothing.
#[test]
fn a_report_of_trace_cmd_is_read() {
    let recorded = read(TRACE_CMD, None).unwrap();
    let wanted = [(300_000, Wake::Interrupt, 0), (1, Wake::Interrupt, 100_000)];
    assert_eq!(told(&recorded), wanted);
}

#[test]
fn a_switch_to_a_task_without_an_interrupt_is_a_request() {
    let switch = "<idle>-0 [000] d..2. 1.000300: sched_switch: prev_comm=swapper/0 ==> next_comm=x next_pid=1\n";
    let text = "<idle>-0 [000] d..1. 1.000100: cpu_idle: state=0 cpu_id=0\n\
                <idle>-0 [000] d..1. 1.000200: cpu_idle: state=4294967295 cpu_id=0\n";
    let wake = |text: &str| read(text, None).unwrap().intervals[0].wake;
    assert_eq!(wake(text), Wake::Interrupt);
    assert_eq!(wake(&format!("{text}{switch}")), Wake::Request);
    let back = switch.replace("next_comm=x", "next_comm=swapper/0");
    assert_eq!(wake(&format!("{text}{back}")), Wake::Interrupt);
}

/// What goes on with [`TRACE_CMD`], where it is wrong, and what is said.
#[test]
fn what_is_lost_or_can_not_be_is_refused_with_line_and_remedy() {
    let idle = |time: &str, state: &str| {
        format!(
            "          <idle>-0     [001]   {time}: cpu_idle:             state={state} cpu_id=1\n"
        )
    };
    let exit = "4294967295";
    for (more, told) in [
        (
            "CPU:1 [LOST 17 EVENTS]\n".into(),
            "line 6: events were lost, it says `CPU:1 [LOST 17 EVENTS]`",
        ),
        (
            "CPU:0 [3 EVENTS DROPPED]\n".into(),
            "line 6: events were lost",
        ),
        (
            " swapper     0 [001]   332.0: PERF_RECORD_LOST lost 12\n".into(),
            "line 6: events were lost",
        ),
        (
            "Processed 4711 events and lost 2 chunks!\n".into(),
            "record again with more room",
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
        (idle("331.000600", "x"), "has no number state="),
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
        ("PERFILE2\u{1}", "perf script --ns -i"),
        ("\u{17}\u{8}Dtracing", "trace-cmd report -i"),
    ] {
        let error = read(text, None).unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn what_is_in_the_form_of_this_program_is_none() {
    for text in [
        "",
        "duration_ns,next_timer_ns,wake\n1,1,timer\n",
        "# recorded\n",
    ] {
        assert!(!is(text.as_bytes()), "{text}");
    }
}

/// What a kernel has written, of two CPUs. The first exit of CPU 0 has no entry, and the last entry of each no exit.
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
        (867, Request, 0),
        (2141, Request, 20),
        (13, Request, 18),
        (1643, Request, 11),
        (14, Request, 17),
    ];
    assert_eq!(us(1), second);
}
