//! Aggregates: `count`, `min`, `max`, `sum`, `avg` (Cassandra's `AggregateFcts`).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::compare;

pub use super::aggregate_state::AggregateState;
use super::aggregate_state::i64_of;
use super::number::NUMERIC;
use super::sums::{Avg, Sum};
use crate::schema::roles::Resource;

/// A function of the rows of a group, with the types of one overload.
pub trait AggregateFunction: fmt::Debug + Send + Sync {
    /// Returns the qualified name, for example `system.sum`.
    fn name(&self) -> &str;
    fn arg_types(&self) -> &[CqlType];
    fn return_type(&self) -> &CqlType;
    /// Returns the user-defined functions that the aggregate calls. A role needs the permission to execute them.
    fn executed(&self) -> Vec<Resource> {
        Vec::new()
    }
    /// Returns a state that has seen no row.
    fn new_state(&self) -> Box<dyn AggregateState>;
    /// Returns true if partial states can be merged in the order of the rows, with the same result as adding the rows one by one. False
    /// where rounding depends on the order, and for user-defined functions.
    fn is_mergeable(&self) -> bool {
        false
    }
    /// Returns the name of the result's column, given those of the arguments.
    fn column_name(&self, args: &[String]) -> String {
        format!("{}({})", self.name(), args.join(", "))
    }
}

type NewState = Arc<dyn Fn() -> Box<dyn AggregateState> + Send + Sync>;

/// A native aggregate.
#[derive(Clone)]
pub struct NativeAggregate {
    name: String,
    arg_types: Vec<CqlType>,
    return_type: CqlType,
    new_state: NewState,
    is_mergeable: bool,
}

impl NativeAggregate {
    fn new<S: AggregateState + 'static>(
        name: &str,
        arg_types: impl Into<Vec<CqlType>>,
        return_type: CqlType,
        new_state: impl Fn() -> S + Send + Sync + 'static,
    ) -> NativeAggregate {
        let is_mergeable = new_state().partial().is_some();
        NativeAggregate {
            is_mergeable,
            name: format!("system.{name}"),
            arg_types: arg_types.into(),
            return_type,
            new_state: Arc::new(move || Box::new(new_state())),
        }
    }

    /// Returns the name without its keyspace.
    pub fn short_name(&self) -> &str {
        self.name.strip_prefix("system.").unwrap_or(&self.name)
    }
}

impl fmt::Debug for NativeAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::signature(&self.name, &self.arg_types, &self.return_type))
    }
}

impl AggregateFunction for NativeAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn arg_types(&self) -> &[CqlType] {
        &self.arg_types
    }

    fn return_type(&self) -> &CqlType {
        &self.return_type
    }

    fn new_state(&self) -> Box<dyn AggregateState> {
        (self.new_state)()
    }

    fn is_mergeable(&self) -> bool {
        self.is_mergeable
    }

    fn column_name(&self, args: &[String]) -> String {
        if self.arg_types.is_empty() {
            return "count".to_owned();
        }
        format!("{}({})", self.name, args.join(", "))
    }
}

/// Returns the aggregate `count(*)`.
pub fn count_rows() -> NativeAggregate {
    NativeAggregate::new("count_rows", [], CqlType::BIGINT, Count::default)
}

/// Returns the aggregates that have the same overloads for every call. `min` and `max` are not among them, because they take any type.
pub fn functions() -> Vec<NativeAggregate> {
    let mut functions = vec![
        count_rows(),
        NativeAggregate::new("countRows", [], CqlType::BIGINT, Count::default),
        NativeAggregate::new("count", [CqlType::BLOB], CqlType::BIGINT, Count::default),
    ];
    for native in NUMERIC {
        functions.push(sum(native));
        functions.push(avg(native));
    }
    functions
}

/// Returns `sum` of a numeric type. The sum wraps around where the type is bounded.
pub fn sum(native: NativeType) -> NativeAggregate {
    let ty = CqlType::Native(native);
    NativeAggregate::new("sum", [ty.clone()], ty, move || Sum::new(native))
}

/// Returns `avg` of a numeric type. The average of integers is an integer.
pub fn avg(native: NativeType) -> NativeAggregate {
    let ty = CqlType::Native(native);
    NativeAggregate::new("avg", [ty.clone()], ty, move || Avg::new(native))
}

/// Returns `min` of any type.
pub fn min(ty: &CqlType) -> NativeAggregate {
    extreme("min", ty, Ordering::Less)
}

/// Returns `max` of any type.
pub fn max(ty: &CqlType) -> NativeAggregate {
    extreme("max", ty, Ordering::Greater)
}

fn extreme(name: &str, ty: &CqlType, better: Ordering) -> NativeAggregate {
    let arg = ty.clone();
    let state = move || Extreme {
        ty: arg.clone(),
        better,
        best: None,
    };
    NativeAggregate::new(name, [ty.clone()], ty.clone(), state)
}

/// Counts rows, or values that are not null.
#[derive(Default)]
struct Count {
    count: i64,
}

impl AggregateState for Count {
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        if args.first().is_none_or(Option::is_some) {
            self.count += 1;
        }
        Ok(())
    }

    fn result(&self) -> Result<Option<Bytes>, CqlError> {
        Ok(Some(Bytes::copy_from_slice(&self.count.to_be_bytes())))
    }

    fn reset(&mut self) {
        self.count = 0;
    }

    fn partial(&self) -> Option<Bytes> {
        Some(Bytes::copy_from_slice(&self.count.to_be_bytes()))
    }

    fn merge(&mut self, partial: &Bytes) {
        self.count += i64_of(partial);
    }
}

struct Extreme {
    ty: CqlType,
    better: Ordering,
    best: Option<Bytes>,
}

impl Extreme {
    /// Takes a value. Among values that compare as equal, the first one is kept.
    fn see(&mut self, value: Bytes) {
        let is_better = match &self.best {
            Some(best) => compare(&self.ty, &value, best) == self.better,
            None => true,
        };
        if is_better {
            self.best = Some(value);
        }
    }
}

impl AggregateState for Extreme {
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        if let Some(Some(value)) = args.first() {
            self.see(value.clone());
        }
        Ok(())
    }

    fn result(&self) -> Result<Option<Bytes>, CqlError> {
        Ok(self.best.clone())
    }

    fn reset(&mut self) {
        self.best = None;
    }

    /// Returns the byte 1, followed by the best value. Empty if no value has been seen.
    fn partial(&self) -> Option<Bytes> {
        let best = self.best.as_ref();
        Some(best.map_or_else(Bytes::new, |best| [&[1][..], best.as_ref()].concat().into()))
    }

    fn merge(&mut self, partial: &Bytes) {
        if !partial.is_empty() {
            self.see(partial.slice(1..));
        }
    }
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
