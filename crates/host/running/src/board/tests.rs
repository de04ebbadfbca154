// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the boards of the source tree, and files that must be refused.

use super::*;
use plan::Word;

use shell::failure::is_bad_input;

#[test]
fn every_board_of_the_tree_can_be_used() {
    for name in names().unwrap() {
        let board = Board::load(&name).unwrap();
        board.cpus(None).unwrap();
        let model = board.model(None).unwrap();
        for metric in board.metrics() {
            board.cpu(model, metric).unwrap();
        }
        for &under in Under::ALL {
            let is_gem5 = matches!(board.machine, EmulatedMachine::Gem5(_));
            let lacks_host = is_gem5 && [Under::Xen, Under::KvmProtected].contains(&under);
            let has_gicv2 = ["raspi4b", "virt-gic2"].contains(&name.as_str());
            let named = [Under::None, Under::Rouse].contains(&under)
                || name == "virt-gic2" && under == Under::Kvm;
            let runs = !lacks_host && (!has_gicv2 || named);
            assert_eq!(board.check_machine(under).is_ok(), runs, "{name}: {under}");
        }
        assert!(
            !board.models.is_empty() && !board.lacks.is_empty(),
            "{name} says what it is"
        );
    }
}

#[test]
fn an_instruction_is_a_tick_on_every_board() {
    for name in names().unwrap() {
        let board = Board::load(&name).unwrap();
        let hertz = board.cpus.counter_hz.get(&Metric::Insns);
        assert!(hertz.is_none_or(|&hertz| hertz == 1_000_000_000), "{name}");
    }
}

#[test]
fn what_is_counted_is_what_the_board_has() {
    let mut board = Board::load("virt").unwrap();
    assert_eq!(board.metric(None).unwrap(), Metric::Insns);
    assert_eq!(board.metric(Some(Metric::Time)).unwrap(), Metric::Time);
    board.cpus.counter_hz.remove(&Metric::Insns);
    board.cpus.counter_hz.insert(Metric::Cycles, 25_000_000);
    assert_eq!(board.metric(None).unwrap(), Metric::Cycles);
    let error = board.metric(Some(Metric::Insns)).unwrap_err();
    let text = error.to_string();
    assert!(
        is_bad_input(&error) && text.contains("--board altra"),
        "{text}"
    );
    assert!(text.ends_with("or --metric cycles, time"), "{text}");
    board.cpus.counter_hz.clear();
    assert!(is_bad_input(&board.metric(None).unwrap_err()));
}

#[test]
fn what_a_board_has_not_is_bad_input() {
    let board = Board::load("virt").unwrap();
    for error in [
        board.cpus(Some(0)).unwrap_err(),
        board.cpus(Some(513)).unwrap_err(),
        board.model(Some("z80")).unwrap_err(),
        Board::load("no-such").unwrap_err(),
        Board::load("no-such.toml").unwrap_err(),
        Board::parse(Path::new("x.toml"), "about = 3").unwrap_err(),
    ] {
        assert!(is_bad_input(&error), "{error:#}");
    }
    let error = board.cpus(Some(999)).unwrap_err().to_string();
    assert!(error.ends_with("the nearest is 512"), "{error}");
}

#[test]
fn models_bring_their_properties_and_the_counter() {
    let board = Board::load("graviton3").unwrap();
    let model = board.model(None).unwrap();
    let cpu = board.cpu(model, Metric::Time).unwrap();
    assert_eq!(cpu, "neoverse-v1,sve256=on,cntfrq=1050000000");
    let board = Board::load("virt").unwrap();
    let cpu = board.cpu("max", Metric::Insns).unwrap();
    assert_eq!(cpu, "max,cntfrq=1000000000");
}

/// Returns the error that results if `was` is replaced by `is` in the file of the board `virt`.
fn refusal(was: &str, is: &str) -> String {
    let text = fs::read_to_string(boards_folder().join("virt.toml")).unwrap();
    assert!(text.contains(was), "{was}");
    let error = Board::parse(Path::new("boards/x.toml"), &text.replace(was, is)).unwrap_err();
    assert!(is_bad_input(&error), "{error:#}");
    let error = format!("{error:#}");
    assert!(
        error.starts_with("boards/x.toml can't be used; correct it: "),
        "{error}"
    );
    error
}

