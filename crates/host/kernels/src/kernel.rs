// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `kernel`, and the names by which other verbs take kernels: `SOURCE+PATCH+PATCH`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use shell::failure::bad_input;
use shell::terminal::{note, say, step};
use shell::{digest, places};

use crate::apply::{Changes, apply};
use crate::build::{Build, begin_log};
use crate::compiler::Compiler;
use crate::config::{Begin, Config, Fragment};
use crate::folder::Folder;
use crate::mail::{Patch, read_patches};
use crate::source::{Files, Source, plain_name};
use crate::tree;

/// Largest number of characters after the version in a kernel's release string. Linux allows 64 without the terminating
/// zero (`include/linux/utsname.h`), and 16 are left for the version.
const RELEASE: usize = 64 - 16;

/// Options of the verb `kernel`.
#[derive(Args, Clone, Debug)]
pub struct KernelArgs {
    /// A folder with a Linux tree, as it is now; a revision of such a tree (~/linux@v6.12); or Debian's source, which
    /// is fetched (debian:6.12)
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// Patch to apply, in the order of the options: a diff, a mail, or a series in a mailbox. A mail whose diff is
    /// quoted, has broken lines or has lost white space is repaired, and the assumptions are printed
    #[arg(long, value_name = "FILE")]
    pub patch: Vec<PathBuf>,
    /// Settings on top of a small configuration that covers what can be measured; a complete .config replaces it
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Start from the architecture's default configuration, which takes an hour to build
    #[arg(long)]
    pub defconfig: bool,
}

/// A kernel to build.
#[derive(Clone, Debug)]
pub struct Kernel {
    source: Source,
    patches: Vec<PathBuf>,
    configs: Vec<PathBuf>,
    defconfig: bool,
}

/// Runs `cargo xtask kernel`.
pub fn kernel(args: &KernelArgs) -> Result<()> {
    let Some(source) = Source::read(&args.source)? else {
        bad_input!(
            "{}: no source; name a folder with a tree of Linux, a revision of it (FOLDER@v6.12), or debian:6.12",
            args.source
        );
    };
    let kernel = Kernel {
        source,
        patches: args.patch.clone(),
        configs: args.config.clone(),
        defconfig: args.defconfig,
    };
    let image = kernel.build()?;
    say!("{}", places::shown(&image));
    Ok(())
}

/// Builds Debian's source of `version` with `patches`, and returns the path of its Image.
pub fn built(version: &str, patches: Vec<PathBuf>) -> Result<PathBuf> {
    let kernel = Kernel {
        source: Source::Debian(version.into()),
        patches,
        configs: Vec::new(),
        defconfig: false,
    };
    kernel.build()
}

/// Replaces `~/` at the beginning of a path by the home folder. A shell does this only at the beginning of a word.
fn expand_home(name: &str) -> String {
    match (name.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below).display().to_string(),
        _ => name.to_owned(),
    }
}

/// Builds the kernels with these `names`, and returns the paths of their Images in place of the names. A name of
/// Debian's own kernel stays as it is, unless another kernel is built. In that case, Debian's kernel is also built from
/// source, because two kernels that are compared should have the same configuration.
pub fn images<const N: usize>(names: [&str; N]) -> Result<[String; N]> {
    let mut kernels = Vec::new();
    let names = names.map(expand_home);
    for name in &names {
        kernels.push(Kernel::read(name)?);
    }
    let builds = kernels
        .iter()
        .flatten()
        .any(|kernel| !kernel.may_be_debians());
    let mut images = names;
    for (image, kernel) in images.iter_mut().zip(kernels) {
        if let Some(kernel) = kernel.filter(|_| builds) {
            if kernel.may_be_debians() {
                step!(
                    "{image} is built from Debian's source, to have the configuration of the other kernel"
                );
            }
            *image = kernel.build()?.display().to_string();
        }
    }
    Ok(images)
}

