// SPDX-License-Identifier: MIT OR Apache-2.0
//! Package managers of hosts, and the command with which each of them installs a tool.

use std::env;
use std::path::{Path, PathBuf};

/// A tool that package managers can install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Qemu,
    Debugger,
}

/// A package manager: its program, its command, its package with an arm64 emulator, and its package with a debugger
/// that supports arm64.
struct Manager {
    program: &'static str,
    command: &'static str,
    qemu: &'static str,
    debugger: &'static str,
}

const fn manager(
    program: &'static str,
    command: &'static str,
    qemu: &'static str,
    debugger: &'static str,
) -> Manager {
    Manager {
        program,
        command,
        qemu,
        debugger,
    }
}

/// The system's own managers come first, since Homebrew and Nix may be installed in addition to them.
const MANAGERS: [Manager; 8] = [
    manager(
        "apt-get",
        "apt-get install",
        "qemu-system-arm",
        "gdb-multiarch",
    ),
    manager("dnf", "dnf install", "qemu-system-aarch64", "gdb"),
    manager("pacman", "pacman -S", "qemu-system-aarch64", "gdb"),
    manager("zypper", "zypper install", "qemu-arm", "gdb"),
    manager("apk", "apk add", "qemu-system-aarch64", "gdb-multiarch"),
    manager("pkg", "pkg install", "qemu", "gdb"),
    manager("brew", "brew install", "qemu", "gdb"),
    manager("nix-env", "nix-env -iA", "nixpkgs.qemu", "nixpkgs.gdb"),
];

/// Returns the command that installs `tool` on this host; `None` if no known manager is on the search path.
pub fn install(tool: Tool) -> Option<String> {
    install_by(tool, &|program| on_the_path(program).is_some())
}

/// Returns the path of `program`, if it is on the search path.
pub fn on_the_path(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let mut places = env::split_paths(&folders).map(|folder| folder.join(program));
    places.find(|place| is_program(place))
}

fn install_by(tool: Tool, is_here: &dyn Fn(&str) -> bool) -> Option<String> {
    let found = MANAGERS.iter().find(|manager| is_here(manager.program))?;
    let package = match tool {
        Tool::Qemu => found.qemu,
        Tool::Debugger => found.debugger,
    };
    Some(format!("{} {package}", found.command))
}

/// Whether a file can be executed.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_that_is_here_installs() {
        let with = |here: &'static [&str]| {
            move |tool| install_by(tool, &|program| here.contains(&program))
        };
        let mac = with(&["brew"]);
        assert_eq!(mac(Tool::Qemu).as_deref(), Some("brew install qemu"));
        assert_eq!(mac(Tool::Debugger).as_deref(), Some("brew install gdb"));
        assert_eq!(
            with(&["nix-env", "dnf", "brew"])(Tool::Qemu).as_deref(),
            Some("dnf install qemu-system-aarch64")
        );
        assert_eq!(with(&[])(Tool::Qemu), None);
    }

    #[test]
    fn a_program_can_be_executed() {
        assert!(is_program(&env::current_exe().unwrap()));
        assert!(!is_program(Path::new("/")));
        assert!(!is_program(Path::new("Cargo.toml")));
    }
}
