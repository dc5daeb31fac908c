//! What a server uses, over time.

use std::{fmt, fs};

use super::site::Site;
use crate::home::Server;

/// What is read, and by how much the largest value of the last third may exceed that of the middle third: by a tenth, and this.
const FIGURES: [(&str, u64); 4] =
    [("memory (KiB)", 8 * 1024), ("descriptors", 12), ("threads", 4), ("files (KiB)", 4 * 1024)];

#[derive(Default)]
pub(crate) struct Gauge(Vec<[u64; FIGURES.len()]>);

impl Gauge {
    pub(crate) fn read(&mut self, site: &Site, server: &Server) {
        let process = format!("/proc/{}", server.child.id().unwrap());
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let descriptors = fs::read_dir(format!("{process}/fd")).unwrap().count();
        let data = fs::read_dir(site.home.journal().parent().unwrap()).unwrap();
        // A file may be removed meanwhile.
        let bytes: u64 = data.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum();
        self.0.push([field("VmRSS"), descriptors as u64, field("Threads"), bytes / 1024]);
    }

    /// What was still growing in the last third. `pool`: so many threads may have begun to do what blocks, such as reading the
    /// file.
    pub(crate) fn grown(&self, pool: u64) -> Vec<&'static str> {
        let third = self.0.len() / 3;
        let most =
            |part: &[[u64; FIGURES.len()]], at: usize| part.iter().map(|read| read[at]).max().unwrap_or(0);
        let (middle, last) = (&self.0[third..2 * third], &self.0[2 * third..]);
        let figures = FIGURES.iter().enumerate();
        let grown = figures.filter(|(at, (name, slack))| {
            let slack = slack + if *name == "threads" { pool } else { 0 };
            most(last, *at) > most(middle, *at) * 11 / 10 + slack
        });
        grown.map(|(_, (name, _))| name.split(' ').next().unwrap_or(name)).collect()
    }
}

/// A line for each tenth: the largest values.
impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} readings; largest of each tenth:", self.0.len())?;
        for (at, (name, _)) in FIGURES.iter().enumerate() {
            write!(f, "{name:>14}")?;
            for part in self.0.chunks(self.0.len().div_ceil(10).max(1)) {
                write!(f, "{:>9}", part.iter().map(|read| read[at]).max().unwrap_or(0))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
