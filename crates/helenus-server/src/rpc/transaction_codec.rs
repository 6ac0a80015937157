//! Encodes and decodes the steps of transactions over partitions of several nodes.

use bytes::Bytes;
use helenus_query::cluster::{IntentState, RemoteError, TableId, TransactionAnswer, TransactionStep};
use helenus_query::failure::ExecutionError;
use uuid::Uuid;

use super::envelope;
use super::proto::transact_request::Step;
use super::proto::{
    self, ConfirmStep, EndStep, IntendStep, IntentName, LockStep, Partition, StatesStep, TransactRequest,
    TransactResponse,
};

fn bytes_of(id: Uuid) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}

/// Encodes a step.
pub(super) fn request(step: &TransactionStep) -> TransactRequest {
    let (id, step) = match step {
        TransactionStep::Lock {
            id,
            partitions,
            schema_version,
        } => {
            let partition = |(table, token): &(TableId, i64)| Partition {
                table: table.0,
                token: *token,
            };
            let lock = LockStep {
                partitions: partitions.iter().map(partition).collect(),
                schema_version: *schema_version,
            };
            (Some(*id), Step::Lock(lock))
        }
        TransactionStep::Confirm { id } => (Some(*id), Step::Confirm(ConfirmStep {})),
        TransactionStep::Intend {
            id,
            intents,
            schema_version,
        } => {
            let intend = IntendStep {
                intents: intents.clone(),
                schema_version: *schema_version,
            };
            (Some(*id), Step::Intend(intend))
        }
        TransactionStep::End {
            id,
            tokens,
            is_committed,
            is_awaited,
        } => {
            let end = EndStep {
                tokens: tokens.clone(),
                committed: *is_committed,
                awaited: *is_awaited,
            };
            (Some(*id), Step::End(end))
        }
        TransactionStep::States { intents } => {
            let name = |(id, token): &(Uuid, i64)| IntentName {
                transaction: bytes_of(*id),
                token: *token,
            };
            let intents = intents.iter().map(name).collect();
            (None, Step::States(StatesStep { intents }))
        }
    };
    TransactRequest {
        transaction: id.map(bytes_of).unwrap_or_default(),
        step: Some(step),
    }
}

/// Decodes a step.
///
/// # Errors
/// The step is of a kind that this version does not know, or an id is invalid.
pub(super) fn step(request: TransactRequest) -> Result<TransactionStep, &'static str> {
    let uuid = |bytes: &Bytes| Uuid::from_slice(bytes).map_err(|_| "the id of a transaction is invalid");
    let id = || uuid(&request.transaction);
    Ok(
        match request.step.ok_or("the step of a transaction is not known")? {
            Step::Lock(lock) => TransactionStep::Lock {
                id: id()?,
                partitions: lock
                    .partitions
                    .iter()
                    .map(|partition| (TableId(partition.table), partition.token))
                    .collect(),
                schema_version: lock.schema_version,
            },
            Step::Confirm(_) => TransactionStep::Confirm { id: id()? },
            Step::Intend(intend) => TransactionStep::Intend {
                id: id()?,
                intents: intend.intents,
                schema_version: intend.schema_version,
            },
            Step::End(end) => TransactionStep::End {
                id: id()?,
                tokens: end.tokens,
                is_committed: end.committed,
                is_awaited: end.awaited,
            },
            Step::States(states) => TransactionStep::States {
                intents: states
                    .intents
                    .iter()
                    .map(|name| Ok((uuid(&name.transaction)?, name.token)))
                    .collect::<Result<_, &'static str>>()?,
            },
        },
    )
}

