//! A request as a server's loop has it, and the answer to it: seven words in registers, the others in the UTCB or on the
//! A-stack. All of it lies in one place of the loop's, so that a stub passes on no more than where that is.

use core::borrow::Borrow;
use core::cell::Cell;

use abi::{Item, MsgTag, StringItem};
use service::{MAX_WORDS, Message, SHORT, Scratch};

use crate::a_stacks::AStack;
use crate::{Msg, utcb};

/// Words of a procedure call that come in registers; in the other direction and in messages there is one more.
pub(super) const COME: usize = 6;
/// The flags of a tag, which a client may set as it likes.
const FLAGS: u64 = 0xF000;
/// Bytes of the longest body in words.
pub(super) const BODY: usize = 8 * MAX_WORDS;

/// The words of a request that came in registers, and those of its answer.
pub(super) type Registers = [Cell<u64>; SHORT];

/// Where a request and its answer are; the registers' words in it, or with whoever has made it.
pub(super) struct Place<'s, R> {
    registers: R,
    /// Where the other words are; `None`: in the UTCB.
    a_stack: Option<AStack>,
    /// The words of a procedure call's string item, read once: the length of the string is what they say from now on.
    item: [u64; 2],
    /// Where a body in words is copied to.
    scratch: Cell<Option<&'s mut [u8; BODY]>>,
}

impl<'s> Place<'s, Registers> {
    /// That of a message.
    #[inline(always)]
    pub(super) fn of_message(request: &Msg, scratch: &'s mut [u8; BODY]) -> Self {
        Self {
            registers: registers(request),
            a_stack: None,
            item: [0; 2],
            scratch: Cell::new(Some(scratch)),
        }
    }
}

impl<'s> Place<'s, &'s Registers> {
    /// That of a procedure call which came with these registers and this tag.
    #[inline(always)]
    pub(super) fn of_call(
        tag: MsgTag,
        registers: &'s Registers,
        a_stack: AStack,
        scratch: &'s mut [u8; BODY],
    ) -> Self {
        let (words, typed) = (tag.untyped(), tag.typed());
        if words + typed > COME {
            registers[COME].set(a_stack.word(COME));
        }
        let item = match typed == 2 && words + 2 <= MAX_WORDS {
            true => item_at(words, registers, a_stack),
            false => [0; 2],
        };
        Self { registers, a_stack: Some(a_stack), item, scratch: Cell::new(Some(scratch)) }
    }
}

impl<'s, R: Borrow<Registers>> Place<'s, R> {
    /// The words in registers.
    #[inline(always)]
    fn registers(&self) -> &Registers {
        self.registers.borrow()
    }

    /// The message with this tag that is in here now.
    #[inline(always)]
    pub(super) fn message(&self, tag: MsgTag) -> Msg {
        message(tag, self.registers())
    }

    /// Its request with this tag.
    #[inline(always)]
    pub(super) const fn letter(&self, tag: MsgTag) -> Letter<'_, 's, R> {
        Letter { tag: MsgTag(tag.0 & !FLAGS), place: Some(self) }
    }

    /// A word.
    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        match (self.registers().get(index), self.a_stack) {
            (Some(register), _) => register.get(),
            (None, Some(a_stack)) => a_stack.word(index),
            (None, None) => utcb::mr(index + 1),
        }
    }

    #[inline(always)]
    fn set_word(&self, index: usize, word: u64) {
        match (self.registers().get(index), self.a_stack) {
            (Some(register), _) => register.set(word),
            (None, Some(a_stack)) => a_stack.set_word(index, word),
            (None, None) => utcb::set_mr(index + 1, word),
        }
    }

    /// The length of a procedure call's string, if it has one and nothing else behind its words.
    #[inline(always)]
    pub(super) fn string_len(&self, tag: MsgTag) -> Option<usize> {
        if tag.typed() != 2 {
            return None;
        }
        match Item::decode(self.item[0], self.item[1]) {
            Item::String(item) => usize::try_from(StringItem::len(item)).ok(),
            _ => None,
        }
    }

    /// The tag of the answer that has this one, and from now on an item behind its words.
    pub(super) fn item(&self, tag: MsgTag, words: [u64; 2]) -> MsgTag {
        let at = tag.untyped() + tag.typed();
        self.set_word(at, words[0]);
        self.set_word(at + 1, words[1]);
        MsgTag(tag.0 + (2 << 6))
    }
}

