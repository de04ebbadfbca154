// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use shell::failure::is_bad_input;

fn refused(place: &Path) -> String {
    let error = Bao::find(Some(place)).unwrap_err();
    assert!(is_bad_input(&error));
    error.to_string()
}

fn write(place: &Path, file: &str, text: &str) {
    let path = place.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_folder_that_is_no_bao_or_another_bao_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    assert!(refused(place).contains("has no Makefile"));
    write(place, "Makefile", "");
    assert!(refused(place).contains("has no src/platform/qemu-aarch64-virt/virt_desc.c"));
    write(place, DESCRIPTION, "");
    let [start, sizes] = CHANGES.each_ref().map(|change| change.file);
    write(place, start, "wait_for_bsp:\n\twfe\n");
    assert!(refused(place).contains("has no src/arch/armv8/armv8-a/aarch64/vmm.c"));
    write(place, sizes, "\tstatic size_t min_parange = 0x7;\n");
    // The label has to be at the beginning of a line.
    assert!(refused(place).contains("has no `wfe` where CPUs wait for the first"));
    write(
        place,
        start,
        "\tb 1b\nwait_for_bsp:\n\tyield\nnext:\n\twfe\n",
    );
    assert!(refused(place).contains("has no `wfe`"));
    write(place, start, "\twfe\nwait_for_bsp:\n\twfe\n\tb x\n");
    let bao = Bao::find(Some(place)).unwrap();
    assert!(bao.told.starts_with("Bao, source "), "{}", bao.told);
    let made = CHANGES
        .each_ref()
        .map(|change| change.changed_text(place).unwrap());
    assert_eq!(
        made,
        [
            "\twfe\nwait_for_bsp:\n\tyield\n\tb x\n",
            "\tstatic size_t min_parange = 0x5;\n"
        ]
    );
    // A checkout with a changed file counts as another Bao.
    write(place, "src/core/init.c", "int x;");
    assert_ne!(Bao::find(Some(place)).unwrap().hash, bao.hash);
}

#[test]
fn only_a_machine_without_firmware_needs_no_call_of_it() {
    let [with, without] = [VIRT, GEM5].map(|platform| changes_for(of(platform)).count());
    assert_eq!((with, without), (2, 3));
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let call = "\t__asm__ volatile(\"smc\t#0\\n\");\n";
    write(place, NO_FIRMWARE.file, &call.replace("smc\t", "hvc\t"));
    let error = NO_FIRMWARE.changed_text(place).unwrap_err();
    assert!(
        error.to_string().contains("no `smc\\t#0` as its call"),
        "{error}"
    );
    write(place, NO_FIRMWARE.file, call);
    assert_eq!(
        NO_FIRMWARE.changed_text(place).unwrap(),
        "\t__asm__ volatile(\"mov x0, #-4\\n\");\n"
    );
}

fn of(platform: Platform) -> Machine {
    Machine {
        platform,
        cpus: 4,
        memory: 0x4000_0000,
        ram: 0x4000_0000,
        guest: 0x300_0000,
        image_bytes: 0x40_0000,
        redistributors: 0x1000_0000,
    }
}

#[test]
fn its_configuration_has_all_cpus() {
    let machine = of(VIRT);
    let guest = machine.guest();
    for part in [
        ".base_addr = 0x40000000, .load_addr = 0x48000000, .size = 0x400000,",
        ".cpu_affinity = 0xf,",
        ".size = 0x3000000",
    ] {
        assert!(guest.contains(part), "{guest}");
    }
    assert!(machine.platform().contains(".cpu_num = 4,"));
}

#[test]
fn the_guest_is_the_same_on_another_machine() {
    let machine = of(GEM5);
    let (guest, platform) = (machine.guest(), machine.platform());
    // The machines' addresses differ, but the guest's do not.
    for part in [
        ".base_addr = 0x40000000, .load_addr = 0x82000000,",
        ".pa = 0x1c090000, .va = 0x9000000,",
        ".gicd_addr = 0x8000000, .gicr_addr = 0x10000000",
    ] {
        assert!(guest.contains(part), "{guest}");
    }
    for part in [
        ".base = 0x80000000, .size = 0x40000000",
        ".base = 0x1c090000",
        ".gicd_addr = 0x2c000000, .gicr_addr = 0x2c010000",
    ] {
        assert!(platform.contains(part), "{platform}");
    }
}
