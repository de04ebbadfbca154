// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files with patches: a diff, a mail, or a series in a mailbox. Git decodes the mails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use shell::failure::{BadInput, bad_input};
use shell::partial_files::Scratch;
use shell::places;

use crate::loose::unquote;

/// A patch that was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The file's name, with the mail's number if the file has several mails.
    pub name: String,
    pub text: String,
}

/// Reads the patches in a file, and returns them in the order in which they apply.
pub fn read_patches(path: &Path) -> Result<Vec<Patch>> {
    let shown = places::shown(path);
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => bad_input!(
            "--patch {shown}: can't be read ({error}); name a file that `git format-patch` or a mail program wrote"
        ),
    };
    let texts = match is_mailbox(&bytes) {
        true => read_mails(path)?,
        false => vec![String::from_utf8_lossy(&bytes).into_owned()],
    };
    let several = texts.len() > 1;
    let name = |n: usize| match several {
        true => format!("{shown}, mail {}", n + 1),
        false => shown.clone(),
    };
    let patches = texts.into_iter().enumerate();
    Ok(patches
        .map(|(n, text)| Patch {
            name: name(n),
            text,
        })
        .collect())
}

/// Whether the file has mails in the form that git writes and reads. Such a file begins with an envelope or with header
/// fields (RFC 5322).
fn is_mailbox(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 16)]);
    let first = text.lines().next().unwrap_or_default();
    let field = |line: &str| {
        line.split_once(':').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    };
    // A web page of a mail archive begins with text that is not a header field, or has blank lines between the fields.
    let envelope = first.starts_with("From ") && first.split(' ').count() > 3;
    let header: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    let fields = &header[usize::from(envelope).min(header.len())..];
    let is_field = |line: &&str| field(line) || line.starts_with([' ', '\t']);
    (envelope || field(first)) && fields.len() >= 3 && fields.iter().all(is_field)
}

/// Splits and decodes the mails. Puts the mails of a series in the order of their numbers.
fn read_mails(path: &Path) -> Result<Vec<String>> {
    let place = Scratch::new()?;
    let run = |arguments: &[&str], input: Option<&Path>| -> Result<Vec<u8>> {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(place.path());
        match input {
            Some(input) => git.stdin(fs::File::open(input)?),
            None => git.stdin(Stdio::null()),
        };
        let output = git.output().context(BadInput::context(
            "git can't be started, and it reads mails; install it",
        ))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bad_input!(
                "--patch {}: git can't read it as mails ({})",
                places::shown(path),
                why.lines().next().unwrap_or_default()
            );
        }
        Ok(output.stdout)
    };
    let file = std::path::absolute(path)?;
    let file = file.to_str().context("a path that is no text")?;
    run(&["mailsplit", "-b", "-o.", file], None)?;
    let mut split: Vec<PathBuf> = fs::read_dir(place.path())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    split.sort();
    let mut mails = Vec::new();
    for mail in split {
        let header = run(&["mailinfo", "-k", "message", "patch"], Some(&mail))?;
        let header = String::from_utf8_lossy(&header).into_owned();
        let read = |name| fs::read(place.path().join(name));
        let (message, patch) = (read("message")?, read("patch")?);
        let subject = header
            .lines()
            .find_map(|line| line.strip_prefix("Subject: "));
        let number = series_number(subject.unwrap_or_default());
        // If a reply quotes a diff, git takes the diff for a part of the message.
        let text = String::from_utf8_lossy(&[message, patch].concat()).into_owned();
        if text.lines().any(|line| {
            unquote(line).1.starts_with("diff --git ") || unquote(line).1.starts_with("+++ ")
        }) {
            let is_answer = subject.unwrap_or_default().starts_with("Re:");
            mails.push((is_answer, number, text));
        }
    }
    // Replies quote patches, and the file also has the mails with these patches.
    if mails.iter().any(|(is_answer, ..)| !is_answer) {
        mails.retain(|(is_answer, ..)| !is_answer);
    }
    let mut numbers: Vec<u32> = mails.iter().filter_map(|(_, number, _)| *number).collect();
    numbers.sort_unstable();
    if let Some(twice) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        bad_input!(
            "--patch {}: two mails have number {} of a series; leave one version of it",
            places::shown(path),
            twice[0]
        );
    }
    if mails.is_empty() {
        bad_input!(
            "--patch {}: no mail has a diff in its text; save the patch itself",
            places::shown(path)
        );
    }
    // Sorting is stable, so mails without a number keep their places.
    mails.sort_by_key(|(_, number, _)| *number);
    Ok(mails.into_iter().map(|(.., text)| text).collect())
}

