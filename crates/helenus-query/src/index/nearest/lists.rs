//! Searches of posting lists. Lists of other nodes are searched by their owners, so that their vectors need not be sent.

use std::collections::HashMap;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, try_join_all};
use uuid::Uuid;

use super::candidates::{ListCandidates, ListCollector};
use super::list_reader::{ListAtHand, ListEntry, ListReader};
use crate::cluster::{Cluster, Owner};
use crate::failure::ExecutionError;
use crate::index::list_search::ListSearch;
use crate::index::posting_lists::hidden_rows::list_partition;
use crate::index::posting_lists::packed_vector::{distance, packed_vectors};
use crate::index::similarity::SimilarityFunction;
use crate::limits::scope;
use crate::schema::Index;
use crate::storage::ExecutionContext;

/// The query of a search in an index's posting lists.
#[derive(Clone, Copy)]
pub(super) struct ListQuery<'a> {
    pub index: &'a Index,
    pub measure: SimilarityFunction,
    pub vector: &'a [f32],
}

/// Searches families of lists concurrently. The lists of a family are read one after another, in their order.
pub(super) async fn search(
    context: &ExecutionContext,
    query: ListQuery<'_>,
    families: Vec<Vec<i64>>,
) -> Result<Vec<ListCandidates>, ExecutionError> {
    let mut here = Vec::with_capacity(families.len());
    let mut elsewhere: HashMap<Uuid, Vec<Vec<i64>>> = HashMap::new();
    for family in families {
        match context
            .cluster()
            .and_then(|cluster| peer_of(cluster.as_ref(), &family))
        {
            Some(node) => elsewhere.entry(node).or_default().push(family),
            None => here.push(family),
        }
    }
    let mut searches: Vec<BoxFuture<'_, _>> = Vec::with_capacity(here.len() + elsewhere.len());
    for (node, families) in elsewhere {
        searches.push(search_at(context, query, node, families).boxed());
    }
    for family in here {
        searches.push(search_runs(context, query, family).boxed());
    }
    Ok(try_join_all(searches).await?.into_iter().flatten().collect())
}

/// Returns the other node that owns all of these lists. `None` if there is no such node.
fn peer_of(cluster: &dyn Cluster, family: &[i64]) -> Option<Uuid> {
    let mut owners = family
        .iter()
        .map(|list| cluster.owner(list_partition(*list).token));
    match owners.next()? {
        Owner::Peer(node) if owners.all(|owner| owner == Owner::Peer(node)) => Some(node),
        _ => None,
    }
}

/// Has another node search its lists. If that fails for any reason, this node reads the lists row by row from their owners at that time.
async fn search_at(
    context: &ExecutionContext,
    query: ListQuery<'_>,
    node: Uuid,
    families: Vec<Vec<i64>>,
) -> Result<Vec<ListCandidates>, ExecutionError> {
    let search = ListSearch {
        index: query.index.table.number.0,
        lists: families.concat(),
        vector: query.vector.to_vec(),
        schema_version: context.schema().document_version,
    };
    if let Some(found) = request_search(context, node, &search).await {
        return Ok(found);
    }
    let mut found = Vec::with_capacity(search.lists.len());
    for family in families {
        found.extend(search_family(context, query, family).await?);
    }
    Ok(found)
}

/// Searches a family of lists that do not all belong to another node. Neighbouring lists with the same owner are searched together.
async fn search_runs(
    context: &ExecutionContext,
    query: ListQuery<'_>,
    family: Vec<i64>,
) -> Result<Vec<ListCandidates>, ExecutionError> {
    let peer = |list: &i64| peer_of(context.cluster()?.as_ref(), std::slice::from_ref(list));
    let mut found = Vec::with_capacity(family.len());
    for run in family.chunk_by(|one, next| peer(one) == peer(next)) {
        let run_found = match run.first().and_then(peer) {
            Some(node) => search_at(context, query, node, vec![run.to_vec()]).await?,
            None => search_family(context, query, run.to_vec()).await?,
        };
        found.extend(run_found);
    }
    Ok(found)
}

async fn request_search(
    context: &ExecutionContext,
    node: Uuid,
    search: &ListSearch,
) -> Option<Vec<ListCandidates>> {
    let cluster = context.cluster()?;
    match cluster.search_lists(node, search, context.deadline()).await {
        Ok(found) if found.len() == search.lists.len() => {
            let lists = search.lists.iter().zip(found);
            lists
                .map(|(list, encoded)| ListCandidates::decode(*list, encoded))
                .collect()
        }
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(%node, ?error, "posting lists are read row by row");
            None
        }
    }
}

async fn search_family(
    context: &ExecutionContext,
    query: ListQuery<'_>,
    family: Vec<i64>,
) -> Result<Vec<ListCandidates>, ExecutionError> {
    let mut found = Vec::with_capacity(family.len());
    for list in family {
        found.push(search_list(context, query, list).await?);
    }
    Ok(found)
}

/// Reads a list: as one piece if it is in this node's memory, row by row otherwise.
async fn search_list(
    context: &ExecutionContext,
    query: ListQuery<'_>,
    list: i64,
) -> Result<ListCandidates, ExecutionError> {
    let collect = |entry: ListEntry<'_>, collector: &mut ListCollector| {
        for packed in packed_vectors(entry.cell) {
            if let Some(distance) = distance(query.measure, query.vector, packed) {
                collector.add(distance, entry.clustering, entry.written_us);
            }
        }
    };
    if let Some(at_hand) = ListAtHand::of(context, query.index, list).await? {
        let mut collector = ListCollector::new(list, Some(at_hand.bytes().clone()));
        at_hand.visit(|entry| collect(entry, &mut collector))?;
        return Ok(collector.finish());
    }
    let mut collector = ListCollector::new(list, None);
    let mut entries = ListReader::new(query.index, list);
    loop {
        let is_read = entries.next(context, |entry| {
            collect(entry, &mut collector);
            Ok(())
        });
        if !is_read.await? {
            return Ok(collector.finish());
        }
    }
}

/// Returns the tokens of the lists of a search.
pub(crate) fn tokens(search: &ListSearch) -> impl Iterator<Item = i64> + Clone {
    search.lists.iter().map(|list| list_partition(*list).token)
}

/// Searches lists for another node. Returns the encoded entries of each list.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if the index does not exist any more.
pub(crate) async fn serve(
    context: &ExecutionContext,
    search: &ListSearch,
) -> Result<Vec<Bytes>, ExecutionError> {
    let schema = context.schema();
    let found = schema.index_of_hidden_table(search.index);
    let (_, index) = found
        .filter(|(_, index)| index.has_posting_lists)
        .ok_or(ExecutionError::NotOwned)?;
    let query = ListQuery {
        index,
        measure: SimilarityFunction::of(index),
        vector: &search.vector,
    };
    let mut found = Vec::with_capacity(search.lists.len());
    for list in &search.lists {
        scope::checkpoint().await?;
        found.push(search_list(context, query, *list).await?.encode());
    }
    Ok(found)
}
