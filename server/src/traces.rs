//! Exports traces if the environment configures it.

#[cfg(feature = "otlp")]
mod exporting;
#[cfg(not(feature = "otlp"))]
mod refusing;

#[cfg(feature = "otlp")]
pub(crate) use exporting::Exporting;
#[cfg(not(feature = "otlp"))]
pub(crate) use refusing::Exporting;
