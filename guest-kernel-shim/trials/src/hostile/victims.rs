// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs victim vCPUs. Each victim does one fatal thing with translation off and no stack: CPU_ON enters it
//! at the code for that thing.

use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use platform::Region;

use guest_kernel_shim::hypervisor::{self, call};
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::{self, PerCpu};
use guest_kernel_shim::{clock, workers};

/// PSCI functions (DEN0022F.b, 5.1) and return values.
pub const CPU_ON: u64 = 0xc400_0003;
pub const AFFINITY_INFO: u64 = 0xc400_0004;
const OFF: u64 = 1;

global_asm!(
    arch::gicv2_site_macro!(),
    r#"
    // Masks and disables all interrupts of the running CPU. Clobbers x1.
    .macro victim_disable
    gicv2_instead 7f
    msr     S3_0_C4_C6_0, xzr               // ICC_PMR_EL1
    msr     S3_0_C12_C12_7, xzr             // ICC_IGRPEN1_EL1
    isb
    b       8f
7:  victim_frame x1, {interface}
    str     wzr, [x1, #4]                   // GICC_PMR
    str     wzr, [x1]                       // GICC_CTLR
8:
    .endm

    // Gets the address of a frame of a GICv2.
    .macro victim_frame to, frame
    adrp    \to, {shared}
    add     \to, \to, :lo12:{shared}
    ldr     \to, [\to, #\frame]
    .endm

    // Gives the interface to the guest if bit 0 of x0 is set, and clears that bit.
    .macro victim_deliver
        tbz     x0, #0, 1f
        and     x19, x0, #~1
        ldr     x0, ={set}
        mov     x1, #{deliver}
        mov     x2, #1
        hvc     #0
        mov     x0, x19
1:
    .endm

    .section .text.hostile, "ax"
    // Counts at [x0] and turns itself off.
    .global victim_off
victim_off:
    ldr     x1, [x0]
    add     x1, x1, #1
    str     x1, [x0]
    dsb     sy
    mov     x0, #0x84000000
    add     x0, x0, #2                      // CPU_OFF
    hvc     #0
    b       .

    // Makes as many interrupts active as it can, then turns itself off.
    .global victim_off_active
// strict any rule: it is hostile.
victim_off_active:
    gicv2_instead 5f
    mov     x1, #7
    msr     S3_0_C12_C12_5, x1              // ICC_SRE_EL1
    mov     x1, #0xffffffff
    msr     S3_0_C12_C9_0, x1               // ICC_AP1R0_EL1
    msr     S3_0_C12_C8_4, x1               // ICC_AP0R0_EL1
    b       6f
5:  mov     w1, #-1
    victim_frame x2, {distributor}
    str     w1, [x2, #0x300]                // GICD_ISACTIVER0
    victim_frame x2, {interface}
    str     w1, [x2, #0xd0]                 // GICC_APR0
6:  victim_disable
    b       victim_off

    // Gets the interface for itself first.
    .global victim_off_direct
victim_off_direct:
    orr     x0, x0, #1
    victim_deliver
    b       victim_off_active

    // Gets the interface for itself, and turns itself off.
    .global victim_off_owned
victim_off_owned:
    orr     x0, x0, #1
    victim_deliver
    b       victim_off

    // Gets the interface for itself and gives it back, again and again, counts at [x0, #8] when
    // EL2 does not agree with the machine, and turns itself off.
    .global victim_switch
victim_switch:
    mov     x20, x0
    mov     x21, #32
1:  orr     x0, x20, #1
    victim_deliver
    ldr     x0, ={set}
    mov     x1, #{deliver}
    mov     x2, #0
    hvc     #0
    cbnz    x0, 2f                          // refused: something is active
    ldr     x0, ={audit}
    mov     x1, #{told}
    hvc     #0
    cbz     x0, 2f
    ldr     x1, [x20, #8]
    add     x1, x1, #1
    str     x1, [x20, #8]
    dsb     sy
2:  subs    x21, x21, #1
    b.ne    1b
    mov     x0, x20
    b       victim_off

    // Takes each of SGIs 0 to 15, and turns itself off; x0 is as in the previous two.
    .global victim_takes_direct
// strict any rule: it is hostile.
victim_takes_direct:
    orr     x0, x0, #1
    .global victim_takes
// strict any rule: it is hostile.
victim_takes:
    victim_deliver
    mov     x3, #0
    mov     x4, #0xffff
    gicv2_instead 4f
    mov     x1, #7
    msr     S3_0_C12_C12_5, x1              // ICC_SRE_EL1
    mov     x1, #0xff
    msr     S3_0_C4_C6_0, x1                // ICC_PMR_EL1
    mov     x1, #1
    msr     S3_0_C12_C12_7, x1              // ICC_IGRPEN1_EL1
    isb
3:  mrs     x1, S3_0_C12_C12_0              // ICC_IAR1_EL1
    cmp     x1, #16
    b.hs    3b
    msr     S3_0_C12_C12_1, x1              // ICC_EOIR1_EL1
    isb
    mov     x2, #1
    lsl     x2, x2, x1
    orr     x3, x3, x2
    cmp     x3, x4
    b.ne    3b
    b       victim_off
4:  victim_frame x5, {interface}
    mov     w1, #0xff
    str     w1, [x5, #4]                    // GICC_PMR
    mov     w1, #1
    str     w1, [x5]                        // GICC_CTLR
5:  ldr     w1, [x5, #0xc]                  // GICC_IAR
    and     w2, w1, #0x3ff
    cmp     w2, #16
    b.hs    5b
    str     w1, [x5, #0x10]                 // GICC_EOIR
    mov     x6, #1
    lsl     x6, x6, x2
    orr     x3, x3, x6
    cmp     x3, x4
    b.ne    5b
    b       victim_off

    // Executes an undefined instruction, with the vectors at x0.
    .global victim_vectors
victim_vectors:
    msr     vbar_el1, x0
    isb
    udf     #0
    b       .

    // Jumps to x0, with the vectors there too.
    .global victim_jump
victim_jump:
    msr     vbar_el1, x0
    isb
    br      x0

    // Makes a call that traps in EL2, with the vectors at x0.
    .global victim_trap
victim_trap:
    msr     vbar_el1, x0
    isb
    mrs     x1, S3_0_C15_C0_0
    b       .

    // Turns translation on with its tables at x0.
    .global victim_tables
victim_tables:
    msr     vbar_el1, x0
    msr     ttbr0_el1, x0
    msr     ttbr1_el1, x0
    ldr     x1, =0x580103510
    msr     tcr_el1, x1
    mov     x1, #0xff
    msr     mair_el1, x1
    isb
    ldr     x1, =0x30d01805
    msr     sctlr_el1, x1
    isb
    b       .

    // Masks everything, disables everything and spins.
    .global victim_spin
victim_spin:
    victim_deliver
    msr     daifset, #15
    victim_disable
11: b       11b

    // Masks everything, disables everything and waits.
    .global victim_sleep
victim_sleep:
    victim_deliver
    msr     daifset, #15
    victim_disable
12: wfi
    b       12b

    // Executes undefined instructions for ever, without leaving EL1.
    .global victim_recurse
victim_recurse:
    victim_deliver
    adr     x1, victim_zeros
    msr     vbar_el1, x1
    isb
    udf     #0

    // Sends every SGI to all CPUs, for ever.
    .global victim_storm
victim_storm:
    victim_deliver
    mov     x2, #0
    gicv2_instead 14f
    mov     x1, #7
    msr     S3_0_C12_C12_5, x1
    isb
    mov     x1, #(1 << 40)
13: and     x3, x2, #15
    orr     x3, x1, x3, lsl #24
    msr     S3_0_C12_C11_5, x3
    add     x2, x2, #1
    b       13b
14: victim_frame x5, {distributor}
    mov     w1, #(1 << 24)                  // all CPUs but this one
15: and     w3, w2, #15
    orr     w3, w1, w3
    str     w3, [x5, #0xf00]                // GICD_SGIR
    add     w2, w2, #1
    b       15b

    // Makes calls that are not served, for ever.
    .global victim_call
victim_call:
    victim_deliver
14: mov     x0, #0xc6000000
    hvc     #0
    smc     #0
    b       14b

    // Accesses the unmapped address in x0, for ever.
    .global victim_touch
victim_touch:
    victim_deliver
    adr     x1, victim_returns
    msr     vbar_el1, x1
    isb
15: ldr     w1, [x0]
    str     w1, [x0]
    ldp     x1, x2, [x0]
    b       15b

    // Rewrites the enables of its redistributor, x0, for ever.
    .global victim_enable
victim_enable:
    victim_deliver
    mov     w1, #-1
16: str     w1, [x0, #0x100]
    str     w1, [x0, #0x180]
    str     w1, [x0, #0x200]
    str     w1, [x0, #0x280]
    str     w1, [x0, #0x300]
    str     w1, [x0, #0x380]
    b       16b

    .section .text.vectors, "ax"
    .balign 2048
victim_zeros:
    .space  2048
victim_returns:
    .rept   16
    .balign 128
    mrs     x9, elr_el1
    add     x9, x9, #4
    msr     elr_el1, x9
    eret
    .endr
    .balign 2048
    .purgem gicv2_instead
    "#,
    set = const abi::Call::Set.function(),
    deliver = const abi::Knob::Deliver as usize,
    audit = const abi::Call::Audit.function(),
    told = const abi::audit::RUNNING_TOLD,
    shared = sym SHARED,
    distributor = const offset_of!(SharedWithVictims, distributor),
    interface = const offset_of!(SharedWithVictims, interface),
);

arch::symbol_addresses! {
    /// Counts its visit, and turns itself off.
    off = victim_off;
    /// Turns itself off while it has active interrupts.
    off_active = victim_off_active;
    /// Turns itself off while it has active interrupts and owns the physical CPU interface.
    off_direct = victim_off_direct;
    /// Turns itself off while it owns the physical CPU interface.
    off_owned = victim_off_owned;
    /// Takes ownership of the CPU interface, gives it back, and turns itself off.
    switch = victim_switch;
    /// Takes every SGI, and turns itself off.
    takes = victim_takes;
    /// Takes every SGI, and turns itself off, while it owns the physical CPU interface.
    takes_direct = victim_takes_direct;
    /// Sets its vectors to the given address, and causes an exception.
    vectors = victim_vectors;
    /// Jumps to the given address, and has its vectors there as well.
    jump = victim_jump;
    /// Sets its vectors to the given address, and causes an exception that EL2 injects.
    trap = victim_trap;
    /// Sets its translation tables to the given address.
    tables = victim_tables;
    /// Spins with everything disabled.
    spin = victim_spin;
    /// Waits with everything disabled.
    sleep = victim_sleep;
    /// Causes exceptions at EL1 for ever.
    recurse = victim_recurse;
    /// Sends interrupts to all CPUs.
    storm = victim_storm;
    /// Makes calls.
    make_calls = victim_call;
    /// Accesses the given address.
    touch = victim_touch;
    /// Writes to the given redistributor.
    enable = victim_enable;
}

/// Memory that victims access with caches off: their counts, and the addresses of a GICv2's frames.
#[repr(C, align(64))]
struct SharedWithVictims {
    visits: AtomicU64,
    complaints: AtomicU64,
    distributor: AtomicU64,
    interface: AtomicU64,
}
static SHARED: SharedWithVictims = SharedWithVictims {
    visits: AtomicU64::new(0),
    complaints: AtomicU64::new(0),
    distributor: AtomicU64::new(0),
    interface: AtomicU64::new(0),
};

/// Cleans and invalidates the memory that victims access with caches off.
fn clean_shared() {
    pages::clean(Region {
        base: &raw const SHARED as u64,
        size: size_of::<SharedWithVictims>() as u64,
    });
}

/// Returns the number of visits that victims have counted.
pub fn visit_count() -> u64 {
    clean_shared();
    SHARED.visits.load(Acquire)
}

/// Returns the number of times that EL2's audit did not agree with the machine.
pub fn complaint_count() -> u64 {
    clean_shared();
    SHARED.complaints.load(Acquire)
}

/// Resets the two counts, and returns their address.
pub fn reset_counts() -> u64 {
    SHARED.visits.store(0, Release);
    SHARED.complaints.store(0, Release);
    clean_shared();
    SHARED.visits.as_ptr() as u64
}

/// Records where the frames of a GICv2 are, for victims.
pub fn note_frames() {
    let gic = &platform().gic;
    SHARED.distributor.store(gic.distributor.base, Release);
    let interface = gic.version2.map_or(0, |version2| version2.gicc.base);
    SHARED.interface.store(interface, Release);
    clean_shared();
}

/// Returns the CPUs between the measuring CPUs and the hostile CPU.
pub fn all_victims() -> &'static [&'static PerCpu] {
    let cpus = percpu::all();
    &cpus[2..cpus.len() - 1]
}

/// Takes `victim` away from this kernel, by making it turn itself off; returns whether it is off.
pub fn take_cpu(victim: &'static PerCpu) -> bool {
    if victim.is_online() {
        victim.set_offline();
        workers::start_on(victim, hypervisor::cpu_off);
    }
    is_off_soon(victim)
}

/// Turns `victim` on at `act` with x0 = `argument`; returns the status of PSCI.
pub fn start_victim(victim: &PerCpu, act: u64, argument: u64) -> u64 {
    call(CPU_ON, [victim.mpidr, act, argument])[0]
}

/// Whether `victim` is off.
pub fn is_off(victim: &PerCpu) -> bool {
    call(AFFINITY_INFO, [victim.mpidr, 0, 0])[0] == OFF
}

/// Whether `victim` is off, or turns off within the time limit.
pub fn is_off_soon(victim: &PerCpu) -> bool {
    clock::wait_for(|| is_off(victim))
}
