//! What must be true of bindings, records, hosts and callers; for the checker.

use super::{call_of, revocation, visit_of};
use crate::arch::cpu;
use crate::space::SpaceRef;
use crate::thread::state::State;
use crate::thread::{BindingRef, LinkagesRef, RecordRef, TcbRef, lookup};

/// Calls `visit` with every page of records that `space` pays for.
pub fn pages(space: SpaceRef, mut visit: impl FnMut(LinkagesRef)) {
    if let Some(page) = space.task.linkages.get() {
        visit(page);
    }
    space.task.inherited.each(visit);
}

/// How many frames `space` pays for; `claim` is told each one's address.
pub fn frames(space: SpaceRef, mut claim: impl FnMut(u64)) -> u64 {
    let mut count = 0;
    pages(space, |page| {
        count += revocation::frames_of(page);
        claim(page.frame().address());
        for binding in page.bindings() {
            let (server, client) = (binding.server.get(), page.client.get());
            let theirs = server.map(|server| (server, binding.server_window.get()));
            let own = client.map(|client| (client, binding.client_window.get()));
            let Some((space, window)) = theirs.or(own) else { continue };
            for number in 0..u64::from(binding.pages.get()) {
                space.a_stack_page(window + number * 4096).into_iter().for_each(&mut claim);
            }
        }
    });
    count
}

/// Says to `fault` what is wrong with the bindings that `space` pays for.
pub fn bindings(space: SpaceRef, fault: &mut impl FnMut(bool, &str)) {
    pages(space, |page| {
        fault(page.payer.get() != Some(space), "pays for bindings that another pays for, too");
        page.bindings().for_each(|binding| self::binding(binding, fault));
        page.records().for_each(|record| self::record(record, fault));
    });
}

fn binding(binding: BindingRef, fault: &mut impl FnMut(bool, &str)) {
    let used = binding.records().filter(|record| record.is_used()).count();
    let clerk = binding.clerk.get();
    let is_served = |clerk: TcbRef| clerk.served.iter().any(|served| served == binding);
    fault(
        clerk.is_some_and(|clerk| !is_served(clerk)),
        "has a binding that its clerk does not know",
    );
    fault(
        clerk.is_none() && usize::from(binding.visits.get()) != used,
        "has a revoked binding with another number of visits",
    );
    let own_window = binding.client_window.get();
    let client = binding.page().client.get().filter(|_| own_window != 0);
    let server = binding.server.get();
    fault(client.is_none() && server.is_none(), "has A-stacks that nobody sees");
    fault(
        server.is_some() != (clerk.is_some() || used != 0),
        "has A-stacks that the server sees without need, or does not see",
    );
    for number in 0..u64::from(binding.pages.get()) {
        let at = number * 4096;
        let theirs = server.and_then(|it| it.a_stack_page(binding.server_window.get() + at));
        let own = client.and_then(|it| it.a_stack_page(own_window + at));
        fault(server.is_some() != theirs.is_some(), "has A-stacks that the server does not see");
        fault(client.is_some() != own.is_some(), "has A-stacks that it does not see");
        let both = own.zip(theirs);
        fault(
            both.is_some_and(|(own, theirs)| own != theirs),
            "sees other A-stacks than the server",
        );
    }
}

fn record(record: RecordRef, fault: &mut impl FnMut(bool, &str)) {
    let (caller, kept) = (record.caller.get(), record.kept.get());
    if record.may_be_out() {
        // What is true is where its host is.
        let is_plain = record.token.get() == record.full_token() || caller.is_some();
        return fault(is_plain, "has an A-stack that two processors may call over");
    }
    let is_shown = record.token.get() != 0 && record.token.get() == record.full_token();
    fault(is_shown && !record.may_be_shown(), "has a token that leads to nobody who waits for it");
    fault(caller.is_some() && kept.is_some(), "has an A-stack with two callers");
    fault(
        record.given_up.get() && caller.or(kept).is_some(),
        "has an A-stack whose caller is gone, and waits",
    );
    let waits = |caller: TcbRef| {
        State::seen(caller) == State::Calls && caller.space() == record.page().client.get()
    };
    fault(
        caller.or(kept).is_some_and(|caller| !waits(caller)),
        "has an A-stack whose caller does not wait",
    );
    let host = record.host.get();
    fault(record.is_used() && host.is_none(), "has an A-stack in use without a host");
    fault(
        host.is_some_and(|host| RecordRef::of(host) != Some(record)),
        "has an A-stack whose host is another's",
    );
    fault(
        host.is_some_and(|host| caller.is_some() && host.special.get() != 0),
        "has an A-stack whose host is special and returns as others do",
    );
    fault(
        host.is_some_and(|host| !record.is_used() && State::seen(host) != State::Lent),
        "has an A-stack that is free and whose host runs",
    );
}

/// Says to `fault` what is wrong with `thread` as caller, host or clerk.
pub fn thread(thread: TcbRef, fault: &mut impl FnMut(bool, &str)) {
    let state = State::seen(thread);
    fault(state == State::Calls && call_of(thread).is_none(), "waits for a call that nobody runs");
    let record = RecordRef::of(thread);
    fault(
        record.is_some_and(|record| record.host.get() != Some(thread)),
        "is the host of an A-stack that has another",
    );
    let is_host = !thread.clerk.get().is_nil();
    fault(record.is_some() && !is_host, "has an A-stack and is no host");
    if state == State::Lent {
        let clerk = lookup(thread.clerk.get());
        let is_listed = |clerk: TcbRef| clerk.hosts.iter().any(|host| host == thread);
        let listed = clerk.is_some_and(is_listed);
        fault(clerk.is_none(), "is lent to a clerk that is gone");
        fault(listed == record.is_some(), "is lent, and nobody or two know of it");
        fault(visit_of(thread).is_some(), "waits for a call and runs one");
        fault(cpu().scheduler.ready.contains(thread), "waits for a call in the ready queue");
    }
}
