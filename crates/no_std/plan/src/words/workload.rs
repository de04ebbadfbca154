// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workloads.

use core::fmt;

use super::{Word, words};

words! {
    /// Operation that is measured.
    Workload {
        /// One CPU interrupts another and waits until its handler has run.
        Ipi = "ipi",
        /// Two CPUs wake each other.
        Pingpong = "pingpong",
        /// Function calls to other CPUs, one after another.
        Ipistorm = "ipistorm",
        /// Groups of tasks that send to groups of tasks.
        Messaging = "messaging",
        /// Pairs of tasks that pass a token back and forth.
        Pipe = "pipe",
        /// A task asks a supervisor on another CPU and waits for its answer.
        Notify = "notify",
        /// Requests to a device that answers after a while.
        Io = "io",
        /// Periodic wake-ups against a deadline.
        Timer = "timer",
        /// Mostly nothing.
        Idle = "idle",
        /// Frames of a display, each made by three tasks in a row, by a deadline.
        Frames = "frames",
        /// One CPU waits for the event stream, and for nothing else.
        Stream = "stream",
        /// One CPU polls up to its limit, and nothing wakes it.
        Overshoot = "overshoot",
        /// On Linux: two threads pass a byte back and forth by pipes.
        LinuxPipe = "linux-pipe",
        /// On Linux: two threads wake each other by futexes.
        LinuxFutex = "linux-futex",
        /// On Linux: two threads wake each other by counters of events.
        LinuxEventfd = "linux-eventfd",
        /// On Linux: a thread has every other CPU, all of which run, make a barrier.
        LinuxMembarrier = "linux-membarrier",
        /// On Linux: a thread makes system calls that a thread on another CPU answers.
        LinuxSeccompNotify = "linux-seccomp-notify",
        /// On Linux: groups of threads that send to groups of threads, by sockets. A sample is a round, in which each
        /// sender sends to each receiver of its group.
        LinuxMessaging = "linux-messaging",
        /// On Linux: periodic wake-ups of a thread against a deadline.
        LinuxTimer = "linux-timer",
        /// On Linux: mostly nothing.
        LinuxIdle = "linux-idle",
    }
}

impl Workload {
    /// Whether it is a program's on Linux, and not one of Rouse's own guest.
    #[must_use]
    pub const fn is_linux(self) -> bool {
        match self {
            Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => true,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Messaging
            | Self::Pipe
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Frames
            | Self::Stream
            | Self::Overshoot => false,
        }
    }

    /// Whether it runs on the executor.
    #[must_use]
    pub const fn has_tasks(self) -> bool {
        match self {
            Self::Ipi
            | Self::Pingpong
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => false,
            Self::Ipistorm
            | Self::Messaging
            | Self::Pipe
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Frames => true,
        }
    }

    /// Wake-ups that one sample has: a round trip is two, and of a frame three tasks wait for
    /// each other.
    #[must_use]
    pub const fn wakeups(self) -> u32 {
        match self {
            Self::Pingpong
            | Self::Pipe
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxSeccompNotify => 2,
            Self::Frames => 3,
            Self::Ipi
            | Self::Ipistorm
            | Self::Messaging
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxMembarrier
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => 1,
        }
    }

    /// Whether a plugin of the emulator can find the path within a sample: the guest marks
    /// where samples begin and end.
    #[must_use]
    pub const fn is_marked(self) -> bool {
        match self {
            Self::Ipi | Self::Pingpong | Self::Ipistorm => true,
            Self::Messaging
            | Self::Notify
            | Self::Frames
            | Self::Pipe
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => false,
        }
    }

    /// Whether one CPU does it by itself: nothing is woken or interrupted.
    #[must_use]
    pub const fn is_alone(self) -> bool {
        match self {
            Self::Stream | Self::Overshoot => true,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Messaging
            | Self::Pipe
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Frames
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => false,
        }
    }

    /// Whether a sample may contain time in which every CPU is idle: it waits for a time,
    /// for a device or for tasks that do. A counter of instructions skips such time.
    #[must_use]
    pub const fn has_idle_time(self) -> bool {
        match self {
            Self::Messaging
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Frames
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxTimer
            | Self::LinuxIdle => true,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Pipe
            | Self::Notify
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging => false,
        }
    }

    /// Whether its median does not show wake-ups: most of its samples wait for none, and a few
    /// for many. Its cost is in the mean, which includes the time of all.
    #[must_use]
    pub const fn has_blind_median(self) -> bool {
        match self {
            Self::Messaging => true,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Pipe
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Frames
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => false,
        }
    }

    /// How many wake-ups each block makes before its first sample. Governors begin again with
    /// each block, and look at eight waits or nine; frames are too few for these to be samples.
    #[must_use]
    pub const fn learning(self) -> u32 {
        match self {
            Self::Frames => 10,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Messaging
            | Self::Pipe
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => 0,
        }
    }

    /// How many wake-ups each block makes besides its samples: those before them, and, where
    /// others take part, one after them, to keep what they do at the end out of the samples.
    #[must_use]
    pub const fn unrecorded(self) -> u32 {
        self.learning() + if self.is_alone() { 0 } else { 1 }
    }

    /// How many times as long as others a cell of it may take by default: a sample
    /// has so many wake-ups that there would be too few samples.
    #[must_use]
    pub const fn times_as_long(self) -> u32 {
        match self {
            Self::LinuxMessaging => 30,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Messaging
            | Self::Pipe
            | Self::Notify
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Frames
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxTimer
            | Self::LinuxIdle => 1,
        }
    }

    /// Whether it has groups of tasks.
    #[must_use]
    pub const fn has_groups(self) -> bool {
        match self {
            Self::Messaging | Self::Pipe | Self::Notify => true,
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Io
            | Self::Timer
            | Self::Idle
            | Self::Frames
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging
            | Self::LinuxTimer
            | Self::LinuxIdle => false,
        }
    }

    /// Its default period, microseconds; `None` without a period.
    #[must_use]
    pub const fn period_us(self) -> Option<u32> {
        match self {
            Self::Timer | Self::LinuxTimer => Some(1000),
            Self::Idle | Self::LinuxIdle => Some(10_000),
            Self::Frames => Some(16_667),
            Self::Ipi
            | Self::Pingpong
            | Self::Ipistorm
            | Self::Messaging
            | Self::Pipe
            | Self::Notify
            | Self::Io
            | Self::Stream
            | Self::Overshoot
            | Self::LinuxPipe
            | Self::LinuxFutex
            | Self::LinuxEventfd
            | Self::LinuxMembarrier
            | Self::LinuxSeccompNotify
            | Self::LinuxMessaging => None,
        }
    }
}
