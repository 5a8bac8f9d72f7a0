//! A procedure call's message as a host has it that has not put it anywhere: its first words in registers, the others on
//! the A-stack. The answer takes its place.

use core::cell::Cell;

use abi::MsgTag;
use service::{Message, SHORT, Scratch};

use super::letter::{BODY, COME};
use crate::Msg;
use crate::a_stacks::AStack;

/// Where a body is copied to, once.
pub(super) type Place<'s> = Cell<Option<&'s mut [u8; BODY]>>;

/// A request, or the answer to it.
#[derive(Clone, Copy)]
pub(super) struct Called<'s> {
    message: Msg,
    /// `None`: it has none but those in registers.
    a_stack: Option<AStack>,
    place: Option<&'s Place<'s>>,
}

impl<'s> Called<'s> {
    /// A place for the body of one request.
    #[inline(always)]
    pub(super) const fn place(scratch: &'s mut [u8; BODY]) -> Place<'s> {
        Cell::new(Some(scratch))
    }

    /// A request that came with this A-stack.
    #[inline(always)]
    pub(super) const fn come(message: Msg, a_stack: AStack, place: &'s Place<'s>) -> Self {
        Self { message, a_stack: Some(a_stack), place: Some(place) }
    }

    /// What of it is in registers.
    #[inline(always)]
    pub(super) const fn message(self) -> Msg {
        self.message
    }
}

impl Message for Called<'_> {
    #[inline(always)]
    fn new(label: u64) -> Self {
        Self { message: Msg::new(label), a_stack: None, place: None }
    }

    #[inline(always)]
    fn emptied(self, label: u64) -> Self {
        Self { message: self.message.emptied(label), ..self }
    }

    #[inline(always)]
    fn push(mut self, word: u64) -> Self {
        let at = self.message.tag.untyped();
        match (self.message.mr.get_mut(at), self.a_stack) {
            (Some(register), _) => *register = word,
            (None, Some(a_stack)) => a_stack.set_word(at, word),
            (None, None) => {}
        }
        self.message.tag.0 += 1;
        self
    }

    fn item(self, _: [u64; 2]) -> Self {
        Self::new(service::label::TOO_LONG) // of answers with items none comes here
    }

    #[inline(always)]
    fn with_body(mut self, body: &[u8]) -> Self {
        let at = self.message.tag.untyped();
        self.message.tag.0 += body.len().div_ceil(8) as u64;
        let rest = service::to_registers(&mut self.message.mr, at..SHORT, body);
        if !rest.is_empty()
            && let Some(a_stack) = self.a_stack
        {
            a_stack.set_words(at.max(SHORT), rest);
        }
        self
    }

    #[inline(always)]
    fn copy_body(&self, first: usize, room: &mut [u8]) {
        let Some(a_stack) = self.a_stack else { return };
        let mut registers = self.message.mr;
        if first.saturating_mul(8) + room.len() > COME * 8 {
            registers[COME] = a_stack.word(COME);
        }
        let rest = service::from_registers(&registers, first, room);
        if !rest.is_empty() {
            a_stack.copy_words(first.max(SHORT), rest);
        }
    }

    #[inline(always)]
    fn body<'a, const N: usize>(
        &'a self,
        first: usize,
        len: usize,
        scratch: &'a mut Scratch<N>,
    ) -> &'a [u8] {
        let own = self.place.and_then(Cell::take);
        let room = match own.and_then(|own| own.get_mut(..len)) {
            Some(own) => own,
            None => scratch.bytes(len),
        };
        self.copy_body(first, room);
        room
    }

    #[inline(always)]
    fn tag(&self) -> MsgTag {
        self.message.tag
    }

    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        match (self.message.mr.get(index), self.a_stack) {
            (Some(word), _) if index < COME => *word,
            (_, Some(a_stack)) => a_stack.word(index),
            _ => 0,
        }
    }
}
