// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polls with a limit, without the halt that follows the poll in other waits; workload `overshoot` measures this.

use plan::Wait;
use wait::idle::Limited;
use wait::poll::Pause;

use super::pause::{By, Spin, Wfe, WfeSev, Wfet, Yield};
use crate::setting::{Body, Setting};

/// Runs `body` with polls up to the limit, using the instruction that `setting` names; `poll-wfi` uses
/// its polling instruction. The function is cold, because only measurements of this way include it.
#[cold]
#[inline(never)]
pub fn run_body(setting: &Setting, body: &mut impl Body) {
    match setting.wait {
        Wait::Spin => run_poll(setting, By(Spin), body),
        Wait::Yield => run_poll(setting, By(Yield), body),
        Wait::Wfe => run_poll(setting, By(Wfe), body),
        Wait::WfeSev => run_poll(setting, By(WfeSev), body),
        Wait::Wfet => run_poll(setting, By(Wfet), body),
        Wait::PollWfi => match setting {
            _ if setting.wfxt => run_poll(setting, By(Wfet), body),
            _ if setting.stream => run_poll(setting, By(Wfe), body),
            _ => run_poll(setting, By(Yield), body),
        },
        // `Wait::keeps_a_limit` is false for these waits, so such a cell is skipped.
        Wait::Busy | Wait::Wfi | Wait::Haltpoll | Wait::Governed(_) => {}
    }
}

fn run_poll(setting: &Setting, pause: impl Pause, body: &mut impl Body) {
    let &Setting { wanted, limit, .. } = setting;
    body.run(Limited {
        pause,
        wanted,
        limit,
    });
}
