//! Other people's protocols over our turns: a request becomes what a turn is started with, events become a client's frames.
//!
//! This crate does *not* do I/O, spawn, read a clock, start turns or decide anything about them: whoever has the
//! connection passes in what arrives and sends what comes out.

pub mod openai;
