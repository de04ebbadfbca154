// SPDX-License-Identifier: MIT OR Apache-2.0
//! The debugger to use on this machine, and its command.

use std::path::Path;

use providing::manager::{self, Tool};
use providing::toolchain::output;
use shell::places;

/// GDB's names. Many GDBs support only the host's CPU, so the first program that supports arm64 is used.
const GDBS: [&str; 6] = [
    "gdb-multiarch",
    "aarch64-none-elf-gdb",
    "aarch64-linux-gnu-gdb",
    "aarch64-elf-gdb",
    "gdb",
    "rust-gdb",
];
/// LLDB's names. LLDB always supports arm64.
const LLDBS: [&str; 2] = ["lldb", "rust-lldb"];

/// Returns instructions for installing a debugger.
pub fn how_to_install() -> String {
    manager::install(Tool::Debugger).map_or_else(
        || "install a gdb that knows arm64, or lldb".into(),
        |way| format!("{way}, or lldb"),
    )
}

#[derive(Debug, PartialEq, Eq)]
pub struct Debugger {
    program: &'static str,
    is_lldb: bool,
    /// The first line of the debugger's version text.
    pub version: String,
}

/// An image with symbols, and its address.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'e> {
    pub elf: &'e Path,
    pub base: u64,
}

/// Returns the first debugger on this machine that supports arm64.
pub fn find() -> Option<Debugger> {
    find_by(&|program, arguments| output(program, arguments))
}

/// Returns the debugger whose command is shown if none is installed.
pub fn usual_debugger() -> Debugger {
    Debugger {
        program: GDBS[0],
        is_lldb: false,
        version: String::new(),
    }
}

/// Like [`find`]. `run` returns the output of a program, if the program can be started.
fn find_by(run: &dyn Fn(&str, &[&str]) -> Option<String>) -> Option<Debugger> {
    let asked = [
        "-nx",
        "-batch",
        "-ex",
        "set architecture aarch64",
        "-ex",
        "show architecture",
    ];
    let knows = |gdb: &str| run(gdb, &asked).is_some_and(|said| said.contains("aarch64"));
    let gdbs = GDBS.into_iter().map(|program| (program, false));
    let lldbs = LLDBS.into_iter().map(|program| (program, true));
    gdbs.chain(lldbs).find_map(|(program, is_lldb)| {
        let said = run(program, &["--version"])?;
        (is_lldb || knows(program)).then(|| Debugger {
            program,
            is_lldb,
            version: said.lines().next().unwrap_or_default().to_owned(),
        })
    })
}

impl Debugger {
    pub fn name(&self) -> &'static str {
        self.program
    }

    /// Returns the command to type.
    pub fn command(&self, symbols: Option<Symbols>, port: u16) -> String {
        let Self { program, .. } = self;
        let elf = symbols.map(|symbols| places::shown(symbols.elf));
        let symbols = symbols.zip(elf).map(|(Symbols { base, .. }, elf)| match self.is_lldb {
            true => format!(
                "-o 'target create --arch aarch64 {elf}' -o 'target modules load --file {elf} --slide {base:#x}' "
            ),
            false => format!("-ex 'set confirm off' -ex 'add-symbol-file {elf} -o {base:#x}' "),
        });
        let symbols = symbols.unwrap_or_default();
        match self.is_lldb {
            true => format!("{program} {symbols}-o 'gdb-remote {port}'"),
            false => format!("{program} {symbols}-ex 'target remote :{port}'"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the debugger that is found if `programs` are installed, each with its version text.
    fn found(programs: &[(&str, &str)]) -> Option<&'static str> {
        let run = |program: &str, arguments: &[&str]| {
            let (_, said) = programs.iter().find(|(name, _)| *name == program)?;
            Some(match arguments {
                ["--version"] => format!("{program} 1.0\nmore"),
                _ => (*said).to_owned(),
            })
        };
        let found = find_by(&run)?;
        assert_eq!(found.version, format!("{} 1.0", found.program));
        Some(found.program)
    }

    #[test]
    fn one_that_knows_arm64_is_taken() {
        let arm = "The target architecture is set to \"aarch64\".";
        let host = "The target architecture is set to \"auto\" (currently \"i386\").";
        assert_eq!(
            found(&[("gdb", arm), ("gdb-multiarch", arm)]),
            Some("gdb-multiarch")
        );
        assert_eq!(found(&[("gdb", arm), ("lldb", "")]), Some("gdb"));
        assert_eq!(found(&[("gdb", host), ("rust-gdb", host)]), None);
        assert_eq!(found(&[("gdb", host), ("lldb", "")]), Some("lldb"));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn each_is_told_in_its_own_words() {
        let symbols = Some(Symbols {
            elf: Path::new("/x.elf"),
            base: 0x4020_0000,
        });
        let gdb = usual_debugger().command(symbols, 1234);
        assert!(
            gdb.contains("-ex 'add-symbol-file /x.elf -o 0x40200000'"),
            "{gdb}"
        );
        assert!(gdb.ends_with("-ex 'target remote :1234'"), "{gdb}");
        let lldb = Debugger {
            program: "lldb",
            is_lldb: true,
            version: String::new(),
        };
        let said = lldb.command(symbols, 7);
        assert!(
            said.contains("--slide 0x40200000") && said.ends_with("-o 'gdb-remote 7'"),
            "{said}"
        );
        assert_eq!(lldb.command(None, 7), "lldb -o 'gdb-remote 7'");
    }
}
