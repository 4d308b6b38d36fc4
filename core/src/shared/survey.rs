//! Whether the masters of a cluster that are about to be looked through are all of them, and whether circuits changed their
//! place meanwhile: a SCAN says neither, and what it misses is missing silently.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What masters of a cluster answer to `CLUSTER NODES`: of each what it has itself, and what it has heard of all others.
///
/// ```
/// use switchgear_core::shared::{Missing, Survey};
///
/// let said = "07c3 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-8191\n\
///             67ed 10.0.0.2:6379@16379 master - 0 0 2 connected 8192-16383\n";
/// let survey = Survey::read([said]).expect("a reply of CLUSTER NODES");
/// assert_eq!(survey.missing(), Some(&Missing { address: "10.0.0.2:6379".into(), slot: 8192 }));
/// assert!(!survey.is_moving());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// By the id of who was asked: the slots that it has, as it writes them, with those that it gives or takes just now.
    own: BTreeMap<String, String>,
    missing: Option<Missing>,
}

/// A master that has circuits, or may have, and was not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Where it is, as the cluster knows it.
    pub address: String,
    /// A slot that it has, or takes just now: a command to a key there leads to it.
    pub slot: u16,
}

impl Survey {
    /// From the reply of each master; none if one of them is no reply of `CLUSTER NODES`, or if nobody replied.
    #[must_use]
    pub fn read<'t>(replies: impl IntoIterator<Item = &'t str>) -> Option<Self> {
        let mut own = BTreeMap::new();
        let mut heard = BTreeMap::new();
        let mut addresses = BTreeMap::new();
        for reply in replies {
            let lines = reply.lines().filter(|line| !line.trim().is_empty()).map(Line::read);
            let lines = lines.collect::<Option<Vec<_>>>()?;
            let myself = lines.iter().find(|line| line.is_myself)?;
            own.insert(myself.id.to_string(), myself.slots.to_string());
            for line in lines {
                addresses.insert(line.id, line.address);
                heard.entry(line.id).or_insert_with(BTreeSet::new).insert(line.slots);
            }
        }
        let missing = missing(&own, &heard, &addresses);
        (!own.is_empty()).then_some(Self { own, missing })
    }

    /// Somebody whom these do not know to be one of them, if there is somebody.
    #[must_use]
    pub const fn missing(&self) -> Option<&Missing> {
        self.missing.as_ref()
    }

    /// Whether one of these gives slots away, or takes some.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        self.own.values().any(|slots| slots.contains('['))
    }

    /// Whether every slot may be taken to have stayed where it was between these two. Where it is not, and all are looked through
    /// once more, what was on its way is found at its end.
    #[must_use]
    pub fn stood_still_since(&self, before: &Self) -> bool {
        self.own == before.own && !self.is_moving()
    }
}

/// The first who has a slot that none of those asked says is its own, or takes a slot from one of them.
fn missing(
    own: &BTreeMap<String, String>,
    heard: &BTreeMap<&str, BTreeSet<&str>>,
    addresses: &BTreeMap<&str, &str>,
) -> Option<Missing> {
    let mut here = [false; SLOTS];
    for slots in own.values() {
        ranges(slots).for_each(|(from, to)| here[from..=to].fill(true));
    }
    let unclaimed = heard.iter().filter(|(id, _)| !own.contains_key(**id)).find_map(|(id, said)| {
        let mut slots = said.iter().flat_map(|slots| ranges(slots)).flat_map(|(from, to)| from..=to);
        slots.find(|&slot| !here[slot]).map(|slot| (*id, slot))
    });
    let taking = || own.values().flat_map(|slots| given(slots)).find(|(id, _)| !own.contains_key(*id));
    let (id, slot) = unclaimed.or_else(taking)?;
    let address = addresses.get(id).map_or_else(|| id.to_string(), ToString::to_string);
    Some(Missing { address, slot: u16::try_from(slot).ok()? })
}

const SLOTS: usize = 16_384;

/// One line: `id address flags master ping pong epoch link slot...`
struct Line<'t> {
    id: &'t str,
    address: &'t str,
    is_myself: bool,
    slots: &'t str,
}

impl<'t> Line<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let mut fields = line.trim_end().splitn(9, ' ');
        let (id, address, flags) = (fields.next()?, fields.next()?, fields.next()?);
        // Behind the master, the two times, the epoch and the state of the link.
        let slots = fields.nth(5).unwrap_or("");
        // Without the port of the bus, and without the host's name where it says that too.
        let address = address.split(['@', ',']).next()?;
        Some(Self { id, address, is_myself: flags.split(',').any(|flag| flag == "myself"), slots })
    }
}

