//! Functions of collections (Cassandra's `CollectionFcts`).

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::pack::collection_size;
use helenus_cql::value::{pack_list, pack_set, read_map, read_nullable_elements};

use super::NativeFunction;
use super::aggregate::{AggregateFunction, NativeAggregate};

fn damaged(reason: String) -> CqlError {
    CqlError::Server(reason)
}

/// Returns `map_keys`, whose result is a set.
pub fn map_keys(map: &CqlType) -> NativeFunction {
    let ty = map.clone();
    let CqlType::Map { key, .. } = map.clone() else {
        return count(map);
    };
    let result = CqlType::set(key.as_ref().clone(), true);
    NativeFunction::strict("map_keys", [map.clone()], result, move |args, _| {
        let Some(value) = args.first() else {
            return Ok(None);
        };
        let entries = read_map(&ty, value).map_err(damaged)?;
        Ok(Some(pack_set(&key, entries.into_iter().map(|(key, _)| key))))
    })
}

/// Returns `map_values`, whose result is a list in the order of the keys.
pub fn map_values(map: &CqlType) -> NativeFunction {
    let ty = map.clone();
    let CqlType::Map { value, .. } = map.clone() else {
        return count(map);
    };
    let result = CqlType::list(value.as_ref().clone(), true);
    NativeFunction::strict("map_values", [map.clone()], result, move |args, _| {
        let Some(value) = args.first() else {
            return Ok(None);
        };
        let entries = read_map(&ty, value).map_err(damaged)?;
        Ok(Some(pack_list(entries.into_iter().map(|(_, value)| value))))
    })
}

/// Returns `collection_count`.
pub fn count(collection: &CqlType) -> NativeFunction {
    NativeFunction::strict(
        "collection_count",
        [collection.clone()],
        CqlType::INT,
        |args, _| {
            let size = args.first().map_or(0, |value| collection_size(value));
            Ok(Some(Bytes::copy_from_slice(
                &i32::try_from(size).unwrap_or(i32::MAX).to_be_bytes(),
            )))
        },
    )
}

/// Returns a function that applies an aggregate to the elements of a list or set.
pub fn aggregated(name: &str, collection: &CqlType, aggregate: NativeAggregate) -> NativeFunction {
    let result = aggregate.return_type().clone();
    NativeFunction::strict(name, [collection.clone()], result, move |args, _| {
        let Some(value) = args.first() else {
            return Ok(None);
        };
        let mut state = aggregate.new_state();
        for element in read_nullable_elements(value).map_err(damaged)? {
            state.add(&[element.map(|element| value.slice_ref(element))])?;
        }
        state.result()
    })
}
