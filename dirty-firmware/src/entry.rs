// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the first and the last instructions, and the calls to EL3.
//!
//! QEMU puts the firmware into flash at address 0 and starts there: at EL3 with every CPU or, if the machine
//! has no EL3, at EL2 with the first CPU. Flash can't be written, so the first CPU copies the image to RAM and
//! continues there. The RAM is at [`HOME_EL2`] for EL2, and at [`HOME_EL3`] for EL3; lower exception levels
//! have no access to the latter.

/// Address of the image on a machine that starts at EL2.
pub const HOME_EL2: u64 = 0x4800_0000;
/// Address of the image on a machine that starts at EL3, in the secure RAM of QEMU's `virt`.
pub const HOME_EL3: u64 = 0x0e00_0000;
/// The word in secure RAM that CPUs at EL3 poll until the image is copied; it then holds the address at which they
/// continue.
const GATE: u64 = HOME_EL3 + 0xff_0000;
/// Maximum number of CPUs. Each CPU has a stack here.
pub const CPUS: usize = 8;
/// Bytes of a stack.
const STACK: usize = 0x8000;

arch::symbol_addresses! {
    /// Entry of each other CPU, at EL2, with its number as the context id of CPU_ON.
    secondary_entry = firmware_secondary_entry;
    /// The vectors of EL3.
    vectors = firmware_vectors;
    /// End of the image.
    image_end = __image_end;
}

/// The state in which a CPU enters the next image.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Entry {
    /// The address that is entered.
    pub address: u64,
    /// The value of x0.
    pub x0: u64,
    /// The value of HCR_EL2.
    pub hcr: u64,
    /// The value of SCTLR_EL2.
    pub sctlr: u64,
    /// PSTATE: PAN (22), DAIF (9:6), level and stack pointer (3:0), with the layout of SPSR.
    pub pstate: u64,
    /// Value of the general registers from x4 on; the boot protocol requires x1 to x3 to be zero.
    pub pattern: u64,
    /// Not 0 if the event register is to hold an event.
    pub event: u64,
    /// Value of the two stack pointers, if not 0.
    pub stacks: u64,
}

unsafe extern "C" {
    /// Enters the next image, from EL3 or EL2.
    pub fn firmware_leave(entry: &Entry) -> !;
    /// Gives this CPU the stack of CPU `number`, and continues at [`crate::cpus::pen`].
    pub fn firmware_wait(number: u64) -> !;
}

/// Releases the CPUs that wait at EL3.
pub fn release_cpus() {
    // SAFETY: only this program uses this RAM.
    unsafe { (GATE as *mut u64).write_volatile(secondary_entry()) };
    arch::insn::dsb_sy();
    arch::insn::sev();
}

