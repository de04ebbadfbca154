// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workloads.

use core::fmt;

use super::{Word, words};

/// Declares the workloads, each once, with its [`Nature`].
macro_rules! workloads {
    ($($(#[$doc:meta])* $name:ident = $word:literal: $base:ident { $($field:ident: $value:expr),* },)*) => {
        words! {
            /// Operation that is measured.
            Workload { $($(#[$doc])* $name = $word,)* }
        }

        impl Workload {
            const fn nature(self) -> Nature {
                match self { $(Self::$name => Nature { $($field: $value,)* ..$base },)* }
            }
        }
    };
}

workloads! {
    /// One CPU interrupts another and waits until the interrupt handler has run.
    Ipi = "ipi": PLAIN { is_marked: true },
    /// Two CPUs wake each other.
    Pingpong = "pingpong": PLAIN { needs_second: true, partners: Some(1), is_marked: true, wakeups: 2 },
    /// Function calls to other CPUs, one after another.
    Ipistorm = "ipistorm": TASKS { needs_second: true, is_marked: true },
    /// Groups of tasks that send to groups of tasks.
    Messaging = "messaging": IDLES { has_groups: true, median_hides_wake_ups: true },
    /// Pairs of tasks that pass a token back and forth.
    Pipe = "pipe": TASKS { needs_second: true, has_groups: true, wakeups: 2 },
    /// A task asks a supervisor on another CPU and waits for its answer.
    Notify = "notify": TASKS { needs_second: true, has_groups: true },
    /// Requests to a device that answers after some time.
    Io = "io": IDLES {},
    /// Periodic wake-ups, each with a deadline.
    Timer = "timer": IDLES { period_us: Some(1000) },
    /// Rare wake-ups, between which CPUs are idle.
    Idle = "idle": IDLES { period_us: Some(10_000) },
    /// Frames of a display. Three tasks, one after another, make each frame by its deadline.
    Frames = "frames": IDLES { needs_second: true, period_us: Some(16_667), wakeups: 3, learning: 10 },
    /// One CPU waits for the event stream, and for nothing else.
    Stream = "stream": ALONE {},
    /// One CPU polls up to its limit, and nothing wakes it.
    Overshoot = "overshoot": ALONE {},
    /// On Linux: two threads pass a byte back and forth through pipes.
    LinuxPipe = "linux-pipe": LINUX { needs_second: true, wakeups: 2, is_marked: true },
    /// On Linux: two threads wake each other with futexes.
    LinuxFutex = "linux-futex": LINUX { needs_second: true, wakeups: 2, is_marked: true },
    /// On Linux: two threads wake each other with event counters (eventfd).
    LinuxEventfd = "linux-eventfd": LINUX { needs_second: true, wakeups: 2, is_marked: true },
    /// On Linux: a thread makes every other CPU, all of which are busy, execute a barrier.
    LinuxMembarrier = "linux-membarrier": LINUX { needs_second: true, is_marked: true },
    /// On Linux: a thread makes system calls that a thread on another CPU answers.
    LinuxSeccompNotify = "linux-seccomp-notify": LINUX { needs_second: true, wakeups: 2, is_marked: true },
    /// On Linux: groups of threads send to groups of threads through sockets. A sample is a round,
    /// in which each sender sends to each receiver of its group.
    LinuxMessaging = "linux-messaging": LINUX { times_as_long: 30 },
    /// On Linux: periodic wake-ups of a thread, each with a deadline.
    LinuxTimer = "linux-timer": LINUX { has_idle_time: true, period_us: Some(1000) },
    /// On Linux: rare wake-ups of a thread.
    LinuxIdle = "linux-idle": LINUX { has_idle_time: true, period_us: Some(10_000) },
    /// On Linux: a thread makes an idle CPU execute a function of the kernel, and waits until it has run.
    LinuxCall = "linux-call": LINUX { needs_second: true, is_marked: true },
    /// On Linux: a program runs unmodified, from its first instruction to its end.
    LinuxExec = "linux-exec": LINUX { has_idle_time: true, is_a_run: true, times_as_long: 1000 },
}

/// Properties of a workload.
struct Nature {
    is_linux: bool,
    has_tasks: bool,
    wakeups: u32,
    is_marked: bool,
    is_alone: bool,
    has_idle_time: bool,
    median_hides_wake_ups: bool,
    learning: u32,
    times_as_long: u32,
    has_groups: bool,
    period_us: Option<u32>,
    partners: Option<usize>,
    needs_second: bool,
    is_a_run: bool,
}

/// A workload of two CPUs that does not use the executor.
const PLAIN: Nature = Nature {
    is_linux: false,
    has_tasks: false,
    wakeups: 1,
    is_marked: false,
    is_alone: false,
    has_idle_time: false,
    median_hides_wake_ups: false,
    learning: 0,
    times_as_long: 1,
    has_groups: false,
    period_us: None,
    partners: None,
    needs_second: false,
    is_a_run: false,
};
/// A workload of executor tasks.
const TASKS: Nature = Nature {
    has_tasks: true,
    ..PLAIN
};
/// A workload of executor tasks that are sometimes idle.
const IDLES: Nature = Nature {
    has_idle_time: true,
    ..TASKS
};
/// A workload of one CPU.
const ALONE: Nature = Nature {
    is_alone: true,
    has_idle_time: true,
    partners: Some(0),
    ..PLAIN
};
/// A workload of a program on Linux.
const LINUX: Nature = Nature {
    is_linux: true,
    ..PLAIN
};

impl Workload {
    /// Whether the workload belongs to a program on Linux, and not to Rouse's own guest.
    #[must_use]
    pub const fn is_linux(self) -> bool {
        self.nature().is_linux
    }

    /// Whether the workload runs on the executor.
    #[must_use]
    pub const fn has_tasks(self) -> bool {
        self.nature().has_tasks
    }

    /// Returns the wake-ups in one sample: a round trip has two, and three tasks wait for each other to make a
    /// frame.
    #[must_use]
    pub const fn wakeups(self) -> u32 {
        self.nature().wakeups
    }

    /// Whether the guest marks where samples begin and end, so that a plugin of the emulator can
    /// find the path within a sample.
    #[must_use]
    pub const fn is_marked(self) -> bool {
        self.nature().is_marked
    }

    /// Whether one CPU runs the workload by itself: nothing is woken or interrupted.
    #[must_use]
    pub const fn is_alone(self) -> bool {
        self.nature().is_alone
    }

    /// Whether a sample may contain time in which every CPU is idle: the sample waits for a time, for a
    /// device, or for tasks that wait for these. A counter of instructions skips such time.
    #[must_use]
    pub const fn has_idle_time(self) -> bool {
        self.nature().has_idle_time
    }

    /// Whether the median does not show wake-ups: most samples wait for none, and a few wait
    /// for many. The mean shows the workload's cost, because it includes every sample's time.
    #[must_use]
    pub const fn median_hides_wake_ups(self) -> bool {
        self.nature().median_hides_wake_ups
    }

    /// Returns how many wake-ups each block makes before its first sample. Governors start afresh with each
    /// block, and learn from eight or nine waits; a block has too few frames to use these waits as samples.
    #[must_use]
    pub const fn learning(self) -> u32 {
        self.nature().learning
    }

    /// Returns how many wake-ups each block makes besides its samples: some before the samples and, if other CPUs take
    /// part, one after them, which keeps these CPUs' final work out of the samples.
    #[must_use]
    pub const fn unrecorded(self) -> u32 {
        self.learning() + if self.is_alone() { 0 } else { 1 }
    }

    /// Returns the factor by which this workload's cells may take longer than other cells by default: each sample
    /// has so many wake-ups that there would otherwise be too few samples.
    #[must_use]
    pub const fn times_as_long(self) -> u32 {
        self.nature().times_as_long
    }

    /// Whether a sample is a whole run of a program. One such sample is enough.
    #[must_use]
    pub const fn is_a_run(self) -> bool {
        self.nature().is_a_run
    }

    /// Whether the workload has groups of tasks.
    #[must_use]
    pub const fn has_groups(self) -> bool {
        self.nature().has_groups
    }

    /// Returns the default period, in microseconds; `None` without a period.
    #[must_use]
    pub const fn period_us(self) -> Option<u32> {
        self.nature().period_us
    }

    /// Returns how many CPUs take part besides the measuring CPU, if the shape does not decide that; `None` means
    /// all.
    pub(crate) const fn partner_count(self) -> Option<usize> {
        self.nature().partners
    }

    /// Whether the workload needs two CPUs, if nothing else in the cell decides that.
    pub(crate) const fn needs_second_cpu(self) -> bool {
        self.nature().needs_second
    }
}
