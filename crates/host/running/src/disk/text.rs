// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text file on the disk: the boot arguments, and how to change them.

use anyhow::{Context, Result};

use shell::failure::BadInput;

const HEAD: &str = "\
# Rouse reads this file when this disk boots: boot arguments, on any number of
# lines. Change it as you like; nothing has to be built again. The words are the
# options of `cargo xtask run` that choose what is measured:
#
#   rouse.wait=wfi,poll-wfi    --wait wfi,poll-wfi; the others likewise
#   rouse.survey               print what the machine is, for a first boot
#   rouse.compact              print no more than a console of 64 KiB keeps
#   rouse.cycles               report cycles of the core, not ticks of the counter
#   rouse.atomics=llsc         the guest without LSE atomics; one word a boot
#   rouse.shard=2/8            only the second eighth of the cells
#   rouse.deadline=600         turn the machine off after 600 s; 0 is never
#   rouse.cell-deadline=60     the same when a pass of a cell takes so long
#   rouse.keep-cpu             one CPU sees to that, whatever the others do
#
# Printable ASCII, 4096 bytes at most.
";

/// Start of the file if the guest is another kernel.
const HEAD_GIVEN: &str = "\
# Rouse reads this file when this disk boots: boot arguments, on any number of
# lines. Change it as you like; nothing has to be built again. They are the
# command line of the guest, but for these words of the hypervisor:
#
#   rouse.survey               print what the machine is, for a first boot
#   rouse.uart=KIND,ADDRESS    the console, where the machine names none
#   rouse.deadline=600         turn the machine off after 600 s
#
# Printable ASCII, 4096 bytes at most.
";

/// Returns the text file for the boot arguments `arguments`, for our `own` guest or for another guest. Parsing the
/// file returns the same arguments.
///
/// # Errors
/// If the file can't express the arguments.
pub fn boot_text(arguments: &str, own: bool) -> Result<String> {
    text_with_head(arguments, if own { HEAD } else { HEAD_GIVEN })
        .context("the boot arguments can't be put into the disk's text file")
}

fn text_with_head(arguments: &str, head: &str) -> Result<String> {
    let mut file = head.to_owned();
    for argument in arguments.split_ascii_whitespace() {
        file += argument;
        file.push('\n');
    }
    let mut room = [0; config::LIMIT];
    let read = config::parse(file.as_bytes(), &mut room);
    let read = read.map_err(|error| BadInput::error(error.to_string()))?;
    // A word that begins with `#` would be a comment.
    if !read
        .split_ascii_whitespace()
        .eq(arguments.split_ascii_whitespace())
    {
        return Err(BadInput::error(
            "--append: a word that begins with `#` is a comment there; write it otherwise",
        ));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::failure::is_bad_input;

    #[test]
    fn the_file_says_what_the_command_line_says() {
        let file = text_with_head("rouse.wait=wfi  rouse.iterations=5 x=#1", HEAD).unwrap();
        let mut room = [0; config::LIMIT];
        let read = config::parse(file.as_bytes(), &mut room).unwrap();
        assert_eq!(read, "rouse.wait=wfi rouse.iterations=5 x=#1");
        assert!(file.ends_with("\nrouse.wait=wfi\nrouse.iterations=5\nx=#1\n"));
    }

    #[test]
    fn the_heading_for_another_guest_can_be_read() {
        let mut room = [0; config::LIMIT];
        let file = text_with_head("panic=1", HEAD_GIVEN).unwrap();
        assert_eq!(config::parse(file.as_bytes(), &mut room), Ok("panic=1"));
        // Another guest may have no arguments at all.
        for nothing in ["", " ", "\n"] {
            for head in [HEAD, HEAD_GIVEN] {
                assert_eq!(super::text_with_head(nothing, head).unwrap(), head);
            }
        }
    }

    #[test]
    fn what_can_not_be_said_is_refused() {
        for (arguments, named) in [
            ("a #b", "comment"),
            ("a \u{e4}", "line 17, column 1: byte 0xc3"),
            (&"x".repeat(config::LIMIT), "4096 bytes"),
        ] {
            let error = text_with_head(arguments, HEAD).unwrap_err();
            assert!(is_bad_input(&error), "{error:#}");
            assert!(error.to_string().contains(named), "{error:#}");
        }
    }
}
