//! What a turn does, told as stories: each a script and the transcript that must come of it.

mod again;
mod answer;
mod approval;
mod caller;
mod compaction;
mod echo;
mod fault;
mod hold;
mod report;
mod retry;
mod review;
mod rewind;
mod silence;
mod steering;
mod tool;
mod wait;
