//! Things to tell, in order.

use std::collections::VecDeque;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::convert::locked;

/// What waits to be told.
///
/// It calls nothing itself. A daemon thread that Python ends at its exit is unwound through every frame that it has, and must
/// have none of ours below one of Python's.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Queue {
    items: Mutex<VecDeque<Item>>,
    /// The process whose events these are: a child that is forked begins with none.
    process: AtomicU32,
    /// The process in which somebody is telling; [`NOBODY`] if nobody is. A process, for a child that was forked meanwhile
    /// has not got the thread that does it.
    teller: AtomicU32,
}

struct Item {
    brought_by: ThreadId,
    tell: Py<PyAny>,
}

const NOBODY: u32 = 0;

/// How many events wait before those are dropped that may be: a listener that takes longer than the calls it hears of would
/// fill the memory.
const MOST: usize = 10_000;

/// How long a turn lasts while others bring more and more: the caller whose turn it is has a result to give.
const LONGEST: Duration = Duration::from_secs(1);

#[pymethods]
impl Queue {
    #[new]
    fn new() -> Self {
        Self {
            items: Mutex::new(VecDeque::new()),
            process: AtomicU32::new(process::id()),
            teller: AtomicU32::new(NOBODY),
        }
    }

    fn push(&self, item: Py<PyAny>, droppable: bool) -> bool {
        let inherited = self.leave_inheritance();
        let item = Item { brought_by: thread::current().id(), tell: item };
        let mut items = locked(&self.items);
        let fits = !droppable || items.len() < MOST;
        let dropped = if fits {
            items.push_back(item);
            None
        } else {
            Some(item)
        };
        drop(items);
        drop((inherited, dropped));
        fits
    }

    fn begin(slf: &Bound<'_, Self>) -> Option<Turn> {
        let queue = slf.get();
        let us = process::id();
        let seen = queue.teller.load(Ordering::SeqCst);
        if seen == us || locked(&queue.items).is_empty() {
            return None;
        }
        let is_ours = queue.teller.compare_exchange(seen, us, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        is_ours.then(|| Turn {
            queue: slf.clone().unbind(),
            began: Instant::now(),
            is_late: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    fn __len__(&self) -> usize {
        locked(&self.items).len()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(items) = self.items.try_lock() else { return Ok(()) };
        items.iter().try_for_each(|item| visit.call(&item.tell))
    }

    fn __clear__(&self) {
        let items = std::mem::take(&mut *locked(&self.items));
        drop(items);
    }
}

impl Queue {
    /// The next thing, if it is one of ours or whoever it is of.
    fn pop(&self, only_ours: bool) -> Option<Py<PyAny>> {
        let mut items = locked(&self.items);
        if only_ours && items.front().is_some_and(|item| item.brought_by != thread::current().id()) {
            return None;
        }
        items.pop_front().map(|item| item.tell)
    }

    /// What a forked child finds is its parent's to tell.
    fn leave_inheritance(&self) -> Option<VecDeque<Item>> {
        let us = process::id();
        (self.process.swap(us, Ordering::SeqCst) != us).then(|| std::mem::take(&mut *locked(&self.items)))
    }
}

/// The turn to tell; over at its end, or when it is dropped, as it is by an interrupt that comes before anything else.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Turn {
    queue: Py<Queue>,
    began: Instant,
    is_late: AtomicBool,
    is_over: AtomicBool,
}

#[pymethods]
impl Turn {
    const fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> Option<Py<PyAny>> {
        let is_late = self.began.elapsed() > LONGEST;
        self.is_late.store(is_late, Ordering::SeqCst);
        // What its own listeners bring it tells to the end; what others bring, they go on to bring.
        self.queue.get().pop(is_late)
    }

    fn end(&self) -> bool {
        if !self.is_over.swap(true, Ordering::SeqCst) {
            self.queue.get().teller.store(NOBODY, Ordering::SeqCst);
        }
        !self.is_late.load(Ordering::SeqCst)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.queue)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end();
    }
}
