//! Records as JSON.

use everturn_wire::Chunk;
use serde::{Deserialize, Serialize};
use serde_json::Deserializer;

use crate::Unfit;

/// Initial capacity for the JSON of a typical record, in bytes: one allocation instead of several.
const ROOM: usize = 512;

/// Writes a record.
///
/// # Errors
/// If it has no form in JSON.
pub fn to_json(value: &impl Serialize) -> Result<String, Unfit> {
    let mut json = Vec::with_capacity(ROOM);
    serde_json::to_writer(&mut json, value).map_err(|error| Unfit(error.to_string()))?;
    String::from_utf8(json).map_err(|error| Unfit(error.to_string()))
}

/// Reads a record.
///
/// # Errors
/// If it is not what was written.
pub fn from_json<'j, T: Deserialize<'j>>(json: &'j [u8]) -> Result<T, serde_json::Error> {
    let mut json = Deserializer::from_slice(json);
    // Arguments just within the depth limit on arrival are nested deeper inside their record.
    json.disable_recursion_limit();
    let value = T::deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// Reads a chunk. Fails for a kind that a newer version added: a turn must not continue without it, and a copy of it
/// would lose its content.
///
/// # Errors
/// If it is not what was written, or of an unknown kind.
pub fn chunk(json: &[u8]) -> Result<Chunk, Box<dyn std::error::Error + Send + Sync>> {
    match from_json(json)? {
        Chunk::Unknown => Err("a chunk of an unknown kind, which a newer version of Everturn wrote".into()),
        chunk => Ok(chunk),
    }
}
