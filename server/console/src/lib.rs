//! Terminal helpers shared by the commands: printing, sanitized text, formatted numbers, Ctrl-C.
//!
//! It knows neither turns nor servers, and reads no configuration.

mod hidden;
mod interrupt;
mod nearest;
pub mod printer;
pub mod visible;
pub mod wording;

pub use hidden::Hidden;
pub use interrupt::Interrupt;
pub use nearest::nearest;
