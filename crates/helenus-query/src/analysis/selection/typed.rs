//! Selectors typed for their receivers (Cassandra's `Selector.Factory`).

pub(crate) mod constructed;

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::{self, CellAttribute};
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};

use super::packed_row;
use super::selectable::{Selectable, attribute_type, resolve};
use crate::analysis::assignable::Assignable;
use crate::analysis::functions::{self, AggregateFunction, Function, ScalarFunction};
use crate::analysis::terms::{Term, unqualified};
use crate::analysis::{PlanContext, mask};
use crate::response::ColumnSpec;
use crate::schema::{Column, Table};
use constructed::field_of;

/// A selector of a known type.
#[derive(Debug)]
pub(crate) struct Typed {
    pub node: Node,
    pub ty: CqlType,
    /// The name of the selector's column in the result.
    pub name: String,
}

/// The computation of a selector's value. Terms and aggregates are given by their indexes in [`Parts`].
#[derive(Debug)]
pub(crate) enum Node {
    /// Index in [`Table::columns`].
    Column(usize),
    /// The column with its mask, for roles without the permission to see its values.
    Masked {
        place: usize,
        function: Arc<dyn ScalarFunction>,
        arguments: Vec<Option<Bytes>>,
    },
    Term(usize),
    Attribute {
        attribute: CellAttribute,
        selected: Box<Typed>,
    },
    /// Columns of a packed row, by their indexes.
    PackedRow {
        columns: Arc<[usize]>,
        /// Name of a column that the role may not see. `None` if the role may see all of them.
        masked: Option<String>,
    },
    Scalar {
        function: Arc<dyn ScalarFunction>,
        args: Vec<Typed>,
    },
    Aggregate(usize),
    Field {
        receiver: Box<Typed>,
        field: usize,
    },
    Element {
        receiver: Box<Typed>,
        element: usize,
    },
    Slice {
        receiver: Box<Typed>,
        from: Option<usize>,
        to: Option<usize>,
    },
    List(Vec<Typed>),
    Set {
        items: Vec<Typed>,
        element: CqlType,
    },
    Map {
        entries: Vec<(Typed, Typed)>,
        key: CqlType,
    },
    Tuple(Vec<Typed>),
    /// Fields in the order of the type. Omitted fields are null.
    UserType(Vec<Option<Typed>>),
    Vector {
        items: Vec<Typed>,
        element: CqlType,
    },
}

/// A term of the select clause, and its context for messages about null.
#[derive(Debug)]
pub(crate) struct BoundTerm {
    pub term: Term,
    /// The collection from which the term selects an element or slice. `None` for other terms.
    pub element_of: Option<String>,
    pub is_slice: bool,
    /// The function that takes the term as an argument. `None` for other terms.
    pub argument_of: Option<String>,
}

/// An aggregate of the select clause.
#[derive(Debug)]
pub(crate) struct AggregateCall {
    pub function: Arc<dyn AggregateFunction>,
    pub args: Vec<Typed>,
}

/// The parts that the selectors of a statement share.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub terms: Vec<BoundTerm>,
    pub aggregates: Vec<AggregateCall>,
    /// Indexes of the columns that are read, in the order of their first use.
    pub columns: Vec<usize>,
    /// Indexes of those columns whose write times or times to live are read.
    pub attribute_columns: Vec<usize>,
    /// The columns of the packed rows that are selected.
    pub packed_rows: Vec<Arc<[usize]>>,
}

/// Types the selectors of one statement.
pub(crate) struct SelectorTypeChecker<'c, 's, 't> {
    pub ctx: &'c mut PlanContext<'s>,
    pub table: &'t Table,
    pub parts: Parts,
}

fn cannot_infer(selectable: &Selectable) -> CqlError {
    CqlError::invalid(format!(
        "Cannot infer type for term {selectable} in selection clause (try using a cast to force a type)"
    ))
}

