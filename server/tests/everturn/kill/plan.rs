//! Plans: which program is killed when. Each has a name that replays it.

use std::{fmt, str::FromStr};

use crate::fault::Moment;

/// The processes of one server, up to the last, which is not killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) program: Program,
    pub(crate) loss: Loss,
    pub(crate) ends: Vec<End>,
}

/// The program that runs the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// The binary.
    Everturn,
    /// An embedder whose tool leaves a trace.
    Embedder,
    /// The same; its tool is reviewed, the review fails, and a person allows it.
    Asking,
    /// The binary, with tools of an MCP server.
    Calling,
    /// An embedder, too; the earlier history exceeds the model's context and is compacted.
    Compacting,
    /// The binary; the turn must end with a report, which the model gives after guidance.
    Reporting,
    /// The binary; the tool is the caller's, to whom the call is handed over.
    Handing,
}

impl Program {
    /// Whether it is the binary, and not an embedder.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Everturn | Self::Calling | Self::Reporting | Self::Handing)
    }
}

/// What is lost with the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing else: written data is with the operating system.
    Process,
    /// Everything that was not flushed.
    Power,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the journal call with this number, from 1. If it makes fewer, it is asked to end when the turn is sealed.
    Call(Moment, usize),
    /// After the watcher received this many events of the process.
    Events(usize),
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = match self.program {
            Program::Everturn => "everturn",
            Program::Embedder => "embedder",
            Program::Asking => "asking",
            Program::Calling => "calling",
            Program::Compacting => "compacting",
            Program::Reporting => "reporting",
            Program::Handing => "handing",
        };
        let loss = match self.loss {
            Loss::Process => "process",
            Loss::Power => "power",
        };
        write!(f, "{program}/{loss}")?;
        self.ends.iter().try_for_each(|end| match end {
            End::Call(moment, number) => write!(f, "/{}@{number}", moment.word()),
            End::Events(count) => write!(f, "/events@{count}"),
        })
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown =
            |word: &str| format!("{word:?} in {text:?}: write e.g. everturn/process/torn@12/events@3");
        let mut words = text.split('/');
        let program = match words.next().unwrap_or_default() {
            "everturn" => Program::Everturn,
            "embedder" => Program::Embedder,
            "asking" => Program::Asking,
            "calling" => Program::Calling,
            "compacting" => Program::Compacting,
            "reporting" => Program::Reporting,
            "handing" => Program::Handing,
            other => return Err(unknown(other)),
        };
        let loss = match words.next().unwrap_or_default() {
            "process" => Loss::Process,
            "power" => Loss::Power,
            other => return Err(unknown(other)),
        };
        let end = |word: &str| -> Result<End, String> {
            let (when, number) = word.split_once('@').ok_or_else(|| unknown(word))?;
            let number = number.parse().map_err(|_| unknown(word))?;
            if when == "events" {
                return Ok(End::Events(number));
            }
            let moment = Moment::ALL.iter().find(|(_, name)| *name == when).ok_or_else(|| unknown(word))?;
            Ok(End::Call(moment.0, number))
        };
        Ok(Self { program, loss, ends: words.map(end).collect::<Result<_, String>>()? })
    }
}

#[test]
fn a_fault_plan_is_parsed_as_it_is_printed() {
    for text in [
        "everturn/process",
        "asking/process/before@7",
        "calling/process/before@7",
        "compacting/power/torn@9",
        "reporting/process/before@7",
        "handing/process/before@7",
        "embedder/power/before@1/torn@20/after@300/events@0",
    ] {
        assert_eq!(text.parse::<Plan>().unwrap().to_string(), text);
    }
    assert!("everturn/process/soon@1".parse::<Plan>().is_err());
}
