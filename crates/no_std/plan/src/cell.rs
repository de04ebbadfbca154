// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives a cell's properties from all its dimensions, and the reason why it can't run.

use core::fmt;

use wait::stream::Stream;

use crate::dimensions::{COUNT, DIMENSIONS, SLOWEST_FIRST};
use crate::{
    Cache, Cell, Completion, Deliver, Error, Hint, HostPoll, Info, Machine, Noise, Pairs, Place,
    Shape, Show, SkipReason, Trap, Workload,
};

impl Cell {
    /// Returns the cell for a guest without a hypervisor: nothing traps, nothing is injected, and
    /// no layer below polls.
    #[must_use]
    pub fn on_bare_machine(&self) -> Self {
        Self {
            trap: Trap::None,
            deliver: Deliver::Direct,
            host_poll_us: 0,
            host_poll: HostPoll::Fixed,
            hint: Hint::Silent,
            ..*self
        }
    }

    /// Returns the cell with the wait that it really has: Linux itself decides how it idles, so the
    /// consequences of other guests' waits do not apply to a cell on Linux.
    pub(crate) fn with_real_wait(mut self) -> Self {
        if self.workload.is_linux() {
            self.wait = Self::default().wait;
        }
        self
    }

    /// Whether the cell's CPUs may execute WFI. `overshoot` ends where other workloads would execute WFI;
    /// Linux idles with WFI.
    pub(crate) fn halts(&self) -> bool {
        if self.workload.is_linux() {
            return true;
        }
        let may = self.wait.governor().is_none() || self.states.halts_by_wfi();
        self.wait.halts() && may && self.workload != Workload::Overshoot
    }

    /// Whether the cell's idle states, if it has any, let a CPU poll.
    pub(crate) fn may_poll(&self) -> bool {
        self.wait.governor().is_none() || self.states.polls()
    }

    /// Whether any CPU of the cell reads the request word while it waits, so that a wake-up needs
    /// no interrupt.
    pub(crate) fn polls(&self) -> bool {
        let made_to = self.workload.has_tasks() && !self.idle_poll.is_empty();
        self.wait.polls() && (self.may_poll() || made_to)
    }

    /// Whether the cell's CPUs may execute WFE or WFET. Every poll of a governed CPU executes one of them.
    pub(crate) fn uses_events(&self) -> bool {
        self.wait.uses_events() && self.polls()
    }

    /// Whether the cell's CPUs may execute WFI, and WFI traps.
    pub(crate) fn traps_wfi(&self) -> bool {
        self.halts() && self.trap.wfi()
    }

    /// Whether EL2 polls before it halts.
    pub(crate) fn host_polls(&self) -> bool {
        self.traps_wfi() && self.host_poll_us != 0
    }

    /// Whether the guest's poll has a limit.
    pub(crate) fn has_limit(&self) -> bool {
        match self.workload {
            Workload::Stream => false,
            Workload::Overshoot => true,
            other => !other.is_linux() && self.wait.limited() && self.may_poll(),
        }
    }

    /// Returns the number of CPUs that take part besides the one that measures; `None` means all CPUs.
    const fn partner_count(&self) -> Option<usize> {
        match self.workload {
            Workload::Ipi => match self.shape {
                Shape::Dry | Shape::Itself => Some(0),
                Shape::One => Some(1),
                Shape::Broadcast => None,
            },
            other => other.partner_count(),
        }
    }

    /// Whether the cell runs between the two CPUs of [`Cell::pair`].
    #[must_use]
    pub fn has_pair(&self) -> bool {
        let wakes = !self.workload.has_tasks() && !self.workload.is_alone();
        wakes && self.partner_count() == Some(1)
    }

    /// Returns the pairs, among `cpus` CPUs, between which the cell can run. A round trip has a wake-up each way.
    #[must_use]
    pub fn pairs(&self, cpus: usize) -> Pairs {
        let directed = self.workload != Workload::Pingpong;
        Pairs { cpus, directed }
    }

    /// Returns how many of `cpus` CPUs take part besides the one that measures.
    #[must_use]
    pub fn members(&self, cpus: usize) -> usize {
        let others = cpus.saturating_sub(1);
        self.partner_count().unwrap_or(others).min(others)
    }

    /// Returns how many of `cpus` CPUs take no part and make noise.
    #[must_use]
    pub fn bystanders(&self, cpus: usize) -> usize {
        match self.noise {
            Noise::None => 0,
            Noise::Stream | Noise::Sgi | Noise::Tlbi => cpus.saturating_sub(1 + self.members(cpus)),
        }
    }

    /// Returns the reason why the CPUs outside the pair can't make the cell's noise.
    pub(crate) fn why_no_noise(&self, machine: &Machine) -> Option<SkipReason> {
        let noise = self.noise;
        match self.partner_count() {
            _ if noise == Noise::None => None,
            _ if !machine.cpus_at_once => Some(SkipReason::NoiseTakesTurns),
            None => Some(SkipReason::NoBystander),
            Some(partners) => {
                let cpus = 1 + partners + noise.min_cpus();
                (machine.cpus < cpus).then_some(SkipReason::FewBystanders { noise, cpus })
            }
        }
    }

