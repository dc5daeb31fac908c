//! Messages of any size, in parts that a server takes.

use async_nats::HeaderMap;
use bytes::Bytes;

/// Maximum size of a part, in bytes; servers take 1 MiB by default.
const PART: usize = 512 << 10;

/// Space for the headers of a part, in bytes.
const HEADERS: usize = 1 << 10;

/// Maximum size of a whole message, in bytes.
pub(super) const MAX: usize = 64 << 20;

/// The header of all parts but the last.
const MORE: &str = "Ev-More";

/// Returns the parts of a message, in order, at least one, for a server that takes messages of `max_payload` bytes.
pub(super) fn of(payload: &Bytes, max_payload: usize) -> impl Iterator<Item = (HeaderMap, Bytes)> {
    let size = PART.min(max_payload.saturating_sub(HEADERS)).max(1);
    let count = payload.len().div_ceil(size).max(1);
    (0..count).map(move |part| {
        let mut headers = HeaderMap::new();
        if part + 1 < count {
            headers.insert(MORE, "1");
        }
        (headers, payload.slice(part * size..payload.len().min((part + 1) * size)))
    })
}

/// The parts of a message that have arrived.
#[derive(Debug, Default)]
pub(super) struct Arrived(Vec<u8>);

impl Arrived {
    /// The size of what has arrived, in bytes.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }

    /// Adds a part. Returns the message if it is complete, and an error if it is too large.
    pub(super) fn add(
        &mut self,
        headers: Option<&HeaderMap>,
        part: &[u8],
    ) -> Result<Option<Bytes>, TooLarge> {
        if self.0.len() + part.len() > MAX {
            return Err(TooLarge);
        }
        self.0.extend_from_slice(part);
        let has_more = headers.is_some_and(|headers| headers.get(MORE).is_some());
        Ok((!has_more).then(|| Bytes::from(std::mem::take(&mut self.0))))
    }
}

/// A message is larger than [`MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_as_it_was_sent_whatever_its_size() {
        for (size, max_payload) in [
            (0, MAX),
            (1, MAX),
            (PART - 1, MAX),
            (PART, MAX),
            (PART + 1, MAX),
            (3 * PART + 7, MAX),
            (PART, 64 << 10),
        ] {
            let payload = Bytes::from(vec![b'x'; size]);
            let mut arrived = Arrived::default();
            let parts: Vec<_> = of(&payload, max_payload).collect();
            assert!(parts.iter().all(|(_, part)| part.len() <= PART.min(max_payload)));
            let (last, others) = parts.split_last().unwrap();
            for (headers, part) in others {
                assert_eq!(arrived.add(Some(headers), part), Ok(None));
            }
            assert_eq!(arrived.add(Some(&last.0), &last.1), Ok(Some(payload)));
        }
        let mut headers = HeaderMap::new();
        headers.insert(MORE, "1");
        let mut arrived = Arrived::default();
        for _ in 0..MAX / PART {
            assert_eq!(arrived.add(Some(&headers), &[0; PART]), Ok(None));
        }
        assert_eq!(arrived.add(Some(&headers), &[0]), Err(TooLarge));
    }
}
