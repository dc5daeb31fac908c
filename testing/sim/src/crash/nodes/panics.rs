//! Counts panics, as most would only end a task.

use std::{cell::Cell, panic, sync::Once};

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

static HOOK: Once = Once::new();

/// Returns the number of panics of this thread since the first call. Later panics are also reported as before.
pub(super) fn count() -> usize {
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            COUNT.set(COUNT.get() + 1);
            report(panic);
        }));
    });
    COUNT.get()
}
