//! A part of a moment, shared by all the moments in which it is the same.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// A part of a moment. A search looks at each moment as a whole; what did not change is copied by nobody, and read once.
#[derive(Clone)]
pub struct Part<T>(Rc<Read<T>>);

#[derive(Clone)]
struct Read<T> {
    part: T,
    fingerprint: Cell<Option<Fingerprint>>,
}

/// Two independent hashes: with a million moments two of them are taken for one in one of 10^26 searches.
pub type Fingerprint = (u64, u64);

impl<T: Clone + Debug> Part<T> {
    /// A part that nothing else shares yet.
    pub fn new(part: T) -> Self {
        Self(Rc::new(Read { part, fingerprint: Cell::new(None) }))
    }

    /// The part, to be changed in this moment alone.
    pub fn edit(&mut self) -> &mut T {
        let read = Rc::make_mut(&mut self.0);
        read.fingerprint.set(None);
        &mut read.part
    }

    /// Tells it from every other. All there is to it shows in its Debug output.
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint.get().unwrap_or_else(|| {
            let fingerprint = fingerprint(format_args!("{:?}", self.0.part));
            self.0.fingerprint.set(Some(fingerprint));
            fingerprint
        })
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.part
    }
}

/// The fingerprint of what is written there.
pub fn fingerprint(text: fmt::Arguments<'_>) -> Fingerprint {
    thread_local! {
        // Hashed as one: what Debug writes is thousands of small pieces.
        static WRITTEN: RefCell<String> = const { RefCell::new(String::new()) };
    }
    WRITTEN.with_borrow_mut(|written| {
        written.clear();
        // A String takes whatever is written.
        let _ = written.write_fmt(text);
        let hash = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(seed);
            hasher.write(written.as_bytes());
            hasher.finish()
        };
        (hash(0), hash(1))
    })
}
