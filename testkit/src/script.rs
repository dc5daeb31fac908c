//! Scripts: what the model says, what tools do, what people outside say, and when.

use everturn_kernel::{Check, Input, Prompt, ReviewAnswer, Settings, StreamEvent, ToolAnswer};

use crate::{Delays, Nap, beat};

/// What happens to one turn, as data. Name the fields that matter and take the others from [`Script::default`]: further
/// fields may come.
///
/// ```
/// use everturn_kernel::{FinishReason, Input, ToolAnswer};
/// use everturn_testkit::{Beat, Script, Tool, beat, play};
///
/// let asks = vec![beat::text("Let me see."), beat::call("a", "read"), beat::finish(FinishReason::ToolCalls)];
/// let story = play(&Script {
///     steps: vec![vec![beat::overloaded(), asks], vec![beat::says("42")]],
///     tools: vec![Tool::new("read", 10, ToolAnswer::ok("the file"))],
///     outside: vec![(2_000, Input::RetryNow)], // somebody skips the wait after two seconds
///     ..Script::default()
/// });
/// assert!(story.contains(" 2000 > call 0.1\n"));
/// assert!(story.contains(" 2000 > run read 0/a\n"));
/// assert!(story.contains(" 2010 > call 1.0\n"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The turn's settings.
    pub settings: Settings,
    /// What the turn begins with: "Hi" unless said otherwise.
    pub prompt: Prompt,
    /// What the model does: for each step, for the first call and each retry of it, a list of beats. The last list of a
    /// step is repeated, and so is the last step. A call that a crash cut off gets the same answer again.
    pub steps: Vec<Vec<Vec<Beat>>>,
    /// What the model does when it is asked for a summary of the history: at the first call, and at each retry. The last list is
    /// repeated. A step that is asked again after a summary goes on with its next list.
    pub summaries: Vec<Vec<Beat>>,
    /// The tools; a call of any other name is answered with an error.
    pub tools: Vec<Tool>,
    /// What must happen before a call of the tool of that name runs.
    pub checks: Vec<(String, Check)>,
    /// What the reviewer answers in each attempt of a review, and after how many milliseconds. The last is repeated; if
    /// there is none, it never answers.
    pub reviewer: Vec<(u64, ReviewAnswer)>,
    /// Who answers requests for approval; `None` = nobody but those who do so by name in `outside`.
    pub person: Option<Person>,
    /// What is said from outside, sorted, at that many milliseconds after [`START`](crate::START).
    pub outside: Vec<(u64, Input)>,
    /// The schedule; `None` = no retry strategy is injected. For one of another type see
    /// [`World::with_schedule`](crate::World::with_schedule).
    pub schedule: Option<Delays>,
    /// How sleeps behave.
    pub nap: Nap,
    /// Whether the host leaves a turn that waits for a retry or for a person.
    pub parks: bool,
}

impl Default for Script {
    /// A calm turn: "Hi" is answered with "Hello", the schedule is the patient one, the tool `read` takes 10 ms and
    /// answers "42".
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            prompt: Prompt { text: "Hi".into(), ..Prompt::default() },
            steps: vec![vec![beat::says("Hello")]],
            summaries: vec![vec![beat::summary("They greeted each other.")]],
            tools: vec![Tool::new("read", 10, ToolAnswer::ok("42"))],
            checks: Vec::new(),
            reviewer: Vec::new(),
            person: None,
            outside: Vec::new(),
            schedule: Some(Delays::patient()),
            nap: Nap::Whole,
            parks: false,
        }
    }
}

impl Script {
    /// A turn of one step: what the model does at the first call, and at each retry.
    pub fn one_step(attempts: impl Into<Vec<Vec<Beat>>>) -> Self {
        Self { steps: vec![attempts.into()], ..Self::default() }
    }

    /// What the model does in this step, in the attempt of that number.
    pub(crate) fn beats(&self, step: u32, attempt: u32) -> Vec<Beat> {
        let step = self.steps.get(step as usize).or(self.steps.last());
        step.map(|attempts| nth(attempts, attempt)).unwrap_or_default()
    }

    /// What it does when it is asked for a summary, after so many retries.
    pub(crate) fn summary_beats(&self, retries: u32) -> Vec<Beat> {
        nth(&self.summaries, retries)
    }
}

fn nth(attempts: &[Vec<Beat>], number: u32) -> Vec<Beat> {
    attempts.get(number as usize).or(attempts.last()).cloned().unwrap_or_default()
}

/// What a stream does next. After the last beat it ends, which without a terminal event is a truncation. The functions
/// of [`beat`] make the usual ones.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Beat {
    /// It yields this.
    Say(StreamEvent),
    /// Silence of that many milliseconds.
    Wait(u64),
    /// Silence for ever.
    Hang,
}

/// A person who answers every request for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// How long an answer takes, in milliseconds.
    pub after_ms: u64,
    /// Whether the call may run.
    pub allows: bool,
}

/// A tool. Begin with [`Tool::new`]: further fields may come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name that the model calls it by.
    pub name: String,
    /// How long it runs, in milliseconds.
    pub takes_ms: u64,
    /// What it prints half-way.
    pub prints: Option<String>,
    /// What it answers.
    pub answer: ToolAnswer,
    /// Whether it never answers.
    pub hangs: bool,
}

impl Tool {
    /// A tool that prints nothing and answers this after that many milliseconds.
    pub fn new(name: impl Into<String>, takes_ms: u64, answer: ToolAnswer) -> Self {
        Self { name: name.into(), takes_ms, prints: None, answer, hangs: false }
    }

    /// Prints this half-way.
    #[must_use]
    pub fn printing(self, output: impl Into<String>) -> Self {
        Self { prints: Some(output.into()), ..self }
    }

    /// A tool that never answers.
    pub fn hanging(name: impl Into<String>) -> Self {
        Self { hangs: true, ..Self::new(name, 0, ToolAnswer::ok("")) }
    }
}
