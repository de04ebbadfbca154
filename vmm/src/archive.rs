// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds an initramfs, an archive of files in the format `newc` (Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! The host's kernel starts `/init`, which is the program `rouse-kvm`. The program then starts itself with each command
//! line in [`RUNS`], one run after another.

/// The name of the program's file.
pub const INIT: &str = "init";
/// The file with the command lines of the program's runs. The file has one word per line, and an empty line between
/// runs. On a simulated host, the simulator provides this text instead: see [`runs_text`].
pub const RUNS: &str = "runs";

/// Kinds of entries (stat(2)).
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_777;
/// The name of the entry that ends an archive.
const END: &str = "TRAILER!!!";
/// Alignment of entries and of their contents, in bytes.
const ALIGN: usize = 4;
/// Alignment in bytes of an archive that follows another one. The value is cpio's own block size.
const BLOCK: usize = 512;

/// Builds an archive from which a kernel starts `program`, which performs `runs`, if any. `guests` are the names and
/// images of files in the root of the archive.
#[must_use]
pub fn initramfs(program: &[u8], runs: &[Vec<String>], guests: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev"] {
        archive.folder(folder, 0o755);
    }
    archive.file(INIT, 0o755, program);
    if !runs.is_empty() {
        archive.file(RUNS, 0o644, runs_text(runs).as_bytes());
    }
    for (name, guest) in guests {
        archive.file(name, 0o644, guest);
    }
    archive.end()
}

/// Returns the text of the file [`RUNS`].
#[must_use]
pub fn runs_text(runs: &[Vec<String>]) -> String {
    let runs: Vec<String> = runs.iter().map(|words| words.join("\n")).collect();
    runs.join("\n\n")
}

/// Returns the command lines in the text of the file [`RUNS`].
#[must_use]
pub fn parse_runs(text: &str) -> Vec<Vec<String>> {
    let words = |run: &str| run.lines().map(str::to_owned).collect();
    text.split("\n\n").map(words).collect()
}

/// Builds an archive that contains only `program`, which the kernel starts.
#[must_use]
pub fn of_program(program: &[u8]) -> Vec<u8> {
    initramfs(program, &[], &[])
}

/// Joins two archives, with zeros between them. A kernel finds the second archive at a multiple of four bytes.
#[must_use]
pub fn joined(mut first: Vec<u8>, second: &[u8]) -> Vec<u8> {
    if !first.is_empty() {
        first.resize((first.len() + ALIGN).next_multiple_of(BLOCK), 0);
    }
    first.extend(second);
    first
}

/// An archive that is being written. A kernel unpacks several archives that follow each other. If two of these archives
/// have files with the same name, the later archive's file is kept.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: usize,
}

impl Archive {
    /// Adds a folder, which has to precede its files.
    pub fn folder(&mut self, name: &str, mode: u32) {
        self.add_entry(name, DIRECTORY | mode, &[]);
    }

    /// Adds a file.
    pub fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.add_entry(name, FILE | mode, content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        self.add_entry(name, LINK, target.as_bytes());
    }

    fn add_entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = content.len();
        // Inode, mode, user, group, links, time, size, two devices of two numbers each, the name's length with its
        // zero, and a checksum, which this format does not use.
        let fields = [
            self.entries,
            mode as usize,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name.len() + 1,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGN), 0);
    }

    /// Returns the whole archive.
    #[must_use]
    pub fn end(mut self) -> Vec<u8> {
        self.add_entry(END, 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads names, modes and contents from an archive by the rules of the format.
    fn read(mut archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            let field = |index: usize| {
                let digits = &archive[6 + 8 * index..][..8];
                usize::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
            };
            assert_eq!(&archive[..6], b"070701");
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = std::str::from_utf8(&archive[110..110 + name_size - 1]).unwrap();
            assert_eq!(archive[110 + name_size - 1], 0);
            let start = (110 + name_size).next_multiple_of(4);
            if name == END {
                return entries;
            }
            let content = archive[start..start + size].to_vec();
            entries.push((name.to_owned(), mode as u32, content));
            archive = &archive[(start + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn an_archive_after_another_follows_zeros() {
        assert_eq!(joined(Vec::new(), b"070701"), b"070701");
        let both = joined(vec![0x1f; 511], b"070701");
        assert_eq!(both.iter().position(|byte| *byte == b'0'), Some(1024));
        assert_eq!(both[511..1024], [0; 513]);
    }

    #[test]
    fn a_kernel_finds_program_runs_and_guests() {
        let run = |words: [&str; 3]| words.map(String::from).to_vec();
        let runs = [run(["--cpus", "2", "a b"]), run(["--rest", "1", "c=d"])];
        let archive = initramfs(b"program", &runs, &[("guest", b"guest!"), ("other", b"")]);
        assert_eq!(archive.len() % 4, 0);
        let entries = read(&archive);
        let names: Vec<&str> = entries.iter().map(|(name, ..)| &**name).collect();
        assert_eq!(names, ["proc", "sys", "dev", INIT, RUNS, "guest", "other"]);
        assert_eq!(entries[3].1, 0o100_755);
        assert_eq!(entries[3].2, b"program");
        let text = String::from_utf8(entries[4].2.clone()).unwrap();
        assert_eq!(super::parse_runs(&text), runs);
        assert_eq!(entries[5].2, b"guest!");
        assert_eq!(entries[6].2, b"");
    }
}
