//! Messages inside one process: a client's carrier that calls the server at once, one that
//! answers nonsense, and nonsense for servers.

use std::any::Any;

use abi::{MsgTag, StringItem, ThreadId, Timeouts};
use service::{Answer, Caller, Carrier, Dispatch, Error, MAX_WORDS, Message, Next};

/// Longest string here.
pub(crate) const STRING: usize = 16 * 1024;
/// Messages of nonsense for a server.
const ROUNDS: u64 = 20_000;

/// A message as the kernel would carry it.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    pub(crate) tag: MsgTag,
    pub(crate) words: [u64; MAX_WORDS],
}

impl Letter {
    /// What comes back when nothing does.
    pub(crate) fn failed() -> Self {
        let mut letter = Self::new(0);
        letter.tag.0 |= MsgTag::ERROR;
        letter
    }

    /// The same with a string of `len` bytes behind its words.
    pub(crate) fn with_string(mut self, len: usize) -> Self {
        let at = self.tag.untyped();
        self.words[at..at + 2].copy_from_slice(&StringItem::simple(0, len as u64));
        self.tag.0 |= 2 << 6;
        self
    }
}

impl Message for Letter {
    fn new(label: u64) -> Self {
        Self { tag: MsgTag::new(label, 0, 0), words: [0; MAX_WORDS] }
    }

    fn push(mut self, word: u64) -> Self {
        let at = self.tag.untyped();
        self.words[at] = word;
        self.tag.0 += 1;
        self
    }

    fn item(mut self, words: [u64; 2]) -> Self {
        let at = self.tag.untyped() + self.tag.typed();
        self.words[at..at + 2].copy_from_slice(&words);
        self.tag.0 += 2 << 6;
        self
    }

    fn tag(&self) -> MsgTag {
        self.tag
    }

    fn get(&self, index: usize) -> u64 {
        self.words[index]
    }
}

/// Hands a quick answer out.
pub(crate) struct AsItIs;

impl Next<Letter> for AsItIs {
    type Request = Letter;

    fn request(&self, answer: Letter) -> Letter {
        answer
    }
}

/// What `server` makes of a request with this input, by the shortest of its ways: it has room and output.
pub(crate) fn answer_of(
    server: &impl Dispatch,
    request: Letter,
    (input, room, output): (&[u8], &mut [u8], &mut [u8]),
) -> Answer<Letter> {
    let caller = ThreadId(1);
    if let Ok(answer) = server.quick(caller, request, &AsItIs) {
        return Answer::Words(answer);
    }
    match server.quick_bytes(caller, request, room, &AsItIs) {
        Ok(answer) => Answer::Words(answer),
        Err(request) => server.dispatch(caller, &request, input, room, output),
    }
}

/// Calls a server of this process.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'s, D>(pub &'s D);

impl<D: Dispatch> Carrier for Inside<'_, D> {
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
        let (mut input, mut own, mut output) = (vec![0; STRING], vec![0; STRING], vec![0; STRING]);
        let request = body.map_or(request, |body| {
            input[..body.len()].copy_from_slice(body);
            request.with_string(body.len())
        });
        let answer = answer_of(self.0, request, (&input, &mut own, &mut output));
        match answer.message().ok_or(Error::NoServer)? {
            (answer, None) => Ok(answer),
            (answer, Some(len)) => {
                room.get_mut(..len).ok_or(Error::TooLong)?.copy_from_slice(&output[..len]);
                Ok(answer.with_string(len))
            }
        }
    }

    fn send(&self, request: Letter, body: Option<&[u8]>, timeouts: Timeouts) -> Result<(), Error> {
        self.call_with(request, body, &mut [], timeouts).map(|_| ())
    }
}

/// Calls a server of this process as a function, where the stubs can do without a message.
#[derive(Debug)]
pub struct Near<D: 'static>(pub &'static D);

impl<D: Dispatch + service::Inside> Carrier for Near<D> {
    type Message = Letter;

    fn exchange(&self, request: Letter, timeouts: Timeouts) -> Letter {
        Inside(self.0).exchange(request, timeouts)
    }

    fn error(&self) -> Error {
        Inside(self.0).error()
    }

