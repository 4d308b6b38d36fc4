//! The right to one call of a sync breaker. It is here and not in the facade for what it costs: one is made for every `with`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyBaseException, PyException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{PyTraverseError, PyVisit};

use crate::breaker::Grant;

/// The right to one call. It settles once; a second settlement does nothing and answers "duplicate".
///
/// It is a context manager, too: what is not settled by the end of the block is a success, or what the exception says.
#[pyclass(frozen, module = "switchgear")]
pub struct Permit {
    /// The circuit that gave it.
    home: Py<PyAny>,
    granted: Granted,
    /// Whether it holds one of the slots of a half-open circuit.
    #[pyo3(get)]
    probe: bool,
    is_settled: AtomicBool,
    /// When its block began, as the clock said; none if nobody measures.
    begun: OnceLock<Option<Py<PyAny>>>,
}

/// What the circuit gave.
enum Granted {
    /// Its hint: a closed permit of this epoch.
    Hot(u64),
    /// What the circuit takes back.
    Given(Py<PyAny>),
}

#[pymethods]
impl Permit {
    #[new]
    #[pyo3(signature = (home, grant, *, probe = false))]
    fn new(home: Py<PyAny>, grant: Py<PyAny>, probe: bool) -> Self {
        Self::of(home, Granted::Given(grant), probe)
    }

    /// The dependency did its work.
    fn record_success(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.settle(py, intern!(py, "success"), None)
    }

    /// The dependency failed. With an error, `is_failure` and `ignore` decide whether it counts.
    ///
    /// Raises:
    ///     TypeError: `error` is no exception.
    #[pyo3(signature = (error = None))]
    fn record_failure(&self, py: Python<'_>, error: Option<Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        if let Some(error) = &error
            && !error.is_instance_of::<PyBaseException>()
        {
            let given = error.get_type().name()?;
            return Err(PyTypeError::new_err(format!("`error` must be an exception, got {given}")));
        }
        self.settle(py, intern!(py, "failure"), error)
    }

    /// Neither: the call was cancelled, say. Frees the slot and counts nowhere.
    fn release(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.settle(py, intern!(py, "ignored"), None)
    }

    /// Hands it out: what is dropped from now on keeps its slot, for it may be settled without.
    fn _keep(&self, py: Python<'_>) {
        if let Granted::Given(grant) = &self.granted
            && let Ok(grant) = grant.bind(py).cast::<Grant>()
        {
            grant.get().look_after();
        }
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let permit = slf.get();
        if permit.begun.get().is_none() {
            let begun = permit.home.bind(slf.py()).call_method0(intern!(slf.py(), "begin"))?;
            // If another thread was first, its block began first.
            let _ = permit.begun.set((!begun.is_none()).then(|| begun.unbind()));
        }
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.leave(py, &error)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let circuit = self.home.bind(py).getattr("rules")?.getattr("circuit")?.repr()?;
        let kind = if self.probe { "probe" } else { "call" };
        let settled = if self.is_settled.load(Ordering::SeqCst) { ", settled" } else { "" };
        Ok(format!("<Permit of {circuit}: {kind}{settled}>"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Granted::Given(grant) = &self.granted {
            visit.call(grant)?;
        }
        if let Some(Some(begun)) = self.begun.get() {
            visit.call(begun)?;
        }
        visit.call(&self.home)
    }
}

impl Permit {
    /// The permit of a call that the circuit's hint lets through, and that nobody measures.
    pub(crate) fn hot(home: Py<PyAny>, epoch: u64) -> Self {
        let permit = Self::of(home, Granted::Hot(epoch), false);
        let _ = permit.begun.set(None);
        permit
    }

    /// The epoch of a hint that it was made of.
    pub(crate) const fn hot_epoch(&self) -> Option<u64> {
        match self.granted {
            Granted::Hot(epoch) => Some(epoch),
            Granted::Given(_) => None,
        }
    }

    /// Ends the block that runs under it.
    pub(crate) fn leave(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.take() {
            let begun = self.begun.get().and_then(Option::as_ref).map(|begun| begun.clone_ref(py));
            self.home.bind(py).call_method1(intern!(py, "leave_block"), (self.grant(py)?, begun, error))?;
        }
        Ok(())
    }

    /// Whether this settles it: only the first does.
    pub(crate) fn take(&self) -> bool {
        !self.is_settled.swap(true, Ordering::SeqCst)
    }

    fn of(home: Py<PyAny>, granted: Granted, probe: bool) -> Self {
        Self { home, granted, probe, is_settled: AtomicBool::new(false), begun: OnceLock::new() }
    }

    fn settle(
        &self,
        py: Python<'_>,
        outcome: &Bound<'_, PyString>,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        // Before settling: a listener that settles again must find it settled.
        if !self.take() {
            return Ok(intern!(py, "duplicate").clone().into_any().unbind());
        }
        let home = self.home.bind(py);
        let answer = home.call_method1(intern!(py, "settle_permit"), (self.grant(py)?, outcome, error));
        // A clock that fails settles nothing.
        if answer.as_ref().is_err_and(|error| error.is_instance_of::<PyException>(py)) {
            self.is_settled.store(false, Ordering::SeqCst);
        }
        answer.map(Bound::unbind)
    }

    fn grant(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match &self.granted {
            Granted::Hot(epoch) => Ok(epoch.into_pyobject(py)?.into_any().unbind()),
            Granted::Given(grant) => Ok(grant.clone_ref(py)),
        }
    }
}
