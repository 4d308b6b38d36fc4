//! Which circuits there are under a prefix, and whether all masters of a cluster were looked through.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use switchgear_core::{prefix_from_utf16, shared};

use crate::config::checked;
use crate::convert::Raise;

/// Finds the circuits of one prefix among the keys of a store.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Listing {
    inner: shared::Listing,
}

#[pymethods]
impl Listing {
    #[new]
    fn new(py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<Self> {
        let prefix = checked(prefix, "prefix", prefix_from_utf16)?;
        // No client of Python's puts anything in front of keys by itself.
        Ok(Self { inner: shared::Listing::new(&prefix, "").map_err(|error| error.raise(py))? })
    }

    #[getter]
    fn pattern(&self) -> &str {
        self.inner.pattern()
    }

    fn name_of(&self, key: &Bound<'_, PyBytes>) -> Option<String> {
        self.inner.name_of(std::str::from_utf8(key.as_bytes()).ok()?).map(str::to_owned)
    }
}

/// What the masters of a cluster say of their slots.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Survey {
    inner: shared::Survey,
}

#[pymethods]
impl Survey {
    /// From what each answers to CLUSTER NODES; none where one of them answers something else.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "what comes from Python is ours already")]
    fn read(replies: Vec<String>) -> Option<Self> {
        Some(Self { inner: shared::Survey::read(replies.iter().map(String::as_str))? })
    }

    #[getter]
    fn missing(&self) -> Option<&str> {
        self.inner.missing().map(|missing| missing.address.as_str())
    }

    fn stood_still_since(&self, before: &Self) -> bool {
        self.inner.stood_still_since(&before.inner)
    }
}
