//! The handlers of all calls.

pub(crate) mod chat;
pub(crate) mod control;
pub(crate) mod document;
pub(crate) mod export;
pub(crate) mod model_settings;
pub(crate) mod passed;
pub(crate) mod query;
pub(crate) mod retry_settings;