impl Kernel {
    /// Reads `SOURCE` or `SOURCE+PATCH[+PATCH]`. Returns `None` if the name is neither, or if it is the name of a file.
    pub fn read(name: &str) -> Result<Option<Self>> {
        if Path::new(name).is_file() {
            return Ok(None);
        }
        let mut parts = name.split('+');
        // A folder's own name may contain the plus sign.
        let (source, patches) = match Path::new(name).is_dir() {
            true => (name, Vec::new()),
            false => (parts.next().unwrap_or_default(), parts.collect()),
        };
        let Some(source) = Source::read(source)? else {
            if patches.is_empty() {
                return Ok(None);
            }
            bad_input!(
                "--guest {name}: no file, and {source} is no source of a kernel; use a folder with a tree of Linux, a revision of it \
                 (FOLDER@v6.12), or debian:6.12"
            );
        };
        Ok(Some(Self {
            source,
            patches: patches
                .into_iter()
                .map(|path| PathBuf::from(expand_home(path)))
                .collect(),
            configs: Vec::new(),
            defconfig: false,
        }))
    }

    /// Whether the name alone means Debian's own kernel, which needs no build.
    pub fn may_be_debians(&self) -> bool {
        matches!(self.source, Source::Debian(_)) && self.patches.is_empty()
    }

    /// Builds the kernel, unless it is up to date, and returns the path of its Image.
    pub fn build(&self) -> Result<PathBuf> {
        let patches = self.read_patches()?;
        let fragments = self.configs.iter().map(|path| Fragment::read(path));
        let fragments = fragments.collect::<Result<Vec<_>>>()?;
        let compiler = Compiler::find()?;
        let files = self.source.files()?;
        let changes = apply(&self.name_of_source(), &files.folder, &patches)?;
        let options = changes.options.clone();
        let config = Config::new(self.defconfig, fragments, &options)?;
        let mut folder = Folder::open(&self.short_name(), &self.identity()?)?;
        let source = files.folder.display();
        let shares =
            digest::sum(format!("{source}\0{}\0{}", config.shared, compiler.version).as_bytes());
        let made_of = self.hash_inputs(&shares, &config, &patches);
        folder.set_source(&files.folder);
        folder.record.shares = shares;
        let mut seen = std::mem::take(&mut folder.record.seen);
        let copy = folder.copy();
        let before = std::mem::take(&mut folder.record.made_of);
        let stays = tree::sync(&files, &copy, &mut seen).map(|changed| !changed);
        folder.record.seen = seen;
        if stays? && before == made_of && folder.image().is_file() {
            folder.record.made_of = made_of;
            return Ok(folder.image());
        }
        self.compile(&mut folder, &files, changes, &config, &compiler)?;
        for option in config.missing_options(&options, &fs::read_to_string(dot_config(&copy))?) {
            note!(
                "note: the patch adds CONFIG_{option}, and the configuration has it off; set what it depends on by --config"
            );
        }
        folder.record.made_of = made_of;
        folder.mark_used()?;
        Ok(folder.image())
    }

    /// Returns the digest of everything that the kernel's Image is made of.
    fn hash_inputs(&self, shares: &str, config: &Config, patches: &[Patch]) -> String {
        let local = self.local_version();
        let patches = patches.iter().map(|patch| &*patch.text);
        let parts = [shares, &config.text, &local].into_iter().chain(patches);
        let sums: String = parts.map(|part| digest::sum(part.as_bytes())).collect();
        digest::sum(sums.as_bytes())
    }

    /// Brings the copy of the source up to date, configures it and runs `make`.
    fn compile(
        &self,
        folder: &mut Folder,
        files: &Files,
        changes: Changes,
        config: &Config,
        compiler: &Compiler,
    ) -> Result<()> {
        // Until the build ends, the record must not name an Image.
        folder.mark_used()?;
        let copy = folder.copy();
        let now: BTreeSet<String> = changes.files.iter().map(|(path, _)| path.clone()).collect();
        folder.take_objects(&now)?;
        let before = folder.record.patched.clone();
        folder.record.patched = now
            .union(&before.iter().cloned().collect())
            .cloned()
            .collect();
        folder.mark_used()?;
        folder.record.patched = tree::put_patched(files, &copy, &before, changes)?;
        folder.mark_used()?;
        let log = folder.log();
        begin_log(&log)?;
        let (name, release) = (self.short_name(), self.local_version());
        let build = Build {
            name: &name,
            release: &release,
            copy: &copy,
            compiler,
            log: &log,
            files: folder.record.files,
        };
        step!("building {name} with {}", compiler.version);
        configure(folder, &build, config)?;
        let compiled = build.make(&["Image"])?;
        folder.record.files = folder.record.files.max(compiled);
        folder.mark_finished()
    }

