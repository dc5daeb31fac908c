//! The generated documents as text, ready to be served without any schema code.

/// Every type as JSON Schema (2020-12).
pub const SCHEMA: &str = include_str!("../generated/schema.json");
/// The HTTP API as OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("../generated/openapi.json");
/// The WebSocket API as AsyncAPI 3.0.
pub const ASYNCAPI: &str = include_str!("../generated/asyncapi.json");
/// TypeScript declarations of every type.
pub const TYPESCRIPT: &str = include_str!("../generated/everturn.d.ts");
