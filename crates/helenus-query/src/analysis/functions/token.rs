//! `token(…)`: the position of a partition in the ring (Cassandra's `TokenFct`).

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_row::murmur3_token;

use super::NativeFunction;
use crate::schema::Table;

/// Returns `token` for the partition keys of a table. Its result is null if a part of the key is null.
pub fn function(table: &Table) -> NativeFunction {
    let types: Vec<CqlType> = table
        .partition_key()
        .iter()
        .map(|column| column.ty.clone())
        .collect();
    NativeFunction::new("token", types, CqlType::BIGINT, |args, _| {
        let parts: Option<Vec<&Bytes>> = args.iter().map(Option::as_ref).collect();
        Ok(parts.map(|parts| {
            let token = murmur3_token(&partition_key(&parts));
            Bytes::copy_from_slice(&token.to_be_bytes())
        }))
    })
}

/// Returns the serialized partition key. A single value stands for itself. With several, each value has a 16-bit length before it and a
/// zero byte after it (`CompositeType`).
fn partition_key(parts: &[&Bytes]) -> Bytes {
    if let [part] = parts {
        return Bytes::clone(part);
    }
    let mut key = Vec::new();
    for part in parts {
        key.extend_from_slice(&(part.len() as u16).to_be_bytes());
        key.extend_from_slice(part);
        key.push(0);
    }
    key.into()
}
