"""Baton in gdb: threads by task and name, the stack of any of them.

`./baton debug` writes a script that reads this file and tells it which tasks there are.
Everything is read out of the kernel's own structures, whose layout comes from its debug
information; nothing in the machine is changed but the registers, for the moment in which
the stack of a thread is looked at that does not run.
"""

import os
import re

import gdb

#: What the codes of a rendezvous word say (`kernel/src/thread/rendezvous.rs`).
CODES = {
    1: "ready",
    2: "waits to send",
    3: "waits",
    4: "in a transfer",
    5: "inactive",
    6: "halted",
    7: "in a call",
    8: "waits for anybody",
    9: "waits",
    10: "waits for anybody",
    11: "waits",
    13: "waits in public",
    15: "armed: waits in the kernel, or runs",
    16: "on another processor, or waits for it",
    17: "in a procedure call",
    18: "waits for a procedure call",
    19: "talks on another processor",
    20: "waits in public on another processor",
}
#: Those with somebody: waits to send, in a transfer, waits with vector registers.
WITH_PARTNER = {2, 4, 9, 11}
#: Kinds of messages during which the user's registers are in the frame (`ipc::Kind::home`).
INTERRUPTED = {"PageFault", "IoFault", "Exception", "Preemption", "SystemCall"}
USER_END = 0x0000_8000_0000_0000
PCID_KEEP = 1 << 63
#: CR3 in the emulator's list of registers (its `gdb-xml/i386-64bit.xml`).
CR3_NUMBER = 29


class System:
    """The tasks that the script has named, and whose symbols are loaded."""

    first_thread = 0
    threads_per_task = 1
    tasks = []
    loaded = None
    symbols = {}


def word(address):
    """A word of the kernel's memory."""
    return int.from_bytes(gdb.selected_inferior().read_memory(address, 8), "little")


def offset(kind, path):
    """Offset of a field, `a.b.c`, in a type of the kernel."""
    at, bits = gdb.lookup_type(kind), 0
    for name in path.split("."):
        field = next(field for field in at.fields() if field.name == name)
        at, bits = field.type, bits + field.bitpos
    return bits // 8


def symbol(name):
    """Address of one of the kernel's symbols."""
    if name not in System.symbols:
        # In Rust's own language gdb looks for the name in the module that it stopped in.
        text = gdb.execute(f"with language c -- output/u &{name}", to_string=True)
        System.symbols[name] = int(re.match("[0-9]+", text).group())
    return System.symbols[name]


def register(name):
    """A register of the processor."""
    text = gdb.execute(f"with language c -- output/x ${name}", to_string=True)
    return int(re.search("0x[0-9a-f]+", text).group(), 16)


def set_register(name, value):
    """gdb takes CR3 for a set of flags and does not set it: the emulator is told."""
    if name == "cr3":
        packet = f"P{CR3_NUMBER:x}={value.to_bytes(8, 'little').hex()}"
        gdb.execute(f"maintenance packet {packet}", to_string=True)
        gdb.execute("maintenance flush register-cache", to_string=True)
    else:
        gdb.execute(f"with language c -- set var ${name} = {value:#x}")


def in_user_mode():
    return register("cs") & 3 == 3