/// The slots that a line says are had.
fn ranges(slots: &str) -> impl Iterator<Item = (usize, usize)> {
    slots.split(' ').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to && to < SLOTS).then_some((from, to))
    })
}

/// Who is given slots, and which: `[77->-id]`.
fn given(slots: &str) -> impl Iterator<Item = (&str, usize)> {
    slots.split(' ').filter_map(|moving| {
        let (slot, id) = moving.strip_prefix('[')?.strip_suffix(']')?.split_once("->-")?;
        Some((id, slot.parse().ok().filter(|&slot| slot < SLOTS)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// What node `me` of three says, given what each has.
    fn said(me: usize, slots: [&str; 3]) -> String {
        let line = |(n, slots): (usize, &str)| {
            let flags = if n == me { "myself,master" } else { "master" };
            format!("id{n} 10.0.0.{n}:6379@16379,host-{n} {flags} - 0 1 2 connected {slots}\n")
        };
        let replica = "id9 10.0.0.9:6379@16379 slave id0 0 1 2 connected\n";
        slots.into_iter().enumerate().map(line).chain([replica.to_string()]).collect()
    }

    fn survey(asked: &[usize], slots: [&str; 3]) -> Survey {
        let replies: Vec<String> = asked.iter().map(|&me| said(me, slots)).collect();
        Survey::read(replies.iter().map(String::as_str)).unwrap()
    }

    const THIRDS: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];

    #[test]
    fn three_of_three_are_all() {
        let survey = survey(&[0, 1, 2], THIRDS);
        assert_eq!(survey.missing(), None);
        assert!(survey.stood_still_since(&survey.clone()));
    }

    #[test]
    fn who_has_slots_and_was_not_asked_is_missing() {
        let missing = |asked: &[usize], slots| survey(asked, slots).missing().cloned();
        let third = Some(Missing { address: "10.0.0.2:6379".into(), slot: 10_923 });
        assert_eq!(missing(&[0, 1], THIRDS), third);
        assert_eq!(missing(&[1], ["0-5460 9000", "5461-10922", "12000-16383 11000"]).map(|m| m.slot), Some(0));
        assert_eq!(missing(&[0, 1], ["0-16382", "", "16383"]).map(|m| m.slot), Some(16_383));
    }

    #[test]
    fn who_has_none_is_not_missed_nor_is_a_slot_that_nobody_has() {
        assert_eq!(survey(&[0, 1], ["0-5460", "5461-10922", ""]).missing(), None);
    }

    #[test]
    fn what_one_says_of_itself_counts_more_than_what_others_have_heard() {
        // The second was asked, and has taken over what the first still believes to be the third's.
        let replies = [said(0, ["0-5460", "5461-10922", "10923-16383"]), said(1, ["0-5460", "5461-16383", ""])];
        assert_eq!(Survey::read(replies.iter().map(String::as_str)).unwrap().missing(), None);
    }

    #[test]
    fn who_is_given_a_first_slot_is_missing_too() {
        let slots = ["0-8191 [77->-id2]", "8192-16383", "[77-<-id0]"];
        let missing = survey(&[0, 1], slots).missing().cloned();
        assert_eq!(missing, Some(Missing { address: "10.0.0.2:6379".into(), slot: 77 }));
        let all = survey(&[0, 1, 2], slots);
        assert_eq!((all.missing(), all.is_moving()), (None, true));
        assert!(!all.stood_still_since(&all.clone()));
    }

    #[test]
    fn a_slot_that_changed_hands_did_not_stand_still() {
        let (before, after) = (survey(&[0, 1, 2], THIRDS), survey(&[0, 1, 2], ["0-5459", "5460-10922", "10923-16383"]));
        assert!(!after.is_moving() && !after.stood_still_since(&before));
    }

    #[test]
    fn what_is_no_reply_is_none() {
        assert_eq!(Survey::read([]), None);
        for reply in ["", "\n", "x", "id0 a:1@2", "id0 a:1@2 master - 0 0 1 connected 0-16383", "a b"] {
            assert_eq!(Survey::read([reply]), None, "`{reply}`");
        }
        let strange = "id0 a:1@2 myself,master - 0 0 1 connected 5-4 16384 x-y 99999999999999999999 [1->- [x->-y] []";
        assert_eq!(Survey::read([strange]).unwrap().missing(), None);
        // A node that has only just begun says less.
        assert!(Survey::read(["id0 :0@0 myself,master - 0 0 0 connected"]).is_some());
    }
}
