// SPDX-License-Identifier: MIT OR Apache-2.0
//! `report --svg`: writes a file for each chart. Existing files are never replaced: nothing is written if any of the
//! files exists.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use page::standalone;
use results::merge::Run;

use shell::failure::bad_input;
use shell::places;
use shell::terminal::say;

/// The new empty files, with their future contents.
pub struct Charts {
    folder: PathBuf,
    files: Vec<(PathBuf, File, String)>,
}

impl Charts {
    /// Creates the files for the charts of `runs`. Creates none if any of them already exists.
    pub fn claim_files(folder: &Path, runs: &[Run]) -> Result<Self> {
        let shown = places::shown(folder);
        if let Err(error) = fs::create_dir_all(folder) {
            bad_input!("--svg: {shown} can't be created ({error}); name a folder that can");
        }
        let charts = standalone::chart_files(runs);
        if let Some(old) = charts
            .iter()
            .find(|chart| folder.join(&chart.name).symlink_metadata().is_ok())
        {
            bad_input!(
                "--svg: {shown} has {} already, which is not replaced; name another folder",
                old.name
            );
        }
        let mut files = Vec::new();
        for chart in charts {
            let path = folder.join(&chart.name);
            // Another program may have created the file meanwhile.
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => files.push((path, file, chart.text)),
                Err(error) => {
                    for (path, ..) in &files {
                        let _ = fs::remove_file(path);
                    }
                    bad_input!(
                        "--svg: {} can't be written ({error}); name another folder",
                        places::shown(&path)
                    );
                }
            }
        }
        Ok(Self {
            folder: folder.into(),
            files,
        })
    }

    /// Writes the charts, and prints the files' names.
    pub fn write_files(self) -> Result<()> {
        say!("");
        say!(
            "{} charts in {}:",
            self.files.len(),
            places::shown(&self.folder)
        );
        for (path, mut file, text) in self.files {
            let failed = || format!("{} can't be written", places::shown(&path));
            file.write_all(text.as_bytes()).with_context(failed)?;
            say!(
                "  {}",
                path.file_name().unwrap_or_default().to_string_lossy()
            );
        }
        Ok(())
    }
}
