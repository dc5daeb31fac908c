//! Words stored as numbers.

use std::fmt::Debug;

use everturn_wire::{ConversationStatus, Role};

use crate::Unfit;

/// Stored as the index in this list: only append to it.
const STATUS: [ConversationStatus; 4] = [
    ConversationStatus::Active,
    ConversationStatus::Queued,
    ConversationStatus::Idle,
    ConversationStatus::Closed,
];

/// Stored as the index in this list: only append to it.
const ROLE: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];

/// Returns the number of a status.
///
/// # Errors
/// If the status is unknown.
pub fn status_code(status: ConversationStatus) -> Result<i16, Unfit> {
    code(status, &STATUS)
}

/// Returns the number of a role.
///
/// # Errors
/// If the role is unknown.
pub fn role_code(role: Role) -> Result<i16, Unfit> {
    code(role, &ROLE)
}

/// Returns the status with this number.
pub fn status(code: i64) -> Option<ConversationStatus> {
    known(code, &STATUS)
}

/// Returns the role with this number.
pub fn role(code: i64) -> Option<Role> {
    known(code, &ROLE)
}

fn code<T: Copy + PartialEq + Debug>(word: T, all: &[T]) -> Result<i16, Unfit> {
    let place = all.iter().position(|known| *known == word).and_then(|place| place.try_into().ok());
    place.ok_or_else(|| Unfit(format!("{word:?} cannot be stored")))
}

fn known<T: Copy>(code: i64, all: &[T]) -> Option<T> {
    usize::try_from(code).ok().and_then(|code| all.get(code)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places() {
        assert_eq!(STATUS.map(|status| status_code(status).unwrap()), [0, 1, 2, 3]);
        assert_eq!(ROLE.map(|role| role_code(role).unwrap()), [0, 1, 2, 3]);
        assert_eq!([0, 1, 2, 3].map(|code| status(code).unwrap()), STATUS);
        assert_eq!([0, 1, 2, 3].map(|code| role(code).unwrap()), ROLE);
        assert!(status(4).is_none() && role(-1).is_none());
    }

    #[test]
    fn what_is_unknown_has_no_code() {
        assert!(status_code(ConversationStatus::Unknown).is_err());
        assert!(role_code(Role::Unknown).is_err());
    }
}
