//! The decision about a transaction, as a function of the states of its intents.

use crate::cluster::IntentState;

/// Returns true if the transaction is committed, and false if it is aborted. `None` if that is not known, because an unknown state matters.
///
/// At most one answer is possible whatever the unknown states are, and whenever each state was found.
pub(super) fn decide(states: impl IntoIterator<Item = Option<IntentState>>) -> Option<bool> {
    let mut decision = Some(true);
    for state in states {
        match state {
            Some(IntentState::Committed) => return Some(true),
            Some(IntentState::Absent) => decision = Some(false),
            Some(IntentState::Pending) => {}
            None => decision = decision.filter(|is_committed| !is_committed),
        }
    }
    decision
}

#[cfg(test)]
mod tests {
    use super::*;
    use IntentState::{Absent, Committed, Pending};

    #[test]
    fn all_intents_must_be_durable() {
        assert_eq!(decide([Some(Pending), Some(Pending)]), Some(true));
        assert_eq!(decide([Some(Pending), Some(Absent)]), Some(false));
        assert_eq!(decide([Some(Absent), Some(Pending)]), Some(false));
    }

    #[test]
    fn a_committed_intent_decides() {
        // The other one was removed, because all were committed.
        assert_eq!(decide([Some(Absent), Some(Committed)]), Some(true));
        assert_eq!(decide([Some(Committed), None]), Some(true));
    }

    #[test]
    fn unknown_states_are_awaited_unless_one_is_absent() {
        assert_eq!(decide([Some(Pending), None]), None);
        assert_eq!(decide([None, Some(Absent)]), Some(false));
        assert_eq!(decide([Some(Absent), None]), Some(false));
    }
}
