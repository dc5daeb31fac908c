//! What callers used, by day, model and target.
//!
//! Figures are collected in memory, and added to a document for each day about once a second and at a shutdown. Several nodes
//! add to the same documents.

mod day;
mod figures;
mod price;
mod query;
mod saved;

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use everturn_kernel::{Millis, Target};
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::{JournalError, StateStore, clock::Clock, new_id};
pub use day::{Day, InvalidDay};
pub(crate) use figures::Figures;
use figures::{Key, Rows};
pub(crate) use price::Prices;
pub use price::{Money, Price};
pub use query::UsageQuery;

/// Minimum interval between saves.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// How many days are kept in memory while the store fails.
const MOST_UNSAVED: usize = 8;

/// What callers used.
pub(crate) struct UsageBook {
    /// What no save has taken yet.
    new: Mutex<BTreeMap<Day, Rows>>,
    saving: AsyncMutex<Saving>,
    /// Names this process in documents.
    writer: String,
    store: Arc<dyn StateStore>,
    prices: Prices,
    /// Notified of every change.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Saving {
    /// What is being added to documents. Kept until that is known to be done.
    batch: BTreeMap<Day, Rows>,
    /// The number of the batch, by which a document shows whether it has it.
    number: u64,
    /// The latest day that the list of days has.
    listed: Option<Day>,
}

impl UsageBook {
    pub(crate) fn new(store: Arc<dyn StateStore>, prices: Prices) -> Self {
        let (new, saving, writer) = (Mutex::default(), AsyncMutex::default(), new_id::message());
        Self { new, saving, writer, store, prices, changed: watch::Sender::default() }
    }

    /// Returns what the tokens of a target cost.
    pub(crate) fn price(&self, target: &Target) -> Option<Price> {
        self.prices.find(&target.model, &target.name).copied()
    }

    /// Saves changes from now on.
    pub(crate) fn keep(self: &Arc<Self>, clock: Arc<dyn Clock>) {
        let (book, mut changed) = (Arc::downgrade(self), self.changed.subscribe());
        tokio::spawn(async move {
            let mut fails = false;
            while changed.changed().await.is_ok() {
                clock.sleep(SAVE_EVERY).await;
                let Some(book) = book.upgrade() else { return };
                let saved = book.save().await;
                if let (Err(error), false) = (&saved, fails) {
                    tracing::warn!(%error, "usage cannot be saved; it is kept in memory until it can");
                }
                fails = saved.is_err();
                if fails {
                    book.changed.send_replace(());
                }
            }
        });
    }

    /// Adds to the figures of a caller. `caller`: `None` = the administrator.
    pub(crate) fn add(&self, caller: Option<&str>, target: &Target, now: Millis, more: &Figures) {
        if more.is_empty() {
            return;
        }
        let key = Key::new(caller, target);
        let mut days = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        days.entry(Day::of(now)).or_default().add(key, more);
        if days.len() > MOST_UNSAVED {
            days.pop_first();
        }
        drop(days);
        self.changed.send_replace(());
    }

    /// Saves what is not saved yet. If this is cancelled or fails, the next save goes on with it; nothing is counted twice.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn save(&self) -> Result<(), JournalError> {
        let mut saving = self.saving.lock().await;
        loop {
            while let Some((day, rows)) = saving.batch.first_key_value() {
                let (day, number) = (*day, saving.number);
                if saving.listed < Some(day) {
                    saved::list_day(&*self.store, day).await?;
                }
                saved::add(&*self.store, day, rows, &self.writer, number).await?;
                saving.listed = saving.listed.max(Some(day));
                saving.batch.pop_first();
            }
            saving.batch = mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner));
            saving.number += 1;
            if saving.batch.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reads the figures of some days, each with those that this process has not saved; they are saved first.
    async fn read(&self, from: Day, to: Day) -> Result<Vec<(Day, Rows)>, JournalError> {
        self.save().await?;
        saved::read(&*self.store, from, to).await
    }
}

#[cfg(test)]
mod tests;
