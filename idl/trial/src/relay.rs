//! The program in C between a client and a server: `build/relay.c` and what is generated for it.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use abi::{MsgTag, Timeouts};
use service::{Carrier, Dispatch, Error, MAX_WORDS, Message};

use crate::carry::{Inside, Letter, Noise, Nonsense, STRING, answer_of};

/// Words of a frame: kind, status, room, bytes of the string, tag.
const HEAD: usize = 5;
const WORDS: usize = HEAD + MAX_WORDS;
/// No string.
const NONE: u64 = u64::MAX;
/// The relay asks.
const CALL: u64 = 1;
/// Messages of nonsense.
const ROUNDS: u64 = 2_000;

/// The running program.
pub struct Relay(RefCell<Pipe>);

struct Pipe {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    /// How the client in C ended last.
    status: u64,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes out of it.
struct Frame {
    kind: u64,
    status: u64,
    room: usize,
    letter: Letter,
    string: Option<Vec<u8>>,
}

impl Relay {
    /// Starts one.
    ///
    /// # Panics
    /// When it does not start.
    #[allow(clippy::new_without_default)]
    #[must_use]
    pub fn new() -> Self {
        let mut child = Command::new(concat!(env!("OUT_DIR"), "/relay"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self(RefCell::new(Pipe { child, to, from, status: 0 }))
    }

    /// How the client in C ended last: a number of `service_error_t`.
    #[must_use]
    pub fn status(&self) -> u64 {
        self.0.borrow().status
    }
}

impl Pipe {
    fn put(&mut self, kind: u64, letter: &Letter, string: Option<&[u8]>) {
        let len = string.map_or(NONE, |string| string.len() as u64);
        let head = [kind, 0, 0, len, letter.tag.0];
        let words = head.iter().chain(&letter.words).flat_map(|word| word.to_le_bytes());
        let mut bytes: Vec<u8> = words.collect();
        bytes.extend_from_slice(string.unwrap_or_default());
        self.to.write_all(&bytes).expect("the relay has ended");
    }

    fn get(&mut self) -> Frame {
        let mut bytes = [0; 8 * WORDS];
        self.from.read_exact(&mut bytes).expect("the relay has ended");
        let mut frame = [0; WORDS];
        for (word, bytes) in frame.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let [kind, status, room, len, tag] = frame[..HEAD].try_into().unwrap();
        let words = frame[HEAD..].try_into().unwrap();
        let string = (len != NONE).then(|| {
            let mut string = vec![0; len as usize];
            self.from.read_exact(&mut string).expect("the relay has ended");
            string
        });
        let letter = Letter { tag: MsgTag(tag), words };
        Frame { kind, status, room: room as usize, letter, string }
    }

    /// Hands a request to the server in C, which asks `upstream`.
    fn ask(
        &mut self,
        interface: u64,
        request: &Letter,
        string: Option<&[u8]>,
        upstream: &dyn Upstream,
    ) -> Frame {
        self.put(interface, request, string);
        loop {
            let frame = self.get();
            if frame.kind != CALL {
                self.status = frame.status;
                return frame;
            }
            match upstream.answer(frame.letter, frame.string.as_deref(), frame.room) {
                Some((letter, string)) => self.put(0, &letter, string.as_deref()),
                None => self.put(1, &Letter::new(0), None),
            }
        }
    }
}

/// What the client in C talks to.
pub trait Upstream {
    /// The answer, and its string, which fits into `room`.
    fn answer(
        &self,
        request: Letter,
        body: Option<&[u8]>,
        room: usize,
    ) -> Option<(Letter, Option<Vec<u8>>)>;
}

impl<D: Dispatch> Upstream for Inside<'_, D> {
    fn answer(
        &self,
        request: Letter,
        body: Option<&[u8]>,
        room: usize,
    ) -> Option<(Letter, Option<Vec<u8>>)> {
        let mut string = vec![0; room];
        let timeouts = service::timeouts(None, None);
        let letter = self.call_with(request, body, &mut string, timeouts).ok()?;
        Some((letter, (letter.tag.typed() != 0).then_some(string)))
    }
}

/// Answers nonsense, but never says that there is none.
#[derive(Clone, Copy, Debug)]
pub struct Liar(pub Nonsense);

impl Liar {
    fn calm(mut letter: Letter) -> Letter {
        letter.tag.0 &= !MsgTag::ERROR;
        letter
    }
}

impl Carrier for Liar {
    type Message = Letter;

