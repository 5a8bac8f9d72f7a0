//! The attacks. Each is what one task without rights can try; its name is that of a test.

mod control;
mod numbers;
mod places;
mod servers;
mod time;
mod visits;

use crate::hostile::{Hostile, Reached};

/// One attack.
pub struct Attack {
    /// The test's name.
    pub name: &'static str,
    /// The task that tries it.
    pub by: &'static str,
    /// What it does.
    pub act: fn(&Hostile) -> Reached,
    /// Whether the victims are looked after only when the attacker is dead.
    pub afterwards: bool,
}

const fn by_hostile(name: &'static str, act: fn(&Hostile) -> Reached) -> Attack {
    Attack { name, by: "hostile", act, afterwards: false }
}

const fn by_mover(name: &'static str, act: fn(&Hostile) -> Reached) -> Attack {
    Attack { name, by: "mover", act, afterwards: false }
}

/// All of them, in the order in which they are tried.
pub const ATTACKS: &[Attack] = &[
    by_hostile("sigma0-asked-by-a-stranger", numbers::sigma0_direct),
    by_hostile("sigma1-number-apic", numbers::sigma1_apic),
    by_hostile("sigma1-number-pci", numbers::sigma1_pci),
    by_hostile("sigma1-number-ports", numbers::sigma1_ports),
    by_hostile("sigma1-number-memory", numbers::sigma1_memory),
    by_hostile("hand-made-fault", numbers::hand_made_fault),
    by_hostile("number-of-the-next-task", numbers::next_task),
    by_hostile("numbers-of-a-tasks-threads", numbers::threads_of_another),
    by_hostile("numbers-of-the-unix-server", numbers::unix_numbers),
    by_hostile("id-of-one-that-is-over", numbers::id_again),
    by_hostile("message-in-anothers-name", numbers::false_sender),
    Attack {
        name: "thread-that-outlives-its-task",
        by: "hostile",
        act: numbers::outlive,
        afterwards: true,
    },
    by_hostile("endless-slice", time::endless_slice),
    by_hostile("endless-slice-of-a-task-below", time::below),
    by_hostile("slice-that-is-asked-for-again", time::renewed_slice),
    by_hostile("long-delay", time::long_delay),
    Attack {
        name: "priority-above-the-creators",
        by: "weak",
        act: time::priority,
        afterwards: false,
    },
    by_hostile("priority-on-request", time::priority_on_request),
    by_hostile("processor-on-request", places::on_request),
    by_mover("processor-for-others", places::for_others),
    by_mover("threads-on-each-processor", places::on_each),
    by_mover("threads-that-move-to-and-fro", places::to_and_fro),
    Attack {
        name: "devices-memory-by-an-interrupt",
        by: "driver",
        act: control::device_memory,
        afterwards: false,
    },
    by_hostile("interrupt-by-control", control::interrupt),
    by_hostile("control-of-another", control::control_of_another),
    by_hostile("numbers-and-ceilings-of-its-own", control::own_limits),
    by_hostile("look-at-another", control::inspect_another),
    by_hostile("string-that-never-comes", servers::stuck_string),
    by_hostile("keys-of-another", servers::read_raw),
    by_hostile("all-memory-blocks", servers::memory_blocks),
    by_hostile("all-names", servers::names),
    by_hostile("name-of-another", servers::name_of_another),
    by_hostile("all-waits", servers::waits),
    by_hostile("token-of-another-task", visits::anothers_token),
    by_hostile("token-that-is-stale", visits::stale_token),
    by_hostile("clerk-of-another-task", visits::anothers_clerk),
    by_hostile("binding-without-the-clerk", visits::forged_consent),
    by_hostile("all-bindings", visits::all_bindings),
    by_hostile("all-hosts", visits::all_hosts),
    by_hostile("end-of-a-server-in-a-call", visits::end_of_the_server),
];
