//! Panics of code that may be anyone's.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic without a message")
}

/// Calls code of the embedder. If it panics, logs that and returns `None`.
pub(crate) fn guarded<T>(what: &str, call: impl FnOnce() -> T) -> Option<T> {
    let panic = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => return Some(value),
        Err(panic) => panic,
    };
    tracing::error!(panic = panic_text(panic.as_ref()), "{what} panicked");
    None
}
