//! The terminal's wire: raw bytes to and from the console driver. A helper thread
//! waits for input, so that the server never does.

use abi::{ThreadId, Time, Timeouts};
use proto::console as op;
use runtime::{Msg, ipc, root, thread};

/// Label of the helper's message: MR1 bytes, then the text.
pub const LABEL: u64 = 0x401;

/// Output side and the input helper.
pub struct Console {
    /// Its name inside this task, which is how its messages come.
    helper: ThreadId,
    driver: core::cell::Cell<ThreadId>,
}

impl Console {
    /// Starts the input helper; it sends to `server`.
    pub fn start(server: ThreadId) -> Result<Self, root::Refusal> {
        let helper = thread::spawn(move || read_and_send(server))?;
        let helper = thread::other_id(helper).unwrap_or(helper);
        Ok(Self { helper, driver: core::cell::Cell::new(ThreadId::NIL) })
    }

    /// Whether `id` is the helper.
    pub fn is(&self, id: ThreadId) -> bool {
        id == self.helper
    }

    /// Writes bytes as they are.
    pub fn write(&self, bytes: &[u8]) {
        for chunk in bytes.chunks(op::WORD_BYTES) {
            for _ in 0..2 {
                if self.driver.get().is_nil() {
                    self.driver.set(root::find(op::NAME, 500).unwrap_or(ThreadId::NIL));
                }
                let patience = Timeouts::new(Time::micros(500_000), Time::micros(10_000_000));
                let msg = root::text_message(op::WRITE_RAW, chunk);
                if ipc::call_within(self.driver.get(), &msg, patience).is_ok() {
                    break;
                }
                // Killed and started again, it registers anew.
                self.driver.set(ThreadId::NIL);
            }
        }
    }
}

fn read_and_send(server: ThreadId) {
    loop {
        let Ok(driver) = root::find(op::NAME, 1000) else { continue };
        // A driver that dies takes the request with it: ask again from time to time.
        let patience = Timeouts::new(Time::micros(500_000), Time::micros(2_000_000));
        let Ok(reply) = ipc::call_within(driver, &Msg::new(op::READ_RAW), patience) else {
            continue;
        };
        let mut text = [0; op::WORD_BYTES];
        let len = root::message_text(&reply, &mut text);
        let _ = ipc::send(server, &root::text_message(LABEL, &text[..len]));
    }
}
