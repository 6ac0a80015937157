//! `token(…)`: where a partition lies (Cassandra's `TokenFct`).

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_row::murmur3_token;

use super::NativeFunction;
use crate::schema::Table;

/// `token` for the partition keys of a table; null if a part is.
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

/// Returns the serialized partition key: the value itself, or, of several, each with a 16-bit length and a zero byte
/// after it (`CompositeType`).
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
