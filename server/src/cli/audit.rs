//! The words of `everturn audit`.

use std::path::PathBuf;

use clap::Args;

use super::ConfigFlag;
use crate::config::Flags;

#[derive(Args, Debug)]
pub(crate) struct Audit {
    /// How many entries, the latest ones
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Print them as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    config: ConfigFlag,
    /// The file that conversations are kept in, beside which the log is kept [default: as for serve]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
}

impl Audit {
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), data: self.data.clone(), ..Flags::default() }
    }
}
