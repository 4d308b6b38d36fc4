//! What instances announce to each other.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use switchgear_core::{prefix_from_utf16, shared};

use crate::config::checked;

/// What instances announce the circuits of this prefix on.
#[pyfunction]
pub fn event_channel(prefix: &Bound<'_, PyAny>) -> PyResult<String> {
    checked(prefix, "prefix", prefix_from_utf16).map(|prefix| shared::Announcement::channel(&prefix))
}

/// What an instance has announced of a circuit.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Announcement {
    pub(crate) heard: shared::Announcement,
}

#[pymethods]
impl Announcement {
    /// Reads a message of the channel; none for what no script of ours has sent.
    #[staticmethod]
    fn parse(message: &Bound<'_, PyBytes>) -> Option<Self> {
        let heard = shared::Announcement::parse(std::str::from_utf8(message.as_bytes()).ok()?)?;
        Some(Self { heard })
    }

    #[getter]
    fn circuit(&self) -> &str {
        &self.heard.circuit
    }

    #[getter]
    fn instance(&self) -> &str {
        &self.heard.instance
    }
}
