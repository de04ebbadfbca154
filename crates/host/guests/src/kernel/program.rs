// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns a bare-metal program into an arm64 Image. Such a program is an ELF file that may be loaded anywhere, begins at
//! address 0 with its first instruction, and gets the address of the device tree in X0. The tests of kvm-unit-tests
//! (`arm/gic.elf`) are such programs: they relocate themselves, find their stack by alignment to the largest page, and
//! expect the device tree after themselves (arm/cstart64.S, arm/flat.lds and lib/arm/setup.c of kvm-unit-tests).
//!
//! | From the start of the Image | There is |
//! |---|---|
//! | 0 | the header and [`LOADER`], in [`ALIGN`] bytes |
//! | `ALIGN` | the program with its zeroed memory |
//! | [`STACK`] bytes later, at a multiple of `ALIGN` | the copy of the device tree |

use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSegment, elf};

use super::MOST;

/// Bytes of the largest page: the alignment of a program and of its stack.
const ALIGN: usize = 64 << 10;
/// Bytes for the program's stack, which no segment of the file contains: flat.lds reserves 128 KiB at most.
const STACK: usize = 1 << 20;
/// Largest size of a device tree in bytes (Linux, Documentation/arch/arm64/booting.rst, "Setup the device tree").
const TREE: usize = 2 << 20;
/// The Image's flags: little-endian, loaded anywhere (booting.rst, "Call the kernel image").
const FLAGS: u64 = 1 << 3;
/// The header's first instruction: a branch over the header.
const BRANCH: u32 = 0x1400_0010;
/// Index of the instruction in [`LOADER`] whose bits 20:5 hold the offset of the tree's copy, in units of [`ALIGN`].
const COPY_OFFSET: usize = 1;
/// Copies the device tree and enters the program. The MMU is off, so accesses must be aligned; trees are (booting.rst).
const LOADER: [u32; 14] = [
    0x10ff_fe09, // adr  x9, header
    0xd2a0_000a, // movz x10, #units, lsl #16
    0x8b0a_012a, // add  x10, x9, x10
    0xb940_040b, // ldr  w11, [x0, #4]: the tree's size, big-endian
    0x5ac0_096b, // rev  w11, w11
    0x8b0b_000b, // add  x11, x0, x11
    0xaa0a_03ec, // mov  x12, x10
    0xf840_840d, // ldr  x13, [x0], #8
    0xf800_858d, // str  x13, [x12], #8
    0xeb0b_001f, // cmp  x0, x11
    0x54ff_ffa3, // b.lo ldr
    0xaa0a_03e0, // mov  x0, x10
    0x9140_4129, // add  x9, x9, #0x10, lsl #12
    0xd61f_0120, // br   x9
];

/// Returns the Image of the program in `file`, or `file` itself if it contains no such program. The error text
/// continues a sentence that begins with the file's name.
pub fn find_image(file: Vec<u8>) -> Result<Vec<u8>, String> {
    let Some(program) = load(&file) else {
        return Ok(file);
    };
    let program = program?;
    let copy = (ALIGN + program.len() + STACK).next_multiple_of(ALIGN);
    let mut image = header(copy);
    image.resize(ALIGN, 0);
    image.extend(program);
    Ok(image)
}

/// Returns the memory of the program in `file`, from address 0, unless `file` is another kind of file.
fn load(file: &[u8]) -> Option<Result<Vec<u8>, String>> {
    let elf = ElfFile64::<Endianness>::parse(file).ok()?;
    let header = elf.elf_header();
    let is_of_arm = header.e_machine(elf.endian()) == elf::EM_AARCH64 && elf.is_little_endian();
    let is_anywhere = header.e_type(elf.endian()) == elf::ET_DYN && elf.entry() == 0;
    if !is_of_arm || !is_anywhere {
        return None;
    }
    let mut memory = Vec::new();
    for segment in elf.segments() {
        let end = segment.address().checked_add(segment.size());
        let end = end.filter(|&end| end <= MOST as u64);
        let data = segment.data().ok();
        let data = data.filter(|data| data.len() as u64 <= segment.size());
        let (Some(end), Some(data)) = (end, data) else {
            return Some(Err(
                "is an ELF file that is cut short, or has a segment beyond its first GiB; link it again".into(),
            ));
        };
        let start = segment.address() as usize;
        memory.resize(memory.len().max(end as usize), 0);
        memory[start..][..data.len()].copy_from_slice(data);
    }
    Some(Ok(memory))
}

