//! Scripts: what the model, the tools and people do, and when.

use everturn_kernel::{Check, Input, Prompt, ReviewAnswer, Settings, ToolAnswer};

use crate::{Beat, Delays, Nap, beat};

/// The course of one turn, as data. Set the fields that matter and take the others from [`Script::default`], because
/// fields may be added.
///
/// ```
/// use everturn_kernel::{FinishReason, Input, ToolAnswer};
/// use everturn_testkit::{Beat, Script, Tool, beat, play};
///
/// let asks = vec![beat::text("Let me see."), beat::call("a", "read"), beat::finish(FinishReason::ToolCalls)];
/// let transcript = play(&Script {
///     steps: vec![vec![beat::overloaded(), asks], vec![beat::says("42")]],
///     tools: vec![Tool::new("read", 10, ToolAnswer::ok("the file"))],
///     outside: vec![(2_000, Input::RetryNow)], // somebody skips the wait after two seconds
///     ..Script::default()
/// });
/// assert!(transcript.contains(" 2000 > call 0.1\n"));
/// assert!(transcript.contains(" 2000 > run read 0/a\n"));
/// assert!(transcript.contains(" 2010 > call 1.0\n"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The turn's settings.
    pub settings: Settings,
    /// The start of the turn. Default: the message "Hi".
    pub prompt: Prompt,
    /// The model's behaviour: for each step, a list of beats for the first call and for each retry. The last list of a
    /// step repeats, and so does the last step. A call interrupted by a crash gets the same answer again.
    pub steps: Vec<Vec<Vec<Beat>>>,
    /// The model's behaviour when asked for a summary of the history: at the first call, and at each retry. The last
    /// list repeats. After a summary, the step continues with its next list.
    pub summaries: Vec<Vec<Beat>>,
    /// The tools. A call of any other tool is answered with an error.
    pub tools: Vec<Tool>,
    /// The check for calls of the tool with this name.
    pub checks: Vec<(String, Check)>,
    /// The reviewer's answer to each attempt of a review, and after how many milliseconds. The last one repeats. If
    /// empty, the reviewer never answers.
    pub reviewer: Vec<(u64, ReviewAnswer)>,
    /// Answers requests for approval; `None` = only answers in `outside` do.
    pub person: Option<Person>,
    /// Inputs from outside, sorted, with their time in milliseconds after [`START`](crate::START).
    pub outside: Vec<(u64, Input)>,
    /// The schedule; `None` = no retry strategy. For a schedule of another type, see
    /// [`World::with_schedule`](crate::World::with_schedule).
    pub schedule: Option<Delays>,
    /// How sleeps behave.
    pub nap: Nap,
    /// Whether the host leaves a turn that waits for a retry or for a person.
    pub parks: bool,
}

impl Default for Script {
    /// Returns a turn without trouble: "Hi" is answered with "Hello", the schedule is the patient one, and the tool
    /// `read` takes 10 ms and answers "42".
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
    /// Creates a turn of one step, from the model's behaviour at the first call and at each retry.
    pub fn one_step(attempts: impl Into<Vec<Vec<Beat>>>) -> Self {
        Self { steps: vec![attempts.into()], ..Self::default() }
    }

    /// Returns the beats of an attempt of a step.
    pub(crate) fn beats(&self, step: u32, attempt: u32) -> Vec<Beat> {
        let step = self.steps.get(step as usize).or(self.steps.last());
        step.map(|attempts| nth(attempts, attempt)).unwrap_or_default()
    }

    /// Returns the beats of a call for a summary after this many retries.
    pub(crate) fn summary_beats(&self, retries: u32) -> Vec<Beat> {
        nth(&self.summaries, retries)
    }
}

fn nth(attempts: &[Vec<Beat>], number: u32) -> Vec<Beat> {
    attempts.get(number as usize).or(attempts.last()).cloned().unwrap_or_default()
}

/// A person who answers every request for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// How long an answer takes, in milliseconds.
    pub after_ms: u64,
    /// Whether the call may run.
    pub allows: bool,
}

/// A tool. Create it with [`Tool::new`], because fields may be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name that the model uses.
    pub name: String,
    /// How long it runs, in milliseconds.
    pub takes_ms: u64,
    /// Its output halfway through.
    pub prints: Option<String>,
    /// Its answer.
    pub answer: ToolAnswer,
    /// Whether it never answers.
    pub hangs: bool,
}

impl Tool {
    /// Creates a tool without output that gives this answer after this many milliseconds.
    pub fn new(name: impl Into<String>, takes_ms: u64, answer: ToolAnswer) -> Self {
        Self { name: name.into(), takes_ms, prints: None, answer, hangs: false }
    }

    /// Adds output halfway through.
    #[must_use]
    pub fn printing(self, output: impl Into<String>) -> Self {
        Self { prints: Some(output.into()), ..self }
    }

    /// Creates a tool that never answers.
    pub fn hanging(name: impl Into<String>) -> Self {
        Self { hangs: true, ..Self::new(name, 0, ToolAnswer::ok("")) }
    }
}
