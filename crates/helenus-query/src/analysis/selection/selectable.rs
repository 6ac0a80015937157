//! Selectors with resolved names and functions, but not yet typed for their receivers (Cassandra's `Selectable`).

use std::fmt;
use std::sync::Arc;

use helenus_cql::ast::{self, CellAttribute, FunctionName};
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{self, Assignment};

use super::packed_row;
use crate::analysis::PlanContext;
use crate::analysis::assignable::{Assignable, part_spec};
use crate::analysis::functions::{self, CallSite, Function};
use crate::analysis::restrictions::require_column;
use crate::analysis::terms::{RawTerm, common_type};
use crate::analysis::types::{qualified_type_name, resolve_type};
use crate::response::ColumnSpec;
use crate::schema::{Column, Table};

/// A selector whose names have been looked up in the table.
#[derive(Debug)]
pub(crate) enum Selectable {
    Column {
        place: usize,
        column: Arc<Column>,
    },
    Term(ast::Term),
    Attribute {
        attribute: CellAttribute,
        place: usize,
        column: Arc<Column>,
        selected: Box<Selectable>,
    },
    /// `packed_row(a, b)`: the row with its write times and TTLs, as `INSERT … ROWS` takes it.
    PackedRow(Vec<(usize, Arc<Column>)>),
    Call {
        function: Function,
        args: Vec<Selectable>,
    },
    Cast {
        arg: Box<Selectable>,
        ty: NativeType,
    },
    Field {
        receiver: Box<Selectable>,
        field: String,
    },
    Element {
        receiver: Box<Selectable>,
        element: ast::Term,
    },
    Slice {
        receiver: Box<Selectable>,
        from: Option<ast::Term>,
        to: Option<ast::Term>,
    },
    TypeHint {
        name: String,
        ty: CqlType,
        selectable: Box<Selectable>,
    },
    ParenthesesOrTuple(Vec<Selectable>),
    List(Vec<Selectable>),
    Set(Vec<Selectable>),
    MapOrUserType(Vec<Entry>),
}

/// An entry of `{a: b}`.
#[derive(Debug)]
pub(crate) struct Entry {
    left: Left,
    pub value: Selectable,
}

/// The left side of an entry.
#[derive(Debug)]
enum Left {
    /// A field of a user type or, in a map, a column. The error is that of an unknown column.
    Name(String, Result<Selectable, CqlError>),
    Key(Selectable),
}

impl Entry {
    /// Returns the name of a field. `None` if the left side can't be a field.
    pub fn field(&self) -> Option<&str> {
        match &self.left {
            Left::Name(name, _) => Some(name),
            Left::Key(_) => None,
        }
    }

    /// Returns the left side as a map's key.
    ///
    /// # Errors
    /// `Undefined column name …`.
    pub fn key(&self) -> Result<&Selectable, &CqlError> {
        match &self.left {
            Left::Name(_, column) => column.as_ref(),
            Left::Key(key) => Ok(key),
        }
    }
}

/// Looks up the names in a selector.
///
/// # Errors
/// `Undefined column name …`, `Unknown function '…'`, and those of function resolution.
pub(crate) fn prepare(
    ctx: &PlanContext<'_>,
    table: &Table,
    selector: &ast::Selector,
) -> Result<Selectable, CqlError> {
    use ast::Selector as S;
    let boxed = |selector: &ast::Selector| prepare(ctx, table, selector).map(Box::new);
    let all = |selectors: &[ast::Selector]| -> Result<Vec<Selectable>, CqlError> {
        selectors
            .iter()
            .map(|selector| prepare(ctx, table, selector))
            .collect()
    };
    Ok(match selector {
        S::Column(name) => {
            let (place, column) = column_of(table, name)?;
            Selectable::Column { place, column }
        }
        S::Term(term) => Selectable::Term(term.clone()),
        S::CountRows => count_rows(),
        S::CellAttribute {
            attribute,
            column,
            selected,
        } => {
            let (place, column) = column_of(table, column)?;
            Selectable::Attribute {
                attribute: *attribute,
                place,
                column,
                selected: boxed(selected)?,
            }
        }
        S::Function { name, args } if packed_row::is_called(name) => {
            Selectable::PackedRow(packed_row::columns(args, |name| column_of(table, name))?)
        }
        S::Function { name, args } => call(ctx, table, name, all(args)?)?,
        S::Operation {
            operator,
            left,
            right,
        } => {
            let name = FunctionName::native(operator.function_name());
            let args = vec![prepare(ctx, table, left)?, prepare(ctx, table, right)?];
            call(ctx, table, &name, args)?
        }
        S::Negation(arg) => call(
            ctx,
            table,
            &FunctionName::native("_negate"),
            vec![prepare(ctx, table, arg)?],
        )?,
        S::Cast { selector, ty } => Selectable::Cast {
            arg: boxed(selector)?,
            ty: *ty,
        },
        S::Field { receiver, field } => Selectable::Field {
            receiver: boxed(receiver)?,
            field: field.as_str().to_owned(),
        },
        S::Element { receiver, element } => Selectable::Element {
            receiver: boxed(receiver)?,
            element: element.clone(),
        },
        S::Slice { receiver, from, to } => Selectable::Slice {
            receiver: boxed(receiver)?,
            from: from.clone(),
            to: to.clone(),
        },
        S::TypeHint { ty, selector } => {
            let selectable = boxed(selector)?;
            let resolved = resolve_type(ctx.schema, &table.keyspace, ty)?.freeze();
            Selectable::TypeHint {
                name: qualified_type_name(ty, &table.keyspace),
                ty: resolved,
                selectable,
            }
        }
        S::ParenthesesOrTuple(selectors) => Selectable::ParenthesesOrTuple(all(selectors)?),
        S::List(selectors) => Selectable::List(all(selectors)?),
        S::Set(selectors) => Selectable::Set(all(selectors)?),
        S::MapOrUserType(entries) => {
            let entry = |(key, value): &(ast::Selector, ast::Selector)| {
                let left = match key {
                    S::Column(name) => Left::Name(name.as_str().to_owned(), prepare(ctx, table, key)),
                    _ => Left::Key(prepare(ctx, table, key)?),
                };
                let value = prepare(ctx, table, value)?;
                Ok(Entry { left, value })
            };
            Selectable::MapOrUserType(entries.iter().map(entry).collect::<Result<_, CqlError>>()?)
        }
    })
}

