//! Successes that the store has to hear of, but that no caller waits for (DESIGN 5.1).

/// The successes of one period that have not been sent yet, and whether some are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Successes {
    epoch: u64,
    count: u64,
    /// The one command that may be in flight.
    in_flight: Option<u64>,
}

impl Successes {
    /// One more. What belongs to an earlier period is stale by now.
    pub(super) const fn add(&mut self, epoch: u64) {
        if epoch > self.epoch {
            self.epoch = epoch;
            self.count = 0;
        }
        if epoch == self.epoch {
            self.count += 1;
        }
    }

    /// What to send now under this ticket: epoch and count; none while others are under way.
    pub(super) const fn send(&mut self, ticket: u64) -> Option<(u64, u64)> {
        if self.in_flight.is_some() || self.count == 0 {
            return None;
        }
        self.in_flight = Some(ticket);
        Some((self.epoch, core::mem::replace(&mut self.count, 0)))
    }

    /// What to send along with a failure of this period, which they came before.
    pub(super) const fn take(&mut self, epoch: u64) -> u64 {
        if epoch == self.epoch { core::mem::replace(&mut self.count, 0) } else { 0 }
    }

    /// Those under way have arrived, or never will.
    pub(super) fn done(&mut self, ticket: u64) {
        if self.in_flight == Some(ticket) {
            self.in_flight = None;
        }
    }

    /// The store cannot be told, and later they would count for another time.
    pub(super) const fn forget(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_is_under_way_and_the_rest_is_summed() {
        let mut successes = Successes::default();
        successes.add(7);
        assert_eq!(successes.send(1), Some((7, 1)));
        for _ in 0..3 {
            successes.add(7);
        }
        assert_eq!(successes.send(2), None);
        successes.done(9);
        assert_eq!(successes.send(2), None, "another conversation");
        successes.done(1);
        assert_eq!(successes.send(2), Some((7, 3)));
        successes.done(2);
        assert_eq!(successes.send(3), None);
    }

    #[test]
    fn a_failure_takes_those_of_its_own_period_along() {
        let mut successes = Successes::default();
        successes.add(7);
        successes.add(7);
        assert_eq!(successes.take(8), 0);
        assert_eq!(successes.take(7), 2);
        assert_eq!(successes.take(7), 0);
    }

    #[test]
    fn a_later_period_ends_an_earlier_one() {
        let mut successes = Successes::default();
        successes.add(7);
        successes.add(8);
        successes.add(7);
        assert_eq!(successes.send(1), Some((8, 1)));
        successes.add(8);
        successes.forget();
        successes.done(1);
        assert_eq!(successes.send(2), None);
    }
}
