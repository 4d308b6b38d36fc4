//! Which permit a `with` block runs under.
//!
//! A breaker is one object, and many blocks are under it at once: in threads, in recursion, in generators that are resumed in
//! any order and by any thread. What tells them apart is the frame that a block is in.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit, ffi, intern};

use crate::breaker::Machine;
use crate::convert::locked;
use crate::permit::Permit;

/// The blocks that are under one breaker: its base class, for what `with` costs.
///
/// A subclass has `_begin_block()`, which gives the permit of a call or raises; and `_enter_indirect(frame, permit)` and
/// `_leave_indirect(frame)`, for what comes in through a function that is over by the end of the block.
#[pyclass(frozen, subclass, module = "switchgear._native")]
#[derive(Default)]
pub struct Scope {
    /// What may let a call through by a hint, and the circuit it is of.
    local: OnceLock<(Py<Machine>, Py<PyAny>)>,
    /// By the frame's address, which no other frame has while we hold the frame.
    blocks: Mutex<HashMap<usize, Block>>,
    /// How many have been entered so far.
    entered: AtomicU64,
    /// The code that entered last, if it was a block's own: looked at once, as most breakers stand in one or two functions.
    direct: Mutex<Option<Py<PyAny>>>,
}

struct Block {
    came: u64,
    frame: Py<PyAny>,
    permit: Py<Permit>,
    /// The block around it, where one frame has blocks within blocks.
    outer: Option<Box<Self>>,
}

#[pymethods]
impl Scope {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Says what may let a call through by a hint.
    fn _scope_bind(&self, machine: Py<Machine>, circuit: Py<PyAny>) {
        let _ = self.local.set((machine, circuit));
    }

    /// The frames that have a block under it, the oldest first.
    fn _scope_frames(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let mut frames: Vec<(u64, Py<PyAny>)> =
            locked(&self.blocks).values().map(|block| (block.came, block.frame.clone_ref(py))).collect();
        frames.sort_by_key(|&(came, _)| came);
        frames.into_iter().map(|(_, frame)| frame).collect()
    }

    /// Takes out the permit of the innermost block in a frame.
    fn _scope_take(&self, frame: &Bound<'_, PyAny>) -> Option<Py<Permit>> {
        self.take(frame)
    }

    /// The breaker as a context manager: the block is one call.
    ///
    /// What is not settled by its end is a success, or what the exception says that leaves it.
    ///
    /// Raises:
    ///     CircuitOpenError: The circuit refused it.
    fn __enter__(slf: &Bound<'_, Self>) -> PyResult<Py<Permit>> {
        let (py, scope) = (slf.py(), slf.get());
        let permit = match scope.hot() {
            Some((epoch, circuit)) => Py::new(py, Permit::hot(circuit.clone_ref(py), epoch))?,
            None => slf.call_method0(intern!(py, "_begin_block"))?.extract()?,
        };
        match caller(py) {
            Some(frame) if scope.is_direct(&frame)? => scope.note(frame, permit.clone_ref(py)),
            frame => {
                slf.call_method1(intern!(py, "_enter_indirect"), (frame, permit.clone_ref(py)))?;
            }
        }
        Ok(permit)
    }

    /// The same for `async with`, where nothing has to be waited for: what is awaited is done already.
    fn _scope_aenter(slf: &Bound<'_, Self>) -> PyResult<Done> {
        Ok(Done { value: Self::__enter__(slf)?.into_any() })
    }