fn column_of(table: &Table, name: &ast::Ident) -> Result<(usize, Arc<Column>), CqlError> {
    let (place, _) = require_column(table, name)?;
    match table.columns.get(place) {
        Some(column) => Ok((place, column.clone())),
        None => Err(CqlError::Server(format!("column {name} is nowhere"))),
    }
}

fn count_rows() -> Selectable {
    Selectable::Call {
        function: Function::Aggregate(functions::count_rows()),
        args: Vec::new(),
    }
}

fn call(
    ctx: &PlanContext<'_>,
    table: &Table,
    name: &FunctionName,
    args: Vec<Selectable>,
) -> Result<Selectable, CqlError> {
    let is_native = name.keyspace.as_ref().is_none_or(|keyspace| keyspace == "system");
    if is_native
        && name.name == "count"
        && matches!(args.as_slice(), [Selectable::Term(ast::Term::Literal(_))])
    {
        return Ok(count_rows());
    }
    match resolve(ctx, table, name, &args)? {
        Some(function) => Ok(Selectable::Call { function, args }),
        None => Err(CqlError::invalid(format!("Unknown function '{name}'"))),
    }
}

/// Returns the function of a call in the select clause.
pub(crate) fn resolve(
    ctx: &PlanContext<'_>,
    table: &Table,
    name: &FunctionName,
    args: &[Selectable],
) -> Result<Option<Function>, CqlError> {
    let args: Vec<&dyn Assignable> = args.iter().map(|arg| arg as &dyn Assignable).collect();
    let site = CallSite {
        keyspace: &table.keyspace,
        table: &table.name,
        receiver: None,
    };
    functions::resolve(ctx, name, &args, site)
}

fn element_type(collection: &CqlType) -> Option<CqlType> {
    match collection {
        CqlType::Map { value: element, .. } | CqlType::Set { element, .. } => Some(element.as_ref().clone()),
        CqlType::List { .. } => Some(CqlType::TIMEUUID),
        _ => None,
    }
}

/// Returns the type of an attribute of a cell. For multi-cell values, it is a list.
pub(crate) fn attribute_type(attribute: CellAttribute, is_multicell: bool) -> CqlType {
    let single = match attribute {
        CellAttribute::Ttl => CqlType::INT,
        CellAttribute::WriteTime | CellAttribute::MaxWriteTime => CqlType::BIGINT,
    };
    if is_multicell && attribute != CellAttribute::MaxWriteTime {
        CqlType::list(single, true)
    } else {
        single
    }
}

impl Selectable {
    /// Returns true if `is_such` is true for a column that the selector reads.
    pub(crate) fn any_column(&self, is_such: &dyn Fn(&Column) -> bool) -> bool {
        let any = |items: &[Selectable]| items.iter().any(|item| item.any_column(is_such));
        match self {
            Selectable::Column { column, .. } | Selectable::Attribute { column, .. } => is_such(column),
            Selectable::Term(_) => false,
            Selectable::PackedRow(columns) => columns.iter().any(|(_, column)| is_such(column)),
            Selectable::Call { args: items, .. }
            | Selectable::ParenthesesOrTuple(items)
            | Selectable::List(items)
            | Selectable::Set(items) => any(items),
            Selectable::Cast { arg: inner, .. }
            | Selectable::TypeHint {
                selectable: inner, ..
            }
            | Selectable::Field { receiver: inner, .. }
            | Selectable::Element { receiver: inner, .. }
            | Selectable::Slice { receiver: inner, .. } => inner.any_column(is_such),
            Selectable::MapOrUserType(entries) => entries.iter().any(|entry| {
                let key = matches!(&entry.left, Left::Key(key) if key.any_column(is_such));
                key || entry.value.any_column(is_such)
            }),
        }
    }