/// Returns the number of a patch in its series, such as 2 for `[PATCH v3 2/4]`.
fn series_number(subject: &str) -> Option<u32> {
    let tags = subject
        .split('[')
        .skip(1)
        .filter_map(|rest| rest.split(']').next());
    let mut words = tags
        .flat_map(|tag| tag.split(' '))
        .filter_map(|word| word.split_once('/'));
    words.find_map(|(number, of)| of.parse::<u32>().ok().and_then(|_| number.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(subject: &str, file: &str) -> String {
        format!(
            "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\n\
             Date: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: {subject}\n\
             Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: quoted-printable\n\nText.\n---\n\
             diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-a =3D 1\n+a =3D 2\n-- =\n\n2.39\n\n"
        )
    }

    #[test]
    fn a_mailbox_is_a_series_in_order_without_its_cover_letter() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("mbox");
        let cover = mail("[PATCH v2 0/2] Cover", "c")
            .replace("+++", "")
            .replace("diff --git", "");
        let text = [
            mail("[PATCH v2 2/2] B", "b"),
            cover,
            mail("[PATCH v2 1/2] A", "a"),
        ];
        fs::write(&path, text.concat()).unwrap();
        let patches = read_patches(&path).unwrap();
        assert_eq!(patches.len(), 2, "{patches:?}");
        assert!(patches[0].text.contains("+++ b/a") && patches[1].text.contains("+++ b/b"));
        assert!(
            patches[0].text.contains("-a = 1\n+a = 2"),
            "{}",
            patches[0].text
        );
        assert!(patches[0].name.ends_with("mbox, mail 1"));
    }

    #[test]
    fn answers_and_letters_without_a_diff_are_no_patches() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("mbox");
        let answer = mail("Re: [PATCH 1/1] A", "a").replace("diff --git", "> diff --git");
        fs::write(&path, mail("[PATCH 1/1] A", "a") + &answer).unwrap();
        assert_eq!(read_patches(&path).unwrap().len(), 1);
        let letter = mail("[PATCH 0/1] A", "a")
            .replace("+++", "")
            .replace("diff --git", "");
        fs::write(&path, letter).unwrap();
        let error = read_patches(&path).unwrap_err().to_string();
        assert!(error.contains("no mail has a diff"), "{error}");
        fs::write(
            &path,
            mail("[PATCH 1/2] A", "a") + &mail("[PATCH v2 1/2] A", "a"),
        )
        .unwrap();
        let error = read_patches(&path).unwrap_err().to_string();
        assert!(error.contains("two mails have number 1"), "{error}");
    }

    #[test]
    fn a_diff_and_an_archive_s_page_are_taken_as_they_are() {
        for text in [
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n",
            "[PATCH] A subject\n\nFrom: A\nDate: B\n\n\n--- a/x\n+++ b/x\n",
            "From 0 of nothing\n\n--- a/x\n",
        ] {
            assert!(!is_mailbox(text.as_bytes()), "{text}");
        }
        assert_eq!(series_number("[PATCH v3 2/4] a/b"), Some(2));
        assert_eq!(series_number("[RFC][PATCH net/next 2/3] a"), Some(2));
        assert_eq!(series_number("[PATCH] a 1/2"), None);
    }

    #[test]
    fn a_file_that_is_missing_is_bad_input() {
        let error = read_patches(Path::new("/nonexistent.patch")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("--patch /nonexistent.patch: can't be read")
        );
    }
}