    fn exchange(&self, request: Letter, timeouts: Timeouts) -> Letter {
        Self::calm(self.0.exchange(request, timeouts))
    }

    fn error(&self) -> Error {
        Error::NoServer
    }

    fn call_with(
        &self,
        request: Letter,
        body: Option<&[u8]>,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Result<Letter, Error> {
        self.0.call_with(request, body, room, timeouts).map(Self::calm)
    }

    fn send(&self, _: Letter, _: Option<&[u8]>, _: Timeouts) -> Result<(), Error> {
        Ok(())
    }
}

impl Upstream for Liar {
    fn answer(
        &self,
        request: Letter,
        body: Option<&[u8]>,
        room: usize,
    ) -> Option<(Letter, Option<Vec<u8>>)> {
        let mut string = vec![0; room];
        let timeouts = service::timeouts(None, None);
        let letter = self.call_with(request, body, &mut string, timeouts).ok()?;
        Some((letter, (room != 0).then_some(string)))
    }
}

/// Calls the server in C, which asks another.
#[derive(Clone, Copy)]
pub struct Through<'r>(pub &'r Relay, pub u64, pub &'r dyn Upstream);

impl Carrier for Through<'_> {
    type Message = Letter;

    fn exchange(&self, request: Letter, timeouts: Timeouts) -> Letter {
        self.call_with(request, None, &mut [], timeouts).unwrap_or(Letter::failed())
    }

    fn error(&self) -> Error {
        Error::NoServer
    }

    fn call_with(
        &self,
        request: Letter,
        body: Option<&[u8]>,
        room: &mut [u8],
        _: Timeouts,
    ) -> Result<Letter, Error> {
        let request = body.map_or(request, |body| request.with_string(body.len()));
        let frame = self.0.0.borrow_mut().ask(self.1, &request, body, self.2);
        let Some(string) = frame.string else { return Ok(frame.letter) };
        room.get_mut(..string.len()).ok_or(Error::TooLong)?.copy_from_slice(&string);
        Ok(frame.letter.with_string(string.len()))
    }

    fn send(&self, request: Letter, body: Option<&[u8]>, timeouts: Timeouts) -> Result<(), Error> {
        self.call_with(request, body, &mut [], timeouts).map(|_| ())
    }
}

/// Sends the same nonsense to a server and to the one in C before it: both have to say the same.
///
/// # Panics
/// When they do not.
pub fn garbage_to_both(interface: u64, server: &impl Dispatch, labels: &[u64]) {
    let relay = Relay::new();
    let inside = Inside(server);
    let (mut room, mut output) = (vec![0; STRING], vec![0; STRING]);
    let mut input = [0_u8; 64];
    for seed in 0..ROUNDS {
        let mut noise = Noise(seed);
        input.iter_mut().for_each(|byte| *byte = noise.word() as u8);
        let request = noise.letter(labels);
        let answer = answer_of(server, request, (&input, &mut room, &mut output));
        let (answer, string) = answer.message().unwrap();
        let frame = relay.0.borrow_mut().ask(interface, &request, Some(&input), &inside);
        let words = answer.tag.untyped();
        assert_eq!(frame.status, 0, "the client in C failed for {request:?}");
        assert_eq!(frame.letter.tag, answer.tag, "{request:?}");
        assert_eq!(frame.letter.words[..words], answer.words[..words], "{request:?}");
        assert_eq!(frame.string.as_deref(), string.map(|len| &output[..len]), "{request:?}");
    }
}

/// Whether the client in C ended as the one in Rust did, which saw the same answer.
///
/// # Panics
/// When it did not.
pub fn same_end<T: core::fmt::Debug>(
    relay: &Relay,
    function: &str,
    here: &Result<T, Error>,
    in_c: &Result<T, Error>,
) {
    let expected = match here {
        Ok(_) => 0,
        Err(Error::NoServer | Error::Ipc(_)) => 1,
        Err(Error::Unknown) => 2,
        Err(Error::Malformed) => 3,
        Err(Error::TooLong) => 4,
        Err(Error::BadAnswer) => 5,
        Err(Error::Lost) => 6,
    };
    assert_eq!(relay.status(), expected, "{function}: {here:?} here");
    if here.is_ok() {
        assert_eq!(format!("{here:?}"), format!("{in_c:?}"), "{function}");
    }
}
