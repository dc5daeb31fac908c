//! What the commands of the binary share at a terminal: printing, text made harmless to show, figures in words, Ctrl-C.
//!
//! It does not know turns or servers, and reads no configuration.

mod hidden;
mod interrupt;
pub mod printer;
pub mod visible;
pub mod wording;

pub use hidden::Hidden;
pub use interrupt::Interrupt;