#[test]
fn a_mistake_is_told_by_file_key_and_remedy() {
    for (was, is, told) in [
        ("max = 512", "max = \"64\"", "`max`: invalid type: string"),
        ("max = 512", "most = 64", ": unknown field `most`"),
        ("max = 512\n", "", "missing field `max`"),
        (
            "max = 512",
            "max = 0",
            "`cpus.max`: 0 is not one of 1 to 512",
        ),
        (
            "max = 512",
            "max = 513",
            "`cpus.max`: 513 is not one of 1 to 512",
        ),
        (
            "max = 512",
            "max = 1",
            "`cpus.default`: 2 is not one of 1 to 1",
        ),
        (
            "default = 2",
            "default = 0",
            "`cpus.default`: 0 is not one of 1 to 512",
        ),
        (
            "\"512M\"",
            "\"17179869184G\"",
            "`qemu.memory`: `17179869184G` is not a size",
        ),
        (
            "\"512M\"",
            "\"-1G\"",
            "`qemu.memory`: `-1G` is not a size; use for instance 64M",
        ),
        ("\"512M\"", "\"\"", "`qemu.memory`: `` is not a size"),
        ("lacks = [", "laks = [", ": unknown field `laks`"),
        ("insns = 1", "insn = 1", "unknown variant `insn`"),
        (
            "none = \"virt",
            "xen = \"virt",
            "`qemu.machine.xen`: a guest does not run under that; use rouse, none, kvm",
        ),
        (
            "[qemu]",
            "[qemu]\nvariables = \"x\"",
            "`qemu.variables`: it is firmware that remembers them; add `qemu.firmware`",
        ),
        (
            "[qemu]",
            "[qemu]\nfirmware = \"x\"",
            "`image_base`: firmware puts the image anywhere; leave it out",
        ),
        (
            "[qemu]",
            "[qemu]\nstarts = \"u-boot\"",
            "`qemu.starts`: it is Trusted Firmware-A that starts it; add `qemu.trusted_firmware`",
        ),
        (
            "[qemu]",
            "[gem5]\nscript = \"\"\nparameters = \"\"\nmemory = \"\"\nevent_loses_irq = []\n[qemu]",
            "leave one of them out",
        ),
    ] {
        let error = refusal(was, is);
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn what_only_one_kind_has_is_where_that_kind_is() {
    let load = |name: &str| Board::load(name).unwrap();
    let (virt, altra, gem5) = (load("virt"), load("altra"), load("gem5"));
    assert_eq!(virt.machine.image_base(), Some(0x4020_0000));
    assert_eq!(altra.machine.image_base(), None);
    let (tfa, uboot) = (load("virt-tfa"), load("virt-uboot"));
    assert_eq!(tfa.machine.image_base(), Some(0x6000_0000));
    assert!(!tfa.machine.boots_disks() && uboot.machine.boots_disks());
    assert_eq!(uboot.boot(None).unwrap(), Boot::Virtio);
    assert_eq!(tfa.boot(None).unwrap(), Boot::Kernel);
    assert!(is_bad_input(&uboot.boot(Some(Boot::Kernel)).unwrap_err()));
    assert!(virt.machine.firmware().is_none() && altra.machine.firmware().is_some());
    assert!(gem5.machine.event_loses_irq("o3") && !virt.machine.event_loses_irq("o3"));
    assert!(virt.qemu("x").is_ok() && is_bad_input(&gem5.qemu("x").unwrap_err()));
    assert!(gem5.gem5("x").is_ok() && is_bad_input(&virt.gem5("x").unwrap_err()));
}

/// The board from the developer's guide, as a user would type it.
#[test]
fn the_board_of_the_guide_is_one() {
    let text = include_str!("../../../../../docs/guides/developer.md");
    let (_, rest) = text.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let board = Board::parse(Path::new("desk.toml"), example).unwrap();
    assert_eq!((board.name.as_str(), board.cpus.default), ("desk", 4));
    assert_eq!(board.model(None).unwrap(), "cortex-a76");
}

/// The progress display of such a board must not name a hypervisor that the board can't have.
#[test]
fn a_board_without_el2_is_known() {
    let without = names().unwrap().into_iter();
    let without = without.filter(|name| !Board::load(name).unwrap().has_el2());
    assert_eq!(without.collect::<Vec<_>>(), ["virt-uefi-el1"]);
}

#[test]
fn a_message_names_the_board_and_not_an_option_that_nobody_gave() {
    let of = |name: &str| Board::load(name).unwrap_err().to_string();
    assert!(of("README.md").contains("neither a board's name nor a file NAME.toml"));
    assert!(of("altar").ends_with("or add boards/altar.toml"));
    let gem5 = Board::load("gem5").unwrap();
    let why = gem5.metric(Some(Metric::Insns)).unwrap_err().to_string();
    assert!(why.starts_with("--board gem5: it counts no insns"), "{why}");
}
