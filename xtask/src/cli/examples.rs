// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two examples of each verb, for its help and for its manual page.

/// Each verb with its examples: the words after `cargo xtask`, and their purpose.
const EXAMPLES: [(&str, [(&str, &str); 2]); 20] = [
    (
        "run",
        [
            ("run", "the answer in one screen, in a few seconds"),
            (
                "run --guest debian --under none,kvm --workload linux-pipe --format mail",
                "Linux alone and as a guest of KVM, as a text for a mailing list",
            ),
        ],
    ),
    (
        "compare",
        [
            (
                "compare before after",
                "two runs that `run --save` has named",
            ),
            ("compare --over-time results", "the same cells in many runs"),
        ],
    ),
    (
        "report",
        [
            (
                "report serial.log",
                "the table and the page of a console's log",
            ),
            (
                "report here.log there.log --out both.html",
                "two machines on one page",
            ),
        ],
    ),
    (
        "kernel",
        [
            (
                "kernel debian:6.12 --patch poll.patch",
                "Debian's source with a patch, and the path of the Image",
            ),
            (
                "kernel ~/linux@v6.12 --config more.config",
                "a revision of a tree, with further settings",
            ),
        ],
    ),
    (
        "cost",
        [
            (
                "cost --compare",
                "did a path become longer than the newest baseline?",
            ),
            ("cost --asm sgi-send", "the instructions of one path"),
        ],
    ),
    (
        "image",
        [
            (
                "image --board virt-uefi --out rouse.disk",
                "a disk that firmware boots",
            ),
            (
                "image --for kvm --out rouse-kvm",
                "one program for an arm64 host with /dev/kvm",
            ),
        ],
    ),
    (
        "doctor",
        [
            ("doctor", "what is here, and how to get the rest"),
            ("doctor --boards", "the machines that can be emulated"),
        ],
    ),
    (
        "experiment",
        [
            (
                "experiment where-to-poll",
                "one published measurement, repeated and judged",
            ),
            (
                "experiment all --jobs 1 --format md",
                "all of them, as Markdown",
            ),
        ],
    ),
    (
        "explain",
        [
            (
                "explain --workload pingpong --wait wfi,poll-wfi",
                "each function between the waker's store and the woken task",
            ),
            (
                "explain --guest debian:6.12,debian --under kvm --workload linux-pipe",
                "where the difference of two kernels lies",
            ),
        ],
    ),
    (
        "governors",
        [
            (
                "governors --generate bursty",
                "all governors on made-up idle times",
            ),
            (
                "governors --trace perf.txt --states poll+wfi+deep",
                "a recording of Linux, with three idle states",
            ),
        ],
    ),
    (
        "test",
        [
            ("test --host-only", "the tests that boot nothing"),
            ("test sgi", "the tests with `sgi` in their names"),
        ],
    ),
    (
        "dev soak",
        [
            ("dev soak --minutes 10", "ten minutes of random operations"),
            ("dev soak --minutes 1 --seed 7", "the same operations again"),
        ],
    ),
    (
        "dev publish",
        [
            ("dev publish virt", "measure a board again and keep it"),
            ("dev publish --check", "do the stored figures still hold?"),
        ],
    ),
    (
        "dev dist",
        [
            ("dev dist", "the files of a release, in target/dist"),
            ("dev dist --to release", "likewise in a folder of that name"),
        ],
    ),
    (
        "dev build",
        [
            ("dev build", "the image for QEMU's virt"),
            (
                "dev build --guest Image",
                "with another kernel as its guest",
            ),
        ],
    ),
    (
        "dev book",
        [
            ("dev book", "the site, and its path"),
            ("dev book --help", "where it is made"),
        ],
    ),
    (
        "dev pages",
        [
            ("dev pages", "look at a page of each kind"),
            (
                "dev pages report.html --pictures seen",
                "look at one page and keep the pictures",
            ),
        ],
    ),
    (
        "dev audit",
        [
            ("dev audit", "licences and versions"),
            (
                "dev audit --advisory-db advisory-db",
                "and the advisories of that folder",
            ),
        ],
    ),
    (
        "dev completions",
        [
            ("dev completions bash", "rules to source in ~/.bashrc"),
            ("dev completions fish", "likewise for another shell"),
        ],
    ),
    (
        "dev man",
        [
            ("dev man run", "the page of one verb"),
            ("dev man", "the page of all"),
        ],
    ),
];

/// Heading of the examples in a verb's help.
pub const HEADING: &str = "Examples";

/// Returns the examples of `verb`, each with its shell line and its purpose.
pub fn examples_of(verb: &str) -> &'static [(&'static str, &'static str)] {
    let known = EXAMPLES.iter().find(|(name, _)| *name == verb);
    known.map_or(&[], |(_, examples)| examples)
}

/// Returns the examples of `verb` as a part of the verb's help.
pub fn examples_help(verb: &str) -> String {
    let lines = examples_of(verb)
        .iter()
        .map(|(line, purpose)| format!("\n  cargo xtask {line}\n      {purpose}"));
    format!("{HEADING}:{}", lines.collect::<String>())
}