core::arch::global_asm!(
    r#"
    .section .head, "ax"
    .global _head
_head:
    b       firmware_reset

    .section .text.boot, "ax"
firmware_reset:
    mrs     x1, CurrentEL
    cmp     x1, #12
    mov     x20, #{home_el2}
    mov     x1, #{home_el3}
    csel    x20, x1, x20, eq
    bl      firmware_number
    cbnz    x0, 3f
    adrp    x1, _head
    add     x1, x1, :lo12:_head
    adrp    x2, __image_end
    add     x2, x2, :lo12:__image_end
    mov     x3, x20
1:  ldp     x4, x5, [x1], #16
    stp     x4, x5, [x3], #16
    cmp     x1, x2
    b.lo    1b
    dsb     sy
    ic      iallu
    dsb     sy
    isb
    adr     x1, firmware_moved
    adr     x2, firmware_reset
    adrp    x3, _head
    add     x3, x3, :lo12:_head
    sub     x1, x1, x3
    add     x1, x1, x20
    br      x1
    // The other CPUs, at EL3.
3:  mov     x1, #{gate}
4:  ldr     x2, [x1]
    cbnz    x2, 5f
    wfe
    b       4b
5:  isb
    br      x2

firmware_moved:
    adrp    x1, firmware_stacks + {stack}
    add     sp, x1, :lo12:firmware_stacks + {stack}
    bl      _image_relocate
    bl      firmware_start

    // x0 = the number of this CPU, by its affinity. Clobbers x1.
firmware_number:
    mrs     x1, mpidr_el1
    and     x0, x1, #15
    ubfx    x1, x1, #8, #8
    add     x0, x0, x1, lsl #4
    ret

    .global firmware_secondary_entry
firmware_secondary_entry:
    msr     spsel, #1
    bl      firmware_number
    .global firmware_wait
firmware_wait:
    adrp    x1, firmware_stacks + {stack}
    add     x1, x1, :lo12:firmware_stacks + {stack}
    mov     x2, #{stack}
    madd    x1, x0, x2, x1
    mov     sp, x1
    bl      {pen}

    .global firmware_leave
firmware_leave:
    mov     x16, x0
    ldp     x17, x0, [x16]                  // address, x0
    ldp     x1, x2, [x16, #16]              // hcr, sctlr
    ldp     x3, x15, [x16, #32]             // pstate, pattern
    ldp     x4, x5, [x16, #48]              // event, stacks
    cbz     x4, 1f
    sevl
1:  mrs     x4, CurrentEL
    cmp     x4, #12
    b.eq    5f
    cbz     x5, 6f
    msr     sp_el0, x5
    mov     sp, x5
6:  tbnz    x3, #0, 3f
    msr     spsel, #0
3:  tbz     x3, #22, 7f
    msr     S3_0_C4_C2_3, x3                // PAN
7:  msr     daif, x3
    b       2f
5:  cbz     x5, 2f
    msr     sp_el0, x5
    msr     sp_el2, x5
2:  mov     x16, x3
    // From here on nothing is loaded or stored: data may be big-endian.
    msr     hcr_el2, x1
    msr     sctlr_el2, x2
    isb
    mov     x1, #0
    mov     x2, #0
    mov     x3, #0
    .irp    n, 5,6,7,8,9,10,11,12,13,14,18,19,20,21,22,23,24,25,26,27,28,29,30
    mov     x\n, x15
    .endr
    cmp     x4, #12
    mov     x4, x15
    b.eq    4f
    br      x17
4:  msr     spsr_el3, x16
    msr     elr_el3, x17
    mov     x16, x15
    mov     x17, x15
    eret

    .balign 2048
    .global firmware_vectors
firmware_vectors:
    .rept   8
    .balign 128
    b       firmware_lost
    .endr
    .balign 128
    stp     x29, x30, [sp, #-160]!          // a call from EL2
    stp     x4, x5, [sp, #16]
    stp     x6, x7, [sp, #32]
    stp     x8, x9, [sp, #48]
    stp     x10, x11, [sp, #64]
    stp     x12, x13, [sp, #80]
    stp     x14, x15, [sp, #96]
    stp     x16, x17, [sp, #112]
    stp     x18, x1, [sp, #128]
    stp     x2, x3, [sp, #144]
    mrs     x4, esr_el3
    bl      {call}
    ldp     x4, x5, [sp, #16]
    ldp     x6, x7, [sp, #32]
    ldp     x8, x9, [sp, #48]
    ldp     x10, x11, [sp, #64]
    ldp     x12, x13, [sp, #80]
    ldp     x14, x15, [sp, #96]
    ldp     x16, x17, [sp, #112]
    ldp     x18, x1, [sp, #128]
    ldp     x2, x3, [sp, #144]
    ldp     x29, x30, [sp], #160
    eret
    .rept   7
    .balign 128
    b       firmware_lost
    .endr
firmware_lost:
    mrs     x0, esr_el3
    mrs     x1, elr_el3
    bl      {lost}

    .section .bss.firmware_stacks, "aw", @nobits
    .balign 16
firmware_stacks:
    .space  {cpus} * {stack}

    .section .text.boot, "ax"
    "#,
    arch::relocation!(),
    home_el2 = const HOME_EL2,
    home_el3 = const HOME_EL3,
    gate = const GATE,
    stack = const STACK,
    cpus = const CPUS,
    pen = sym crate::cpus::pen,
    call = sym crate::el3::call,
    lost = sym crate::el3::lost,
);
