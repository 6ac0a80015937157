//! The node for a request.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use helenus_cql::ast::BatchKind;
use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::Share;
use smallvec::SmallVec;

use crate::analysis::Plan;
use crate::analysis::modification::ModificationPlan;
use crate::cluster::{Cluster, Owner, Request, RequestWork};
use crate::execution::modification::{batch_partitions, eval_context, message_partitions, partitions};
use crate::execution::select::run::tokens;
use crate::execution::transaction::{BoundTransaction, share_of};
use crate::rows::PartitionKey;
use crate::schema::TableKind;
use crate::storage::ExecutionContext;

/// The node for a request, or for a part of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Any node may run the request. It reads and writes rows of all owners.
    Anywhere,
    Owner(OwnerPart),
    /// Parts for several owners.
    Several(Vec<OwnerPart>),
}

/// The part of a request for one owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnerPart {
    /// A token that the owner owns.
    pub token: i64,
    /// The partitions of the part. `None` if it is the whole request.
    pub share: Option<Share>,
}

/// The route of a request, with facts that were found on the way.
pub(crate) struct Routed {
    pub route: Route,
    /// Kind of a batch without conditions, and its number of distinct pairs of keyspace and partition. `None` for other requests.
    pub batch: Option<(BatchKind, usize)>,
}

impl From<Route> for Routed {
    fn from(route: Route) -> Routed {
        Routed { route, batch: None }
    }
}

/// The partitions of each modification of a request.
struct RequestPartitions {
    partitions: Vec<Vec<PartitionKey>>,
    /// True if the modifications are of counters. A part of them must be applied exactly once, so it is sent to one tablet as a whole.
    is_counter: bool,
    is_conditional: bool,
    /// The kind of the batch. `None` for a single modification.
    batch: Option<BatchKind>,
}

/// Returns the route of a request whose token is not known before its values are bound, by the owners that are known now.
///
/// # Errors
/// Cassandra's, for invalid keys.
pub(crate) fn route(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    request: &Request<'_>,
) -> Result<Routed, CqlError> {
    let parameters = request.frame.parameters;
    let is_whole = request.share.is_none();
    let mut batch = None;
    let named = match request.work {
        RequestWork::Statement { planned, values } => match &planned.plan {
            Plan::Select(plan) => {
                let tokens = tokens(context, plan, values, parameters)?;
                return Ok(by_owner(cluster, &tokens).unwrap_or(Route::Anywhere).into());
            }
            // Each node has its own virtual tables.
            Plan::Modification(plan) if plan.table().kind == TableKind::Virtual => {
                return Ok(Route::Anywhere.into());
            }
            Plan::Modification(plan) => RequestPartitions {
                partitions: vec![partitions(context, plan, values, parameters)?],
                is_counter: plan.table().is_counter,
                is_conditional: plan.is_conditional(),
                batch: None,
            },
            Plan::Batch(plan) => {
                let partitions = batch_partitions(context, plan, values, parameters)?;
                let named = RequestPartitions::of_batch(plan.kind(), || plan.modifications(), partitions);
                batch = is_whole.then(|| named.batch_size(plan.modifications())).flatten();
                named
            }
            Plan::Transaction(plan) => {
                let eval = eval_context(context, values, parameters);
                return Ok(of_transaction(cluster, &BoundTransaction::new(plan, eval)?).into());
            }
            Plan::InsertRows(_) | Plan::Direct(_) => return Ok(Route::Anywhere.into()),
        },
        RequestWork::Batch(message) => {
            let partitions = message_partitions(context, message, parameters)?;
            let named = RequestPartitions::of_batch(message.kind, || message.modifications(), partitions);
            batch = is_whole
                .then(|| named.batch_size(message.modifications()))
                .flatten();
            named
        }
    };
    Ok(Routed {
        route: named.within(request.share).route(cluster),
        batch,
    })
}

/// Returns the number of distinct pairs of keyspace and partition.
fn partition_count<'p>(
    modifications: impl Iterator<Item = &'p ModificationPlan>,
    partitions: &[Vec<PartitionKey>],
) -> usize {
    let of_one = |(plan, keys): (&'p ModificationPlan, _)| {
        let keys: &Vec<PartitionKey> = keys;
        let keyspace = plan.table().keyspace.as_str();
        keys.iter().map(move |key| (keyspace, key.bytes.as_ref()))
    };
    let mut named: SmallVec<[(&str, &[u8]); 16]> = modifications.zip(partitions).flat_map(of_one).collect();
    named.sort_unstable();
    named.dedup();
    named.len()
}

