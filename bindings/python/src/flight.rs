//! One admission that is under way, and who waits for it beside its leader.

use std::mem;
use std::sync::Mutex;
use std::time::Instant;

use pyo3::prelude::*;

use crate::convert::locked;

/// What one thread asks for the others. It lands once; who joins later is told at once what came of it.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Flight {
    #[pyo3(get)]
    ticket: u64,
    since: Instant,
    course: Mutex<Course>,
}

impl Flight {
    /// The admission of this ticket, which begins now.
    pub fn new(ticket: u64) -> Self {
        Self { ticket, since: Instant::now(), course: Mutex::default() }
    }
}

/// How far it has got.
enum Course {
    /// Who waits for it.
    UnderWay(Vec<Py<PyAny>>),
    /// What came of it.
    Landed(Py<PyAny>),
}

impl Default for Course {
    fn default() -> Self {
        Self::UnderWay(Vec::new())
    }
}

#[pymethods]
impl Flight {
    #[getter]
    fn age_seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    fn join(&self, py: Python<'_>, waiter: Py<PyAny>) -> Option<Py<PyAny>> {
        match &mut *locked(&self.course) {
            Course::UnderWay(waiting) => {
                waiting.push(waiter);
                None
            }
            Course::Landed(with) => Some(with.clone_ref(py)),
        }
    }

    fn land(&self, with: Py<PyAny>) -> Vec<Py<PyAny>> {
        let mut course = locked(&self.course);
        match &*course {
            Course::UnderWay(_) => {
                let before = mem::replace(&mut *course, Course::Landed(with));
                drop(course);
                match before {
                    Course::UnderWay(waiting) => waiting,
                    Course::Landed(_) => Vec::new(),
                }
            }
            Course::Landed(_) => {
                // `with` is dropped after the lock.
                drop(course);
                Vec::new()
            }
        }
    }
}