/// The words `at` and behind it of a procedure call.
#[cold]
#[inline(never)]
fn item_at(at: usize, registers: &Registers, a_stack: AStack) -> [u64; 2] {
    [at, at + 1].map(|index| registers.get(index).map_or_else(|| a_stack.word(index), Cell::get))
}

/// The message with this tag that is in `registers` now.
#[inline(always)]
pub(super) fn message(tag: MsgTag, registers: &Registers) -> Msg {
    Msg { tag, mr: registers.each_ref().map(Cell::get) }
}

/// The words of `request` that came in registers.
#[inline(always)]
pub(super) const fn registers(request: &Msg) -> Registers {
    let [a, b, c, d, e, f, g] = request.mr;
    let (a, b, c, d) = (Cell::new(a), Cell::new(b), Cell::new(c), Cell::new(d));
    [a, b, c, d, Cell::new(e), Cell::new(f), Cell::new(g)]
}

/// A request, or the answer to it, which takes its place.
pub(super) struct Letter<'p, 's, R> {
    tag: MsgTag,
    /// `None`: it has no words.
    place: Option<&'p Place<'s, R>>,
}

impl<R> Clone for Letter<'_, '_, R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Letter<'_, '_, R> {}

impl<R: Borrow<Registers>> Message for Letter<'_, '_, R> {
    #[inline(always)]
    fn new(label: u64) -> Self {
        Self { tag: MsgTag::new(label, 0, 0), place: None }
    }

    #[inline(always)]
    fn emptied(self, label: u64) -> Self {
        Self { tag: MsgTag::new(label, 0, 0), ..self }
    }

    #[inline(always)]
    fn push(self, word: u64) -> Self {
        if let Some(place) = self.place {
            place.set_word(self.tag.untyped(), word);
        }
        Self { tag: MsgTag(self.tag.0 + 1), ..self }
    }

    fn item(self, words: [u64; 2]) -> Self {
        Self { tag: self.place.map_or(self.tag, |place| place.item(self.tag, words)), ..self }
    }

    #[inline(always)]
    fn with_body(self, body: &[u8]) -> Self {
        let at = self.tag.untyped();
        let tag = MsgTag(self.tag.0 + body.len().div_ceil(8) as u64);
        if let Some(place) = self.place {
            let mut registers = [0; SHORT];
            let rest = service::to_registers(&mut registers, at..SHORT, body);
            place
                .registers()
                .iter()
                .zip(registers)
                .skip(at)
                .for_each(|(cell, word)| cell.set(word));
            let next = at.max(SHORT);
            match place.a_stack {
                _ if rest.is_empty() => {}
                Some(a_stack) => a_stack.set_words(next, rest),
                None => utcb::set_mrs(next + 1, rest),
            }
        }
        Self { tag, ..self }
    }

    #[inline(always)]
    fn copy_body(&self, first: usize, room: &mut [u8]) {
        let Some(place) = self.place else { return };
        let registers = place.registers().each_ref().map(Cell::get);
        let rest = service::from_registers(&registers, first, room);
        let next = first.max(SHORT);
        match place.a_stack {
            _ if rest.is_empty() => {}
            Some(a_stack) => a_stack.copy_words(next, rest),
            None => utcb::copy_mrs(next + 1, rest),
        }
    }

    #[inline(always)]
    fn body<'a, const N: usize>(
        &'a self,
        first: usize,
        len: usize,
        scratch: &'a mut Scratch<N>,
    ) -> &'a [u8] {
        let own = self.place.and_then(|place| place.scratch.take());
        let room = match own.and_then(|own| own.get_mut(..len)) {
            Some(own) => own,
            None => scratch.bytes(len),
        };
        self.copy_body(first, room);
        room
    }

    #[inline(always)]
    fn tag(&self) -> MsgTag {
        self.tag
    }

    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        let Some(place) = self.place else { return 0 };
        let item = index.wrapping_sub(self.tag.untyped());
        match (place.a_stack, place.item.get(item)) {
            (Some(_), Some(word)) => *word,
            _ => place.word(index),
        }
    }
}
