// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests completion in a real shell, with the rules that `dev completions` prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use plan::{DIMENSIONS, Info, Under, Word};

fn rules(shell: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask-dev"))
        .args(["dev", "completions", shell])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the words into which bash splits `line` before it completes the last one (bash(1), COMP_WORDBREAKS).
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for token in line.split(' ') {
        let mut word = String::new();
        for c in token.chars() {
            if ":=".contains(c) {
                words.extend([std::mem::take(&mut word), c.to_string()]);
            } else {
                word.push(c);
            }
        }
        words.push(word);
    }
    let last = words.pop().unwrap();
    words.retain(|word| !word.is_empty());
    words.into_iter().chain([last]).collect()
}

/// Returns the lines to which bash completes each of `lines`; `None` without bash.
fn completed(lines: &[String]) -> Option<Vec<Vec<String>>> {
    let mut script = rules("bash");
    for line in lines {
        let words = split(line);
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let last = words.len() - 1;
        script += &format!(
            "\nCOMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({}); COMP_CWORD={last}\n\
             _xtask_lists xtask {} {} 2>/dev/null\nprintf '%s\\t' \"${{COMPREPLY[@]}}\"; echo\n",
            quoted.join(" "),
            quoted[last],
            quoted[last - 1],
        );
    }
    let output = Command::new("bash")
        .args(["--norc", "-c", &script])
        .output()
        .ok()?;
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.lines().count(), lines.len(), "{told}");
    let whole = told.lines().zip(lines).map(|(offered, line)| {
        let words = split(line);
        let begin = line.strip_suffix(words.last().unwrap()).unwrap();
        let offered = offered.split('\t').filter(|word| !word.is_empty());
        offered.map(|word| format!("{begin}{word}")).collect()
    });
    Some(whole.collect())
}

/// Checks that bash completes the first line of each case to the second.
fn offers(cases: &[(String, String)]) {
    let lines: Vec<String> = cases.iter().map(|(line, _)| line.clone()).collect();
    let Some(completed) = completed(&lines) else {
        return;
    };
    for ((line, whole), offered) in cases.iter().zip(completed) {
        assert!(offered.contains(whole), "{line}: {whole}, not {offered:?}");
    }
}

#[test]
fn bash_offers_each_word_that_an_option_takes() {
    let mut cases = Vec::new();
    for info in DIMENSIONS.iter().filter(|info| !info.words.is_empty()) {
        for word in info.words.iter().chain(&["all"]) {
            let key = info.key;
            // The user has typed all of the word except its last letter.
            let begin = &word[..word.len() - 1];
            let whole = format!("xtask run --{key} {word}");
            cases.push((format!("xtask run --{key} {begin}"), whole));
            let after = format!("xtask run --{key}={},", info.words[0]);
            cases.push((format!("{after}{begin}"), format!("{after}{word}")));
        }
    }
    for under in Under::NAMES {
        cases.push((
            "xtask run --under none,".into(),
            format!("xtask run --under none,{under}"),
        ));
    }
    assert!(
        Info::find("wait").is_some() && cases.len() > 150,
        "{}",
        cases.len()
    );
    offers(&cases);
}

#[test]
fn bash_offers_verbs_options_and_names() {
    let cases = [
        ("xtask comp", "xtask compare"),
        ("xtask run --form", "xtask run --format"),
        ("xtask report --format m", "xtask report --format mail"),
        ("xtask run --board grav", "xtask run --board graviton3"),
        ("xtask run --cpu cortex-a7", "xtask run --cpu cortex-a72"),
        (
            "xtask run --preset grav",
            "xtask run --preset graviton-like",
        ),
        ("xtask run --stages o", "xtask run --stages off"),
        (
            "xtask run --wait governor:te",
            "xtask run --wait governor:teo",
        ),
        (
            "xtask run --wait=wfi,governor:te",
            "xtask run --wait=wfi,governor:teo",
        ),
        ("xtask experiment who", "xtask experiment who-pays"),
        ("xtask dev so", "xtask dev soak"),
        ("xtask dev soak --board vir", "xtask dev soak --board virt"),
    ];
    offers(&cases.map(|(line, whole)| (line.to_owned(), whole.to_owned())));
}

#[test]
fn zsh_offers_each_word_of_a_list() {
    let cases = [
        ("xtask comp", "compare"),
        ("xtask run --wait w", "wfe wfe-sev wfet wfi"),
        ("xtask run --wait=spin,wf", "wfe wfe-sev wfet wfi"),
        (
            "xtask run --wait governor:men",
            "governor:menu governor:menu-6.14 governor:menu-6.2",
        ),
        ("xtask run --under none,xe", "xen"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules");
    fs::write(&file, rules("zsh")).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/completions");
    let output = Command::new("zsh")
        .arg("-f")
        .arg(here.join("capture.zsh"))
        .args([&file, &here.join("inner.zsh")])
        .args(cases.map(|(line, _)| line))
        .output();
    let Ok(output) = output else {
        return;
    };
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.lines().count(), cases.len(), "{told}");
    for ((line, expected), offered) in cases.iter().zip(told.lines()) {
        assert_eq!(offered.trim(), *expected, "{line}");
    }
}

#[test]
fn the_rules_of_other_shells_have_the_words() {
    for (shell, word) in [
        ("zsh", ":LIST:_sequence compadd - busy spin"),
        ("fish", "-l under"),
        ("elvish", "--under"),
        ("powershell", "--under"),
    ] {
        let rules = rules(shell);
        assert!(rules.contains(word), "{shell}");
    }
    // A list of words does not contain files.
    assert!(!rules("zsh").contains(":LIST:_default"));
}