    /// The same for `async with`.
    #[pyo3(signature = (kind, error, trace, /))]
    fn _scope_aexit(
        slf: &Bound<'_, Self>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        trace: &Bound<'_, PyAny>,
    ) -> PyResult<Done> {
        Self::__exit__(slf, kind, error, trace)?;
        Ok(Done { value: slf.py().None() })
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (py, scope) = (slf.py(), slf.get());
        let frame = caller(py);
        let permit = match frame.as_ref().and_then(|frame| scope.take(frame)) {
            Some(permit) => permit,
            None => slf.call_method1(intern!(py, "_leave_indirect"), (frame,))?.extract()?,
        };
        let permit = permit.get();
        // The usual end: a success that still changes nothing, and that nobody wants to hear of.
        if error.is_none() && permit.hot_epoch().is_some_and(|epoch| scope.hot().is_some_and(|(hot, _)| hot == epoch)) {
            permit.take();
            return Ok(());
        }
        permit.leave(py, error)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some((machine, circuit)) = self.local.get() {
            visit.call(machine)?;
            visit.call(circuit)?;
        }
        // Somebody is at it: the collector comes again.
        let Ok(blocks) = self.blocks.try_lock() else { return Ok(()) };
        for block in blocks.values() {
            let mut inner = Some(block);
            while let Some(block) = inner {
                visit.call(&block.frame)?;
                visit.call(&block.permit)?;
                inner = block.outer.as_deref();
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let blocks = std::mem::take(&mut *locked(&self.blocks));
        drop(blocks);
    }
}

/// A coroutine that is done: its value comes without a turn of the loop.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Done {
    value: Py<PyAny>,
}

#[pymethods]
impl Done {
    const fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    const fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        // The end without a value needs no exception.
        if self.value.is_none(py) { Ok(None) } else { Err(PyStopIteration::new_err((self.value.clone_ref(py),))) }
    }

    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Err(PyStopIteration::new_err((self.value.clone_ref(py),)))
    }

    #[pyo3(signature = (error, _value = None, _trace = None, /))]
    fn throw(
        &self,
        error: Bound<'_, PyAny>,
        _value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        Err(PyErr::from_value(error))
    }

    const fn close(&self) {}

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.value)
    }
}

impl Scope {
    fn hot(&self) -> Option<(u64, &Py<PyAny>)> {
        let (machine, circuit) = self.local.get()?;
        Some((machine.get().hot()?, circuit))
    }

    fn note(&self, frame: Bound<'_, PyAny>, permit: Py<Permit>) {
        let key = frame.as_ptr() as usize;
        let mut block =
            Block { came: self.entered.fetch_add(1, Ordering::Relaxed), frame: frame.unbind(), permit, outer: None };
        match locked(&self.blocks).entry(key) {
            Place::Vacant(place) => {
                place.insert(block);
            }
            Place::Occupied(mut place) => {
                std::mem::swap(place.get_mut(), &mut block);
                place.get_mut().outer = Some(Box::new(block));
            }
        }
    }

    fn take(&self, frame: &Bound<'_, PyAny>) -> Option<Py<Permit>> {
        let key = frame.as_ptr() as usize;
        let mut blocks = locked(&self.blocks);
        let mut block = blocks.remove(&key)?;
        if let Some(outer) = block.outer.take() {
            blocks.insert(key, *outer);
        }
        // The frame is dropped without the lock.
        drop(blocks);
        Some(block.permit)
    }

    /// Whether a frame is the block's own, and not that of a function which enters for somebody else and is over then.
    fn is_direct(&self, frame: &Bound<'_, PyAny>) -> PyResult<bool> {
        let code = code_of(frame);
        if locked(&self.direct).as_ref().is_some_and(|seen| seen.is(&code)) {
            return Ok(true);
        }
        let name: String = code.getattr(intern!(frame.py(), "co_name"))?.extract()?;
        let is_direct = !INDIRECT.contains(&name.as_str());
        if is_direct {
            let before = locked(&self.direct).replace(code.unbind());
            drop(before);
        }
        Ok(is_direct)
    }
}

/// `ExitStack.enter_context` and its async sibling; and the same method of a class that has the breaker for a part or a base.
const INDIRECT: [&str; 4] = ["enter_context", "enter_async_context", "__enter__", "__aenter__"];

/// The Python frame that called us.
#[allow(unsafe_code, reason = "pyo3 wraps no frames")]
fn caller(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: `py` says that we are attached. The frame is borrowed from the thread, and made our own before anything runs.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// What a frame runs.
#[allow(unsafe_code, reason = "pyo3 wraps no frames")]
fn code_of<'py>(frame: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: only `caller` makes what comes here, so it is a frame; every frame has a code, and the reference is ours.
    unsafe { Bound::from_owned_ptr(frame.py(), ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) }
}
