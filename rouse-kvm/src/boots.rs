// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots that a command line requests on a host, one guest after another.

use std::collections::BTreeSet;

use plan::{Atomics, Choice, Given, Machine, PREFIX, Plan, Under};

use crate::boot;
use crate::command_line::{Metric, Words};
use crate::failure::Failure;
use crate::host::Host;

/// A boot of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// The level below the guest, with trap and knobs, as text for the user.
    pub title: String,
    /// The atomics of the guest's image.
    pub image: Atomics,
    /// Arguments of the process that runs the boot.
    pub words: Vec<String>,
}

/// The boots that a command line requests.
#[derive(Debug)]
pub struct Job {
    /// The level under which the guests run.
    pub under: Under,
    /// The boots of one run.
    pub boots: Vec<Boot>,
}

impl Job {
    /// Builds the boots that `words` request on `host`.
    ///
    /// # Errors
    /// The message names the request that `host` can't fulfil.
    pub fn new(words: &Words, host: &Host) -> Result<Self, Failure> {
        let mut plan = words.plan.plan().map_err(Failure::bad_input)?;
        words.plan.check_used(&plan).map_err(Failure::bad_input)?;
        plan.cycles = words.metric == Metric::Cycles;
        let under = words.under.map_or(host.under, plan::Under::from);
        let machine = Machine {
            cpus: words.cpus as usize,
            // The guest finds out whether the CPUs have these features.
            wfxt: true,
            lse: true,
            ecv: true,
            linux: false,
            frequency: host.frequency,
            under,
            given: None,
            cpus_at_once: true,
            caches: true,
            event_loses_irq: false,
            gicv2: false,
        };
        let choices = plan.choices(false);
        let mut boots = Vec::new();
        for given in request::settings_of_boots(&plan, machine, Some(host.trap)) {
            let machine = Machine {
                given: Some(given),
                ..machine
            };
            if !runs_any_cell(&plan, &machine) {
                continue;
            }
            let of = |&choice: &Choice| build_boot(words, host, &plan, under, given, choice);
            boots.extend(choices.iter().map(of));
        }
        if boots.is_empty() {
            return Err(Failure::bad_input(why_nothing_measured(
                &plan, machine, host,
            )));
        }
        Ok(Self { under, boots })
    }
}

/// Returns whether a boot on `machine` runs at least one cell of the plan.
fn runs_any_cell(plan: &Plan, machine: &Machine) -> bool {
    plan.cells(machine)
        .any(|cell| cell.skip_reason(machine).is_none())
}

/// Returns the reason why no cell of a plan can be measured.
fn why_nothing_measured(plan: &Plan, mut machine: Machine, host: &Host) -> String {
    machine.given = Some(Given {
        trap: host.trap,
        host_poll_us: 0,
        alone: true,
    });
    let reasons: BTreeSet<String> = plan
        .cells(&machine)
        .filter_map(|cell| Some(cell.skip_reason(&machine)?.to_string()))
        .collect();
    let mut why = reasons.into_iter().collect::<Vec<_>>().join("; ");
    if why.is_empty() {
        why = "name fewer options, or other words".into();
    }
    format!(
        "nothing of this can run under {} here: {why}",
        machine.under
    )
}

