// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes to standard output, to standard error, and to a file. No existing file is overwritten.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use results::Results;

use crate::command_line::Words;
use crate::failure::Failure;

/// Destinations of the program's output.
#[derive(Debug)]
pub struct Output {
    json: Option<Json>,
    /// Whether records and the guest's other output are left out.
    table_alone: bool,
    lost: Option<io::Error>,
}

#[derive(Debug)]
enum Json {
    Stdout,
    /// A file, which was new and empty.
    File(PathBuf, File),
}

impl Output {
    /// Creates the file that `words` name, if they name one.
    ///
    /// # Errors
    /// The file already exists or can't be created.
    pub fn claim(words: &Words) -> Result<Self, Failure> {
        let json = match &words.json {
            None => None,
            Some(path) if path == Path::new("-") => Some(Json::Stdout),
            Some(path) => Some(Json::File(path.clone(), new(path)?)),
        };
        Ok(Self {
            json,
            table_alone: words.table,
            lost: None,
        })
    }

    /// Prints a line from the guest.
    pub fn print_guest_line(&mut self, line: &str) {
        if !self.table_alone {
            self.print(line);
        }
    }

    /// Prints the table of `results`, and writes the results as JSON if requested.
    ///
    /// # Errors
    /// The message names the output that could not be written.
    pub fn close(mut self, results: &Results) -> Result<(), Failure> {
        if results.has_cells() {
            let width = None;
            for line in page::table::lines(results, width) {
                self.print(&line);
            }
        }
        let text = results.to_json().map_err(Failure::run_failed)?;
        match self.json.take() {
            None => {}
            // A run without measurements leaves no file.
            Some(Json::File(path, _)) if !results.has_cells() => drop(fs::remove_file(path)),
            Some(Json::File(path, mut file)) => {
                let written = file
                    .write_all(text.as_bytes())
                    .and_then(|()| file.sync_all());
                written.map_err(|error| {
                    Failure::run_failed(format!(
                        "--json: {} can't be written ({error})",
                        path.display()
                    ))
                })?;
            }
            Some(Json::Stdout) if !results.has_cells() => {}
            Some(Json::Stdout) => self.keep_error(io::stdout().write_all(text.as_bytes())),
        }
        let _ = io::stdout().flush();
        match self.lost {
            // A reader that closes the pipe has read everything that it wants.
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::run_failed(
                format!("standard output can't be written ({error})"),
            )),
            _ => Ok(()),
        }
    }

    /// Prints a line to standard output, or to standard error if JSON goes to standard output.
    fn print(&mut self, line: &str) {
        let printed = match self.json {
            Some(Json::Stdout) => writeln!(io::stderr(), "{line}"),
            _ => writeln!(io::stdout(), "{line}"),
        };
        self.keep_error(printed);
    }

    fn keep_error(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.lost.get_or_insert(error);
        }
    }
}

/// Creates a file that does not exist yet.
fn new(path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    opened.map_err(|error| {
        let shown = path.display();
        Failure::bad_input(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("--json: {shown} is there already; name a new file")
            }
            _ => format!("--json: {shown} can't be made ({error}); name another place"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use results::samples;

    fn output(path: &Path) -> Result<Output, Failure> {
        let words = ["rouse-kvm", "--table", "--json", path.to_str().unwrap()];
        Output::claim(&Words::try_parse_from(words).unwrap())
    }

    #[test]
    fn results_go_to_a_new_file_and_replace_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("results.json");
        output(&path).unwrap().close(&samples::results()).unwrap();
        let read: Results = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(read.cells.len(), samples::results().cells.len());
        let failure = output(&path).unwrap_err();
        assert_eq!(failure.status, 2);
        assert!(failure.why.contains("name a new file"), "{failure:?}");
        assert!(output(&place.path().join("no/file")).is_err());
    }

    #[test]
    fn what_measured_nothing_leaves_no_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("results.json");
        output(&path).unwrap().close(&Results::default()).unwrap();
        assert!(!path.exists());
    }
}
