//! Values of selectors, computed from a row and the states of the aggregates.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;
use helenus_cql::ast::CellAttribute;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::{
    self, compare, pack_list, pack_set, pack_tuple, pack_vector, read_elements, read_tuple,
};

use super::cell_times::{self, CellTimes};
use super::packed_row;
use super::typed::{Node, Typed};
use crate::analysis::EvalContext;
use crate::analysis::functions::AggregateState;
use crate::rows::RowView;

/// The inputs of selectors.
pub(crate) struct Evaluation<'e> {
    pub ctx: EvalContext<'e>,
    /// The values of the statement's terms.
    pub terms: &'e [Option<Bytes>],
    /// The row. `None` if the group has no row.
    pub row: Option<&'e dyn RowView>,
    pub aggregates: &'e [Box<dyn AggregateState>],
}

fn damaged(reason: String) -> CqlError {
    CqlError::Server(reason)
}

fn null_inside() -> CqlError {
    CqlError::invalid("null is not supported inside collections")
}

impl Evaluation<'_> {
    /// Returns the value of a selector.
    pub fn value(&self, typed: &Typed) -> Result<Option<Bytes>, CqlError> {
        match &typed.node {
            Node::Column(place) => Ok(self.row.and_then(|row| row.value(*place))),
            Node::Masked {
                place,
                function,
                arguments,
            } => {
                let Some(row) = self.row else { return Ok(None) };
                let mut args = vec![row.value(*place)];
                args.extend_from_slice(arguments);
                function.call(&args, &self.ctx)
            }
            Node::PackedRow {
                masked: Some(column), ..
            } => Err(packed_row::masked_error(column)),
            Node::PackedRow {
                columns,
                masked: None,
            } => Ok(self.row.and_then(|row| row.packed(columns))),
            Node::Term(place) => Ok(self.term(*place)),
            Node::Attribute { attribute, selected } => {
                let stamps = self.stamps(*attribute, selected)?;
                let stamps = if *attribute == CellAttribute::MaxWriteTime {
                    stamps.max()
                } else {
                    stamps
                };
                Ok(stamps.encode(*attribute))
            }
            Node::Scalar { function, args } => {
                let args: Vec<Option<Bytes>> = args
                    .iter()
                    .map(|arg| self.value(arg))
                    .collect::<Result<_, CqlError>>()?;
                function.call(&args, &self.ctx)
            }
            Node::Aggregate(place) => self
                .aggregates
                .get(*place)
                .map_or(Ok(None), |state| state.result()),
            Node::Field { receiver, field } => {
                let Some(value) = self.value(receiver)? else {
                    return Ok(None);
                };
                let fields = read_tuple(&receiver.ty, &value).map_err(damaged)?;
                Ok(fields
                    .get(*field)
                    .copied()
                    .flatten()
                    .map(|field| value.slice_ref(field)))
            }
            Node::Element { receiver, element } => self.element(receiver, *element),
            Node::Slice { receiver, from, to } => self.slice(receiver, *from, *to),
            Node::List(items) => {
                let items = items.iter().map(|item| self.value(item));
                Ok(Some(value::pack::pack_nullable_list(
                    items.collect::<Result<Vec<_>, _>>()?,
                )))
            }
            Node::Set { items, element } => Ok(Some(pack_set(element, self.non_null(items)?))),
            Node::Vector { items, element } => {
                let values = self.non_null(items)?;
                match value::may_be_empty_in_vector(element) || values.iter().all(|value| !value.is_empty()) {
                    true => Ok(Some(pack_vector(element, values))),
                    false => Err(null_inside()),
                }
            }
            Node::Map { entries, key } => {
                let mut values = Vec::with_capacity(entries.len());
                for (entry_key, entry_value) in entries {
                    values.push((self.required(entry_key)?, self.value(entry_value)?));
                }
                Ok(Some(value::pack::pack_nullable_map(key, values)))
            }
            Node::Tuple(items) => {
                let items: Vec<Option<Bytes>> = items.iter().map(|item| self.value(item)).collect::<Result<
                    _,
                    CqlError,
                >>(
                )?;
                Ok(Some(pack_tuple(items)))
            }
            Node::UserType(fields) => {
                let value = |field: &Option<Typed>| match field {
                    Some(field) => self.value(field),
                    None => Ok(None),
                };
                let fields: Vec<Option<Bytes>> = fields.iter().map(value).collect::<Result<_, CqlError>>()?;
                Ok(Some(pack_tuple(fields)))
            }
        }
    }

    fn term(&self, place: usize) -> Option<Bytes> {
        self.terms.get(place).cloned().flatten()
    }

    fn required(&self, typed: &Typed) -> Result<Bytes, CqlError> {
        self.value(typed)?.ok_or_else(null_inside)
    }

    fn non_null(&self, items: &[Typed]) -> Result<Vec<Bytes>, CqlError> {
        items.iter().map(|item| self.required(item)).collect()
    }

    fn element(&self, receiver: &Typed, element: usize) -> Result<Option<Bytes>, CqlError> {
        let (Some(value), Some(key)) = (self.value(receiver)?, self.term(element)) else {
            return Ok(None);
        };
        let keys = Keys::of(&receiver.ty, &value)?;
        Ok(keys
            .position(&key)
            .and_then(|at| keys.values.get(at))
            .map(|found| value.slice_ref(found)))
    }

    fn slice(
        &self,
        receiver: &Typed,
        from: Option<usize>,
        to: Option<usize>,
    ) -> Result<Option<Bytes>, CqlError> {
        let Some(value) = self.value(receiver)? else {
            return Ok(None);
        };
        let keys = Keys::of(&receiver.ty, &value)?;
        let range = keys.range(self.bound(from).as_ref(), self.bound(to).as_ref());
        if range.is_empty() && receiver.ty.is_multicell() {
            return Ok(None);
        }
        let (keys, values) = (part(&keys.keys, &range), part(&keys.values, &range));
        Ok(Some(match &receiver.ty {
            CqlType::Map { .. } => {
                let entries: Vec<(&[u8], &[u8])> = keys.into_iter().zip(values).collect();
                value::pack::pack_map_keeping_order(&entries)
            }
            _ => pack_list(keys),
        }))
    }

    fn bound(&self, term: Option<usize>) -> Option<Bytes> {
        self.term(term?)
    }

    /// Returns the write times or times to live of a selected column, or of fields, elements and slices of one.
    fn stamps(&self, attribute: CellAttribute, typed: &Typed) -> Result<CellTimes, CqlError> {
        match &typed.node {
            Node::Column(place) => Ok(self.column_stamps(attribute, *place, &typed.ty)),
            Node::Field { receiver, field } => match self.value(typed)? {
                Some(_) => Ok(self.stamps(attribute, receiver)?.get(*field)),
                None => Ok(CellTimes::None),
            },
            Node::Element { receiver, element } => {
                let (Some(value), Some(key)) = (self.value(receiver)?, self.term(*element)) else {
                    return Ok(CellTimes::None);
                };
                match Keys::of(&receiver.ty, &value)?.position(&key) {
                    Some(position) => Ok(self.stamps(attribute, receiver)?.get(position)),
                    None => Ok(CellTimes::None),
                }
            }
            Node::Slice { receiver, from, to } => {
                let Some(value) = self.value(receiver)? else {
                    return Ok(CellTimes::None);
                };
                let keys = Keys::of(&receiver.ty, &value)?;
                let range = keys.range(self.bound(*from).as_ref(), self.bound(*to).as_ref());
                Ok(self.stamps(attribute, receiver)?.slice(range))
            }
            _ => Ok(CellTimes::None),
        }
    }

    fn column_stamps(&self, attribute: CellAttribute, place: usize, ty: &CqlType) -> CellTimes {
        let cells = self.row.map(|row| row.cells(place)).unwrap_or_default();
        if !ty.is_multicell() {
            return match cells.first() {
                Some(cell) => CellTimes::Single(cell_times::of_cell(attribute, cell)),
                None => CellTimes::Single(None),
            };
        }
        if cells.is_empty() {
            return CellTimes::None;
        }
        let CqlType::Udt { definition, .. } = ty else {
            return CellTimes::Multiple(
                cells
                    .iter()
                    .map(|cell| cell_times::of_cell(attribute, cell))
                    .collect(),
            );
        };
        let mut fields = vec![None; definition.fields.len()];
        for cell in &cells {
            let path = cell
                .path
                .as_deref()
                .and_then(|path| <[u8; 2]>::try_from(path).ok());
            if let Some(slot) = path.and_then(|path| fields.get_mut(usize::from(u16::from_be_bytes(path)))) {
                *slot = cell_times::of_cell(attribute, cell);
            }
        }
        CellTimes::Multiple(fields)
    }
}

