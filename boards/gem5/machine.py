# SPDX-License-Identifier: MIT OR Apache-2.0
"""The machine of boards/gem5, in gem5's terms.

gem5 runs this file. Its arguments are the image that is booted, the boot
arguments, how many CPUs of which model, how much RAM, and parameters.toml's
values as JSON. It puts the parts together, writes the machine's
device tree, lets every core in at the image's first instruction with x0 = the
device tree, and ends when the console gets an end of transmission.

With --spin-table only the first core enters the image; the others wait in eight
instructions of the reset code for the address that Linux stores, so nothing of ours
is below Linux once it runs.

The console goes to the standard output, gem5's own words to the standard error.

Booting clears memory and builds tables, which a model of a pipeline would take
minutes for and nobody measures. So a machine of `atomic` cores boots, up to where
the guest first enables a cycle counter, which is before anything is measured; its
state, kept as a checkpoint, is what the machine that was asked for goes on with.
(Cores that take over from others within one machine would be easier, but the event
stream stays with those that went.) With --whole one machine does it all.

Linux boots for minutes even so. With --checkpoint its boot is kept in that folder, up
to where the program that measures asks for it, and serves all measurements: what is
measured is in the file --arguments, which that program reads next. If that is a
monitor, whose guest boots in turn, --guest-boots has atomic cores do that too, and
--guest-checkpoint keeps that boot.
"""

import argparse
import ctypes
import fcntl
import importlib.util
import json
import os
import re
import shutil
import signal
import sys
import time

import m5
from m5.objects import *
from m5.util.fdthelper import (
    Fdt,
    FdtNode,
    FdtProperty,
    FdtPropertyStrings,
    FdtPropertyWords,
    FdtState,
)

RAM = 0x80000000
# 2 MiB above the start of RAM, as arm64 images want; below it is the device tree.
IMAGE = RAM + 0x200000
TREE = RAM
# Cores begin at address 0, which is memory of its own on this platform.
RESET = 0
# Where the reset code has the address at which all cores but the first one go on.
RELEASE = RESET + 0x50
# RAM disks are on multiples of this.
PAGE = 0x1000
# The files to which a guest's monitor and the program that measures Linux write their
# lines, in gem5's folder.
HOST_RECORDS = "host-records"
RECORDS = (HOST_RECORDS, "records")
# How often they are shown: a millisecond, in ticks.
PART = 10**9

# What gem5 leaves out, and one with gem5.patch has.
DELAYS = {
    "irq-ns": "from the GIC to a core",
    "wake-ns": "until a core that waits has an interrupt",
}

# A machine boots; what starts on it boots; or it measures.
BOOT, GUEST, MEASURE = "boot", "guest", "measure"

MODELS = ("atomic", "minor", "hpi", "o3")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--image", required=True, help="an arm64 Image")
    parser.add_argument("--bootargs", default="", help="boot arguments")
    parser.add_argument("--cpu-model", choices=MODELS, required=True)
    parser.add_argument("--cpus", type=int, required=True)
    parser.add_argument("--whole", action="store_true", help="boot on this model too")
    parser.add_argument("--checkpoint", help="the folder of the booted Linux")
    parser.add_argument("--arguments", help="a file for the program that measures it")
    parser.add_argument(
        "--guest-boots",
        action="store_true",
        help="what starts after that checkpoint boots to one of its own",
    )
    parser.add_argument("--guest-checkpoint", help="the folder of the booted guest")
    parser.add_argument(
        "--guest-arguments", help="a file for the program that measures that guest"
    )
    parser.add_argument("--initrd", help="a RAM disk")
    parser.add_argument(
        "--spin-table", action="store_true", help="other cores wait for the first one"
    )
    parser.add_argument(
        "--has-guests", action="store_true", help="what runs on it is a hypervisor's host"
    )
    parser.add_argument("--vhe", action="store_true", help="cores with FEAT_VHE")
    parser.add_argument(
        "--without-lse", action="store_true", help="atomics by exclusives alone"
    )
    parser.add_argument(
        "--trace",
        help="a folder with a file cpuN for each core, to which every instruction "
        "that it commits is written with its time",
    )
    for name, what in DELAYS.items():
        parser.add_argument(f"--{name}", type=int, default=0, help=f"{what}, ns")
    parser.add_argument("--memory", required=True, help="size of RAM: 128MiB")
    parser.add_argument("--parameters", type=json.loads, required=True)
    return parser.parse_args()


