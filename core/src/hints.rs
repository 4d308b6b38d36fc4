//! What a host need not ask (DESIGN 3.7): a healthy path that crosses no language boundary and reads no clock.

use crate::permit::Permit;
use crate::time::Millis;

/// What the next answers are bound to be, until the next operation. A host may use them or not; the answers are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Every request is admitted, with this permit.
    pub admit_free: Option<Permit>,
    /// A success with that permit changes nothing.
    pub success_free: bool,
    /// Every request at `from <= now < until` is refused, with a wait of `until - now`.
    pub refuse: Option<(Millis, Millis)>,
}

impl Hints {
    /// The wait of a request at `now`, if it is bound to be refused.
    #[must_use]
    pub fn refused_for(&self, now: Millis) -> Option<u64> {
        let (from, until) = self.refuse?;
        (from <= now && now < until).then(|| until.get() - now.get())
    }
}
