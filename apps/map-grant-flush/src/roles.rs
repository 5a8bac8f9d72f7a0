//! What the four spaces do.

use abi::{Fpage, MapItem, Rights, ThreadId};
use runtime::space::page_of;
use runtime::window::Window;
use runtime::{Msg, accept, ipc, kernel, thread};

use crate::{DONE, FILES, FLUSH, GET, WINDOWS, id};

/// f1, f2: maps its page to whoever asks; takes it back on request.
pub extern "C" fn file_system(who: u64) -> ! {
    let mut reply = None;
    loop {
        let (from, msg) = ipc::next_request(reply);
        reply = Some((
            from,
            match msg.label() {
                FLUSH => {
                    kernel::unmap(page_of(&FILES[who as usize], Rights::RWX));
                    Msg::default()
                }
                _ => Msg::default().map(MapItem::map(page_of(&FILES[who as usize], Rights::RW), 0)),
            },
        ));
    }
}

/// F: gets page 0 from f1, page 1 from f2, and grants it on; also tells what it
/// sees in its own window afterwards.
pub extern "C" fn combine(_: u64) -> ! {
    let mut window = Window::claim(WINDOWS, 4096);
    let mut reply = None;
    while let Some(window) = window.as_mut() {
        let (from, msg) = ipc::next_request(reply);
        if msg.label() == DONE {
            reply = Some((from, Msg::default().word(window.read(0))));
            continue;
        }
        let _ = kernel::flush(window, Fpage::memory(WINDOWS, 12, Rights::RWX));
        let from_whom = id((msg.mr[0] & 1) as usize);
        let _ = accept::window(window, || ipc::call(from_whom, &Msg::new(GET)));
        reply = Some((
            from,
            Msg::default().map(MapItem::grant(Fpage::memory(WINDOWS, 12, Rights::RW), 0)),
        ));
    }
    thread::park()
}

/// A: gets both pages through F, then looks what a flush leaves.
pub extern "C" fn user(main: u64) -> ! {
    let mut windows = [1, 2].map(|index| Window::claim(WINDOWS + index * 4096, 4096));
    let mut seen = [0; 2];
    for (file, window) in windows.iter_mut().flatten().enumerate() {
        let request = Msg::new(GET).word(file as u64);
        let _ = accept::window(window, || ipc::call(id(2), &request));
        seen[file] = window.read(0);
    }
    let at_f = ipc::call(id(2), &Msg::new(DONE)).map_or(!0, |reply| reply.mr[0]);
    let _ = ipc::call(id(0), &Msg::new(FLUSH));
    let after =
        windows.each_ref().map(|window| window.as_ref().map_or(!0, |window| window.read(0)));
    let _ = ipc::call(
        ThreadId(main),
        &Msg::new(DONE).words(&[seen[0], seen[1], at_f, after[0], after[1]]),
    );
    thread::park()
}
