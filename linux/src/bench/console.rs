// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output as a console, with a flush that waits.

use std::io::{self, Stdout, Write};

use rustix::termios::{isatty, tcdrain};

/// Standard output. A flush waits until a console has sent everything, since sending causes interrupts.
#[derive(Debug)]
pub struct Console(pub Stdout);

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        if isatty(&self.0) {
            tcdrain(&self.0)?;
        }
        Ok(())
    }
}
