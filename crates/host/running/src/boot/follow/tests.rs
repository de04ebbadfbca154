// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows boots in which a shell script replaces the emulator.

use abi::Ended;

use wire::Source;

use super::*;
use guests::symbols::Symbols;

/// Returns the outcome of a script, and the log. The limit without progress is 300 ms.
fn outcome(script: &str) -> (Outcome, String) {
    boot_within(script, Duration::from_millis(300), None)
}

fn boot_within(
    script: &str,
    patience: Duration,
    altogether: Option<Duration>,
) -> (Outcome, String) {
    boot_of(Console::default(), script, patience, altogether)
}

/// Like [`outcome`], for a foreign guest on a machine where no software of ours is below the guest.
fn foreign(script: &str) -> (Outcome, String) {
    let console = Console::new(Symbols::default(), Source::Foreign);
    boot_of(console, script, Duration::from_millis(300), None)
}

fn boot_of(
    console: Console,
    script: &str,
    patience: Duration,
    altogether: Option<Duration>,
) -> (Outcome, String) {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let place = tempfile::tempdir().unwrap();
    let limits = Limits {
        without_progress: patience,
        altogether,
    };
    let mut log = Vec::new();
    let watch = watch(place.path(), limits);
    let outcome = follow(command, console, &mut log, watch).unwrap();
    (outcome, String::from_utf8(log).unwrap())
}

fn watch(place: &Path, limits: Limits) -> Watch<'_> {
    Watch {
        writes: false,
        refuses_off: None,
        place,
        limits,
        disturb: None,
        show: Show::Nothing,
        progress: Progress::new("test".into()),
        keep: true,
    }
}

fn is_hang(ending: &Ending) -> bool {
    matches!(ending, Ending::Hang(stall) if stall.own >= Duration::from_millis(300))
}

#[test]
fn every_ending_is_told_from_the_others() {
    let ended = |script| outcome(script).0.ending;
    assert_eq!(ended("echo 'rouse: exit status 0'"), Ending::Status(0));
    assert_eq!(
        ended("echo 'rouse: exit status 3'; exit 1"),
        Ending::Status(3)
    );
    let off = ended("echo 'rouse: guest ended: off by vCPU 0 (MPIDR 0x0)'");
    assert!(matches!(
        off,
        Ending::Guest(Ended {
            how: abi::End::Off,
            ..
        })
    ));
    assert_eq!(ended("echo x; echo bad >&2"), Ending::Stopped("bad".into()));
    assert_eq!(ended("echo 'rouse: panic: boo'"), Ending::Crash);
    let last = "echo 'a.cc:1: fatal: bad' >&2; echo 'b.cc:2: warn: x' >&2; echo >&2; echo 'Memory Usage: 1' >&2";
    assert_eq!(ended(last), Ending::Stopped("a.cc:1: fatal: bad".into()));
    let refused = Ending::Refused("why".into());
    assert_eq!(ended("echo 'rouse: refused: why'; exec sleep 60"), refused);
    assert_eq!(ended("echo 'rouse: refused: why'"), refused);
}

#[test]
fn what_a_foreign_guest_prints_is_no_ending_and_marks_no_line_of_the_log() {
    for line in [
        "rouse: exit status 0",
        "rouse: panic: boo",
        "rouse: refused: why",
        "ok 1 - does not panic: empty list",
    ] {
        let (outcome, log) = foreign(&format!("echo '{line}'; exec sleep 60"));
        assert!(is_hang(&outcome.ending), "{line}: {:?}", outcome.ending);
        assert_eq!(log, line.replace("rouse: ", "rouse:\\ ") + "\n");
        let (outcome, _) = foreign(&format!("echo '{line}'; echo; echo bad >&2"));
        assert_eq!(outcome.ending, Ending::Stopped("bad".into()), "{line}");
    }
}

