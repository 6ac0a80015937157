//! Assignability of values to types (Cassandra's `AssignmentTestable`, and `AbstractType.isCompatibleWith` and `isValueCompatibleWith`).

use crate::types::{CqlType, NativeType};

/// The fit of a value for a receiver, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignment {
    /// The receiver's type.
    ExactMatch,
    /// Another type, whose values are also values of the receiver's type or can be read as such.
    WeaklyAssignable,
    NotAssignable,
}

impl Assignment {
    pub fn is_assignable(self) -> bool {
        self != Assignment::NotAssignable
    }

    pub fn is_exact(self) -> bool {
        self == Assignment::ExactMatch
    }

    /// Returns the worst of the results. Without results, returns an exact match.
    pub fn worst(results: impl IntoIterator<Item = Assignment>) -> Assignment {
        results.into_iter().max().unwrap_or(Assignment::ExactMatch)
    }
}

/// Returns the fit of a value of type `ty` for a receiver (`AbstractType.testAssignment`).
pub fn test_assignment(ty: &CqlType, receiver: &CqlType) -> Assignment {
    let frozen_value = is_freezable(ty) && !ty.is_multicell();
    let frozen_receiver;
    let receiver = if frozen_value {
        frozen_receiver = receiver.freeze();
        &frozen_receiver
    } else {
        receiver
    };
    if ty == receiver {
        Assignment::ExactMatch
    } else if is_value_compatible_with(receiver, ty) {
        Assignment::WeaklyAssignable
    } else {
        Assignment::NotAssignable
    }
}

fn is_freezable(ty: &CqlType) -> bool {
    ty.is_collection() || matches!(ty, CqlType::Udt { .. })
}

/// Returns true if values of `previous` are values of `ty` in the same order (`AbstractType.isCompatibleWith`). A column may then change
/// from `previous` to `ty`.
pub fn is_compatible_with(ty: &CqlType, previous: &CqlType) -> bool {
    use NativeType as N;
    if ty == previous {
        return true;
    }
    match (ty, previous) {
        (CqlType::Native(N::Blob), CqlType::Native(N::Ascii | N::Text))
        | (CqlType::Native(N::Text), CqlType::Native(N::Ascii)) => true,
        (CqlType::List { .. }, CqlType::List { .. })
        | (CqlType::Set { .. }, CqlType::Set { .. })
        | (CqlType::Map { .. }, CqlType::Map { .. }) => collections_compatible(ty, previous, true),
        _ => match (field_types(ty), field_types(previous)) {
            (Some(new), Some(old)) => {
                new.len() >= old.len()
                    && new
                        .iter()
                        .zip(&old)
                        .all(|(new, old)| is_compatible_with(new, old))
            }
            _ => false,
        },
    }
}

/// Returns true if values of `previous` are values of `ty`, in any order (`AbstractType.isValueCompatibleWith`).
pub fn is_value_compatible_with(ty: &CqlType, previous: &CqlType) -> bool {
    use NativeType as N;
    if ty == previous {
        return true;
    }
    match (ty, previous) {
        (CqlType::Native(N::Blob), _) => true,
        (CqlType::Native(new), CqlType::Native(old)) => matches!(
            (new, old),
            (N::Text, N::Ascii)
                | (N::Bigint, N::Timestamp)
                | (N::Timestamp, N::Bigint)
                | (N::Time, N::Bigint)
                | (N::Date, N::Int)
                | (N::Varint, N::Int | N::Bigint | N::Timestamp)
                | (N::Uuid, N::Timeuuid)
        ),
        (CqlType::List { .. }, CqlType::List { .. })
        | (CqlType::Set { .. }, CqlType::Set { .. })
        | (CqlType::Map { .. }, CqlType::Map { .. }) => collections_compatible(ty, previous, false),
        (CqlType::Udt { definition: new, .. }, CqlType::Udt { definition: old, .. }) => {
            ty.is_multicell() == previous.is_multicell()
                && new.keyspace == old.keyspace
                && new.fields.len() >= old.fields.len()
                && new
                    .fields
                    .iter()
                    .zip(&old.fields)
                    .all(|(new, old)| is_compatible_with(&new.ty, &old.ty))
        }
        (CqlType::Tuple(new), _) => field_types(previous).is_some_and(|old| {
            new.len() >= old.len()
                && new
                    .iter()
                    .zip(&old)
                    .all(|(new, old)| is_value_compatible_with(new, old))
        }),
        _ => false,
    }
}

fn field_types(ty: &CqlType) -> Option<Vec<&CqlType>> {
    match ty {
        CqlType::Tuple(elements) => Some(elements.iter().collect()),
        CqlType::Udt { definition, .. } => Some(definition.fields.iter().map(|field| &field.ty).collect()),
        _ => None,
    }
}

/// Returns true if values of the collection `previous` are values of `ty`, a collection of the same kind. The elements of a set and the
/// keys of a map must keep their order. Other parts of frozen collections must stay valid values, and also keep their order if `strict`.
fn collections_compatible(ty: &CqlType, previous: &CqlType, strict: bool) -> bool {
    if ty.is_multicell() != previous.is_multicell() {
        return false;
    }
    let values = |new: &CqlType, old: &CqlType| match (ty.is_multicell(), strict) {
        (true, _) => {
            is_value_compatible_with(new, old)
                && new.fixed_len() == old.fixed_len()
                && new.is_multicell() == old.is_multicell()
        }
        (false, true) => is_compatible_with(new, old),
        (false, false) => is_value_compatible_with(new, old),
    };
    match (ty, previous) {
        (CqlType::List { element: new, .. }, CqlType::List { element: old, .. }) => values(new, old),
        (CqlType::Set { element: new, .. }, CqlType::Set { element: old, .. }) => {
            is_compatible_with(new, old)
        }
        (
            CqlType::Map {
                key: new_key,
                value: new,
                ..
            },
            CqlType::Map {
                key: old_key,
                value: old,
                ..
            },
        ) => is_compatible_with(new_key, old_key) && values(new, old),
        _ => false,
    }
}
