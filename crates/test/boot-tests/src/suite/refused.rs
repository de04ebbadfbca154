// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement image refuses boot arguments that only test images know, in a line that names the remedy.

use anyhow::{Result, ensure};

use running::boot::{Boots, Launch, Show};
use running::emulator::Emulator;
use running::job::Job;
use running::options::JobArgs;
use running::{images, memory};
use shell::interrupt;
use shell::progress::Progress;

/// Boot arguments: the hypervisor refuses the first, and the guest refuses the second.
const REFUSED: [&str; 2] = ["rouse.fault=el2-hang", "rouse.fault=cell-hang"];

/// Boots measurement images with arguments for which xtask otherwise builds test images.
pub fn run() -> Result<()> {
    interrupt::catch()?;
    for refused in REFUSED {
        let mut args = JobArgs::on("virt");
        args.load.append = Some(refused.into());
        let job = Job::new(&args)?;
        let built = interrupt::or(images::build("virt", job.load.packed()))?;
        let emulator = interrupt::or(Emulator::ensure(&job))?;
        memory::settle(&job, &built)?;
        let mut boots = Boots::new(&emulator, &built, Show::Nothing, Vec::new());
        boots.boot(Launch {
            job: &job,
            variant: job.variant(),
            title: refused.into(),
            progress: Progress::new(refused.into()),
            recorder: None,
        })?;
        let console = String::from_utf8_lossy(&boots.log);
        let expected = format!(
            "refused: boot arguments: {refused} is for tests, and this image is for measurements; give"
        );
        ensure!(
            console.contains(&expected),
            "{expected} ... is not on the console:\n{console}"
        );
    }
    Ok(())
}
