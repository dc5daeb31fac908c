//! The behaviour of every adapter.

pub(crate) mod answer;
pub(crate) mod breakage;
pub(crate) mod http2;
pub(crate) mod manners;
pub(crate) mod parameter;
pub(crate) mod refusal;
pub(crate) mod silence;
pub(crate) mod tls;
pub(crate) mod tool;
