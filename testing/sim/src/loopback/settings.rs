//! The settings of an HTTP/2 server.

const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;

/// What a server announces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Http2 {
    pub(super) max_streams: Option<u32>,
    /// The size of every stream's window, which is never made larger.
    pub(super) stalled_window: Option<u32>,
}

impl Http2 {
    /// Returns the payload of its frame.
    pub(super) fn settings(&self) -> Vec<u8> {
        let all = [(MAX_CONCURRENT_STREAMS, self.max_streams), (INITIAL_WINDOW_SIZE, self.stalled_window)];
        let mut payload = Vec::new();
        for (setting, value) in all {
            let Some(value) = value else { continue };
            payload.extend_from_slice(&setting.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        payload
    }
}
