//! A request as received over the socket.

use bytes::Bytes;

/// A complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its index among all requests of the server, from 0.
    pub index: usize,
    /// The number of its connection, from 0.
    pub connection: usize,
    /// The method, as sent.
    pub method: String,
    /// The path with its query, as sent.
    pub path: String,
    /// Names and values in the order sent, names as sent.
    pub headers: Vec<(String, String)>,
    /// The body, without transfer encoding.
    pub body: Bytes,
}

impl Request {
    /// Returns the first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(held, _)| held.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// Returns an error if it is not JSON.
    pub fn json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
    }

    /// Whether the client will send nothing more on this connection.
    pub(super) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// Returns its approximate memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        size_of::<Self>() + self.method.len() + self.path.len() + headers + self.body.len()
    }
}
