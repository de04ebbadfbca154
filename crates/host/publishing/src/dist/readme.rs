// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder's `README.md`.

use results::Build;

use super::products::Product;

/// Returns the text, which describes the folder, each file, and how to reproduce the folder.
pub fn readme_text(products: &[Product], build: Option<&Build>) -> String {
    let mut text = format!(
        "# Rouse {}, to measure a machine without building anything\n\n{HEAD}\n",
        env!("CARGO_PKG_VERSION")
    );
    for product in products {
        text += &format!("\n## {}\n\n{}\n", product.name, product.about);
    }
    text += &format!("\n## Where it is from\n\n{}\n", origin_text(build));
    text
}

const HEAD: &str = "\
Rouse measures what it costs to wake an idle CPU of an arm64 machine, as it is, and under a hypervisor.

| you have | take |
|---|---|
| a virtual machine or instance that boots a disk by UEFI | `measure.disk` |
| a server, a `.metal` instance, a board with UEFI | `survey.disk`, then `measure.disk` |
| the same, with a system on its disk that should stay | `rouse.efi` |
| Linux with KVM | `rouse-kvm` |
| Linux, to be measured itself | `rouse-linux` |
| a hypervisor of your own | `guest.img`, `guest-lse.img` |

`site/index.html` has the documents, to read in a browser. Check what you downloaded: `sha256sum --check SHA256SUMS`. `LICENSES/CRATES.md` lists what each file consists of. From a captured console to a page with \
tables and charts: `cargo xtask report serial.log`, in a checkout of the source; `site/docs/bring-up.html` is the procedure for a rented machine, with what to do when something \
goes wrong.

Rouse has not run on silicon yet. Use a machine on which nothing else is needed.";

fn origin_text(build: Option<&Build>) -> String {
    let Some(build) = build else {
        return "The compiler and the commit are not known.".into();
    };
    let commit = match (&*build.commit, build.dirty) {
        ("", _) => "a source tree without a commit".into(),
        (commit, false) => format!("commit {commit}"),
        (commit, true) => format!("commit {commit} with changes that are in no commit"),
    };
    format!(
        "Made by `cargo xtask dev dist` from {commit}, with rustc {} ({}), LLVM {}. The same commit and compiler make the same \
         folder, bit for bit, on any machine: make one, and compare by `diff -r`.",
        build.rustc, build.rustc_commit, build.llvm
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_says_whether_others_have_it() {
        let mut build = Build {
            commit: "abc".into(),
            ..Build::default()
        };
        assert!(origin_text(Some(&build)).contains("from commit abc, with"));
        build.dirty = true;
        assert!(origin_text(Some(&build)).contains("in no commit"));
        build.commit.clear();
        assert!(origin_text(Some(&build)).contains("without a commit"));
    }
}