/// Returns the header of an Image, and the code that copies the device tree to `copy` bytes after the header's start.
fn header(copy: usize) -> Vec<u8> {
    let mut code = LOADER;
    code[COPY_OFFSET] |= ((copy / ALIGN) as u32) << 5;
    let mut header = Vec::new();
    header.extend(u64::from(BRANCH).to_le_bytes());
    header.extend(0_u64.to_le_bytes());
    header.extend(((copy + TREE) as u64).to_le_bytes());
    header.extend(FLAGS.to_le_bytes());
    header.extend([0; 24]);
    header.extend(*b"ARM\x64\0\0\0\0");
    header.extend(code.iter().flat_map(|insn| insn.to_le_bytes()));
    header
}

#[cfg(test)]
mod tests {
    use platform::image::Image;

    use super::*;

    /// An ELF file with one segment, the two words of `code`.
    fn program(
        kind: elf::FileType,
        machine: elf::Machine,
        entry: u64,
        memory: u64,
        code: [u32; 2],
    ) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend(kind.0.to_le_bytes());
        file.extend(machine.0.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
        file.extend([entry, 64, 0].map(u64::to_le_bytes).concat());
        file.extend(0_u32.to_le_bytes());
        file.extend([64, 56, 1, 64, 0, 0].map(u16::to_le_bytes).concat());
        file.extend([elf::PT_LOAD.0, 5].map(u32::to_le_bytes).concat());
        let fields = [120, entry, entry, 8, memory, 4];
        file.extend(fields.map(u64::to_le_bytes).concat());
        file.extend(code.map(u32::to_le_bytes).concat());
        file
    }

    #[test]
    fn a_program_follows_the_header_and_precedes_the_tree() {
        let file = program(elf::ET_DYN, elf::EM_AARCH64, 0, 0x1_0004, [1, 2]);
        let image = find_image(file).unwrap();
        let header = Image::parse(&image).unwrap();
        assert_eq!(header.size, 0x13_0000 + TREE as u64);
        assert!(header.anywhere);
        assert_eq!(image[..4], BRANCH.to_le_bytes());
        assert_eq!(image[0x44..0x48], 0xd2a0_026a_u32.to_le_bytes());
        assert_eq!(image[ALIGN..ALIGN + 8], [1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(image.len(), ALIGN + 0x1_0004);
        assert!(image[ALIGN + 8..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn another_file_stays() {
        for (kind, machine, entry) in [
            (elf::ET_EXEC, elf::EM_AARCH64, 0),
            (elf::ET_DYN, elf::EM_X86_64, 0),
            (elf::ET_DYN, elf::EM_AARCH64, 0xffff_8000_8000_0000),
        ] {
            let file = program(kind, machine, entry, 8, [1, 2]);
            assert_eq!(find_image(file.clone()).unwrap(), file);
        }
        assert_eq!(find_image(b"\x7fELF".to_vec()).unwrap(), b"\x7fELF");
    }

    #[test]
    fn a_damaged_program_is_refused() {
        let whole = program(elf::ET_DYN, elf::EM_AARCH64, 0, 8, [1, 2]);
        let cut = whole[..whole.len() - 1].to_vec();
        let of_memory = |memory| program(elf::ET_DYN, elf::EM_AARCH64, 0, memory, [1, 2]);
        for file in [cut, of_memory(7), of_memory(u64::MAX), of_memory(2 << 30)] {
            assert!(find_image(file).unwrap_err().contains("link it again"));
        }
    }
}