    fn call_with(
        &self,
        request: Letter,
        body: Option<&[u8]>,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Result<Letter, Error> {
        Inside(self.0).call_with(request, body, room, timeouts)
    }

    fn send(&self, request: Letter, body: Option<&[u8]>, timeouts: Timeouts) -> Result<(), Error> {
        Inside(self.0).send(request, body, timeouts)
    }

    fn caller(&self) -> Option<Caller> {
        Some(ThreadId(1))
    }

    fn find_inside(&self, place: &mut dyn Any) {
        self.0.give(place);
    }
}

/// Answers every request with something; with what, the number says.
#[derive(Clone, Copy, Debug)]
pub struct Nonsense(pub u64);

impl Nonsense {
    pub(crate) fn letter(self, request: &Letter) -> Letter {
        let mut noise = Noise(self.0 ^ request.tag.0);
        noise.letter(&[0, 0, 0, 2, 3, 4, 1 << 40])
    }
}

impl Carrier for Nonsense {
    type Message = Letter;

    fn exchange(&self, request: Letter, _: Timeouts) -> Letter {
        self.letter(&request)
    }

    fn error(&self) -> Error {
        Error::NoServer
    }

    fn call_with(
        &self,
        request: Letter,
        _: Option<&[u8]>,
        room: &mut [u8],
        _: Timeouts,
    ) -> Result<Letter, Error> {
        let mut noise = Noise(self.0);
        room.iter_mut().for_each(|byte| *byte = noise.next() as u8);
        Ok(self.letter(&request))
    }

    fn send(&self, _: Letter, _: Option<&[u8]>, _: Timeouts) -> Result<(), Error> {
        Ok(())
    }
}

/// Numbers without sense (splitmix64).
pub(crate) struct Noise(pub u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 8
    }

    /// A word as a mistake or an attacker would have it: small, huge, anything.
    pub(crate) fn word(&mut self) -> u64 {
        match self.next() % 4 {
            0 | 1 => self.next() % 9,
            2 => u64::MAX << (self.next() % 64),
            _ => self.next() << (self.next() % 16),
        }
    }

    /// A message with one of `labels`, or hardly another.
    pub(crate) fn letter(&mut self, labels: &[u64]) -> Letter {
        let label = match self.next() % 20 {
            0 => self.next() & 0xFFFF_FFFF,
            _ => labels[self.next() as usize % labels.len()],
        };
        let words =
            self.next() as usize % if self.next().is_multiple_of(4) { MAX_WORDS + 1 } else { 12 };
        let mut letter = (0..words).fold(Letter::new(label), |letter, _| letter.push(self.word()));
        match self.next() % 4 {
            0 if words + 2 <= MAX_WORDS => {
                let len = self.next() as usize % 64;
                letter = letter.with_string(len);
            }
            // A tag that lies.
            1 => letter.tag.0 ^= 1 << (self.next() % 16),
            _ => {}
        }
        letter
    }
}

/// Sends nonsense to a server: it has to answer each, and may not panic.
///
/// # Panics
/// When it gives no answer, or one that is neither a result nor an error.
pub fn garbage_to_server(server: &impl Dispatch, labels: &[u64]) {
    let (mut room, mut output) = (vec![0; STRING], vec![0; STRING]);
    let mut input = [0_u8; 64];
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..ROUNDS {
        let mut noise = Noise(seed);
        input.iter_mut().for_each(|byte| *byte = noise.word() as u8);
        let request = noise.letter(labels);
        let answer = answer_of(server, request, (&input, &mut room, &mut output));
        let label = match answer {
            Answer::Words(answer) | Answer::String(answer, _) => answer.tag.label(),
            Answer::Unknown => service::label::UNKNOWN,
            Answer::Nothing => panic!("no answer to {request:?}"),
        };
        match label {
            service::label::OK | service::label::TOO_LONG => taken += 1,
            service::label::MALFORMED | service::label::UNKNOWN => refused += 1,
            other => panic!("the answer {other} to {request:?}"),
        }
    }
    assert!(taken > 0 && refused > taken, "{taken} taken, {refused} refused");
}