/// Builds one boot.
fn build_boot(
    words: &Words,
    host: &Host,
    plan: &Plan,
    under: Under,
    given: Given,
    choice: Choice,
) -> Boot {
    let mut title = format!("under {under}, trap {}", given.trap);
    if given.host_poll_us != 0 {
        title += &format!(", host polls {} us", given.host_poll_us);
    }
    title += &choice.to_string();
    let image = match choice.atomics {
        Some(Atomics::Llsc) => Atomics::Llsc,
        Some(Atomics::Lse) | None if host.lse => Atomics::Lse,
        Some(Atomics::Lse) | None => Atomics::Llsc,
    };
    let mut boot = vec![
        boot::WORD.to_owned(),
        "--with-parent".into(),
        format!("--cpus={}", words.cpus),
        format!("--memory={}", words.memory),
        format!("--timeout={}", words.timeout),
        format!("--rest={}", words.rest),
        format!("--host-poll-us={}", given.host_poll_us),
    ];
    boot.extend(words.pin.as_ref().map(|pins| {
        let pins: Vec<String> = pins.iter().map(ToString::to_string).collect();
        format!("--pin={}", pins.join(","))
    }));
    boot.extend(words.under.map(|_| format!("--mode={}", mode_word(under))));
    boot.extend((words.metric == Metric::Cycles).then(|| "--pmu".into()));
    // The process reads the image from standard input.
    boot.push("-".into());
    let arguments = [
        plan.chosen(choice).to_string(),
        format!("{PREFIX}under={under}"),
        given.to_string(),
        words.append.clone().unwrap_or_default(),
    ];
    boot.push(arguments.join(" ").trim().to_owned());
    Boot {
        title,
        image,
        words: boot,
    }
}

/// Returns the monitor's word for the mode of KVM that `under` names.
fn mode_word(under: Under) -> &'static str {
    match under.kvm_mode() {
        Some(mode) if !mode.is_empty() => mode,
        // The name without a mode means VHE, which Linux chooses wherever it can.
        _ => "vhe",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use plan::Trap;

    fn host(trap: Trap) -> Host {
        Host {
            name: "board".into(),
            under: Under::Kvm,
            trap,
            lse: true,
            frequency: 1_000_000_000,
        }
    }

    fn job(line: &str, trap: Trap) -> Result<Job, Failure> {
        let words = ["rouse-kvm"]
            .into_iter()
            .chain(line.split_ascii_whitespace());
        Job::new(&Words::try_parse_from(words).unwrap(), &host(trap))
    }

    #[test]
    fn one_boot_has_all_that_its_trap_allows() {
        let job = job("--quick", Trap::Wfi).unwrap();
        let [boot] = job.boots.as_slice() else {
            panic!("{job:?}");
        };
        assert_eq!(boot.title, "under kvm, trap wfi");
        assert_eq!(boot.image, Atomics::Lse);
        let arguments = boot.words.last().unwrap();
        for word in [
            "rouse.under=kvm",
            "rouse.given-trap=wfi",
            "rouse.given-alone",
        ] {
            assert!(arguments.contains(word), "{arguments}");
        }
        // Besides the trapped WFI, the guest also runs the wait `busy`, in which nothing could trap.
        let told = plan::Arguments::parse(arguments).unwrap();
        assert!(told.given_alone);
    }

    #[test]
    fn knobs_that_are_turned_at_a_boot_take_boots() {
        let boots = |line, trap| job(line, trap).unwrap().boots.len();
        assert_eq!(
            boots(
                "--wait wfi --host-poll-us 0,50 --host-poll adaptive",
                Trap::Wfi
            ),
            2
        );
        let unused = "--wait busy --host-poll-us 0,50 --host-poll adaptive";
        let why = job(unused, Trap::Wfi).unwrap_err().why;
        assert!(why.contains("no cell of this plan uses it"), "{why}");
        assert_eq!(boots("--wait wfi --atomics all", Trap::Wfi), 2);
    }

    #[test]
    fn a_trap_that_only_a_boot_of_the_host_can_give_is_refused_with_that() {
        let why = job("--workload pingpong --wait wfi --trap none", Trap::Wfi).unwrap_err();
        assert_eq!(why.status, 2);
        assert!(why.why.contains("kvm-arm.wfi_trap_policy"), "{}", why.why);
        let why = job("--deliver direct", Trap::Wfi).unwrap_err().why;
        assert!(why.contains("deliver inject"), "{why}");
    }

    #[test]
    fn cycles_need_a_pmu_and_a_mode_is_asked_for() {
        let job = job("--metric cycles --under kvm-nvhe --pin 2,3", Trap::None).unwrap();
        for word in ["--pmu", "--mode=nvhe", "--pin=2,3"] {
            assert!(job.boots[0].words.iter().any(|has| has == word), "{word}");
        }
        assert!(job.boots[0].words.last().unwrap().contains("rouse.cycles"));
    }
}