def hpi():
    """The class of HPI cores, which gem5 has as a file of its source tree and not
    in its program."""
    tree = os.path.realpath(sys.executable)
    while tree != "/":
        tree = os.path.dirname(tree)
        path = os.path.join(tree, "configs/common/cores/arm/HPI.py")
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location("HPI", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module.HPI
    sys.exit(
        "--cpu-model hpi: there is no configs/common/cores/arm/HPI.py above "
        f"{sys.executable}; use a gem5 in its source tree, or another model"
    )


def core_class(model):
    if model == "atomic":
        return ArmAtomicSimpleCPU
    if model == "minor":
        return ArmMinorCPU
    return hpi() if model == "hpi" else ArmO3CPU


def core(model, values, index, until_counter):
    """A core of the model, with its cycle counter. Enabling that may end the booting."""
    cpu = core_class(model)(cpu_id=index)
    if model == "o3":
        stages = "fetch decode rename dispatch issue wb commit squash"
        for stage in stages.split():
            setattr(cpu, f"{stage}Width", values["o3-width"])
        cpu.numROBEntries = values["o3-rob"]
        cpu.numIQEntries = values["o3-iq"]
        cpu.LQEntries = values["o3-lsq"]
        cpu.SQEntries = values["o3-lsq"]
    cpu.createThreads()
    cpu.createInterruptController()
    for isa in cpu.isa:
        isa.pmu = ArmPMU(interrupt=ArmPPI(num=23), exitOnPMUControl=until_counter)
        isa.pmu.addArchEvents(cpu=cpu, itb=cpu.mmu.itb, dtb=cpu.mmu.dtb)
    return cpu


class Level(Cache):
    """A cache; what is not a parameter is enough not to matter here."""

    mshrs = 32
    tgts_per_mshr = 16
    write_buffers = 16

    def __init__(self, kib, ways, cycles, **more):
        super().__init__(
            size=f"{kib}KiB",
            assoc=ways,
            tag_latency=cycles,
            data_latency=cycles,
            response_latency=1,
            **more,
        )


def crossbar(cycles):
    """A coherent crossbar, with `cycles` each way."""
    return CoherentXBar(
        width=64,
        frontend_latency=1,
        forward_latency=cycles,
        response_latency=cycles,
        snoop_response_latency=cycles,
        snoop_filter=SnoopFilter(lookup_latency=0, max_capacity="64MiB"),
    )


def connect_cores(system, model, values):
    """Caches and crossbars: two levels for each core, one for all."""
    if model == "atomic":
        for cpu in system.cpu:
            cpu.connectCachedPorts(system.membus.cpu_side_ports)
        return
    system.interconnect = crossbar(values["interconnect-cycles"])
    system.llc = Level(
        values["llc-kib"], 16, values["llc-cycles"], clusivity="mostly_excl"
    )
    system.llc.cpu_side = system.interconnect.mem_side_ports
    system.llc.mem_side = system.membus.cpu_side_ports
    for cpu in system.cpu:
        first = [
            Level(
                values["l1-kib"],
                4,
                values["l1-cycles"],
                is_read_only=code,
                writeback_clean=True,
            )
            for code in (True, False)
        ]
        cpu.addPrivateSplitL1Caches(*first)
        cpu.to_second = L2XBar()
        cpu.connectCachedPorts(cpu.to_second.cpu_side_ports)
        cpu.second = Level(
            values["l2-kib"], 8, values["l2-cycles"], writeback_clean=True
        )
        cpu.second.cpu_side = cpu.to_second.mem_side_ports
        cpu.second.mem_side = system.interconnect.cpu_side_ports


def require_patch(options):
    """Ends if this gem5 lacks what it has to be able to do."""
    wants = options.has_guests or options.irq_ns or options.wake_ns
    if wants and not hasattr(Gicv3, "irq_delay"):
        sys.exit(
            "--under kvm, --set irq-ns, wake-ns: this gem5 can't do that; apply "
            "boards/gem5/gem5.patch to its source and build it, or leave them out"
        )


def delay(gic, options):
    """Lets interrupts take their time, if they are to."""
    if options.irq_ns or options.wake_ns:
        gic.irq_delay = f"{options.irq_ns}ns"
        gic.wake_delay = f"{options.wake_ns}ns"


def devices(system, values):
    """The platform's devices: what is used of them is GIC, timer and UART."""
    platform = system.realview
    platform.gic.gicv4 = False
    platform.gic.dist_pio_delay = f"{values['gic-ns']}ns"
    platform.gic.redist_pio_delay = f"{values['gic-ns']}ns"
    hertz = values["counter-mhz"] * 1000000
    platform.sys_counter.freqs = [hertz]
    platform.generic_timer.cntfrq = hertz
    uart = platform.uart[0]
    uart.device = system.terminal
    uart.end_on_eot = True
    uart.pio_latency = f"{values['device-ns']}ns"
    system.iobridge = Bridge(delay="1ns")
    system.iobridge.mem_side_port = system.iobus.cpu_side_ports
    system.iobridge.cpu_side_port = system.membus.mem_side_ports
    system.dmabridge = Bridge(delay="50ns", ranges=system.mem_ranges)
    system.dmabridge.mem_side_port = system.membus.cpu_side_ports
    system.dmabridge.cpu_side_port = system.iobus.mem_side_ports
    platform.attachOnChipIO(system.membus, system.iobridge)
    platform.attachIO(system.iobus)
    system.system_port = system.membus.cpu_side_ports


# Handles of the tree's nodes.
GIC, CLOCK = 1, 2


def initrd(system, options):
    """Where the RAM disk is: at the end of RAM."""
    end = RAM + int(system.mem_ranges[0].size())
    size = os.path.getsize(options.initrd)
    begin = (end - size) // PAGE * PAGE
    return begin, begin + size


def tree(system, options):
    """The machine's device tree: what there is for an image to know."""
    state = FdtState(addr_cells=2, size_cells=2, cpu_cells=2)
    platform = system.realview

    def node(name, properties):
        made = FdtNode(name)
        for key, value in properties.items():
            if isinstance(value, str):
                made.append(FdtPropertyStrings(key, [value]))
            else:
                made.append(FdtPropertyWords(key, value))
        return made

    def region(base, size):
        return state.addrCells(base) + state.sizeCells(size)

    def ppi(pin):
        return [1, int(pin.num) - 16, 4]

    root = FdtNode("/")
    root.append(state.addrCellsProperty())
    root.append(state.sizeCellsProperty())
    root.append(FdtPropertyWords("interrupt-parent", [GIC]))
    size = system.mem_ranges[0].size()
    memory = {"device_type": "memory", "reg": region(RAM, size)}
    root.append(node(f"memory@{RAM:x}", memory))
    cpus = node("cpus", {"#address-cells": [2], "#size-cells": [0]})
    for index in range(options.cpus):
        # Without an enable-method all of them enter the image.
        cpu = {"device_type": "cpu", "compatible": "arm,armv8", "reg": [0, index]}
        if options.spin_table:
            cpu["enable-method"] = "spin-table"
            cpu["cpu-release-addr"] = state.addrCells(RELEASE)
        cpus.append(node(f"cpu@{index:x}", cpu))
    root.append(cpus)
    gic = platform.gic
    frames = region(int(gic.dist_addr), 0x10000)
    frames += region(int(gic.redist_addr), 0x20000 * options.cpus)
    controller = node(
        "interrupt-controller",
        {
            "compatible": "arm,gic-v3",
            "#interrupt-cells": [3],
            "reg": frames,
            "interrupts": ppi(gic.maint_int),
            "phandle": [GIC],
        },
    )
    controller.append(FdtProperty("interrupt-controller"))
    root.append(controller)
    timer = platform.generic_timer
    pins = ("int_el3_phys", "int_el1_phys", "int_el1_virt", "int_el2_ns_phys")
    lines = [word for pin in pins for word in ppi(getattr(timer, pin))]
    root.append(node("timer", {"compatible": "arm,armv8-timer", "interrupts": lines}))
    # Linux wants the port's clock, which the model does not have.
    clock = {"compatible": "fixed-clock", "#clock-cells": [0], "phandle": [CLOCK]}
    root.append(node("clock", clock | {"clock-frequency": [24000000]}))
    uart = platform.uart[0]
    name = f"uart@{int(uart.pio_addr):x}"
    port = node(
        name,
        {
            "reg": region(int(uart.pio_addr), 0x1000),
            "interrupts": [0, int(uart.interrupt.num) - 32, 4],
            "clocks": [CLOCK, CLOCK],
        },
    )
    port.append(FdtPropertyStrings("compatible", ["arm,pl011", "arm,primecell"]))
    port.append(FdtPropertyStrings("clock-names", ["uartclk", "apb_pclk"]))
    root.append(port)
    chosen = {"bootargs": options.bootargs, "stdout-path": f"/{name}"}
    if options.initrd:
        begin, end = initrd(system, options)
        chosen["linux,initrd-start"] = state.addrCells(begin)
        chosen["linux,initrd-end"] = state.addrCells(end)
    if options.spin_table:
        # Linux would wait for chance, of which this machine has none.
        seed = re.search(r"\brouse\.seed=(\d+)", options.bootargs)
        seed = int(seed[1]) if seed else 1
        chosen["rng-seed"] = [0x9E3779B9 * (16 * seed + n) % 2**32 for n in range(16)]
    root.append(node("chosen", chosen))
    blob = Fdt()
    blob.add_rootnode(root)
    path = os.path.join(m5.options.outdir, "machine.dtb")
    blob.writeDtbFile(path)
    return path


def reset(spin_table):
    """What cores begin with: x0 = the device tree, and on to the image; all but the
    first one only once there is an address to go on at."""
    code = [
        0xD53800A2,  # mrs x2, mpidr_el1
        0x92405C42,  # and x2, x2, #0xffffff
        0x580001C0,  # ldr x0, 0x40
        0x580001E4,  # ldr x4, 0x48
        0xB5000082 if spin_table else 0xD503201F,  # cbnz x2, 0x20, or nop
        0xD2800001,  # mov x1, #0
        0xD2800003,  # mov x3, #0
        0xD61F0080,  # br x4
        0x10000183,  # 0x20: adr x3, 0x50
        0xD503205F,  # 0x24: wfe
        0xF9400064,  # ldr x4, [x3]
        0xB4FFFFC4,  # cbz x4, 0x24
        0xD2800000,  # mov x0, #0
        0xD2800002,  # mov x2, #0
        0xD61F0080,  # br x4
        0xD503201F,  # nop
    ]
    path = os.path.join(m5.options.outdir, "reset.bin")
    with open(path, "wb") as file:
        for word in code:
            file.write(word.to_bytes(4, "little"))
        for address in (TREE, IMAGE, 0):
            file.write(address.to_bytes(8, "little"))
    return path


def machine(options, model, stage):
    """The machine with cores of `model` for a stage."""
    values = options.parameters
    # EL2 and no EL3, so that cores begin at EL2.
    release = ArmDefaultRelease()
    release.remove(ArmExtension("SECURITY"))
    if options.vhe:
        release.add(ArmExtension("FEAT_VHE"))
    if options.without_lse:
        release.remove(ArmExtension("FEAT_LSE"))
    system = ArmSystem(
        release=release,
        mem_mode=core_class(model).memory_mode(),
        mem_ranges=[AddrRange(RAM, size=options.memory)],
        cache_line_size=64,
        auto_reset_addr=False,
        reset_addr=RESET,
        highest_el_is_64=True,
        multi_proc=True,
    )
    system.voltage_domain = VoltageDomain()
    system.clk_domain = SrcClockDomain(
        clock=f"{values['core-mhz']}MHz", voltage_domain=system.voltage_domain
    )
    system.realview = VExpress_GEM5_V2()
    # The console of a boot that is kept is kept with it.
    outfile = "file" if stage == BOOT and options.checkpoint else "stdoutput"
    system.terminal = Terminal(outfile=outfile)
    of_guest = options.guest_arguments if stage == MEASURE else None
    system.readfile = of_guest or options.arguments or ""
    # The platform has a keyboard, which wants to know where it is.
    system.vncserver = VncServer()
    system.membus = SystemXBar()
    system.membus.badaddr_responder = BadAddr()
    system.membus.default = system.membus.badaddr_responder.pio
    system.iobus = IOXBar()
    system.memory = SimpleMemory(
        range=system.mem_ranges[0], latency=f"{values['memory-ns']}ns", bandwidth="0GiB/s"
    )
    system.memory.port = system.membus.mem_side_ports
    devices(system, values)
    if stage == MEASURE:
        delay(system.realview.gic, options)
    until_counter = stage == BOOT and not options.checkpoint
    system.cpu = [
        core(model, values, index, until_counter) for index in range(options.cpus)
    ]
    connect_cores(system, model, values)
    files = {
        RESET: reset(options.spin_table),
        TREE: tree(system, options),
        IMAGE: options.image,
    }
    if options.initrd:
        files[initrd(system, options)[0]] = options.initrd
    system.workload = ArmFsWorkload(
        object_file="", extras=list(files.values()), extras_addrs=list(files)
    )
    return system


def end_with_parent():
    """A simulation that nobody follows any more would go on for hours."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def trace(cores, folder):
    """Has each core write what it commits to its file in `folder`. A tracer writes to a
    file of its own name in gem5's folder; so that name leads to the other one."""
    for index, cpu in enumerate(cores):
        cpu.tracer = TarmacTracer(outfile="file")
        name = os.path.join(m5.options.outdir, cpu.tracer.path())
        os.symlink(os.path.join(folder, f"cpu{index}"), name)


def trace_misses(cores, folder, interconnect):
    """Has the crossbars after the cores' first and second caches write each request that
    reaches them, so each miss, to the file `misses` in `folder`, if there is one. Debug
    output is one stream for all of gem5: it is limited to these, and its name leads to
    that file as a tracer's does."""
    file = os.path.join(folder, "misses")
    if not os.path.exists(file):
        return
    os.symlink(file, os.path.join(m5.options.outdir, "misses"))
    m5.trace.output("misses")
    for crossbar in [cpu.to_second for cpu in cores] + [interconnect]:
        m5.trace.activate(crossbar.path())
    m5.debug.flags["CoherentXBar"].enable()


def run(options, model, stage=MEASURE, checkpoint=None):
    """Runs a machine to the end of its stage; why it ended."""
    system = machine(options, model, stage)
    root = Root(full_system=True, system=system)
    traced = options.trace and stage == MEASURE
    if traced:
        trace(system.cpu, options.trace)
    m5.instantiate(checkpoint)
    if traced:
        trace_misses(system.cpu, options.trace, system.interconnect)
    if options.arguments and stage != BOOT:
        return simulate(stage)
    return m5.simulate().getCause()


def simulate(stage):
    """Simulates to the end of the stage, and shows the records; why it ended. Once it
    measures, a checkpoint that is asked for is not needed."""
    paths = [os.path.join(m5.options.outdir, name) for name in RECORDS]
    shown = {path: os.path.getsize(path) if os.path.exists(path) else 0 for path in paths}
    while True:
        cause = m5.simulate(PART).getCause()
        goes_on = cause == "simulate() limit reached"
        goes_on |= cause == "checkpoint" and stage == MEASURE
        for path in reversed(paths):
            shown[path] = pass_on(path, shown[path], to_end=not goes_on)
        if not goes_on:
            return cause


def pass_on(path, shown, to_end=True):
    """Writes what is in the file at `path` from the byte `shown` on to the standard
    output, as far as its last whole line or `to_end`; the size of what has been shown."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            file.seek(shown)
            more = file.read()
        if not to_end:
            more = more[: more.rfind(b"\n") + 1]
        shown += len(more)
        sys.stdout.buffer.write(more)
        sys.stdout.flush()
    return shown


def boot(options, checkpoint, stage=BOOT, begin=None):
    """Boots a machine of atomic cores, in a process of its own, from `begin` or from the
    start into `checkpoint`; whether there is one. If not, that process has said why, or
    this one does."""
    done = os.path.join(checkpoint, "done")
    child = os.fork()
    if child == 0:
        end_with_parent()
        cause = run(options, "atomic", stage, begin)
        if cause.startswith("performance counter") or cause == "checkpoint":
            m5.checkpoint(checkpoint)
            open(done, "x").close()
            cause = None
        end(cause)
    if options.checkpoint and stage == BOOT:
        status = show(child, os.path.join(m5.options.outdir, "system.terminal"))
    else:
        _, status = os.waitpid(child, 0)
    if status:
        print(f"gem5: the boot has ended with status {status}", file=sys.stderr)
    return status == 0 and os.path.exists(done)


def show(child, console):
    """Writes what comes to the file `console` to the standard output, until `child` ends;
    its status."""
    shown = 0
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        shown = pass_on(console, shown)
        if ended:
            return status
        time.sleep(0.2)


def locked(name, how):
    """Locks the file `name`, which another process may remove; its descriptor."""
    while True:
        file = os.open(name, os.O_CREAT | os.O_RDWR)
        fcntl.flock(file, how)
        try:
            if os.path.samestat(os.fstat(file), os.stat(name)):
                os.utime(name)
                return file
        except FileNotFoundError:
            pass
        os.close(file)


def kept(options, folder, stage=BOOT, begin=None):
    """Makes the checkpoint `folder` of a stage, unless there is one. Whether there is one
    now; nobody removes it before this process ends."""
    lock = folder + ".lock"
    is_new = False
    while True:
        file = locked(lock, fcntl.LOCK_SH)
        if os.path.exists(folder):
            break
        os.close(file)
        file = locked(lock, fcntl.LOCK_EX)
        # Another process may have been first.
        if not os.path.exists(folder):
            is_new = True
            if not make(options, folder, stage, begin):
                return False
        os.close(file)
    console = os.path.join(folder, "console")
    if not is_new:
        pass_on(console, 0)
    if stage == GUEST:
        # The monitor goes on writing after what it has written.
        shutil.copy(console, os.path.join(m5.options.outdir, HOST_RECORDS))
    return True


def make(options, folder, stage, begin):
    """Boots into `folder`, which appears as a whole; whether that worked."""
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    if not boot(options, part, stage, begin):
        return False
    name = HOST_RECORDS if stage == GUEST else "system.terminal"
    lines = os.path.join(m5.options.outdir, name)
    # A guest may have said nothing, and then there is no file.
    open(lines, "a").close()
    shutil.move(lines, os.path.join(part, "console"))
    os.rename(part, folder)
    return True


def end(cause):
    """Ends this process at once."""
    sys.stdout.flush()
    if cause:
        print(f"gem5: {cause} at tick {m5.curTick()}", file=sys.stderr, flush=True)
    os._exit(0)


def main():
    options = arguments()
    require_patch(options)
    end_with_parent()
    booted = os.path.join(m5.options.outdir, "booted")
    if options.checkpoint:
        if not kept(options, options.checkpoint):
            return
        if not options.guest_boots:
            booted = options.checkpoint
        elif options.guest_checkpoint:
            booted = options.guest_checkpoint
            if not kept(options, booted, GUEST, options.checkpoint):
                return
        elif not boot(options, booted, GUEST, options.checkpoint):
            return
        end(run(options, options.cpu_model, checkpoint=booted))
    if options.whole or options.cpu_model == "atomic":
        end(run(options, options.cpu_model))
    if boot(options, booted):
        end(run(options, options.cpu_model, checkpoint=booted))


main()
