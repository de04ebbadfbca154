// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests for a measurement on a command line, for every program that measures. A request has options of a plan
//! ([`PlanArgs`], with an option for each dimension in [`plan::DIMENSIONS`]). The options describe a plan, and the plan
//! needs boots ([`settings_of_boots()`]).

#![forbid(unsafe_code)]

mod dimension_options;
mod knob_boots;
mod mistake;
mod plan_args;

pub use dimension_options::ListArgs;
pub use knob_boots::settings_of_boots;
pub use mistake::one_line;
pub use plan_args::PlanArgs;
