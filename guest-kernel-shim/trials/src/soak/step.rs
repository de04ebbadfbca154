// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs the steps of a CPU, one for each token that arrives.

use guest_kernel_shim::percpu::PerCpu;

use super::operation::Operation;
use super::state::{has_operations, next};
use super::violation::log_operation;
use super::{check, power, tokens};

/// Serves the requests that have arrived for this CPU.
pub fn serve_requests(me: &'static PerCpu) {
    power::serve_turn_on(me);
    while !tokens::is_epoch_over() && tokens::take_token(me) {
        perform_step(me);
    }
}

/// Performs a step: an operation, and a token for another CPU.
fn perform_step(me: &'static PerCpu) {
    let (step, mut random) = next(me);
    let operation = Operation::draw(&mut random);
    if !has_operations() {
        tokens::pass_token(me, &mut random);
        return;
    }
    log_operation(me, operation.name(), step, 0);
    operation.count();
    // A CPU that turns itself off keeps no token.
    if operation == Operation::Off {
        tokens::pass_token(me, &mut random);
        operation.run(me, &mut random);
        return;
    }
    operation.run(me, &mut random);
    check::check_masks(operation.name());
    tokens::pass_token(me, &mut random);
}
