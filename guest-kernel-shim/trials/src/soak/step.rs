// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs the steps of a CPU, one for each token that arrives.

use guest_kernel_shim::percpu::PerCpu;

use super::operation::Operation;
use super::state::{has_operations, next};
use super::violation::note;
use super::{check, power, tokens};

/// Serves the requests that have arrived for this CPU.
pub fn serve(me: &'static PerCpu) {
    power::serve(me);
    while !tokens::stopped() && tokens::take(me) {
        step(me);
    }
}

/// Performs a step: an operation, and a token for another CPU.
fn step(me: &'static PerCpu) {
    let (step, mut random) = next(me);
    let operation = Operation::draw(&mut random);
    if !has_operations() {
        tokens::pass(me, &mut random);
        return;
    }
    note(me, operation.name(), step, 0);
    operation.count();
    // A CPU that turns itself off keeps no token.
    if operation == Operation::Off {
        tokens::pass(me, &mut random);
        operation.run(me, &mut random);
        return;
    }
    operation.run(me, &mut random);
    check::masks(operation.name());
    tokens::pass(me, &mut random);
}
