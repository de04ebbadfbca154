// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bao's configuration: the machine and its one guest (`src/core/inc/{platform,config,vm}.h` of Bao).

/// A platform on which Bao starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Address of RAM.
    ram: u64,
    /// Address of the guest's image in the machine's RAM. Bao itself is loaded elsewhere.
    pub image: u64,
    distributor: u64,
    redistributors: u64,
    /// Address of a PL011.
    console: u64,
    /// Whether firmware starts Bao, with PSCI. Without firmware, all CPUs enter Bao's image at once.
    pub has_firmware: bool,
}

/// QEMU's `virt`. Firmware loads Bao at 0x6000_0000.
pub const VIRT: Platform = Platform {
    ram: 0x4000_0000,
    image: 0x4800_0000,
    distributor: 0x800_0000,
    redistributors: 0x80a_0000,
    console: 0x900_0000,
    has_firmware: true,
};

/// gem5's `VExpress_GEM5_V2` (src/dev/arm/RealView.py of gem5). The board loads Bao at the start of its RAM, and all
/// other files after it.
pub const GEM5: Platform = Platform {
    ram: 0x8000_0000,
    image: 0x8200_0000,
    distributor: 0x2c00_0000,
    redistributors: 0x2c01_0000,
    console: 0x1c09_0000,
    has_firmware: false,
};

/// A machine, and its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The machine's devices.
    pub platform: Platform,
    /// Number of CPUs. The guest has all of them.
    pub cpus: u32,
    /// Size of the machine's RAM, in bytes.
    pub memory: u64,
    /// Address of the guest's RAM.
    pub ram: u64,
    /// Size of the guest's RAM, in bytes.
    pub guest: u64,
    /// Size of the guest's image in bytes. The image is at the start of the guest's RAM, and the guest starts there.
    pub image_bytes: u64,
    /// Address of the guest's redistributors.
    pub redistributors: u64,
}

impl Machine {
    /// Returns Bao's description of the machine, as C source.
    pub(super) fn platform(&self) -> String {
        let Self { cpus, memory, .. } = self;
        let Platform {
            ram,
            distributor,
            redistributors,
            console,
            ..
        } = self.platform;
        format!(
            "#include <platform.h>\n\
             struct platform platform = {{\n\
             \x20   .cpu_num = {cpus},\n\
             \x20   .region_num = 1,\n\
             \x20   .regions = (struct mem_region[]) {{ {{ .base = {ram:#x}, .size = {memory:#x} }} }},\n\
             \x20   .console = {{ .base = {console:#x} }},\n\
             \x20   .arch = {{ .gic = {{ .gicd_addr = {distributor:#x}, .gicr_addr = {redistributors:#x}, .maintenance_id = 25 }} }},\n\
             }};\n"
        )
    }

    /// Returns Bao's description of the guest, as C source. The guest's image is used in place. A copy would take
    /// minutes, because Bao maps and invalidates each page individually, so an emulator that runs one CPU at a time
    /// changes CPUs for each page. The guest has the console, and the interrupts of the virtual and the physical timer.
    pub(super) fn guest(&self) -> String {
        let Self {
            cpus,
            ram,
            guest,
            image_bytes,
            redistributors,
            ..
        } = self;
        let Platform { image, console, .. } = self.platform;
        let affinity = (1_u64 << cpus) - 1;
        format!(
            "#include <config.h>\n\
             struct config config = {{\n\
             \x20   .vmlist_size = 1,\n\
             \x20   .vmlist = (struct vm_config[]) {{ {{\n\
             \x20       .image = {{ .base_addr = {ram:#x}, .load_addr = {image:#x}, .size = {image_bytes:#x},\n\
             \x20           .separately_loaded = true, .inplace = true }},\n\
             \x20       .entry = {ram:#x},\n\
             \x20       .cpu_affinity = {affinity:#x},\n\
             \x20       .platform = {{\n\
             \x20           .cpu_num = {cpus},\n\
             \x20           .region_num = 1,\n\
             \x20           .regions = (struct vm_mem_region[]) {{ {{ .base = {ram:#x}, .size = {guest:#x} }} }},\n\
             \x20           .dev_num = 2,\n\
             \x20           .devs = (struct vm_dev_region[]) {{\n\
             \x20               {{ .pa = {console:#x}, .va = 0x9000000, .size = 0x1000,\n\
             \x20                 .interrupt_num = 1, .interrupts = (irqid_t[]) {{ 33 }} }},\n\
             \x20               {{ .interrupt_num = 2, .interrupts = (irqid_t[]) {{ 27, 30 }} }},\n\
             \x20           }},\n\
             \x20           .arch = {{ .gic = {{ .gicd_addr = 0x8000000, .gicr_addr = {redistributors:#x} }} }},\n\
             \x20       }},\n\
             \x20   }} }},\n\
             }};\n"
        )
    }
}
