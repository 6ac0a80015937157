//! Which node a request is for.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::BatchKind;
use helenus_cql::error::CqlError;
use smallvec::SmallVec;

use super::request::{Request, RequestWork};
use crate::analysis::Plan;
use crate::analysis::modification::ModificationPlan;
use crate::cluster::Cluster;
use crate::execution::modification::{batch_partitions, message_partitions, partitions};
use crate::execution::select::run::tokens;
use crate::request::{Parts, Place};
use crate::rows::PartitionKey;
use crate::schema::TableKind;
use crate::storage::ExecutionContext;

/// The node for a request, or for a part of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Any node may run it: it reads or writes what it must wherever that is.
    Anywhere,
    Owner(OwnerPart),
    /// Parts, each for an owner of its own.
    Several(Vec<OwnerPart>),
}

/// What one owner is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnerPart {
    /// A token of its own.
    pub token: i64,
    /// None is the whole request.
    pub parts: Option<Parts>,
}

/// Where a request belongs, and what was seen on the way to that.
pub(crate) struct Routed {
    pub route: Route,
    /// Of a batch without conditions, its kind and the partitions of keyspaces that it writes.
    pub batch: Option<(BatchKind, usize)>,
}

impl From<Route> for Routed {
    fn from(route: Route) -> Routed {
        Routed { route, batch: None }
    }
}

/// The partitions that a request names, for each of its modifications.
struct RequestPartitions {
    partitions: Vec<Vec<PartitionKey>>,
    /// They are counters, which are added to once: a part must be done whole or not at all.
    is_counter: bool,
    is_conditional: bool,
    /// All of it or nothing; none for a single modification.
    batch: Option<BatchKind>,
}

/// Says where the request belongs by what is known now.
///
/// # Errors
/// Cassandra's, for keys that make no sense.
pub(crate) fn route(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    request: &Request<'_>,
    place: &Place,
) -> Result<Routed, CqlError> {
    let options = request.options;
    let is_coordinated = matches!(place, Place::Coordinator);
    let mut batch = None;
    let named = match request.work {
        RequestWork::Statement { planned, values, .. } => match &planned.plan {
            Plan::Select(plan) => {
                let tokens = tokens(context, plan, values, options)?;
                return Ok(by_owner(cluster, &tokens).unwrap_or(Route::Anywhere).into());
            }
            // Each node has virtual tables of its own.
            Plan::Modification(plan) if plan.table().kind == TableKind::Virtual => {
                return Ok(Route::Anywhere.into());
            }
            Plan::Modification(plan) => RequestPartitions {
                partitions: vec![partitions(context, plan, values, options)?],
                is_counter: plan.table().is_counter,
                is_conditional: plan.is_conditional(),
                batch: None,
            },
            Plan::Batch(plan) => {
                let partitions = batch_partitions(context, plan, values, options)?;
                let named = RequestPartitions::of_batch(plan.kind(), || plan.modifications(), partitions);
                batch = is_coordinated
                    .then(|| named.batch_size(plan.modifications()))
                    .flatten();
                named
            }
            Plan::Direct(_) => return Ok(Route::Anywhere.into()),
        },
        RequestWork::Batch(message) => {
            let partitions = message_partitions(context, message, options)?;
            let named = RequestPartitions::of_batch(message.kind, || message.modifications(), partitions);
            batch = is_coordinated
                .then(|| named.batch_size(message.modifications()))
                .flatten();
            named
        }
    };
    Ok(Routed {
        route: named.within(place).route(cluster),
        batch,
    })
}

/// Partitions of keyspaces, each once.
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

/// Returns the owner of all these tokens, if they have one in common.
fn by_owner(cluster: &dyn Cluster, tokens: &[i64]) -> Option<Route> {
    let (first, rest) = tokens.split_first()?;
    let owner = cluster.owner(*first);
    let is_alone = rest.iter().all(|token| cluster.owner(*token) == owner);
    is_alone.then_some(Route::Owner(OwnerPart {
        token: *first,
        parts: None,
    }))
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

    /// What of it is to be done in that place.
    fn within(mut self, place: &Place) -> RequestPartitions {
        if let Place::Part(parts) = place {
            self.partitions = parts
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
            // Several partitions are refused, by anyone.
            let is_alone = tokens.iter().all(|token| token == first);
            let whole = Route::Owner(OwnerPart {
                token: *first,
                parts: self.batch.is_none().then(|| self.whole()),
            });
            return if is_alone { whole } else { Route::Anywhere };
        }
        match self.batch {
            Some(kind) if !self.is_counter => match (by_owner(cluster, &tokens), kind) {
                (Some(route), _) => route,
                // Written down first, at the owner of the first partition.
                (None, BatchKind::Logged) => Route::Owner(OwnerPart {
                    token: *first,
                    parts: None,
                }),
                (None, BatchKind::Unlogged | BatchKind::Counter) => Route::Anywhere,
            },
            _ => self.by_tablet(cluster, &tokens),
        }
    }

    fn whole(&self) -> Parts {
        let keys = |keys: &Vec<PartitionKey>| keys.iter().map(|key| key.bytes.clone()).collect();
        self.partitions.iter().map(keys).collect()
    }

    /// Cut by tablets, each of which takes its part in one write.
    fn by_tablet(&self, cluster: &dyn Cluster, tokens: &[i64]) -> Route {
        let tablets: HashSet<i64> = tokens.iter().map(|token| cluster.tablet(*token).first).collect();
        if let (1, Some(first)) = (tablets.len(), tokens.first()) {
            return Route::Owner(OwnerPart {
                token: *first,
                parts: Some(self.whole()),
            });
        }
        let mut targets: BTreeMap<i64, Vec<Vec<Bytes>>> = BTreeMap::new();
        for (at, keys) in self.partitions.iter().enumerate() {
            for key in keys {
                let parts = targets
                    .entry(cluster.tablet(key.token).first)
                    .or_insert_with(|| vec![Vec::new(); self.partitions.len()]);
                if let Some(part) = parts.get_mut(at) {
                    part.push(key.bytes.clone());
                }
            }
        }
        let target = |(token, parts): (i64, Vec<Vec<Bytes>>)| OwnerPart {
            token,
            parts: Some(Arc::from(parts)),
        };
        Route::Several(targets.into_iter().map(target).collect())
    }
}