    fn test_all(
        ctx: &PlanContext<'_>,
        items: &[Selectable],
        receiver: &ColumnSpec,
        ty: &CqlType,
    ) -> Assignment {
        if items.is_empty() {
            return Assignment::WeaklyAssignable;
        }
        let spec = part_spec(receiver, "", ty.clone());
        Assignment::worst(items.iter().map(|item| item.test(ctx, &spec)))
    }

    fn test_tuple(ctx: &PlanContext<'_>, items: &[Selectable], receiver: &ColumnSpec) -> Assignment {
        let types: Vec<&CqlType> = match &receiver.ty {
            CqlType::Tuple(types) => types.iter().collect(),
            CqlType::Udt { definition, .. } => definition.fields.iter().map(|field| &field.ty).collect(),
            _ => return Assignment::NotAssignable,
        };
        let fits = |(item, ty): (&Selectable, &&CqlType)| {
            let ty = *ty;
            item.test(ctx, &part_spec(receiver, "", ty.clone()))
                .is_assignable()
        };
        if items.len() <= types.len() && items.iter().zip(types.iter()).all(fits) {
            Assignment::WeaklyAssignable
        } else {
            Assignment::NotAssignable
        }
    }

    fn test_map(ctx: &PlanContext<'_>, entries: &[Entry], receiver: &ColumnSpec) -> Assignment {
        let CqlType::Map { key, value, .. } = &receiver.ty else {
            return Assignment::NotAssignable;
        };
        if entries.is_empty() {
            return Assignment::WeaklyAssignable;
        }
        let (key, value) = (
            part_spec(receiver, "", (**key).clone()),
            part_spec(receiver, "", (**value).clone()),
        );
        Assignment::worst(entries.iter().flat_map(|entry| {
            let tested = entry.key().map(|item| item.test(ctx, &key));
            [
                tested.unwrap_or(Assignment::NotAssignable),
                entry.value.test(ctx, &value),
            ]
        }))
    }

    fn test_user_type(ctx: &PlanContext<'_>, entries: &[Entry], receiver: &ColumnSpec) -> Assignment {
        let CqlType::Udt { definition, .. } = &receiver.ty else {
            return Assignment::NotAssignable;
        };
        let fits = |entry: &Entry| {
            let field = entry.field().and_then(|name| definition.field_index(name));
            let field = field.and_then(|position| definition.fields.get(position));
            field.is_some_and(|field| {
                entry
                    .value
                    .test(ctx, &part_spec(receiver, "", field.ty.clone()))
                    .is_assignable()
            })
        };
        if entries.iter().all(fits) {
            Assignment::WeaklyAssignable
        } else {
            Assignment::NotAssignable
        }
    }
}

impl Assignable for Selectable {
    fn is_reversed_column(&self) -> bool {
        matches!(self, Selectable::Column { column, .. } if column.is_reversed())
    }

    fn test(&self, ctx: &PlanContext<'_>, receiver: &ColumnSpec) -> Assignment {
        match self {
            Selectable::Term(term) => RawTerm(term).test(ctx, receiver),
            Selectable::List(items) => match &receiver.ty {
                CqlType::List { element, .. } | CqlType::Vector { element, .. } => {
                    Selectable::test_all(ctx, items, receiver, element)
                }
                _ => Assignment::NotAssignable,
            },
            Selectable::Set(items) => match &receiver.ty {
                CqlType::Set { element, .. } => Selectable::test_all(ctx, items, receiver, element),
                CqlType::Map { .. } if items.is_empty() => Assignment::WeaklyAssignable,
                _ => Assignment::NotAssignable,
            },
            Selectable::MapOrUserType(entries) => match &receiver.ty {
                CqlType::Udt { .. } => Selectable::test_user_type(ctx, entries, receiver),
                _ => Selectable::test_map(ctx, entries, receiver),
            },
            Selectable::ParenthesesOrTuple(items) => match (items.as_slice(), &receiver.ty) {
                ([_], CqlType::Tuple(_)) => Selectable::test_tuple(ctx, items, receiver),
                ([only], _) => only.test(ctx, receiver),
                _ => Selectable::test_tuple(ctx, items, receiver),
            },
            other => match other.exact_type(ctx) {
                Some(ty) => value::test_assignment(&ty, &receiver.ty),
                None => Assignment::NotAssignable,
            },
        }
    }

