// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that no package of this program is compiled a second time for the tests of the host.
//!
//! Cargo compiles a package, and everything that depends on it, once for each set of features. All packages of one
//! build determine these sets, and so do the dependencies of tests if tests are built (Cargo Book, Features, Feature
//! unification). So `cargo xtask`, which builds only this program, and the test build agree on the features only by
//! design.

use std::collections::BTreeSet;

use super::host;
use providing::toolchain;

/// Returns the packages that Cargo chooses for `arguments`, each with its features.
fn chosen<'a>(arguments: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let mut cargo = toolchain::cargo();
    cargo
        .args(["tree", "--quiet", "--prefix=none", "--format={p} {f}"])
        .args(arguments);
    let output = cargo.output().expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).expect("names are text");
    // `(*)` marks a package that was shown before.
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn the_tests_have_this_program_s_packages_with_its_features() {
    let own = chosen(["--package=xtask", "--edges=normal,build"]);
    let tests = chosen(host::packages().chain(["--edges=normal,build,dev"]));
    assert!(own.iter().any(|line| line.starts_with("xtask v")));
    let twice: Vec<_> = own.difference(&tests).collect();
    assert!(
        twice.is_empty(),
        "compiled again for the tests, with other features; xtask/Cargo.toml has the remedy: {twice:#?}"
    );
}
