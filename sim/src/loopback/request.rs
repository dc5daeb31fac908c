//! One request as it came over the socket.

use bytes::Bytes;

/// A whole request, head and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its place among all requests of the server, from 0.
    pub index: usize,
    /// The connection it came on, from 0.
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
    /// The first header of that name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(held, _)| held.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
    }

    /// Whether the client will send nothing more on this connection.
    pub(super) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// Roughly the memory it holds, in bytes.
    pub(super) fn weight(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        size_of::<Self>() + self.method.len() + self.path.len() + headers + self.body.len()
    }
}
