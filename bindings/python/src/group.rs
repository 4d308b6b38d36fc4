//! What a group holds. Which member goes is the core's rule.

use std::collections::HashMap;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use switchgear_core::{Insertion, Recency};

use crate::convert::locked;

/// Members by key, bounded.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Members {
    inner: Mutex<Inner>,
}

struct Inner {
    order: Recency,
    slots: HashMap<String, usize>,
    /// By slot.
    members: Vec<Option<Member>>,
    /// How many have come so far.
    came: u64,
}

struct Member {
    key: String,
    came: u64,
    object: Py<PyAny>,
}

#[pymethods]
impl Members {
    #[new]
    fn new(capacity: usize) -> Self {
        let inner = Inner { order: Recency::new(capacity), slots: HashMap::new(), members: Vec::new(), came: 0 };
        Self { inner: Mutex::new(inner) }
    }

    fn get(&self, py: Python<'_>, key: &str) -> Option<Py<PyAny>> {
        let mut inner = locked(&self.inner);
        let slot = *inner.slots.get(key)?;
        inner.order.touch(slot);
        inner.at(slot).map(|member| member.object.clone_ref(py))
    }

    fn add(&self, py: Python<'_>, key: String, member: Py<PyAny>) -> (Py<PyAny>, Option<Py<PyAny>>) {
        let mut inner = locked(&self.inner);
        if let Some(&slot) = inner.slots.get(&key) {
            inner.order.touch(slot);
            if let Some(present) = inner.at(slot) {
                return (present.object.clone_ref(py), None);
            }
        }
        let Insertion { slot, evicted } = inner.order.insert();
        let gone = if evicted { inner.take(slot) } else { None };
        if inner.members.len() <= slot {
            inner.members.resize_with(slot + 1, || None);
        }
        inner.came += 1;
        inner.members[slot] = Some(Member { key: key.clone(), came: inner.came, object: member.clone_ref(py) });
        inner.slots.insert(key, slot);
        (member, gone)
    }

    fn remove(&self, key: &str) -> Option<Py<PyAny>> {
        let mut inner = locked(&self.inner);
        let slot = *inner.slots.get(key)?;
        inner.order.remove(slot);
        inner.take(slot)
    }

    fn note(&self, key: &str, member: &Bound<'_, PyAny>, closed: bool) {
        let mut inner = locked(&self.inner);
        if let Some(&slot) = inner.slots.get(key)
            && inner.at(slot).is_some_and(|present| present.object.is(member))
        {
            inner.order.note(slot, closed);
        }
    }

    fn values(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let mut members: Vec<(u64, Py<PyAny>)> = locked(&self.inner)
            .members
            .iter()
            .flatten()
            .map(|member| (member.came, member.object.clone_ref(py)))
            .collect();
        members.sort_by_key(|&(came, _)| came);
        members.into_iter().map(|(_, object)| object).collect()
    }

    fn __len__(&self) -> usize {
        locked(&self.inner).slots.len()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Somebody is at it: the collector comes again.
        let Ok(inner) = self.inner.try_lock() else { return Ok(()) };
        inner.members.iter().flatten().try_for_each(|member| visit.call(&member.object))
    }

    fn __clear__(&self) {
        let members = std::mem::take(&mut locked(&self.inner).members);
        drop(members);
    }
}

impl Inner {
    fn at(&self, slot: usize) -> Option<&Member> {
        self.members.get(slot)?.as_ref()
    }

    fn take(&mut self, slot: usize) -> Option<Py<PyAny>> {
        let member = self.members.get_mut(slot)?.take()?;
        self.slots.remove(&member.key);
        Some(member.object)
    }
}
