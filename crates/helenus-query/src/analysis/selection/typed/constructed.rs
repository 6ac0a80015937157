//! Selectors that construct tuples, collections, vectors and values of user types.

use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, UserType, UserTypeField};

use super::{Node, SelectorTypeChecker, Typed, cannot_infer, names};
use crate::analysis::selection::selectable::{Entry, Selectable};

/// Returns the field that an entry of a user type names.
pub(crate) fn field_of<'d>(
    entry: &Entry,
    definition: &'d UserType,
) -> Result<(usize, &'d UserTypeField), CqlError> {
    let type_name = &definition.name;
    let Some(field) = entry.field() else {
        let key = entry.key().map(ToString::to_string).unwrap_or_default();
        return Err(CqlError::invalid(format!(
            "{key} is not a valid field identifier of type {type_name} "
        )));
    };
    let position = definition.field_index(field);
    position
        .and_then(|at| Some((at, definition.fields.get(at)?)))
        .ok_or_else(|| {
            CqlError::invalid(format!(
                "Unknown field '{field}' in value of user defined type {type_name}"
            ))
        })
}

fn unsupported(ty: &CqlType) -> CqlError {
    CqlError::invalid(format!("Unsupported target type: {ty}"))
}

impl SelectorTypeChecker<'_, '_, '_> {
    pub(crate) fn parentheses(
        &mut self,
        selectable: &Selectable,
        items: &[Selectable],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let ty = self.type_of(selectable, expected)?;
        match (&ty, items) {
            (CqlType::Tuple(types), items) => {
                let items = self.typed_args(items, types)?;
                let name = format!("({})", names(&items));
                Ok(Typed {
                    node: Node::Tuple(items),
                    ty,
                    name,
                })
            }
            (CqlType::Udt { definition, .. }, [_, _, ..]) => {
                let types: Vec<CqlType> = definition.fields.iter().map(|field| field.ty.clone()).collect();
                let items = self.typed_args(items, &types)?;
                let name = format!("({})", names(&items));
                Ok(Typed {
                    node: Node::Tuple(items),
                    ty,
                    name,
                })
            }
            (_, [only]) => {
                let inner = self.typed(only, expected)?;
                Ok(Typed {
                    name: format!("({})", inner.name),
                    ..inner
                })
            }
            _ => Err(CqlError::invalid(format!(
                "Invalid tuple type literal for {selectable} of type {ty}"
            ))),
        }
    }

    fn items(&mut self, items: &[Selectable], element: &CqlType) -> Result<Vec<Typed>, CqlError> {
        items.iter().map(|item| self.typed(item, Some(element))).collect()
    }

    pub(crate) fn list(
        &mut self,
        selectable: &Selectable,
        items: &[Selectable],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let ty = match expected {
            Some(CqlType::Vector { element, dimension }) => {
                if *dimension as usize != items.len() {
                    return Err(CqlError::invalid(format!(
                        "Unable to create a vector selector of type vector<{element}, {dimension}> from {} elements",
                        items.len()
                    )));
                }
                CqlType::vector(element.as_ref().clone(), *dimension)
            }
            expected => self.type_of(selectable, expected)?,
        };
        let (CqlType::Vector { element, .. } | CqlType::List { element, .. }) = &ty else {
            return Err(unsupported(&ty));
        };
        let items = self.items(items, element)?;
        let name = format!("[{}]", names(&items));
        let node = match &ty {
            CqlType::Vector { element, .. } => Node::Vector {
                items,
                element: element.as_ref().clone(),
            },
            _ => Node::List(items),
        };
        Ok(Typed { node, ty, name })
    }

    pub(crate) fn set(
        &mut self,
        selectable: &Selectable,
        items: &[Selectable],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let ty = self.type_of(selectable, expected)?;
        let (node, name) = match &ty {
            CqlType::Map { key, .. } => {
                let node = Node::Map {
                    entries: Vec::new(),
                    key: key.as_ref().clone(),
                };
                (node, "{}".to_owned())
            }
            CqlType::Set { element, .. } if **element == CqlType::DURATION => {
                let shown = CqlType::set(CqlType::DURATION, expected.is_none());
                return Err(CqlError::invalid(format!(
                    "Durations are not allowed inside sets: {shown}"
                )));
            }
            CqlType::Set { element, .. } => {
                let items = self.items(items, element)?;
                let name = format!("{{{}}}", names(&items));
                let element = element.as_ref().clone();
                (Node::Set { items, element }, name)
            }
            other => return Err(unsupported(other)),
        };
        Ok(Typed { node, ty, name })
    }

    pub(crate) fn map_or_user_type(
        &mut self,
        selectable: &Selectable,
        entries: &[Entry],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let ty = expected.cloned().ok_or_else(|| cannot_infer(selectable))?;
        match &ty {
            CqlType::Map { key, value, .. } => {
                if **key == CqlType::DURATION {
                    return Err(CqlError::invalid(format!(
                        "Durations are not allowed as map keys: {ty}"
                    )));
                }
                let mut typed = Vec::with_capacity(entries.len());
                for entry in entries {
                    let entry_key = entry.key().map_err(CqlError::clone)?;
                    typed.push((
                        self.typed(entry_key, Some(key))?,
                        self.typed(&entry.value, Some(value))?,
                    ));
                }
                let shown: Vec<String> = typed
                    .iter()
                    .map(|(key, value)| format!("{}: {}", key.name, value.name))
                    .collect();
                let node = Node::Map {
                    entries: typed,
                    key: key.as_ref().clone(),
                };
                Ok(Typed {
                    node,
                    name: format!("{{{}}}", shown.join(", ")),
                    ty,
                })
            }
            CqlType::Udt { .. } => self.user_type(entries, ty),
            other => Err(unsupported(other)),
        }
    }

    fn user_type(&mut self, entries: &[Entry], ty: CqlType) -> Result<Typed, CqlError> {
        let CqlType::Udt { definition, .. } = &ty else {
            return Err(CqlError::Server(format!("{ty} is no user type")));
        };
        let mut fields: Vec<Option<Typed>> = definition.fields.iter().map(|_| None).collect();
        let mut shown = Vec::new();
        for entry in entries {
            let (position, definition) = field_of(entry, definition)?;
            let field = &definition.name;
            let value = self.typed(&entry.value, Some(&definition.ty))?;
            shown.push(format!("{field}: {}", value.name));
            if let Some(slot) = fields.get_mut(position) {
                *slot = Some(value);
            }
        }
        Ok(Typed {
            node: Node::UserType(fields),
            name: format!("{{{}}}", shown.join(", ")),
            ty,
        })
    }
}
