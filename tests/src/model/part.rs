//! A part of a moment, shared by all the moments in which it is the same.

use std::cell::Cell;
use std::fmt::{self, Debug};
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

/// The fingerprint of what is written there: as one text, for Debug writes thousands of small pieces. (The hashes are FNV-1a, by
/// words, with two multipliers; those of the standard library take most of the time where nothing is optimized.)
pub fn fingerprint(text: fmt::Arguments<'_>) -> Fingerprint {
    let written = fmt::format(text);
    let (words, rest) = written.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut hashes = (FNV_BASIS, written.len() as u64);
    for &word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(word);
        hashes = ((hashes.0 ^ word).wrapping_mul(FNV_PRIME), (hashes.1 ^ word).wrapping_mul(OTHER_PRIME));
        hashes = (hashes.0 ^ (hashes.0 >> 32), hashes.1 ^ (hashes.1 >> 29));
    }
    hashes
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
const OTHER_PRIME: u64 = 0x9e37_79b9_7f4a_7c55;
