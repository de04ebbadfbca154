// SPDX-License-Identifier: MIT OR Apache-2.0
//! A window of the browser, which shows a page as a reader sees it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{Browser, Finding};

/// Width of a desktop's screen, in CSS pixels.
pub const WIDE: u32 = 1280;
/// Width of a phone's screen, in CSS pixels.
pub const NARROW: u32 = 400;
/// Height of either screen, in CSS pixels.
const HEIGHT: u32 = 800;

/// How a page is viewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Width of the window, in CSS pixels.
    pub width: u32,
    /// Whether the reader prefers dark colours.
    pub dark: bool,
    /// Whether scripts run.
    pub scripts: bool,
    /// Whether the page is printed on paper.
    pub paper: bool,
}

impl Look {
    /// All ways to view a page on a screen: wide and narrow, light and dark.
    pub const ALL: [Self; 4] = [
        Self::screen(WIDE, false),
        Self::screen(WIDE, true),
        Self::screen(NARROW, false),
        Self::screen(NARROW, true),
    ];

    /// Returns the look of a page on a screen, with scripts.
    pub const fn screen(width: u32, dark: bool) -> Self {
        Self {
            width,
            dark,
            scripts: true,
            paper: false,
        }
    }

    /// Describes the look in words.
    pub fn shown(self) -> String {
        if self.paper {
            return "paper".into();
        }
        let colours = if self.dark { "dark" } else { "light" };
        let scripts = if self.scripts { "" } else { ", no script" };
        format!("{} px, {colours}{scripts}", self.width)
    }
}

/// A window of the browser, with a page.
#[derive(Debug)]
pub struct Tab<'b> {
    browser: &'b mut Browser,
    session: String,
    /// The address of the page.
    url: String,
    /// How the page is viewed.
    pub look: Look,
}

impl<'b> Tab<'b> {
    /// Opens an empty window.
    ///
    /// # Errors
    ///
    /// If the browser has ended.
    pub fn new(browser: &'b mut Browser) -> Result<Self> {
        let created = browser.call("", "Target.createTarget", json!({ "url": "about:blank" }))?;
        let target = text(&created["targetId"]);
        let attached = json!({ "targetId": target, "flatten": true });
        let attached = browser.call("", "Target.attachToTarget", attached)?;
        let session = text(&attached["sessionId"]);
        let mut tab = Self {
            browser,
            session,
            url: String::new(),
            look: Look::ALL[0],
        };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            tab.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(tab)
    }

    /// Opens the page in a file.
    ///
    /// # Errors
    ///
    /// If the page can't be loaded.
    pub fn open(&mut self, file: &Path, look: Look) -> Result<()> {
        let file = fs::canonicalize(file).with_context(|| file.display().to_string())?;
        self.url = format!("file://{}", file.display());
        self.look = look;
        self.apply_look()?;
        // Drop the events of the previous page.
        let _ = self.browser.events(&self.session);
        let navigated = self.call("Page.navigate", json!({ "url": self.url }))?;
        if let Some(error) = navigated["errorText"].as_str() {
            bail!("{} can't be loaded: {error}", self.url);
        }
        self.browser.wait_for(&self.session, "Page.loadEventFired")
    }

    fn apply_look(&mut self) -> Result<()> {
        let look = self.look;
        let colours = if look.dark { "dark" } else { "light" };
        let feature = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        let media = if look.paper { "print" } else { "" };
        for (method, params) in [
            (
                "Emulation.setDeviceMetricsOverride",
                json!({ "width": look.width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": false }),
            ),
            (
                "Emulation.setScrollbarsHidden",
                // Scroll bars take no space on phones and on many desktops.
                json!({ "hidden": true }),
            ),
            (
                "Emulation.setEmulatedMedia",
                json!({ "media": media, "features": feature }),
            ),
            (
                "Emulation.setScriptExecutionDisabled",
                json!({ "value": !look.scripts }),
            ),
        ] {
            self.call(method, params)?;
        }
        Ok(())
    }

    /// Calls a method of the page.
    ///
    /// # Errors
    ///
    /// If the browser refuses, or has ended.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.browser.call(&self.session, method, params)
    }

    /// Returns the value of an expression, even if the page's own scripts do not run.
    ///
    /// # Errors
    ///
    /// If the expression throws an exception.
    pub fn value(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", asked)?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{}", thrown["exception"]["description"]);
        }
        Ok(answer["result"]["value"].take())
    }

    /// Returns a finding about the page in its current look.
    pub fn finding(&self, check: &str, what: impl Into<String>) -> Finding {
        Finding {
            check: check.into(),
            what: what.into(),
            look: self.look.shown(),
        }
    }

    /// Returns findings for the page's requests for other files, and for errors on its console.
    pub fn complaints(&mut self) -> Vec<Finding> {
        let events = self.browser.events(&self.session);
        let findings = events.iter().filter_map(|event| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Network.requestWillBeSent" => {
                    let url = text(&params["request"]["url"]);
                    let own = url.split('#').next() == Some(self.url.as_str());
                    let inside = url.starts_with("data:") || url == "about:blank";
                    (!own && !inside).then(|| self.finding("loads", url))
                }
                "Log.entryAdded" if params["entry"]["level"] == "error" => {
                    Some(self.finding("console", text(&params["entry"]["text"])))
                }
                "Runtime.consoleAPICalled" if params["type"] == "error" => {
                    Some(self.finding("console", params["args"].to_string()))
                }
                "Runtime.exceptionThrown" => {
                    let details = &params["exceptionDetails"];
                    let thrown = text(&details["exception"]["description"]);
                    Some(self.finding("console", thrown))
                }
                _ => None,
            }
        });
        findings.collect()
    }
}

/// Returns the text of an answer, or an empty text if the answer is not text.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
