//! The server: a board for notes.
//!
//! Its description must say `provides = ["own-service"]`. It keeps so many notes for each task,
//! and believes nobody who they are: the root task says it.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::cell::RefCell;

use own_service::Board;
use own_service::own_service::{INPUT, OUTPUT, ROOM, Serve, Server, Trouble};
use runtime::println;
use runtime::root::{self, Rights};
use runtime::service::{Caller, Room, serve_with};

runtime::entry!(main);

fn main() {
    if let Err(why) = root::register("own-service") {
        return println!("own-service: it cannot be found under this name: {why}.");
    }
    let service = Service { board: RefCell::new(Board::default()) };
    serve_with(&Serve(&service), &mut [0; INPUT], &mut [0; ROOM], &mut [0; OUTPUT])
}

/// The board behind the interface.
struct Service {
    board: RefCell<Board>,
}

impl Server for Service {
    fn pin(&self, caller: Caller, text: &str) -> Result<u32, Trouble> {
        self.board.borrow_mut().pin(task_of(caller)?, text)
    }

    fn read<'r>(
        &'r self,
        caller: Caller,
        number: u32,
        mut room: Room<'r>,
    ) -> Result<&'r str, Trouble> {
        task_of(caller)?;
        let board = self.board.borrow();
        Ok(room.text(format_args!("{}", board.read(number)?)))
    }

    fn take_down(&self, caller: Caller, number: u32) -> Result<(), Trouble> {
        self.board.borrow_mut().take_down(task_of(caller)?, number)
    }
}

/// The number of the caller's task, if that task's description uses this service.
fn task_of(caller: Caller) -> Result<u32, Trouble> {
    let client = root::client(caller).map_err(|_| Trouble::NotAllowed)?;
    if client.rights.has(Rights::USES) { Ok(client.task) } else { Err(Trouble::NotAllowed) }
}
