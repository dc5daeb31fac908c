//! What one caller used of one limit.

/// What was used in a period, or is used at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Quota {
    number: u64,
    used: u64,
}

impl Quota {
    /// Returns the number of the present period, and what was used in it.
    pub(super) fn at(&self, number: Option<u64>) -> (u64, u64) {
        match number {
            Some(number) if number != self.number => (number, 0),
            _ => (self.number, self.used),
        }
    }

    /// Whether this much is left of what is allowed. More than the limit fits if all of it is left.
    pub(super) fn fits(&self, amount: u64, allowed: u64, limit: u64, number: Option<u64>) -> bool {
        let (_, used) = self.at(number);
        allowed > 0 && used.saturating_add(amount.min(limit)) <= allowed
    }

    pub(super) fn take(&mut self, amount: u64, number: Option<u64>) {
        let (number, used) = self.at(number);
        (self.number, self.used) = (number, used.saturating_add(amount));
    }

    /// Replaces an amount that was counted in a period, if that is still the present one.
    pub(super) fn correct(&mut self, counted: u64, real: u64, number: Option<u64>) {
        if number.is_none_or(|number| number == self.number) {
            self.used = self.used.saturating_sub(counted).saturating_add(real);
        }
    }
}