fn part<'v>(all: &[&'v [u8]], range: &Range<usize>) -> Vec<&'v [u8]> {
    all.get(range.clone()).unwrap_or_default().to_vec()
}

/// The keys and values of a set or map. The values of a set are its keys.
struct Keys<'v> {
    keys: Vec<&'v [u8]>,
    values: Vec<&'v [u8]>,
    key_type: CqlType,
}

impl<'v> Keys<'v> {
    fn of(ty: &CqlType, value: &'v [u8]) -> Result<Keys<'v>, CqlError> {
        let elements = read_elements(ty, value).map_err(damaged)?;
        Ok(match ty {
            CqlType::Map { key, .. } => {
                let (pairs, _) = elements.as_chunks::<2>();
                Keys {
                    keys: pairs.iter().map(|[key, _]| *key).collect(),
                    values: pairs.iter().map(|[_, value]| *value).collect(),
                    key_type: key.as_ref().clone(),
                }
            }
            CqlType::Set { element, .. } => Keys {
                keys: elements.clone(),
                values: elements,
                key_type: element.as_ref().clone(),
            },
            other => return Err(CqlError::Server(format!("elements of a {other} have no keys"))),
        })
    }

    fn position(&self, key: &[u8]) -> Option<usize> {
        self.keys
            .iter()
            .position(|other| compare(&self.key_type, other, key) == Ordering::Equal)
    }

    /// Returns the positions of the keys between two bounds, both included.
    fn range(&self, from: Option<&Bytes>, to: Option<&Bytes>) -> Range<usize> {
        let before = |bound: &Bytes| {
            self.keys
                .partition_point(|key| compare(&self.key_type, key, bound).is_lt())
        };
        let through = |bound: &Bytes| {
            self.keys
                .partition_point(|key| compare(&self.key_type, key, bound).is_le())
        };
        from.map_or(0, before)..to.map_or(self.keys.len(), through)
    }
}
