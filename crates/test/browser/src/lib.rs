// SPDX-License-Identifier: MIT OR Apache-2.0
//! Examines pages in a headless browser, and reports their errors.
//!
//! [`pipe`] starts the browser and exchanges messages with it, and [`tab`] shows a page as different readers see it
//! ([`Look`]). [`screen`] and [`keys`] check that a reader sees the page and reaches its controls, [`plain`] checks
//! that nothing depends on a script, and [`paper`] checks the printed page, which [`pdf`] reads. [`check_page()`] runs
//! all these checks.
//!
//! The program `browser` checks pages in files. The environment variable [`VARIABLE`] names the browser.

#![forbid(unsafe_code)]

pub mod keys;
pub mod paper;
pub mod pdf;
pub mod pipe;
pub mod plain;
pub mod screen;
pub mod tab;

use std::env;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

pub use pipe::Browser;
pub use tab::{Look, Tab};

/// The environment variable that names the browser's program.
pub const VARIABLE: &str = "ROUSE_CHROMIUM";

/// An error of a page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The check that found the error.
    pub check: String,
    /// The error and its place, in words.
    pub what: String,
    /// How the page was viewed.
    pub look: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.check, self.look, self.what)
    }
}

/// Starts the browser that the environment names.
///
/// # Errors
///
/// If the environment names no browser, or the browser does not start.
pub fn from_environment() -> Result<Browser> {
    let program = env::var_os(VARIABLE);
    let program = program.with_context(|| {
        format!("{VARIABLE} names no browser; `cargo xtask dev pages` provides one and names it")
    })?;
    Browser::start(Path::new(&program))
}

/// Returns all errors of the page in a file.
///
/// # Errors
///
/// If the browser ends, or can't fulfil a request.
pub fn check_page(tab: &mut Tab<'_>, file: &Path) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for look in Look::ALL {
        tab.open(file, look)?;
        found.extend(screen::check(tab)?);
        // The Tab order does not depend on the width or the colours, so two of the four looks are enough.
        if look.dark == (look.width == tab::NARROW) {
            found.extend(keys::check(tab)?);
        }
        found.extend(tab.complaints());
    }
    found.extend(plain::check(tab, file)?);
    found.extend(paper::check(tab, file)?);
    Ok(found)
}
