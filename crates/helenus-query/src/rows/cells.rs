//! Serialized values for columns of system tables.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::{pack_list, pack_map, pack_set};
use uuid::Uuid;

pub(crate) fn text(value: impl AsRef<str>) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(value.as_ref().as_bytes()))
}

pub(crate) fn blob(value: impl AsRef<[u8]>) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(value.as_ref()))
}

pub(crate) fn int(value: i32) -> Option<Bytes> {
    blob(value.to_be_bytes())
}

pub(crate) fn bigint(value: i64) -> Option<Bytes> {
    blob(value.to_be_bytes())
}

/// Serializes a number. One that does not fit becomes the largest bigint.
pub(crate) fn bigint_saturating(value: u64) -> Option<Bytes> {
    bigint(i64::try_from(value).unwrap_or(i64::MAX))
}

pub(crate) fn double(value: f64) -> Option<Bytes> {
    blob(value.to_be_bytes())
}

pub(crate) fn boolean(value: bool) -> Option<Bytes> {
    blob([u8::from(value)])
}

pub(crate) fn uuid(value: Uuid) -> Option<Bytes> {
    blob(value.as_bytes())
}

pub(crate) fn inet(value: IpAddr) -> Option<Bytes> {
    match value {
        IpAddr::V4(address) => blob(address.octets()),
        IpAddr::V6(address) => blob(address.octets()),
    }
}

pub(crate) fn text_set<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Option<Bytes> {
    let values: Vec<T> = values.into_iter().collect();
    Some(pack_set(
        &CqlType::TEXT,
        values.iter().map(|value| value.as_ref().as_bytes()),
    ))
}

pub(crate) fn blob_set<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> Option<Bytes> {
    Some(pack_set(&CqlType::BLOB, values))
}

pub(crate) fn text_list<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Option<Bytes> {
    let values: Vec<T> = values.into_iter().collect();
    Some(pack_list(values.iter().map(|value| value.as_ref().as_bytes())))
}

pub(crate) fn text_map<V: AsRef<[u8]>>(values: &BTreeMap<String, V>) -> Option<Bytes> {
    Some(pack_map(
        &CqlType::TEXT,
        values.iter().map(|(key, value)| (key.as_bytes(), value.as_ref())),
    ))
}