    /// Whether requests arrive on schedule, whatever happened to earlier requests.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.workload == Workload::Notify && self.arrival_us != 0
    }

    /// Whether a sample may contain time in which every CPU is idle or waits for the next request.
    /// Such a sample is a time, even if the counter counts instructions.
    #[must_use]
    pub fn has_idle_time(&self) -> bool {
        self.workload.has_idle_time() || self.is_open()
    }

    /// Returns the pause requested with each wake-up, in microseconds: the part of the wake-up's time without work.
    pub(crate) fn pause_us(&self) -> u64 {
        let device = match self.workload {
            Workload::Io => self.mean_device_us(),
            _ => 0,
        };
        let [gap, device, service, arrival] =
            [self.gap_us, device, self.service_us, self.arrival_us].map(u64::from);
        // The CPU serves a request while it waits for the next request.
        gap + device + service.max(arrival)
    }

    /// Returns how long the device of `io` takes on average, in microseconds.
    fn mean_device_us(&self) -> u32 {
        let [reads, writes] = [100 - self.writes, self.writes].map(u64::from);
        let sum = reads * u64::from(self.device_us) + writes * u64::from(self.write_us);
        (sum / 100) as u32
    }

    /// Whether CPUs call functions on other CPUs.
    pub(crate) fn is_storm(&self) -> bool {
        self.workload == Workload::Ipistorm
    }

    /// Whether one of the callers is the only CPU in the mask.
    pub(crate) fn calls_itself_only(&self, cpus: usize) -> bool {
        let mut callers = self.cpulist.iter(cpus);
        callers.any(|me| self.mask.iter(cpus).all(|cpu| cpu == me))
    }

    /// Whether the cell needs a second CPU.
    pub(crate) fn needs_second_cpu(&self) -> bool {
        match self.workload {
            Workload::Ipi => self.shape.has_receiver(),
            Workload::Io => self.completion != Completion::SAME,
            other => other.needs_second_cpu(),
        }
    }

    /// Returns the nearest possible event-stream period, in microseconds, if the machine can't make
    /// one within a factor of four of the requested period.
    pub(crate) fn period_if_far(&self, machine: &Machine) -> Option<u32> {
        let stream = Stream::nearest(self.event_stream_us, machine.frequency, machine.ecv)?;
        let made = u128::from(stream.period()) * 1_000_000 / u128::from(machine.frequency.max(1));
        let asked = u128::from(self.event_stream_us);
        let near = made * 4 >= asked && made <= asked * 4;
        (!near).then_some(made.max(1) as u32)
    }

    /// Names the probes of the features that the machine has to model for the cell to show the
    /// intended effect of its wait.
    pub fn depends_on(&self) -> impl Iterator<Item = &'static str> {
        let wait = match self.wait.governor() {
            Some(_) if !self.polls() => &[],
            _ => self.wait.depends_on(self.workload),
        };
        let wait = wait.iter().copied();
        let caches = match self.cache {
            Cache::Warm => None,
            Cache::Cold => Some("caches_modelled"),
        };
        wait.chain(caches)
    }

    /// Returns why the cell does not run on `machine`; if there are several reasons, the one with
    /// precedence.
    #[must_use]
    pub fn skip_reason(&self, machine: &Machine) -> Option<SkipReason> {
        let mut first: Option<SkipReason> = None;
        for info in DIMENSIONS.iter().filter(|info| info.applies(self)) {
            let reason = info.contradicts(self, machine);
            if let Some(reason) = reason
                && first.is_none_or(|first| reason.takes_precedence(&first))
            {
                first = Some(reason);
            }
        }
        first
    }

    /// Returns the text of dimension `key`; `None` if no dimension is called `key`.
    #[must_use]
    pub fn word(&self, key: &str) -> Option<impl fmt::Display + '_> {
        Some(Info::find(key)?.text(self))
    }

    /// Sets dimension `key` from its printed text.
    ///
    /// # Errors
    /// Returns an [`Error`] if there is no such dimension, or `word` is wrong.
    pub fn set<'a>(&mut self, key: &'a str, word: &'a str) -> Result<(), Error<'a>> {
        let info = Info::find(key).ok_or_else(|| Error::unknown_key(key))?;
        info.set(self, word)
    }

    /// Returns the cell's sort key. Sorting by this key gives the order of a plan whose lists are themselves sorted,
    /// words in the order of their definition and numbers by value.
    #[must_use]
    pub fn rank(&self) -> [u64; COUNT] {
        SLOWEST_FIRST.map(|dimension| DIMENSIONS[dimension].rank(self))
    }

    /// Returns the applicable dimensions of the workloads on the executor.
    pub fn system(&self) -> impl Iterator<Item = &'static Info> {
        let system = DIMENSIONS.iter().filter(|info| info.place == Place::System);
        system.filter(|info| info.applies(self))
    }

    /// Names the cell, without numbers: `pingpong one wfi none inject ipi`.
    pub fn title(&self) -> impl fmt::Display + '_ {
        Title(self)
    }
}

struct Title<'c>(&'c Cell);

impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let cell = self.0;
        for info in DIMENSIONS.iter().filter(|info| info.names(cell)) {
            write!(f, "{separator}{}", info.text(cell))?;
            separator = " ";
        }
        Ok(())
    }
}

impl Info {
    /// Whether the one-line name of `cell` includes this dimension. The name leaves out what Linux
    /// decides by itself.
    #[must_use]
    pub fn names(&self, cell: &Cell) -> bool {
        match (self.place, self.show) {
            (Place::Always, Show::Title | Show::Column | Show::IfDifferent) => {
                !cell.workload.is_linux() || self.applies(cell)
            }
            (Place::Always, Show::Special(_) | Show::Sweep { .. }) => false,
            (Place::Unusual | Place::System, _) => false,
        }
    }
}
