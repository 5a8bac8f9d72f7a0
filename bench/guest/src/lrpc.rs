//! Procedure calls between spaces (Bershad 1990).

use abi::layout::INITIAL_UTCB_AREA;
use abi::protocol::LRPC_BIND;
use abi::{MsgTag, ThreadId};
use runtime::{Msg, ipc, lrpc, schedule};

use crate::Samples;
use crate::fault::call_in;
use crate::marks::{self, Role};
use crate::partner::{self, Result, beside};

/// Calls before the measured ones, and the measured ones.
const WARM_UP: u64 = 4;
const ROUNDS: u64 = 4;
/// Where the A-stacks are, in either space.
const CLIENTS: u64 = INITIAL_UTCB_AREA + 0x3_0000;
const SERVERS: u64 = INITIAL_UTCB_AREA + 0x1000;
const BYTES: u64 = 256;

/// A procedure that does nothing, in another space: rows `lrpc/null-call` and `lrpc/null-return`.
pub fn null() -> Result<()> {
    let clerk = partner::program(serve_imports, 0, 64)?;
    // Brings in its pages: nobody listens to its faults while the kernel asks it.
    let mut import = Msg::default().word(1).word(BYTES);
    import.tag = MsgTag::protocol(LRPC_BIND, 0, 2, 0);
    partner::call(clerk.id, &import)?;
    marks::set_clerk(clerk.id);
    let host = beside(clerk, Role::Host)?;
    ipc::send(host.id, &Msg::default()).map_err(|_| "a host is gone")?;
    schedule::yield_to(host.id);
    let binding = lrpc::bind(clerk.id, CLIENTS, 1, BYTES).map_err(partner::why)?;
    let token = binding.token(0).ok_or("a binding has no A-stack")?;
    let mut done = true;
    for _ in 0..WARM_UP {
        done &= marks::procedure_call(token);
    }
    let samples = Samples::start();
    for _ in 0..ROUNDS {
        done &= marks::procedure_call(token);
    }
    samples.row(format_args!("lrpc/null-call"), 0, 2);
    samples.row(format_args!("lrpc/null-return"), 1, 2);
    binding.revoke().map_err(partner::why)?;
    host.delete();
    clerk.delete();
    if done { Ok(()) } else { Err("a procedure call does not return") }
}

/// The clerk: agrees to whatever is asked for.
extern "C" fn serve_imports(_: u64) -> ! {
    let agree = |message: &Msg| lrpc::import(message).map(|_| lrpc::agree(SERVERS, 1, 1));
    let mut reply = agree(&call_in()).map(|answer| (ThreadId::ROOT, answer));
    loop {
        let (client, message) = ipc::next_request(reply);
        reply = agree(&message).map(|answer| (client, answer));
    }
}