class Thread:
    """A thread, by the address of its control block."""

    TCB = "kernel::thread::tcb::Tcb"
    FRAME = "kernel::arch::x86_64::frame::TrapFrame"

    def __init__(self, address):
        self.address = address
        self.id = self.field("id")
        self.number, self.version = self.id >> 32, self.id & 0xFFFF_FFFF

    def field(self, path):
        return word(self.address + offset(self.TCB, path))

    def variant(self, path):
        """The name of an enumeration's value."""
        kind = gdb.lookup_type(self.TCB)
        at = gdb.Value(self.address + offset(self.TCB, path))
        for name in path.split("."):
            kind = next(field for field in kind.fields() if field.name == name).type
        while kind.code == gdb.TYPE_CODE_STRUCT:
            kind = kind.fields()[0].type
        return str(at.cast(kind.pointer()).dereference()).rsplit("::", 1)[-1]

    def task(self):
        """Its task: the name."""
        place = self.number - System.first_thread
        if 0 <= place < System.threads_per_task * len(System.tasks):
            return System.tasks[place // System.threads_per_task][0]
        return {True: "kernel", False: "server"}[self.field("space") == 0]

    def file(self):
        """The ELF file of its task, if the script has named it."""
        return next((file for name, file in System.tasks if name == self.task()), None)

    def state(self):
        if self.address == current().address:
            return "runs"
        waits = self.field("rendezvous") ^ self.id
        code, rest = waits >> 32, waits & 0xFFFF_FFFF
        if waits == 0:
            return "waits for anybody"
        if rest == 0 and code in CODES:
            partner = self.field("partner")
            with_whom = code in WITH_PARTNER and partner != 0
            return CODES[code] + (f": {show(partner)}" if with_whom else "")
        return f"waits for {show(waits)}"

    def registers(self):
        """Instruction and stack pointer of its program; the base pointer if it is kept."""
        if self.address == current().address and in_user_mode():
            return register("rip"), register("rsp"), register("rbp")
        resume, kind = self.variant("resume"), self.variant("kind")
        framed = resume in ("Frame", "Destroy")
        framed |= resume in ("Transfer", "Receive") and kind in INTERRUPTED
        if not framed:
            return self.field("ip"), self.field("sp"), None
        size = gdb.lookup_type(self.FRAME).sizeof
        read = lambda name: word(self.address - size + offset(self.FRAME, name))
        return read("ip"), read("sp"), read("rbp")


def show(number):
    """A thread's id as the kernel prints it."""
    return f"{number >> 32}.{number & 0xFFFF_FFFF}"


def cpu(path):
    """Address of a field of the processor's state."""
    return symbol("BATON_CPU") + offset("kernel::arch::x86_64::percpu::Cpu", path)


def current():
    """The thread that runs."""
    return Thread(word(cpu("tss.rsp0")))


def threads():
    """All threads."""
    registry = symbol("'kernel::thread::registry::IT'")
    first = word(registry + offset("kernel::thread::Registry", "threads.first"))
    at = first
    while at != 0:
        yield Thread(at)
        at = word(at + offset(Thread.TCB, "all.next"))
        if at == first:
            return


def load(file):
    """Loads the symbols of a task instead of those of another one: all tasks are linked to
    the same addresses."""
    if file == System.loaded:
        return
    if System.loaded is not None:
        gdb.execute(f"remove-symbol-file {System.loaded}", to_string=True)
    if file is not None:
        gdb.execute(f"add-symbol-file {file}", to_string=True)
    System.loaded = file


def place(thread, address):
    """Where an address is, by its symbol."""
    load(thread.file())
    text = gdb.execute(f"info symbol {address:#x}", to_string=True)
    return "" if text.startswith("No symbol") else text.split(" in section ")[0].strip()


class Threads(gdb.Command):
    """List all threads: id, task, state, priority, and where the program is."""

    def __init__(self):
        super().__init__("baton-threads", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        mine = System.loaded
        print(f"{'thread':<10} {'task':<16} {'priority':>8}  {'state':<24} where")
        for thread in threads():
            at = thread.registers()[0]
            where = f"{at:#x} {place(thread, at)}" if 0 < at < USER_END else "in the kernel"
            priority = thread.field("priority") & 0xFF
            name = show(thread.id)
            print(f"{name:<10} {thread.task():<16} {priority:>8}  {thread.state():<24} {where}")
        load(mine)


class Task(gdb.Command):
    """Load the symbols of a task: baton-task NAME. Those of another task go."""

    def __init__(self):
        super().__init__("baton-task", gdb.COMMAND_FILES)

    def invoke(self, argument, from_tty):
        files = dict(System.tasks)
        if argument not in files:
            raise gdb.GdbError(f"no task {argument!r}; the tasks are {', '.join(files)}")
        load(files[argument])
        print(f"The symbols of {argument} are loaded.")

    def complete(self, text, word):
        return [name for name, _ in System.tasks if name.startswith(text)]


class Where(gdb.Command):
    """Show the stack of a thread's program: baton-where NUMBER or baton-where TASK."""

    def __init__(self):
        super().__init__("baton-where", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        mine = System.loaded
        wanted = lambda thread: argument in (str(thread.number), show(thread.id), thread.task())
        thread = next(filter(wanted, threads()), None)
        if thread is None:
            raise gdb.GdbError(f"there is no thread {argument!r}; see baton-threads")
        print(f"Thread {show(thread.id)} of {thread.task()}, {thread.state()}:")
        load(thread.file())
        try:
            if thread.address == current().address and in_user_mode():
                gdb.execute("backtrace")
            else:
                self.elsewhere(thread)
        finally:
            load(mine)

    def elsewhere(self, thread):
        """With the thread's registers and its space in the processor for a moment."""
        names = ("rip", "rsp", "rbp", "cr3")
        kept = {name: register(name) for name in names}
        ip, sp, base = thread.registers()
        tables = thread.field("root") & ~PCID_KEEP
        try:
            for name, value in zip(names, (ip, sp, base, tables)):
                if value is not None:
                    set_register(name, value)
            gdb.execute("maintenance flush dcache", to_string=True)
            gdb.execute("backtrace")
        finally:
            for name, value in kept.items():
                set_register(name, value)
            gdb.execute("maintenance flush dcache", to_string=True)


class InTask(gdb.Breakpoint):
    """A breakpoint that other tasks pass, which have something else at its address."""

    def __init__(self, place, task):
        super().__init__(place)
        self.owner = task

    def stop(self):
        return current().task() == self.owner


class Break(gdb.Command):
    """Stop in a task: baton-break TASK PLACE, where PLACE is what `break` takes."""

    def __init__(self):
        super().__init__("baton-break", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument, from_tty):
        name, _, place = argument.partition(" ")
        files = dict(System.tasks)
        if name not in files or not place:
            raise gdb.GdbError(f"baton-break TASK PLACE; the tasks are {', '.join(files)}")
        load(files[name])
        InTask(place, name)


def stopped(event):
    """The symbols follow the task that runs."""
    try:
        if in_user_mode():
            thread = current()
            load(thread.file())
            print(f"[{thread.task()}, thread {show(thread.id)}]")
    except (gdb.error, RuntimeError) as why:
        print(f"baton: {why}")


def system(first_thread, threads_per_task, tasks):
    """Called by the script: the tasks with their files, in the root task's order."""
    System.first_thread, System.threads_per_task = first_thread, threads_per_task
    # gdb knows files by their whole paths.
    System.tasks = [(name, os.path.abspath(file)) for name, file in tasks]
    for command in (Threads, Task, Where, Break):
        command()
    gdb.events.stop.connect(stopped)
    print("Baton: baton-threads, baton-where, baton-task, baton-break; the tasks are " + ", ".join(dict(tasks)))
