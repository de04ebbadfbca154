// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests for a measurement on a command line, for every program that measures. They are the options of a plan
//! ([`PlanArgs`], with an option for each dimension in [`plan::DIMENSIONS`]), the plan that they describe, and the
//! boots that the plan needs ([`settings_of_boots()`]).

#![forbid(unsafe_code)]

mod dimension_options;
mod knob_boots;
mod mistake;
mod plan_args;

pub use dimension_options::ListArgs;
pub use knob_boots::settings_of_boots;
pub use mistake::one_line;
pub use plan_args::PlanArgs;
