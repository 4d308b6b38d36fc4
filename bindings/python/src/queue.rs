//! Things to tell, in order.

use std::collections::VecDeque;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::convert::locked;

/// What waits to be told.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Queue {
    items: Mutex<VecDeque<Py<PyAny>>>,
    /// The process in which somebody is telling; [`NOBODY`] if nobody is. A process, for a child that was forked meanwhile
    /// has not got the thread that does it.
    teller: AtomicU32,
}

const NOBODY: u32 = 0;

#[pymethods]
impl Queue {
    #[new]
    const fn new() -> Self {
        Self { items: Mutex::new(VecDeque::new()), teller: AtomicU32::new(NOBODY) }
    }

    fn push(&self, item: Py<PyAny>) {
        locked(&self.items).push_back(item);
    }

    fn drain(&self, tell: &Bound<'_, PyAny>) -> PyResult<()> {
        // Again if something came between the last look and the end of our turn, when its bringer saw us still at it.
        while !self.is_empty() {
            let Some(turn) = self.begin() else { return Ok(()) };
            while let Some(item) = self.pop() {
                tell.call1((item,))?;
            }
            drop(turn);
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(items) = self.items.try_lock() else { return Ok(()) };
        items.iter().try_for_each(|item| visit.call(item))
    }

    fn __clear__(&self) {
        let items = std::mem::take(&mut *locked(&self.items));
        drop(items);
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        locked(&self.items).is_empty()
    }

    fn pop(&self) -> Option<Py<PyAny>> {
        locked(&self.items).pop_front()
    }

    fn begin(&self) -> Option<Turn<'_>> {
        let us = process::id();
        let seen = self.teller.load(Ordering::SeqCst);
        let is_free = seen != us && self.teller.compare_exchange(seen, us, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        is_free.then(|| Turn { queue: self })
    }
}

/// The turn to tell; over when dropped, also if telling raised.
struct Turn<'a> {
    queue: &'a Queue,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.queue.teller.store(NOBODY, Ordering::SeqCst);
    }
}
