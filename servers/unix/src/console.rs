//! The terminal's wire: raw bytes to and from the console driver. A helper thread
//! waits for input, so that the server never does.

use abi::ThreadId;
use interfaces::console::Client;
use proto::console as op;
use runtime::service::Thread;
use runtime::{ipc, root, thread};

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
                if Client::new(Thread(self.driver.get())).write_raw(chunk).is_ok() {
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
        let mut room = [0; op::WORD_BYTES];
        // A driver that dies takes the request with it: the answer is waited for only so long.
        let Ok(Ok(text)) = Client::new(Thread(driver)).read_raw(&mut room) else { continue };
        let _ = ipc::send(server, &root::text_message(LABEL, text));
    }
}
