// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of a boot's plan, and its time.

use results::records::Size;

/// The cells of a boot, as far as they are known before the boot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// Names of the cells, in their order.
    pub names: Vec<String>,
    /// The expected and the largest number of seconds. `None` if the speed of the machine is unknown.
    pub seconds: Option<(f64, f64)>,
    /// Whether cells are expected to settle after [`plan::BALANCED`] passes.
    pub settles: bool,
}

impl Planned {
    /// Describes the plan that a boot has reported: its size, and its time.
    pub fn describe_plan(&self, plan: Size) -> String {
        let Size {
            cells,
            skipped,
            passes,
            iterations,
            cell_ms,
            ..
        } = plan;
        let cells = match cells {
            1 => "1 cell".into(),
            _ => format!("{cells} cells"),
        };
        let skipped = match skipped {
            0 => String::new(),
            _ => format!(", {skipped} of them skipped"),
        };
        let bound = match cell_ms {
            0 => String::new(),
            ms => format!(" or {ms} ms of the guest"),
        };
        format!(
            "{cells}{skipped}, in {passes} passes; each has up to {iterations} wake-ups{bound}; {}",
            self.describe_time()
        )
    }

    /// Describes the time, with the bound in brackets.
    pub fn describe_time(&self) -> String {
        match self.seconds {
            Some(seconds) => expected(seconds),
            None => "how long is known after some cells".into(),
        }
    }
}

/// Describes an expected time and its bound, in seconds.
pub fn expected((expected, most): (f64, f64)) -> String {
    let [expected, most] = [expected, most].map(|seconds| time(seconds.ceil() as u64));
    match expected == most {
        true => format!("about {expected}"),
        false => format!("about {expected} (at most {most})"),
    }
}

/// Formats seconds for people.
pub fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        7200..172_800 => format!("{} h", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_an_expected_time_with_the_bound_in_brackets() {
        let plan = Size {
            cells: 70,
            skipped: 2,
            passes: 4,
            iterations: 2000,
            cell_ms: 20,
            guess_us: 1,
        };
        let planned = Planned {
            seconds: Some((25.2, 4080.0)),
            ..Planned::default()
        };
        assert_eq!(
            planned.describe_plan(plan),
            "70 cells, 2 of them skipped, in 4 passes; each has up to 2000 wake-ups or 20 ms of the \
             guest; about 26 s (at most 68 min)"
        );
        let one = Size {
            cells: 1,
            skipped: 0,
            cell_ms: 0,
            ..plan
        };
        assert_eq!(
            Planned::default().describe_plan(one),
            "1 cell, in 4 passes; each has up to 2000 wake-ups; how long is known after some cells"
        );
        assert_eq!(expected((1.5, 1.9)), "about 2 s");
        assert_eq!(
            [0, 119, 121, 7300, 172_801].map(time),
            ["0 s", "119 s", "3 min", "3 h", "3 days"]
        );
    }
}
