//! Compares branches with a model that knows no marks: a list of chunks that is cut and grows.

use everturn_wire::TurnId;
use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;

/// One action of a person, and the output of the turn that follows.
#[derive(Clone, Debug)]
enum Act {
    Send(Message, Answer),
    /// Answers a user message of the branch again.
    Regenerate(Index, Answer),
    /// Edits a user message of the branch.
    Edit(Index, Message, Answer),
    /// Retries the last turn.
    Retry(Answer),
}

#[derive(Clone, Debug)]
struct Message {
    images: usize,
    has_text: bool,
}

/// The output of a turn, one letter per chunk: `t`ext, a `c`all, its `r`esult, a `s`teering message, an `e`rror.
type Answer = &'static str;

fn any_answer() -> impl Strategy<Value = Answer> {
    prop::sample::select(vec!["", "t", "crt", "crst", "crsscrt", "te", "e", "tt", "cr"])
}

fn any_message() -> impl Strategy<Value = Message> {
    (0..3usize, any::<bool>())
        .prop_map(|(images, has_text)| Message { images, has_text: has_text || images == 0 })
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (any_message(), any_answer()).prop_map(|(message, answer)| Act::Send(message, answer)),
        3 => (any::<Index>(), any_answer()).prop_map(|(at, answer)| Act::Regenerate(at, answer)),
        2 => (any::<Index>(), any_message(), any_answer())
            .prop_map(|(at, message, answer)| Act::Edit(at, message, answer)),
        1 => any_answer().prop_map(Act::Retry),
    ]
}

/// A conversation: its log, and the expected branch as `seq`s.
#[derive(Default)]
struct World {
    log: Vec<Arc<StoredChunk>>,
    turns: Vec<TurnMetrics>,
    /// The expected branch: messages and single output chunks.
    branch: Vec<Part>,
}

#[derive(Clone)]
enum Part {
    Message(Vec<u64>),
    Said(u64, char),
}

impl World {
    /// Adds a turn with this mark that keeps the first `keep` parts of the branch.
    fn turn(&mut self, mark: Option<u64>, keep: usize, message: Option<&Message>, answer: Answer) {
        let first_seq = self.log.len() as u64 + 1;
        let mut mark = mark;
        let mut parts = Vec::new();
        if let Some(message) = message {
            let images =
                (0..message.images).map(|_| Chunk::Image { url: "https://x".into(), mime_type: None });
            let text = message.has_text.then(|| Chunk::Text { text: "m".into() });
            let seqs = images.chain(text).map(|chunk| self.add(Role::User, chunk, &mut mark)).collect();
            parts.push(Part::Message(seqs));
        }
        for letter in answer.chars() {
            let text = || Chunk::Text { text: letter.into() };
            let seq = match letter {
                's' => self.add(Role::User, text(), &mut mark),
                'r' => self.add(Role::Tool, text(), &mut mark),
                _ => self.add(Role::Assistant, text(), &mut mark),
            };
            parts.push(if letter == 's' { Part::Message(vec![seq]) } else { Part::Said(seq, letter) });
        }
        let last_seq = self.log.len() as u64;
        // A turn without chunks replaces nothing.
        if !parts.is_empty() {
            self.branch.truncate(keep);
            self.branch.extend(parts);
        }
        let id = TurnId::from(self.turns.len().to_string());
        let seqs = (Some(first_seq), Some(last_seq));
        self.turns.push(TurnMetrics { first_seq: seqs.0, last_seq: seqs.1, ..TurnMetrics::new(id) });
    }

    fn add(&mut self, role: Role, chunk: Chunk, mark: &mut Option<u64>) -> u64 {
        let seq = self.log.len() as u64 + 1;
        self.log.push(Arc::new(StoredChunk { seq, role, chunk: Arc::new(chunk), supersedes: mark.take() }));
        seq
    }

