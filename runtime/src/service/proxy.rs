//! A server that is not here (Bershad et al. 1990, 5.1): a proxy of this machine's answers in its name, and passes requests on by
//! whatever carrier leads there. It knows no interface. That a binding leads to a proxy is said when it is made, so that a link
//! tries nothing that ends at the machine.

use abi::MsgTag;

use super::{Carrier, Error, PATIENCE, label, with_string};
use crate::{Msg, accept, ipc};

/// Passes on every request to `server`, one after the other, for ever, under the name of the thread that calls this. `input` and
/// `output` have room for the longest string of a request and of an answer. Requests with one of the labels `one_way` have no
/// answer; nothing else in a message says so.
///
/// The server sees the proxy, not its client: who may use a proxy, whoever starts it decides.
pub fn forward(
    server: &impl Carrier<Message = Msg>,
    one_way: &[u64],
    input: &mut [u8],
    output: &mut [u8],
) -> ! {
    let (mut from, mut request) = accept::string(input, PATIENCE, ipc::request);
    loop {
        let answer = pass_on(server, one_way, request, input, output);
        let answer = answer.map(|(answer, string)| (from, with_string(answer, string, output)));
        (from, request) = accept::string(input, PATIENCE, || ipc::next_request(answer));
    }
}

/// The answer to `request`, and how long its string is if it has one.
fn pass_on(
    server: &impl Carrier<Message = Msg>,
    one_way: &[u64],
    request: Msg,
    input: &[u8],
    output: &mut [u8],
) -> Option<(Msg, Option<usize>)> {
    let string = request.string_in(input);
    if string.is_none() && request.tag.typed() != 0 {
        return Some((Msg::new(label::MALFORMED), None));
    }
    let words = Msg { tag: without_items(request.tag), ..request };
    let never = service::timeouts(None, None);
    if one_way.contains(&request.label()) {
        let _ = server.send(words, string, never);
        return None;
    }
    Some(match server.call_with(words, string, output, never) {
        Ok(answer) => whole(request.label(), answer, output),
        Err(error) => (Msg::new(failure(error)), None),
    })
}

/// The server's answer, and what it says of itself: that it is somewhere else, where no A-stack leads.
fn whole(asked: u64, answer: Msg, output: &[u8]) -> (Msg, Option<usize>) {
    let string = answer.string_in(output).map(<[u8]>::len);
    let mut answer = Msg { tag: without_items(answer.tag), ..answer };
    if asked == service::BIND && answer.tag.untyped() == 2 {
        answer.mr[0] = answer.mr[0] & !service::OFFERS_CALLS | service::IS_FAR;
    }
    (answer, string)
}

/// A tag without flags and items.
const fn without_items(tag: MsgTag) -> MsgTag {
    MsgTag(tag.0 & !0xFFC0)
}

/// What the client learns instead of an answer.
const fn failure(error: Error) -> u64 {
    match error {
        Error::Lost => label::LOST,
        Error::TooLong => label::TOO_LONG,
        _ => label::NOT_REACHED,
    }
}
