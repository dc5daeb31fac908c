//! Questions about usage, and their answers.

use std::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_wire::{UsageKey, UsageReport, UsageRow};

use super::{
    Day, Prices, UsageBook,
    figures::{Figures, Key},
    price::PER,
};
use crate::Error;

/// Maximum number of rows of an answer, and of targets without price that it names.
const MOST_ROWS: usize = 5_000;
const MOST_UNPRICED: usize = 20;

/// How many days are read if a question does not say.
const USUAL_DAYS: u64 = 30;

/// Maximum number of days between the first and the last.
const MOST_DAYS: u64 = 400;

/// A question about usage.
#[derive(Clone, Debug, Default)]
pub struct UsageQuery {
    /// The first day; `None` = 29 days before the last.
    pub from: Option<Day>,
    /// The last day; `None` = today.
    pub to: Option<Day>,
    /// What the rows are for.
    pub by: Vec<UsageKey>,
}

/// What a row is for, in the order of the question's keys.
type Group = Vec<Option<String>>;

/// The figures of a row, and what they cost.
#[derive(Clone, Default)]
struct Sum {
    figures: Figures,
    cost: Option<f64>,
    unpriced: Vec<String>,
}

impl Sum {
    fn add(&mut self, key: &Key, figures: &Figures, prices: &Prices) {
        self.figures.add(figures);
        if !figures.has_tokens() {
            return;
        }
        match prices.find(&key.model, &key.target) {
            Some(price) => *self.cost.get_or_insert(0.0) += price.of(figures),
            None if self.unpriced.len() < MOST_UNPRICED && !self.unpriced.contains(&key.target) => {
                self.unpriced.push(key.target.clone());
            }
            None => {}
        }
    }

    fn row(self) -> UsageRow {
        let Self { figures, cost, unpriced } = self;
        UsageRow {
            turns: figures.turns,
            survived: figures.survived,
            failed: figures.failed,
            waited_ms: figures.waited_ms,
            requests: figures.requests,
            refusals: figures.refusals,
            input_tokens: figures.input,
            output_tokens: figures.output,
            cache_read_tokens: figures.cache_read,
            cache_write_tokens: figures.cache_write,
            reasoning_tokens: figures.reasoning,
            // Their sum has digits beyond, from adding fractions in binary.
            cost: cost.map(|cost| (cost * PER).round() / PER),
            unpriced: Some(unpriced).filter(|targets| !targets.is_empty()),
            ..UsageRow::default()
        }
    }
}

impl UsageBook {
    /// Answers a question. `caller`: whose usage; `None` = everybody's.
    ///
    /// # Errors
    /// When the question is not valid, the answer too long, or the store fails.
    pub(crate) async fn report(
        &self,
        query: UsageQuery,
        caller: Option<&str>,
        now: Millis,
    ) -> Result<UsageReport, Error> {
        let UsageQuery { from, to, by } = query;
        let to = to.unwrap_or_else(|| Day::of(now));
        let from = from.unwrap_or_else(|| to.before(USUAL_DAYS - 1));
        let bad = |why: String| Error::BadUsageQuery { why };
        if from > to {
            return Err(bad(format!("it ends on {to}, before it begins on {from}")));
        }
        if to.since(from) >= MOST_DAYS {
            return Err(bad(format!("{from} to {to} is more than {MOST_DAYS} days")));
        }
        let (mut groups, mut total) = (BTreeMap::<Group, Sum>::new(), Sum::default());
        for (day, rows) in self.read(from, to).await? {
            let seen = |key: &Key| caller.is_none() || key.caller.as_deref() == caller;
            for (key, figures) in rows.iter().filter(|(key, _)| seen(key)) {
                let group = by.iter().map(|by| part(*by, key, day)).collect();
                groups.entry(group).or_default().add(key, figures, &self.prices);
                total.add(key, figures, &self.prices);
                if groups.len() > MOST_ROWS {
                    return Err(bad(format!(
                        "the answer has more than {MOST_ROWS} rows: ask for fewer days, or by less"
                    )));
                }
            }
        }
        let rows = if by.is_empty() {
            Vec::new()
        } else {
            groups.into_iter().map(|(group, sum)| row(&by, group, sum)).collect()
        };
        Ok(UsageReport { from: from.to_string(), to: to.to_string(), by, rows, total: total.row() })
    }
}

fn part(by: UsageKey, key: &Key, day: Day) -> Option<String> {
    match by {
        UsageKey::Caller => key.caller.clone(),
        UsageKey::Model => Some(key.model.clone()),
        UsageKey::Target => Some(key.target.clone()),
        UsageKey::Day => Some(day.to_string()),
    }
}

fn row(by: &[UsageKey], group: Group, sum: Sum) -> UsageRow {
    let mut row = sum.row();
    for (by, part) in by.iter().zip(group) {
        match by {
            UsageKey::Caller => row.caller = part,
            UsageKey::Model => row.model = part,
            UsageKey::Target => row.target = part,
            UsageKey::Day => row.day = part,
        }
    }
    row
}