    #[allow(
        clippy::only_used_in_recursion,
        reason = "the trait's other implementors need it"
    )]
    fn exact_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType> {
        match self {
            Selectable::Column { column, .. } => Some(column.ty.clone()),
            Selectable::Term(_) | Selectable::MapOrUserType(_) => None,
            Selectable::Attribute {
                attribute, column, ..
            } => Some(attribute_type(*attribute, column.ty.is_multicell())),
            Selectable::PackedRow(_) => Some(CqlType::BLOB),
            Selectable::Call { function, .. } => Some(function.return_type().clone()),
            Selectable::Cast { ty, .. } => Some(CqlType::Native(*ty)),
            Selectable::Field { receiver, field } => match receiver.exact_type(ctx)? {
                CqlType::Udt { definition, .. } => {
                    Some(definition.fields.get(definition.field_index(field)?)?.ty.clone())
                }
                _ => None,
            },
            Selectable::Element { receiver, .. } => element_type(&receiver.exact_type(ctx)?),
            Selectable::Slice { receiver, .. } => receiver.exact_type(ctx).filter(|ty| ty.is_collection()),
            Selectable::TypeHint { ty, .. } => Some(ty.clone()),
            Selectable::ParenthesesOrTuple(items) if items.len() == 1 => None,
            Selectable::ParenthesesOrTuple(items) => {
                let types: Option<Vec<CqlType>> = items.iter().map(|item| item.exact_type(ctx)).collect();
                types.map(CqlType::tuple)
            }
            Selectable::List(items) => items
                .iter()
                .find_map(|item| item.exact_type(ctx))
                .map(|ty| CqlType::list(ty, true)),
            Selectable::Set(items) => items
                .iter()
                .find_map(|item| item.exact_type(ctx))
                .map(|ty| CqlType::set(ty, true)),
        }
    }

    fn compatible_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType> {
        match self {
            Selectable::Term(ast::Term::Literal(literal)) => Some(literal.kind.preferred_type(&literal.text)),
            Selectable::List(items) => common_type(items.iter().map(|item| item.compatible_type(ctx)))
                .map(|ty| CqlType::list(ty, true)),
            Selectable::Set(items) => common_type(items.iter().map(|item| item.compatible_type(ctx)))
                .map(|ty| CqlType::set(ty, true)),
            Selectable::ParenthesesOrTuple(items) if items.len() > 1 => {
                let types: Option<Vec<CqlType>> =
                    items.iter().map(|item| item.compatible_type(ctx)).collect();
                types.map(CqlType::tuple)
            }
            other => other.exact_type(ctx),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn list_literal_len(&self) -> Option<usize> {
        match self {
            Selectable::List(items) => Some(items.len()),
            _ => None,
        }
    }

    fn is_marker(&self) -> bool {
        matches!(self, Selectable::Term(ast::Term::Marker(_)))
    }
}

fn join(items: &[Selectable]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

impl fmt::Display for Selectable {
    /// Writes the selector as messages show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selectable::Column { column, .. } => f.write_str(&column.name),
            Selectable::Term(term) => write!(f, "{term}"),
            Selectable::Attribute {
                attribute, selected, ..
            } => write!(f, "{}({selected})", attribute.name()),
            Selectable::PackedRow(columns) => f.write_str(&packed_row::column_name(columns)),
            Selectable::Call { function, args } => {
                let args: Vec<String> = args.iter().map(ToString::to_string).collect();
                f.write_str(&function.column_name(&args))
            }
            Selectable::Cast { arg, ty } => write!(f, "cast({arg} as {})", ty.name()),
            Selectable::Field { receiver, field } => write!(f, "{receiver}.{field}"),
            Selectable::Element { receiver, element } => write!(f, "{receiver}[{element}]"),
            Selectable::Slice { receiver, from, to } => {
                let bound =
                    |term: &Option<ast::Term>| term.as_ref().map(ToString::to_string).unwrap_or_default();
                write!(f, "{receiver}[{}..{}]", bound(from), bound(to))
            }
            Selectable::TypeHint { name, selectable, .. } => write!(f, "({name}){selectable}"),
            Selectable::ParenthesesOrTuple(items) => write!(f, "({})", join(items)),
            Selectable::List(items) => write!(f, "[{}]", join(items)),
            Selectable::Set(items) => write!(f, "{{{}}}", join(items)),
            Selectable::MapOrUserType(entries) => {
                let entry = |entry: &Entry| match &entry.left {
                    Left::Name(name, _) => format!("{name}: {}", entry.value),
                    Left::Key(key) => format!("{key}: {}", entry.value),
                };
                let entries: Vec<String> = entries.iter().map(entry).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}