    fn read_patches(&self) -> Result<Vec<Patch>> {
        let read = self.patches.iter().map(|path| read_patches(path));
        Ok(read.collect::<Result<Vec<_>>>()?.concat())
    }

    /// Returns the name that messages use for the source to which the patches apply.
    fn name_of_source(&self) -> String {
        match &self.source {
            Source::Debian(version) => format!("debian:{version}"),
            Source::Tree(tree) => tree.display().to_string(),
            Source::Revision { tree, commit } => format!("{}@{commit:.12}", tree.display()),
        }
    }

    /// Returns a text that distinguishes this kernel from other kernels. The text has the names of the kernel's parts,
    /// but not their contents.
    fn identity(&self) -> Result<String> {
        let absolute = |path: &PathBuf| std::path::absolute(path);
        let patches: Vec<_> = self
            .patches
            .iter()
            .map(absolute)
            .collect::<Result<_, _>>()?;
        let configs: Vec<_> = self
            .configs
            .iter()
            .map(absolute)
            .collect::<Result<_, _>>()?;
        let Self {
            source, defconfig, ..
        } = self;
        Ok(format!("{source:?} {patches:?} {configs:?} {defconfig}"))
    }

    /// Returns a short name of the kernel, for its folder and for progress.
    fn short_name(&self) -> String {
        format!("{}{}", self.source.short_name(), self.local_version())
    }

    /// Returns the end of the kernel's release, which names the patches.
    fn local_version(&self) -> String {
        let stem = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = ["patch", "diff", "mbox", "txt", "eml"]
                .iter()
                .find_map(|end| name.strip_suffix(&format!(".{end}")))
                .unwrap_or(&name)
                .to_owned();
            plain_name(&name)
        };
        let names = self.patches.iter().map(stem);
        let mut local: String = names.map(|name| format!("+{name}")).collect();
        local.truncate(RELEASE);
        local
    }
}

fn dot_config(copy: &Path) -> PathBuf {
    copy.join(tree::BUILD).join(".config")
}

/// Makes the configuration at each build, because an earlier build's configuration may lack options that the source did
/// not have then. Kconfig leaves a file unchanged if no setting changes.
fn configure(folder: &Folder, build: &Build<'_>, config: &Config) -> Result<()> {
    let file = dot_config(build.copy);
    let fragments = folder.path.join("fragments.config");
    fs::write(&fragments, &config.text)
        .map_err(|error| shell::files::refused(&fragments, "written", &error))?;
    match config.begin {
        Begin::Base => {
            let all = format!("KCONFIG_ALLCONFIG={}", fragments.display());
            build.make(&["allnoconfig", &all])?;
        }
        Begin::Defconfig => {
            build.make(&["defconfig"])?;
            let text = fs::read_to_string(&file)? + &config.text;
            fs::write(&file, text)?;
            build.make(&["olddefconfig"])?;
        }
        Begin::Whole => {
            shell::files::make_folder(&build.copy.join(tree::BUILD))?;
            fs::write(&file, &config.text)?;
            build.make(&["olddefconfig"])?;
        }
    }
    let result = fs::read_to_string(&file)?;
    let lost = config.lost_of_base(&result);
    if !lost.is_empty() {
        note!(
            "note: this source does not have all of the base configuration: {}",
            lost.join(", ")
        );
    }
    config.check(&result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel::read(name).unwrap().unwrap()
    }

    #[test]
    fn a_name_is_a_source_and_patches() {
        let plain = kernel("debian:6.12");
        assert!(plain.may_be_debians() && plain.patches.is_empty());
        let patched = kernel("debian:6.12+a/000 poll.patch+b.mbox");
        assert_eq!(
            patched.patches,
            [Path::new("a/000 poll.patch"), Path::new("b.mbox")]
        );
        assert!(!patched.may_be_debians());
        assert_eq!(patched.local_version(), "+000-poll+b");
        assert_eq!(patched.short_name(), "debian-6.12+000-poll+b");
        assert!(Kernel::read("Image").unwrap().is_none());
        let error = Kernel::read("Image+x.patch").unwrap_err().to_string();
        assert!(error.contains("Image is no source"), "{error}");
    }

    #[test]
    fn a_release_has_room_for_the_version() {
        let long = format!("debian:6.12+{}.patch", "x".repeat(90));
        assert_eq!(kernel(&long).local_version().len(), RELEASE);
    }
}
