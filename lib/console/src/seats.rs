//! The consoles that share the terminal: one for each task that the driver's `args` name, and the log. A key
//! behind the prefix (`line::PREFIX`) brings another one to the front (decision 0084).
//!
//! Each keeps the last of what was shown on it. What others print is in the log, and on whatever console is in
//! front. Without names there is one console, of whichever task was given it, and no prefix.

use core::fmt::Write as _;

use abi::ThreadId;
use line::{Prefix, Ring, Tail, Terminal, Typed};
use proto::Name;
use runtime::root;

use crate::input::Input;

/// Consoles of tasks.
pub const SEATS: usize = 3;
/// The log comes behind them.
pub const LOG: usize = SEATS;
/// Bytes that are shown again when a console comes to the front.
const TAIL: usize = 4096;
/// The title that it then has.
const TITLE: usize = 240;

/// A task's console.
pub struct Seat {
    name: Option<Name>,
    /// The task's number, if it is known.
    task: Option<usize>,
    pub terminal: Terminal,
    pub input: Input,
    /// Who has begun to wait for a line, and its task: the terminal is to show the prompt.
    pub asks: Option<(ThreadId, usize)>,
    tail: Tail<TAIL>,
}

impl Seat {
    const fn new() -> Self {
        Self {
            name: None,
            task: None,
            terminal: Terminal::new(),
            input: Input::new(),
            asks: None,
            tail: Tail::new(),
        }
    }
}

/// All consoles.
pub struct Seats {
    seats: [Seat; SEATS],
    log: Tail<TAIL>,
    /// How many consoles of tasks there are.
    count: usize,
    front: usize,
    prefix: Prefix,
    /// What the terminal gets first: a console that has come to the front.
    again: Ring<{ TAIL + TITLE }>,
}

/// What of the terminal a text is for.
pub struct Shown<'a, const N: usize> {
    tail: &'a mut Tail<TAIL>,
    ready: Option<&'a mut Ring<N>>,
}

impl<const N: usize> Shown<'_, N> {
    /// Shows it, and keeps it.
    pub fn put(&mut self, text: &[u8]) {
        self.tail.put(text);
        if let Some(ready) = &mut self.ready {
            for byte in text {
                let _ = ready.put(*byte);
            }
        }
    }
}

impl Seats {
    /// One, for everybody.
    pub const fn new() -> Self {
        Self {
            seats: [const { Seat::new() }; SEATS],
            log: Tail::new(),
            count: 1,
            front: 0,
            prefix: Prefix::new(),
            again: Ring::new(),
        }
    }

    /// One for each task that `names` has; the first is in front.
    pub fn of(&mut self, names: &str) {
        // `key=value` is for the device.
        let names = || names.split_whitespace().filter(|word| !word.contains('='));
        for (seat, name) in self.seats.iter_mut().zip(names()) {
            seat.name = Some(Name::new(name));
        }
        self.count = names().count().clamp(1, SEATS);
        for number in 0..proto::layout::TASKS {
            let Ok(task) = root::describe(number as u64) else { break };
            let named = |seat: &&mut Seat| seat.name == Some(task.name);
            if let Some(seat) = self.seats.iter_mut().find(named) {
                seat.task = Some(number);
            }
        }
    }

    fn has_names(&self) -> bool {
        self.seats[0].task.is_some()
    }

    /// The console of a task that was given one.
    pub fn place(&self, task: usize) -> usize {
        self.seats.iter().position(|seat| seat.task == Some(task)).unwrap_or(0)
    }

    /// The same.
    pub fn of_task(&mut self, task: usize) -> &mut Seat {
        let place = self.place(task);
        &mut self.seats[place]
    }