#[test]
fn a_line_that_has_begun_is_logged_where_its_guest_hangs_and_goes_on_otherwise() {
    let (outcome, log) = foreign("printf 'rouse: no end: prompt> '; exec sleep 60");
    assert!(is_hang(&outcome.ending));
    assert_eq!(log, "rouse:\\ no end: prompt> \n");
    assert!(outcome.console.hint().contains("no end: prompt>`"));
    let script = "printf 'a\\nro'; sleep 0.2; printf 'use: b'; sleep 0.2; echo c; printf d";
    let (outcome, log) = boot_of(
        Console::new(Symbols::default(), Source::Foreign),
        script,
        Duration::from_secs(60),
        None,
    );
    assert_eq!(log, "a\nrouse:\\ bc\nd\n");
    assert_eq!(outcome.ending, Ending::Stopped(String::new()));
}

#[test]
fn an_emulator_that_dies_says_how_and_why() {
    let (outcome, _) = outcome("echo x; echo one >&2; echo two >&2; kill -SEGV $$");
    let died = Ending::Died("was killed by SIGSEGV".into(), "two".into());
    assert_eq!(outcome.ending, died);
    assert_eq!(outcome.said, ["one", "two"]);
    let ended = boot_within("echo bad option >&2; exit 1", Duration::from_secs(60), None);
    let died = Ending::Died("ended with status 1".into(), "bad option".into());
    assert_eq!(ended.0.ending, died);
}

#[test]
fn who_makes_no_progress_hangs_asleep_or_not() {
    for script in [
        "exec sleep 60",
        "while :; do :; done",
        // An error message that is repeated is not progress.
        "while :; do echo \"retry $((n += 1))\"; done",
    ] {
        let ending = outcome(script).0.ending;
        assert!(is_hang(&ending), "{script}: {ending:?}");
    }
}

#[test]
fn progress_gives_it_more_time() {
    // Each step sleeps a quarter of the limit, and all steps together sleep more than the limit.
    let script =
        "for n in a b c d e f; do sleep 0.5; echo word-$n; done; echo 'rouse: exit status 0'";
    let (outcome, log) = boot_within(script, Duration::from_secs(2), None);
    assert_eq!(outcome.ending, Ending::Status(0), "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn who_is_stopped_does_not_hang() {
    // The process is stopped for three times the limit without progress.
    let script = "(while sleep 3 && kill -CONT $$; do :; done) >/dev/null 2>&1 & \
                  kill -STOP $$; echo 'rouse: exit status 0'";
    let (outcome, log) = boot_within(script, Duration::from_secs(1), None);
    assert_eq!(outcome.ending, Ending::Status(0), "{log}");
}

#[test]
fn the_time_for_all_of_it_ends_what_gets_on() {
    let (patience, all) = (Duration::from_secs(600), Some(Duration::ZERO));
    let (outcome, _) = boot_within("exec sleep 600", patience, all);
    assert_eq!(outcome.ending, Ending::OutOfTime);
}

#[test]
fn the_log_has_every_line_whatever_its_bytes() {
    let (_, log) = outcome(r"printf 'a\r\n\377b\nrest'");
    assert_eq!(log, "a\n\u{fffd}b\nrest\n");
}

#[test]
fn one_that_ended_by_itself_can_be_taken_once_more() {
    for script in [
        "echo 'rouse: guest ended: off by vCPU 0 (MPIDR 0x0)'; echo last",
        "echo x; echo bad >&2",
        "echo 'rouse: exit status 3'",
        "echo 'rouse: panic: boo'",
    ] {
        let (mut first, log) = outcome(script);
        let went = first.went.take().unwrap();
        let place = tempfile::tempdir().unwrap();
        let limits = Limits {
            without_progress: Duration::ZERO,
            altogether: Some(Duration::ZERO),
        };
        let mut other = Vec::new();
        let watch = watch(place.path(), limits);
        let second = follow_stored(went, Console::default(), &mut other, watch).unwrap();
        assert_eq!(log.as_bytes(), other);
        assert_eq!((first.ending, first.said), (second.ending, second.said));
        assert_eq!(first.console.crash, second.console.crash);
    }
}

#[test]
fn one_that_was_ended_or_died_can_not() {
    for script in [
        "exec sleep 60",
        "echo 'rouse: panic: boo'; exec sleep 60",
        "echo 'rouse: exit status 0'; exit 1",
        "echo 'rouse: exit status 0'; kill -SEGV $$",
    ] {
        assert_eq!(outcome(script).0.went, None, "{script}");
    }
}