/// Encodes the answer to a step.
pub(super) fn response(answer: Result<TransactionAnswer, ExecutionError>) -> TransactResponse {
    let state = |state: Option<IntentState>| match state {
        None => proto::IntentState::Unknown,
        Some(IntentState::Absent) => proto::IntentState::Absent,
        Some(IntentState::Pending) => proto::IntentState::Pending,
        Some(IntentState::Committed) => proto::IntentState::Committed,
    };
    match answer {
        Ok(TransactionAnswer::Done) => TransactResponse::default(),
        Ok(TransactionAnswer::Locked { clock_us, has_waited }) => TransactResponse {
            clock_us,
            has_waited,
            ..TransactResponse::default()
        },
        Ok(TransactionAnswer::States(states)) => TransactResponse {
            states: states.into_iter().map(|one| state(one).into()).collect(),
            ..TransactResponse::default()
        },
        Err(ExecutionError::NotOwned) => TransactResponse {
            not_mine: true,
            ..TransactResponse::default()
        },
        Err(ExecutionError::Failed(error)) => TransactResponse {
            error: envelope::answer(Err(error)),
            ..TransactResponse::default()
        },
    }
}

/// Decodes the answer to a step.
///
/// # Errors
/// The error in the answer.
pub(super) fn answer(
    step: &TransactionStep,
    response: TransactResponse,
) -> Result<TransactionAnswer, RemoteError> {
    if response.not_mine {
        return Err(RemoteError::NotOwned);
    }
    if !response.error.is_empty() {
        let error = envelope::outcome(&response.error).err();
        return Err(error.map_or_else(
            || RemoteError::NoAnswer("an error was expected".to_owned()),
            RemoteError::Failed,
        ));
    }
    let state = |state: i32| match proto::IntentState::try_from(state) {
        Ok(proto::IntentState::Absent) => Some(IntentState::Absent),
        Ok(proto::IntentState::Pending) => Some(IntentState::Pending),
        Ok(proto::IntentState::Committed) => Some(IntentState::Committed),
        Ok(proto::IntentState::Unknown) | Err(_) => None,
    };
    Ok(match step {
        TransactionStep::Lock { .. } => TransactionAnswer::Locked {
            clock_us: response.clock_us,
            has_waited: response.has_waited,
        },
        TransactionStep::States { .. } => {
            TransactionAnswer::States(response.states.into_iter().map(state).collect())
        }
        TransactionStep::Confirm { .. } | TransactionStep::Intend { .. } | TransactionStep::End { .. } => {
            TransactionAnswer::Done
        }
    })
}

#[cfg(test)]
mod tests {
    use helenus_cql::error::CqlError;

    use super::*;

    #[test]
    fn steps_round_trip() {
        let id = Uuid::from_u128(9);
        for sent in [
            TransactionStep::Lock {
                id,
                partitions: vec![(TableId(3), -5)],
                schema_version: 7,
            },
            TransactionStep::Confirm { id },
            TransactionStep::Intend {
                id,
                intents: vec![Bytes::from_static(b"intent")],
                schema_version: 7,
            },
            TransactionStep::End {
                id,
                tokens: vec![-5, 8],
                is_committed: true,
                is_awaited: false,
            },
            TransactionStep::States {
                intents: vec![(id, -5)],
            },
        ] {
            assert_eq!(step(request(&sent)), Ok(sent));
        }
        assert!(step(TransactRequest::default()).is_err());
    }

    #[test]
    fn answers_round_trip() {
        let id = Uuid::from_u128(9);
        let states = TransactionAnswer::States(vec![
            None,
            Some(IntentState::Absent),
            Some(IntentState::Pending),
            Some(IntentState::Committed),
        ]);
        let of_states = TransactionStep::States { intents: Vec::new() };
        assert_eq!(answer(&of_states, response(Ok(states.clone()))), Ok(states));
        let confirm = TransactionStep::Confirm { id };
        let not_owned = response(Err(ExecutionError::NotOwned));
        assert_eq!(answer(&confirm, not_owned), Err(RemoteError::NotOwned));
        let error = CqlError::Overloaded("why".to_owned());
        let failed = response(Err(ExecutionError::Failed(error.clone())));
        assert_eq!(answer(&confirm, failed), Err(RemoteError::Failed(error)));
    }
}