    /// Gives those who wait what was typed for them.
    pub fn serve(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.input.serve());
    }

    /// All of them.
    pub fn all(&self) -> &[Seat] {
        &self.seats[..self.count]
    }

    /// Where the text of `task` goes: a console, or the log and what is in front.
    fn home(&self, task: usize) -> usize {
        if !self.has_names() {
            return 0;
        }
        self.seats.iter().position(|seat| seat.task == Some(task)).unwrap_or(LOG)
    }

    /// Shows text of `task`; with line ends as terminals want them.
    pub fn print<const N: usize>(&mut self, task: usize, text: &[u8], ready: &mut Ring<N>) {
        let home = self.home(task);
        if home == LOG {
            let mut log =
                Shown { tail: &mut self.log, ready: (self.front == LOG).then_some(&mut *ready) };
            lines(text, |bytes| log.put(bytes));
        }
        let place = if home == LOG { self.front } else { home };
        let front = self.front;
        let Some(Seat { terminal, input, tail, .. }) = self.seats.get_mut(place) else { return };
        let mut shown = Shown { tail, ready: (place == front).then_some(ready) };
        if input.is_raw() {
            lines(text, |bytes| shown.put(bytes));
        } else {
            terminal.print(text, |echo| shown.put(echo));
        }
    }

    /// Shows bytes as they are, on the console `place`.
    pub fn print_raw<const N: usize>(&mut self, place: usize, text: &[u8], ready: &mut Ring<N>) {
        let ready = (place == self.front).then_some(ready);
        Shown { tail: &mut self.seats[place].tail, ready }.put(text);
    }

    /// Gives the terminal up to `most` bytes of what a console had shown before it came to the front;
    /// whether there was any.
    pub fn again<const N: usize>(&mut self, most: usize, ready: &mut Ring<N>) -> bool {
        let mut any = false;
        for _ in 0..most {
            let Some(byte) = self.again.take() else { break };
            any |= ready.put(byte);
        }
        any
    }

    /// Whether the terminal waits for nothing of that kind.
    pub const fn is_settled(&self) -> bool {
        self.again.is_empty()
    }

    /// Shows the prompts of those who have begun to wait for a line, if `is_shown` says that what the task
    /// has written before is there.
    pub fn ask<const N: usize>(
        &mut self,
        ready: &mut Ring<N>,
        is_shown: impl Fn(usize, &Ring<N>) -> bool,
    ) {
        if !self.again.is_empty() {
            return;
        }
        let front = self.front;
        for (place, seat) in self.seats.iter_mut().enumerate() {
            let asks = seat.asks.take_if(|(_, task)| is_shown(*task, ready));
            let Some((from, _)) = asks else { continue };
            if seat.input.words_of != from {
                seat.terminal.set_words(b"");
            }
            let mut shown =
                Shown { tail: &mut seat.tail, ready: (place == front).then_some(&mut *ready) };
            seat.terminal.ask(|echo| shown.put(echo));
        }
    }

    /// A character is typed.
    pub fn take<const N: usize>(&mut self, byte: u8, ready: &mut Ring<N>) {
        let typed = if self.has_names() { self.prefix.take(byte) } else { Typed::Character(byte) };
        match typed {
            Typed::Half => {}
            Typed::Command(key) => self.command(key),
            Typed::Character(byte) => {
                let Some(seat) = self.seats.get_mut(self.front) else { return };
                let Seat { terminal, input, tail, .. } = seat;
                if self.again.is_empty() {
                    let mut shown = Shown { tail, ready: Some(ready) };
                    input.take(byte, terminal, |echo| shown.put(echo));
                } else {
                    // Behind what the terminal is shown again, which begins with an empty screen.
                    let mut shown = Shown { tail, ready: Some(&mut self.again) };
                    input.take(byte, terminal, |echo| shown.put(echo));
                }
            }
        }
    }

    /// Brings a console to the front: the next, that with this number, or one whose name begins so.
    /// Any other key shows the one in front again.
    fn command(&mut self, key: u8) {
        let begins = |seat: &Seat| seat.name.is_some_and(|name| name.as_str().as_bytes()[0] == key);
        let place = match key {
            b'n' | b' ' if self.front == LOG => 0,
            b'n' | b' ' if self.front + 1 >= self.count => LOG,
            b'n' | b' ' => self.front + 1,
            b'0' => LOG,
            b'1'..=b'9' if usize::from(key - b'1') < self.count => usize::from(key - b'1'),
            _ => match self.all().iter().position(begins) {
                Some(place) => place,
                None if key == b'l' => LOG,
                None => self.front,
            },
        };
        self.front = place;
        self.show();
    }

    /// The terminal is to show the console in front from the beginning.
    fn show(&mut self) {
        while self.again.take().is_some() {}
        // The first place, and nothing on the screen.
        let mut title = Title(&mut self.again);
        let _ = title.write_str("\x1B[0m\x1B[H\x1B[2J");
        for (place, seat) in self.seats[..self.count].iter().enumerate() {
            let mark = if place == self.front { "*" } else { " " };
            let _ = write!(title, "{mark}{} {}  ", place + 1, seat.name.unwrap_or_default());
        }
        let mark = if self.front == LOG { "*" } else { " " };
        let _ = write!(title, "{mark}0 log   (^] and a key: the number, or n for the next)\r\n");
        let tail = self.seats.get(self.front).map_or(&self.log, |seat| &seat.tail);
        for byte in (tail.first_line()..tail.len()).filter_map(|at| tail.get(at)) {
            let _ = self.again.put(byte);
        }
    }
}

/// Where the title goes.
struct Title<'a, const N: usize>(&'a mut Ring<N>);

impl<const N: usize> core::fmt::Write for Title<'_, N> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        text.bytes().for_each(|byte| _ = self.0.put(byte));
        Ok(())
    }
}

/// Lines as a terminal wants them: it goes to the next one, and to its beginning.
fn lines(text: &[u8], mut put: impl FnMut(&[u8])) {
    for byte in text {
        if *byte == b'\n' {
            put(b"\r");
        }
        put(&[*byte]);
    }
}