/// Returns the route to the common owner of all these tokens. `None` if they have several owners.
fn by_owner(cluster: &dyn Cluster, tokens: &[i64]) -> Option<Route> {
    let (first, rest) = tokens.split_first()?;
    let owner = cluster.owner(*first);
    let is_alone = rest.iter().all(|token| cluster.owner(*token) == owner);
    is_alone.then_some(Route::Owner(OwnerPart {
        token: *first,
        share: None,
    }))
}

/// Returns the route of a transaction: the owner of all its partitions, or this node if there are several owners.
fn of_transaction(cluster: &dyn Cluster, bound: &BoundTransaction<'_>) -> Route {
    let partitions = bound.partitions();
    let mut owner = None;
    for token in partitions.tokens() {
        let here = cluster.owner(token);
        match owner {
            // The owner will be known soon. The request waits for it.
            _ if here == Owner::Unowned => return whole(token, bound),
            None => owner = Some((token, here)),
            Some((_, known)) if known == here => {}
            Some(_) => return Route::Anywhere,
        }
    }
    owner.map_or(Route::Anywhere, |(token, _)| whole(token, bound))
}

fn whole(token: i64, bound: &BoundTransaction<'_>) -> Route {
    Route::Owner(OwnerPart {
        token,
        share: Some(share_of(bound)),
    })
}

impl RequestPartitions {
    fn of_batch<'p, M: Iterator<Item = &'p ModificationPlan>>(
        kind: BatchKind,
        modifications: impl Fn() -> M,
        partitions: Vec<Vec<PartitionKey>>,
    ) -> RequestPartitions {
        RequestPartitions {
            partitions,
            is_counter: modifications().any(|one| one.table().is_counter),
            is_conditional: modifications().any(ModificationPlan::is_conditional),
            batch: Some(kind),
        }
    }

    /// Returns the kind and the number of partitions of a batch without conditions.
    fn batch_size<'p>(
        &self,
        modifications: impl Iterator<Item = &'p ModificationPlan>,
    ) -> Option<(BatchKind, usize)> {
        let kind = self.batch.filter(|_| !self.is_conditional)?;
        Some((kind, partition_count(modifications, &self.partitions)))
    }

    /// Returns the partitions of a share of the request. All if there is none.
    fn within(mut self, share: Option<&Share>) -> RequestPartitions {
        if let Some(share) = share {
            self.partitions = share
                .iter()
                .map(|keys| keys.iter().cloned().map(PartitionKey::new).collect())
                .collect();
        }
        self
    }

    fn route(&self, cluster: &dyn Cluster) -> Route {
        let tokens: Vec<i64> = self.partitions.iter().flatten().map(|key| key.token).collect();
        let Some(first) = tokens.first() else {
            return Route::Anywhere;
        };
        if self.is_conditional {
            // A request with conditions on several partitions is invalid, and any node refuses it.
            let is_alone = tokens.iter().all(|token| token == first);
            let whole = Route::Owner(OwnerPart {
                token: *first,
                share: self.batch.is_none().then(|| self.whole()),
            });
            return if is_alone { whole } else { Route::Anywhere };
        }
        match self.batch {
            Some(kind) if !self.is_counter => match (by_owner(cluster, &tokens), kind) {
                (Some(route), _) => route,
                // The owner of the first partition records the batch in its batch log first.
                (None, BatchKind::Logged) => Route::Owner(OwnerPart {
                    token: *first,
                    share: None,
                }),
                (None, BatchKind::Unlogged | BatchKind::Counter) => Route::Anywhere,
            },
            _ => self.by_tablet(cluster, &tokens),
        }
    }

    fn whole(&self) -> Share {
        let keys = |keys: &Vec<PartitionKey>| keys.iter().map(|key| key.bytes.clone()).collect();
        self.partitions.iter().map(keys).collect()
    }

    /// Returns a route with a part for each tablet, so that each tablet receives its part as one write.
    fn by_tablet(&self, cluster: &dyn Cluster, tokens: &[i64]) -> Route {
        let tablets: HashSet<i64> = tokens.iter().map(|token| cluster.tablet(*token).first).collect();
        if let (1, Some(first)) = (tablets.len(), tokens.first()) {
            return Route::Owner(OwnerPart {
                token: *first,
                share: Some(self.whole()),
            });
        }
        let mut shares: BTreeMap<i64, Vec<Vec<Bytes>>> = BTreeMap::new();
        for (at, keys) in self.partitions.iter().enumerate() {
            for key in keys {
                let share = shares
                    .entry(cluster.tablet(key.token).first)
                    .or_insert_with(|| vec![Vec::new(); self.partitions.len()]);
                if let Some(keys) = share.get_mut(at) {
                    keys.push(key.bytes.clone());
                }
            }
        }
        let target = |(token, share): (i64, Vec<Vec<Bytes>>)| OwnerPart {
            token,
            share: Some(share.into()),
        };
        Route::Several(shares.into_iter().map(target).collect())
    }
}
