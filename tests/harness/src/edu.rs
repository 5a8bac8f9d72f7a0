//! The emulator's device for teaching, `edu`: it interrupts whenever it is told to, by a message.

use abi::kip::LineMessage;
use pci::{Function, Messages};
use runtime::port::Ports;
use runtime::sigma0;
use runtime::sync::Lock;
use runtime::window::Window;

/// Vendor and device.
const EDU: (u16, u16) = (0x1234, 0x11E8);
/// Its registers: who it is; interrupt (60), take that back (64).
const IDENTITY: u64 = 0;
const RAISE: u64 = 0x60;
const TAKE_BACK: u64 = 0x64;

/// Its registers: sigma0 gives them once.
static REGISTERS: Lock<Option<Window>> = Lock::new(None);

/// The ports of configuration space.
#[must_use]
pub fn config() -> Ports {
    let (first, count) = pci::PORTS;
    // sigma0 gives them once.
    let _ = sigma0::ports(first, count.trailing_zeros());
    Ports::new(first, count)
}

/// Has the device signal by `message`.
///
/// # Errors
/// Why it cannot.
pub fn signal_by(message: LineMessage) -> Result<(), &'static str> {
    let config = config();
    let function = Function::find(&config, EDU.0, EDU.1)
        .ok_or("there is no device edu: the machine needs `--device edu`")?;
    if function.messages() != Some(Messages::One) {
        return Err("the device does not say that it has one message");
    }
    function.enable();
    if !function.signal_by(message) {
        return Err("the device has no room for the address");
    }
    let mut registers = REGISTERS.lock();
    if registers.is_none() {
        let memory = function.memory(0).ok_or("the device has no registers")?;
        *registers = sigma0::memory(Some(memory.address), 12);
    }
    let device = registers.as_ref().ok_or("sigma0 does not give the device's registers")?;
    if device.read32(IDENTITY) & 0xFFFF == 0xED { Ok(()) } else { Err("the device is another") }
}

/// It interrupts.
pub fn raise() {
    if let Some(device) = REGISTERS.lock().as_ref() {
        device.write32(RAISE, 1);
        device.write32(TAKE_BACK, 1);
    }
}