    /// Returns the index of a user message in the branch, and its chunks.
    fn message(&self, at: &Index) -> Option<(usize, Vec<u64>)> {
        let messages = self.branch.iter().enumerate().filter_map(|(place, part)| match part {
            Part::Message(seqs) => Some((place, seqs.clone())),
            Part::Said(..) => None,
        });
        let messages: Vec<_> = messages.collect();
        (!messages.is_empty()).then(|| at.get(&messages).clone())
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Send(message, answer) => self.turn(None, self.branch.len(), Some(message), answer),
            Act::Regenerate(at, answer) => {
                let Some((place, seqs)) = self.message(at) else { return };
                let fork = self.fork(&seqs);
                self.turn(fork.after, place + 1, None, answer);
            }
            Act::Edit(at, message, answer) => {
                let Some((place, seqs)) = self.message(at) else { return };
                let fork = self.fork(&seqs);
                self.turn(Some(fork.before), place, Some(message), answer);
            }
            Act::Retry(answer) => {
                let is_loose = |part: &Part| matches!(part, Part::Said(_, letter) if *letter != 'r');
                let loose = self.branch.iter().rev().take_while(|part| is_loose(part)).count();
                self.turn(loose_end(&self.log), self.branch.len() - loose, None, answer);
            }
        }
    }

    /// Returns the fork at a message, which must be the same for each of its chunks.
    fn fork(&self, seqs: &[u64]) -> Fork {
        let forks: Vec<_> = seqs.iter().map(|seq| fork(&self.log, &self.turns, *seq).unwrap()).collect();
        assert!(forks.windows(2).all(|pair| pair[0] == pair[1]), "{forks:?}");
        assert_eq!(forks[0].message.len(), seqs.len(), "all of the message and nothing else");
        forks[0].clone()
    }

    fn check(&self) {
        let expected: Vec<u64> = self
            .branch
            .iter()
            .flat_map(|part| match part {
                Part::Message(seqs) => seqs.clone(),
                Part::Said(seq, _) => vec![*seq],
            })
            .collect();
        let standing = standing(&self.log, None);
        assert_eq!(standing.iter().map(|stored| stored.seq).collect::<Vec<_>>(), expected);
        let roles: Vec<_> = standing.iter().map(|stored| (&*stored.chunk, stored.role)).collect();
        let is = |at: usize, letter: &str| matches!(roles.get(at), Some((Chunk::Text { text }, _)) if text == letter);
        for at in 0..roles.len() {
            assert!(!is(at, "c") || is(at + 1, "r"), "a call without its result at {at}");
            assert!(!is(at, "r") || (at > 0 && is(at - 1, "c")), "a result without its call at {at}");
        }
        for stored in &self.log {
            let forked = fork(&self.log, &self.turns, stored.seq);
            let stands = expected.contains(&stored.seq);
            match stored.role {
                Role::User => assert_eq!(forked.is_ok(), stands, "{forked:?}"),
                role => assert_eq!(forked, Err(NoFork::NotOfUser(role))),
            }
        }
        let marks: Vec<_> = self.log.iter().filter_map(|stored| stored.supersedes).collect();
        assert_eq!(marks.iter().collect::<BTreeSet<_>>().len(), marks.len(), "a mark is given twice");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_model_is_sent_exactly_the_newest_branch(acts in vec(any_act(), 1..14)) {
        let mut world = World::default();
        for act in &acts {
            world.act(act);
            world.check();
        }
    }

    #[test]
    fn while_a_turn_has_said_nothing_its_branch_stands_already(acts in vec(any_act(), 1..10), at in any::<Index>()) {
        let mut world = World::default();
        acts.iter().for_each(|act| world.act(act));
        if let Some((_, seqs)) = world.message(&at) {
            let fork = world.fork(&seqs);
            let seqs_of = |pending| standing(&world.log, pending).iter().map(|c| c.seq).collect::<Vec<_>>();
            let last = *seqs.last().unwrap();
            assert_eq!(seqs_of(fork.after).last(), Some(&last), "up to and including the message");
            assert!(seqs_of(Some(fork.before)).last().is_none_or(|seq| *seq < seqs[0]), "up to the message");
        }
    }
}

#[test]
fn what_is_not_there_is_told() {
    assert_eq!(fork(&[], &[], 1), Err(NoFork::Unknown(0)));
    let mut world = World::default();
    world.act(&Act::Send(Message { images: 0, has_text: true }, "t"));
    assert_eq!(fork(&world.log, &world.turns, 0), Err(NoFork::Unknown(2)));
    assert_eq!(fork(&world.log, &world.turns, 3), Err(NoFork::Unknown(2)));
    assert_eq!(fork(&world.log, &world.turns, 2), Err(NoFork::NotOfUser(Role::Assistant)));
}
