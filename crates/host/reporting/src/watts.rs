// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--watts FILE`: the powers for the energy model, which replace the powers in the board's
//! file.

use std::path::Path;

use anyhow::Result;
use results::Watts;

use shell::failure::bad_input;
use shell::{files, mistake, places};

/// Reads the named file.
pub fn read(path: &Path) -> Result<Watts> {
    let shown = places::shown(path);
    let text = match files::read_text(path) {
        Ok(text) => text,
        Err(error) => bad_input!(
            "--watts: {shown} can't be read ({error}); name a file with source, run, poll, wfi and el2"
        ),
    };
    let watts: Watts = match toml::from_str(&text) {
        Ok(watts) => watts,
        Err(error) => bad_input!("--watts: {shown}: {}", mistake::told(&text, &error)),
    };
    if let Err(why) = watts.check() {
        bad_input!("--watts: {shown}: {why}");
    }
    Ok(watts)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use shell::failure::is_bad_input;

    #[test]
    fn a_file_has_figures_and_their_source_or_is_refused_by_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("watts.toml");
        let read = |text: &str| {
            fs::write(&file, text).unwrap();
            super::read(&file)
        };
        let good = "source = 'a test'\nrun = 2\npoll = 1.5\nwfi = 0.25\n";
        let watts = read(good).unwrap();
        assert_eq!((watts.run, watts.wfi, watts.el2), (2.0, 0.25, None));
        for (was, is, told) in [
            ("source = 'a test'\n", "", "missing field `source`"),
            ("'a test'", "''", "`source`: it is empty"),
            ("wfi = 0.25", "wfi = -1", "`wfi`: -1 W; use 0 or more"),
            ("wfi", "wfe", "unknown field `wfe`"),
        ] {
            let error = read(&good.replace(was, is)).unwrap_err();
            let text = format!("{error:#}");
            assert!(
                is_bad_input(&error) && text.contains("--watts: ") && text.contains(told),
                "{text}"
            );
        }
        assert!(is_bad_input(
            &super::read(&folder.path().join("none")).unwrap_err()
        ));
    }
}
