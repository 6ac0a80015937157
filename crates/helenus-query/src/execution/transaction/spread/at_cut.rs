//! Completion of transactions that were committed and not applied everywhere at a cut.

use std::collections::BTreeMap;

use helenus_cql::error::CqlError;
use helenus_tablet::Op;
use uuid::Uuid;

use super::decision::decide;
use super::intents;
use crate::cluster::IntentState;
use crate::execution::writes::WriteSet;
use crate::failure::{ExecutionError, store_error};
use crate::storage::ExecutionContext;
use crate::storage::key_reads::scan_table;
use crate::storage::undecided::Intent;

/// Returns the operands of committed transactions that were not applied yet at the cut of the pinned tablets, and adds them to these tablets.
///
/// # Errors
/// The intents cannot be read, or the rows from which index entries and views are computed.
pub(crate) async fn under_way(context: &ExecutionContext) -> Result<Vec<Op>, CqlError> {
    let now_s = context.clock.now_us().div_euclid(1_000_000);
    let mut states: BTreeMap<(Uuid, i64), IntentState> = BTreeMap::new();
    let mut pending: Vec<Intent> = Vec::new();
    for tablet in context.store.tablets().iter() {
        let scan = scan_table(tablet, intents::TABLE).await;
        let mut scan = scan.map_err(ExecutionError::into_client_error)?;
        while let Some((_, packed)) = scan.next().await.map_err(store_error)? {
            let Some((intent, state)) = intents::stored(packed, now_s)? else {
                continue;
            };
            states.insert((intent.transaction, intent.token), state);
            if state == IntentState::Pending {
                pending.push(intent);
            }
        }
    }
    let mut found = Vec::new();
    for intent in pending {
        let state = |token: &i64| {
            let state = states.get(&(intent.transaction, *token));
            Some(state.copied().unwrap_or(IntentState::Absent))
        };
        if decide(intent.participants.iter().map(state)) != Some(true) {
            continue;
        }
        let writes = WriteSet::from_ops(&context.schema(), intent.ops)?;
        found.extend(writes.add_to_cut(context).await?);
    }
    Ok(found)
}