fn names(items: &[Typed]) -> String {
    items
        .iter()
        .map(|item| item.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn add_once(places: &mut Vec<usize>, place: usize) {
    if !places.contains(&place) {
        places.push(place);
    }
}

impl SelectorTypeChecker<'_, '_, '_> {
    /// Types a selector; `expected` is the type of its receiver, if the type is known.
    pub fn typed(&mut self, selectable: &Selectable, expected: Option<&CqlType>) -> Result<Typed, CqlError> {
        match selectable {
            Selectable::Column { place, column } => {
                add_once(&mut self.parts.columns, *place);
                Ok(Typed {
                    node: self.column(*place, column)?,
                    ty: column.ty.clone(),
                    name: column.name.clone(),
                })
            }
            Selectable::Term(term) => self.term(selectable, term, expected),
            Selectable::Attribute {
                attribute,
                place,
                column,
                selected,
            } => self.attribute(*attribute, *place, column, selected, expected),
            Selectable::PackedRow(columns) => Ok(self.packed_row(columns)),
            Selectable::Call { function, args } => self.call(function, args),
            Selectable::Cast { arg, ty } => self.cast(arg, *ty),
            Selectable::Field { receiver, field } => self.field(receiver, field),
            Selectable::Element { receiver, element } => self.element(selectable, receiver, element),
            Selectable::Slice { receiver, from, to } => {
                self.slice(selectable, receiver, from.as_ref(), to.as_ref(), expected)
            }
            Selectable::TypeHint {
                name,
                ty,
                selectable: inner,
            } => self.hint(selectable, name, ty, inner),
            Selectable::ParenthesesOrTuple(items) => self.parentheses(selectable, items, expected),
            Selectable::List(items) => self.list(selectable, items, expected),
            Selectable::Set(items) => self.set(selectable, items, expected),
            Selectable::MapOrUserType(entries) => self.map_or_user_type(selectable, entries, expected),
        }
    }

    pub(super) fn column(&self, place: usize, column: &Column) -> Result<Node, CqlError> {
        let Some(mask) = column.mask.as_deref().filter(|_| self.ctx.masks) else {
            return Ok(Node::Column(place));
        };
        let arguments = mask.arguments.iter().map(|(_, value)| value.clone());
        Ok(Node::Masked {
            place,
            function: mask::function(self.ctx.schema, &column.ty, mask)?,
            arguments: arguments.collect(),
        })
    }

    fn spec(&self, name: &str, ty: CqlType) -> ColumnSpec {
        ColumnSpec::new(self.table.keyspace.as_str(), self.table.name.as_str(), name, ty)
    }

    fn add_term(&mut self, term: &ast::Term, spec: &ColumnSpec) -> Result<usize, CqlError> {
        let term = Term::prepare(self.ctx, term, spec)?;
        self.parts.terms.push(BoundTerm {
            term,
            element_of: None,
            is_slice: false,
            argument_of: None,
        });
        Ok(self.parts.terms.len() - 1)
    }

    fn term(
        &mut self,
        selectable: &Selectable,
        term: &ast::Term,
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let ty = expected.cloned().ok_or_else(|| cannot_infer(selectable))?;
        let place = self.add_term(term, &self.spec("[selection]", ty.clone()))?;
        Ok(Typed {
            node: Node::Term(place),
            ty,
            name: term.to_string(),
        })
    }

    fn attribute(
        &mut self,
        attribute: CellAttribute,
        place: usize,
        column: &Column,
        selected: &Selectable,
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        if column.is_primary_key() {
            return Err(CqlError::invalid(format!(
                "Cannot use selection function {} on PRIMARY KEY part {}",
                attribute.name(),
                column.name
            )));
        }
        // Timestamps and times to live are those of the stored cells, not of masks.
        let masks = std::mem::replace(&mut self.ctx.masks, false);
        let selected = self.typed(selected, expected);
        self.ctx.masks = masks;
        let selected = selected?;
        add_once(&mut self.parts.columns, place);
        add_once(&mut self.parts.attribute_columns, place);
        let ty = attribute_type(attribute, selected.ty.is_multicell());
        let name = format!("{}({})", attribute.name(), selected.name);
        Ok(Typed {
            node: Node::Attribute {
                attribute,
                selected: Box::new(selected),
            },
            ty,
            name,
        })
    }

    fn packed_row(&mut self, columns: &[(usize, Arc<Column>)]) -> Typed {
        let masks = self.ctx.masks;
        let masked = columns.iter().find(|(_, column)| masks && column.mask.is_some());
        for (place, _) in columns {
            add_once(&mut self.parts.columns, *place);
        }
        let places: Arc<[usize]> = columns.iter().map(|(place, _)| *place).collect();
        self.parts.packed_rows.push(places.clone());
        Typed {
            node: Node::PackedRow {
                columns: places,
                masked: masked.map(|(_, column)| column.name.clone()),
            },
            ty: CqlType::BLOB,
            name: packed_row::column_name(columns),
        }
    }

    fn typed_args(&mut self, args: &[Selectable], types: &[CqlType]) -> Result<Vec<Typed>, CqlError> {
        args.iter()
            .zip(types)
            .map(|(arg, ty)| self.typed(arg, Some(ty)))
            .collect()
    }

    fn call(&mut self, function: &Function, args: &[Selectable]) -> Result<Typed, CqlError> {
        let aggregates_before = self.parts.aggregates.len();
        let args = self.typed_args(args, function.arg_types())?;
        self.called(function, args, aggregates_before)
    }

    fn called(
        &mut self,
        function: &Function,
        args: Vec<Typed>,
        aggregates_before: usize,
    ) -> Result<Typed, CqlError> {
        for arg in &args {
            if let Node::Term(place) = arg.node
                && let Some(term) = self.parts.terms.get_mut(place)
            {
                term.argument_of = Some(unqualified(function.name()).to_owned());
            }
        }
        let arg_names: Vec<String> = args.iter().map(|arg| arg.name.clone()).collect();
        let (name, ty) = (function.column_name(&arg_names), function.return_type().clone());
        let node = match function {
            Function::Scalar(function) => Node::Scalar {
                function: function.clone(),
                args,
            },
            Function::Aggregate(_) if self.parts.aggregates.len() > aggregates_before => {
                return Err(CqlError::invalid(
                    "aggregate functions cannot be used as arguments of aggregate functions",
                ));
            }
            Function::Aggregate(function) => {
                self.parts.aggregates.push(AggregateCall {
                    function: function.clone(),
                    args,
                });
                Node::Aggregate(self.parts.aggregates.len() - 1)
            }
        };
        Ok(Typed { node, ty, name })
    }

    fn cast(&mut self, arg: &Selectable, to: NativeType) -> Result<Typed, CqlError> {
        let aggregates_before = self.parts.aggregates.len();
        let typed = self.typed(arg, None)?;
        if typed.ty == CqlType::Native(to) && !arg.is_reversed_column() {
            return Ok(typed);
        }
        let name = functions::cast_function(to);
        match resolve(self.ctx, self.table, &name, std::slice::from_ref(arg))? {
            Some(function) => self.called(&function, vec![typed], aggregates_before),
            None => {
                let first = self
                    .parts
                    .columns
                    .first()
                    .and_then(|place| self.table.columns.get(*place));
                let column = first.map_or(typed.name.as_str(), |column| column.name.as_str());
                Err(CqlError::invalid(format!(
                    "{column} cannot be cast to {}",
                    to.name()
                )))
            }
        }
    }

    fn field(&mut self, receiver: &Selectable, field: &str) -> Result<Typed, CqlError> {
        let expected = match receiver {
            Selectable::ParenthesesOrTuple(items) => items.first().and_then(|item| item.exact_type(self.ctx)),
            _ => None,
        };
        let selected = self.typed(receiver, expected.as_ref())?;
        let CqlType::Udt { definition, .. } = &selected.ty else {
            return Err(CqlError::invalid(format!(
                "Invalid field selection: {receiver} of type {} is not a user type",
                selected.ty
            )));
        };
        let found = definition
            .field_index(field)
            .and_then(|at| Some((at, definition.fields.get(at)?)));
        let Some((at, definition)) = found else {
            return Err(CqlError::invalid(format!(
                "{receiver} of type {} has no field {field}",
                selected.ty
            )));
        };
        let (ty, name) = (definition.ty.clone(), format!("{}.{field}", selected.name));
        Ok(Typed {
            node: Node::Field {
                receiver: Box::new(selected),
                field: at,
            },
            ty,
            name,
        })
    }

    /// Returns the receiver of an element's key, or of a slice's bound.
    fn key_spec(&self, receiver: &Selectable, typed: &Typed, kind: &str) -> Result<ColumnSpec, CqlError> {
        let (prefix, ty) = match &typed.ty {
            CqlType::Set { element, .. } => ("value", element),
            CqlType::Map { key, .. } => ("key", key),
            _ => {
                return Err(CqlError::invalid(format!(
                    "{kind} selection is only allowed on sets and maps, but {receiver} is a list"
                )));
            }
        };
        Ok(self.spec(&format!("{prefix}({})", typed.name), ty.as_ref().clone()))
    }

    fn element(
        &mut self,
        selectable: &Selectable,
        receiver: &Selectable,
        element: &ast::Term,
    ) -> Result<Typed, CqlError> {
        let typed = self.typed(receiver, None)?;
        let (CqlType::Set { element: ty, .. }
        | CqlType::Map { value: ty, .. }
        | CqlType::List { element: ty, .. }) = typed.ty.clone()
        else {
            return Err(CqlError::invalid(format!(
                "Invalid element selection: {receiver} is of type {} is not a collection",
                typed.ty
            )));
        };
        let spec = self.key_spec(receiver, &typed, "Element")?;
        let place = self.key_term(element, &spec, &typed.name, false)?;
        let node = Node::Element {
            receiver: Box::new(typed),
            element: place,
        };
        Ok(Typed {
            node,
            ty: ty.as_ref().clone(),
            name: selectable.to_string(),
        })
    }

    fn key_term(
        &mut self,
        term: &ast::Term,
        spec: &ColumnSpec,
        element_of: &str,
        is_slice: bool,
    ) -> Result<usize, CqlError> {
        let place = self.add_term(term, spec)?;
        if let Some(bound) = self.parts.terms.get_mut(place) {
            bound.element_of = Some(element_of.to_owned());
            bound.is_slice = is_slice;
        }
        Ok(place)
    }

    fn slice(
        &mut self,
        selectable: &Selectable,
        receiver: &Selectable,
        from: Option<&ast::Term>,
        to: Option<&ast::Term>,
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let typed = self.typed(receiver, expected)?;
        if !typed.ty.is_collection() {
            return Err(CqlError::invalid(format!(
                "Invalid slice selection: {receiver} of type {} is not a collection",
                typed.ty
            )));
        }
        let spec = self.key_spec(receiver, &typed, "Slice")?;
        let mut bound = |term: Option<&ast::Term>| {
            term.map(|term| self.key_term(term, &spec, &typed.name, true))
                .transpose()
        };
        let (from, to) = (bound(from)?, bound(to)?);
        let ty = typed.ty.clone();
        let node = Node::Slice {
            receiver: Box::new(typed),
            from,
            to,
        };
        Ok(Typed {
            node,
            ty,
            name: selectable.to_string(),
        })
    }

    fn hint(
        &mut self,
        selectable: &Selectable,
        name: &str,
        ty: &CqlType,
        inner: &Selectable,
    ) -> Result<Typed, CqlError> {
        let spec = self.spec(&selectable.to_string(), ty.clone());
        if let (Selectable::MapOrUserType(entries), CqlType::Udt { definition, .. }) = (inner, ty) {
            entries
                .iter()
                .try_for_each(|entry| field_of(entry, definition).map(drop))?;
        } else if let Selectable::MapOrUserType(entries) = inner {
            // If the type is no user type, the entries are those of a map, whose keys are columns.
            entries
                .iter()
                .try_for_each(|entry| entry.key().map(drop).map_err(CqlError::clone))?;
        }
        if !inner.test(self.ctx, &spec).is_assignable() {
            return Err(CqlError::invalid(format!(
                "Cannot assign value {selectable} to {} of type {ty}",
                spec.name
            )));
        }
        let typed = self.typed(inner, Some(ty))?;
        Ok(Typed {
            node: typed.node,
            ty: ty.clone(),
            name: format!("({name}){}", typed.name),
        })
    }

    fn type_of(&self, selectable: &Selectable, expected: Option<&CqlType>) -> Result<CqlType, CqlError> {
        let exact = selectable.exact_type(self.ctx);
        exact
            .or_else(|| expected.cloned())
            .ok_or_else(|| cannot_infer(selectable))
    }
}
