//! Panics of code that may be anyone's.

use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::FutureExt as _;

use crate::JournalError;

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic without a message")
}

/// Turns a panic of a store into an error.
pub(crate) async fn guard<T>(call: impl Future<Output = Result<T, JournalError>>) -> Result<T, JournalError> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|panic| {
        Err(JournalError::Storage(format!("it panicked: {}", panic_text(panic.as_ref()))))
    })
}
