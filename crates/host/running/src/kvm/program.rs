// SPDX-License-Identifier: MIT OR Apache-2.0
//! The self-contained program that measures on a machine with KVM: `image --for kvm`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use plan::{Atomics, Plan, Program};
use vmm::payload::Payload;

use crate::images::{self, Built, Guest};
use crate::options::ImageArgs;
use providing::toolchain;
use shell::failure::{BadInput, bad_input};
use shell::output::Output;
use shell::terminal::say;
use shell::{files, interrupt, output, places};

/// The board of the guest's images, which run on any board.
const BOARD: &str = "virt";

/// The verb `image`, for KVM.
pub fn image(args: &ImageArgs) -> Result<()> {
    refuse_plan(args)?;
    let path = match &args.out {
        Some(path) => path.clone(),
        None => {
            let folder = places::target().join("image");
            files::make_folder(&folder)?;
            folder.join("rouse-kvm")
        }
    };
    let copy = Output::claim("--out", &path)?;
    interrupt::catch()?;
    let built = interrupt::or(images::build(BOARD, Guest::Ours(Program::Measuring)))?;
    let program = interrupt::or(images::monitor())?;
    copy.write_bytes(&bytes(&built, &program)?)?;
    make_executable(&path)?;
    say!("{}", output::shown(&path));
    say!(
        "One static program for arm64 Linux with /dev/kvm: copy it there, and run it; --help lists its words."
    );
    say!(
        "{} has the way from here to a table.",
        places::shown(&places::inside("docs/bring-up.md"))
    );
    Ok(())
}

/// Refuses measurement options, because the program accepts them on the machine that runs it.
fn refuse_plan(args: &ImageArgs) -> Result<()> {
    let load = &args.load;
    let plan = load.plan.plan().map_err(BadInput::error)?;
    let is_plain = plan == Plan::default()
        && !args.cycles
        && !args.force
        && !load.survey
        && load.given.guest.is_none()
        && load.append.is_none()
        && load.deadlines.deadline.is_none()
        && load.deadlines.cell_deadline.is_none()
        && load.deadlines.keep_cpu.is_none();
    if !is_plain {
        bad_input!(
            "--for kvm: the program gets its options on the machine; leave everything but --out out, and run \
             ./rouse-kvm with these words there"
        );
    }
    Ok(())
}

/// Returns the program, followed by the guests.
pub fn bytes(built: &Built, program: &[u8]) -> Result<Vec<u8>> {
    let image = |atomics| {
        let path = built.guest_image(atomics)?;
        fs::read(path).with_context(|| path.display().to_string())
    };
    let payload = Payload {
        llsc: &image(Atomics::Llsc)?,
        lse: &image(Atomics::Lse)?,
        build: &serde_json::to_string(&toolchain::build())?,
    };
    Ok(payload.behind(program))
}

/// Makes a regular file executable. Leaves other kinds of files unchanged.
fn make_executable(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(what) if what.is_file() => fs::set_permissions(path, Permissions::from_mode(0o755))
            .with_context(|| path.display().to_string()),
        _ => Ok(()),
    }
}
