//! Selection of the schema elements that a DESCRIBE statement shows, in Cassandra's order.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::ast::{DescribeTarget, FunctionName, Ident, QualifiedName};
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::{CqlType, UserType};

use super::text;
use crate::engine::system::{HiddenTables, SYSTEM_KEYSPACES};
use crate::schema::{Index, Keyspace, Schema, Table, UserAggregate, UserFunction};

/// An element of the schema (Cassandra's `SchemaElement`).
pub(crate) enum Element<'a> {
    Keyspace(&'a Keyspace),
    Type(&'a UserType),
    /// A table or a materialized view.
    Table(&'a Table),
    Index(&'a Table, &'a Index),
    Function(&'a UserFunction),
    Aggregate(&'a UserAggregate),
}

impl Element<'_> {
    pub(crate) fn keyspace_name(&self) -> String {
        quote_identifier(match self {
            Element::Keyspace(keyspace) => &keyspace.name,
            Element::Type(ty) => &ty.keyspace,
            Element::Table(table) | Element::Index(table, _) => &table.keyspace,
            Element::Function(function) => &function.keyspace,
            Element::Aggregate(aggregate) => &aggregate.keyspace,
        })
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Element::Keyspace(_) => "keyspace",
            Element::Type(_) => "type",
            Element::Table(table) if table.is_view() => "materialized_view",
            Element::Table(_) => "table",
            Element::Index(..) => "index",
            Element::Function(_) => "function",
            Element::Aggregate(_) => "aggregate",
        }
    }

    /// Returns the name. Names of functions and aggregates include their types.
    fn name(&self) -> Cow<'_, str> {
        match self {
            Element::Keyspace(keyspace) => Cow::from(&keyspace.name),
            Element::Type(ty) => Cow::from(&ty.name),
            Element::Table(table) => Cow::from(&table.name),
            Element::Index(_, index) => Cow::from(&index.name),
            Element::Function(function) => Cow::from(format!(
                "{}({})",
                function.name,
                text::types(function.arg_types())
            )),
            Element::Aggregate(aggregate) => Cow::from(format!(
                "{}({})",
                aggregate.name,
                text::types(&aggregate.arg_types)
            )),
        }
    }

    pub(crate) fn quoted_name(&self) -> String {
        let name = self.name();
        match self {
            Element::Function(_) | Element::Aggregate(_) => {
                let (name, types) = name.split_at(name.find('(').unwrap_or(name.len()));
                format!("{}{types}", quote_identifier(name))
            }
            _ => quote_identifier(&name),
        }
    }

    pub(crate) fn create_statement(&self, with_internals: bool) -> String {
        match self {
            Element::Keyspace(keyspace) => text::keyspace(keyspace),
            Element::Type(ty) => text::user_type(ty),
            Element::Table(table) => text::table(table, with_internals),
            Element::Index(table, index) => text::index(table, index),
            Element::Function(function) => text::function(function),
            Element::Aggregate(aggregate) => text::aggregate(aggregate),
        }
    }
}

/// Sorts elements by name, ignoring case.
fn sort(elements: &mut [Element<'_>]) {
    elements.sort_by_cached_key(|element| (element.name().to_lowercase(), element.name().into_owned()));
}

/// Returns the elements that a statement selects. `current` is the keyspace in use.
pub(crate) fn describe<'a>(
    schema: &'a Schema,
    current: Option<&str>,
    target: &DescribeTarget,
) -> Result<Vec<Element<'a>>, CqlError> {
    let finder = Finder {
        schema,
        current,
        hidden: HiddenTables::of(schema),
    };
    match target {
        DescribeTarget::Keyspaces => Ok(finder.keyspaces().into_iter().map(Element::Keyspace).collect()),
        DescribeTarget::Schema { full } => Ok(finder
            .keyspaces()
            .into_iter()
            .filter(|keyspace| *full || !is_system(&keyspace.name))
            .flat_map(|keyspace| finder.keyspace_elements(keyspace))
            .collect()),
        DescribeTarget::Tables => finder.list(|keyspace| {
            let tables = finder.tables(keyspace).filter(|table| !table.is_view());
            tables.map(Element::Table).collect()
        }),
        DescribeTarget::Types => {
            finder.list(|keyspace| keyspace.types.values().map(|ty| Element::Type(ty)).collect())
        }
        DescribeTarget::Functions => finder.list(|keyspace| functions(keyspace, |_| true)),
        DescribeTarget::Aggregates => finder.list(|keyspace| aggregates(keyspace, |_| true)),
        DescribeTarget::Keyspace { name, only } => {
            let keyspace = finder.keyspace_or_current(name.as_ref())?;
            Ok(match only {
                true => vec![Element::Keyspace(keyspace)],
                false => finder.keyspace_elements(keyspace),
            })
        }
        DescribeTarget::Table(name) => finder.table(name),
        DescribeTarget::Index(name) => finder.index(name),
        DescribeTarget::View(name) => finder.view(name),
        DescribeTarget::Type(name) => finder.user_type(name),
        DescribeTarget::Function(name) => finder.function(name),
        DescribeTarget::Aggregate(name) => finder.aggregate(name),
        DescribeTarget::Generic(name) => finder.generic(name),
        // The answer to DESCRIBE CLUSTER has no elements.
        DescribeTarget::Cluster => Ok(Vec::new()),
    }
}

fn is_system(name: &str) -> bool {
    SYSTEM_KEYSPACES.iter().any(|keyspace| keyspace.name == name)
}

/// Returns the functions whose name fits.
fn functions<'a>(keyspace: &'a Keyspace, is_such: impl Fn(&str) -> bool) -> Vec<Element<'a>> {
    let functions = keyspace.functions.values();
    let functions = functions.filter(|function| is_such(&function.name));
    let mut functions: Vec<Element<'a>> = functions.map(|function| Element::Function(function)).collect();
    sort(&mut functions);
    functions
}

fn aggregates<'a>(keyspace: &'a Keyspace, is_such: impl Fn(&str) -> bool) -> Vec<Element<'a>> {
    let aggregates = keyspace.aggregates.values();
    let aggregates = aggregates.filter(|aggregate| is_such(&aggregate.name));
    let mut aggregates: Vec<Element<'a>> = aggregates
        .map(|aggregate| Element::Aggregate(aggregate))
        .collect();
    sort(&mut aggregates);
    aggregates
}

fn indexes(table: &Table) -> Vec<Element<'_>> {
    let mut indexes: Vec<Element<'_>> = table
        .indexes
        .iter()
        .map(|index| Element::Index(table, index))
        .collect();
    sort(&mut indexes);
    indexes
}

fn views<'a>(keyspace: &'a Keyspace, table: &Table) -> Vec<Element<'a>> {
    let of_table = |view: &&Arc<Table>| {
        let base = view.view.as_ref().map(|view| view.base_table_id);
        base == Some(table.id)
    };
    let mut views: Vec<Element<'a>> = keyspace
        .tables
        .values()
        .filter(of_table)
        .map(|view| Element::Table(view))
        .collect();
    sort(&mut views);
    views
}

/// Returns the user types, each after the types that it contains.
fn types_by_dependency(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let mut done = BTreeSet::new();
    let mut sorted = Vec::with_capacity(keyspace.types.len());
    for ty in keyspace.types.values() {
        add_type(keyspace, ty, &mut done, &mut sorted);
    }
    sorted
}

fn add_type<'a>(
    keyspace: &'a Keyspace,
    ty: &'a UserType,
    done: &mut BTreeSet<&'a str>,
    sorted: &mut Vec<Element<'a>>,
) {
    if !done.insert(&ty.name) {
        return;
    }
    for field in &ty.fields {
        add_types_in(keyspace, &field.ty, done, sorted);
    }
    sorted.push(Element::Type(ty));
}

fn add_types_in<'a>(
    keyspace: &'a Keyspace,
    ty: &'a CqlType,
    done: &mut BTreeSet<&'a str>,
    sorted: &mut Vec<Element<'a>>,
) {
    match ty {
        CqlType::Native(_) | CqlType::Custom(_) => {}
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            add_types_in(keyspace, element, done, sorted);
        }
        CqlType::Map { key, value, .. } => {
            add_types_in(keyspace, key, done, sorted);
            add_types_in(keyspace, value, done, sorted);
        }
        CqlType::Tuple(elements) => {
            for element in elements.iter() {
                add_types_in(keyspace, element, done, sorted);
            }
        }
        CqlType::Udt { definition, .. } => {
            if let Some(ty) = keyspace.types.get(&definition.name) {
                add_type(keyspace, ty, done, sorted);
            }
        }
    }
}

/// Finds elements by name, with Cassandra's errors.
struct Finder<'a, 'b> {
    schema: &'a Schema,
    current: Option<&'b str>,
    /// Tables that are described only if they are named.
    hidden: HiddenTables,
}

type Found<'a> = Result<Vec<Element<'a>>, CqlError>;

/// Returns all overloads of a name. There must be at least one.
fn some<'a>(found: Vec<Element<'a>>, what: &str, keyspace: &Keyspace, name: &FunctionName) -> Found<'a> {
    match found.is_empty() {
        true => Err(CqlError::invalid(format!(
            "User defined {what} '{}' not found in '{}'",
            name.name, keyspace.name
        ))),
        false => Ok(found),
    }
}

impl<'a> Finder<'a, '_> {
    fn keyspaces(&self) -> Vec<&'a Keyspace> {
        let mut keyspaces: Vec<&'a Keyspace> = self.schema.keyspaces.values().map(Arc::as_ref).collect();
        keyspaces.sort_by_cached_key(|keyspace| keyspace.name.to_lowercase());
        keyspaces
    }

    /// Returns the listed tables and views of a keyspace.
    fn tables(&self, keyspace: &'a Keyspace) -> impl Iterator<Item = &'a Table> {
        let tables = keyspace.tables.values().map(Arc::as_ref);
        tables.filter(move |table| !self.hidden.contain(table))
    }

    /// Returns a keyspace and all its elements.
    fn keyspace_elements(&self, keyspace: &'a Keyspace) -> Vec<Element<'a>> {
        let mut elements = vec![Element::Keyspace(keyspace)];
        elements.extend(types_by_dependency(keyspace));
        elements.extend(functions(keyspace, |_| true));
        elements.extend(aggregates(keyspace, |_| true));
        let mut tables: Vec<Element<'a>> = self
            .tables(keyspace)
            // The statement of a table with captured changes also creates its log.
            .filter(|table| !table.is_view() && !table.is_cdc_log())
            .map(Element::Table)
            .collect();
        sort(&mut tables);
        for table in tables {
            let Element::Table(table) = table else {
                continue;
            };
            elements.push(Element::Table(table));
            elements.extend(indexes(table));
            elements.extend(views(keyspace, table));
        }
        elements
    }

    fn keyspace(&self, name: &str) -> Result<&'a Keyspace, CqlError> {
        match self.schema.keyspace(name) {
            Some(keyspace) => Ok(keyspace),
            None => Err(CqlError::invalid(format!("'{name}' not found in keyspaces"))),
        }
    }

    fn keyspace_or_current(&self, name: Option<&Ident>) -> Result<&'a Keyspace, CqlError> {
        let name = name.map(Ident::as_str).or(self.current);
        let name = name.ok_or_else(|| CqlError::invalid("No keyspace specified and no current keyspace"))?;
        self.keyspace(name)
    }

    /// Returns elements of the keyspace in use, or of all keyspaces if none is in use.
    fn list(&self, elements: impl Fn(&'a Keyspace) -> Vec<Element<'a>>) -> Found<'a> {
        let keyspaces = match self.current {
            Some(name) => vec![self.keyspace(name)?],
            None => self.keyspaces(),
        };
        let mut all = Vec::new();
        for keyspace in keyspaces {
            let mut elements = elements(keyspace);
            sort(&mut elements);
            all.extend(elements);
        }
        Ok(all)
    }

    fn table(&self, name: &QualifiedName) -> Found<'a> {
        let keyspace = self.keyspace_or_current(name.keyspace.as_ref())?;
        let found = keyspace.tables.get(name.name.as_str());
        let Some(table) = found.filter(|table| !table.is_view()) else {
            return Err(CqlError::invalid(format!(
                "Table '{}' not found in keyspace '{}'",
                name.name, keyspace.name
            )));
        };
        let mut elements = vec![Element::Table(table)];
        elements.extend(indexes(table));
        elements.extend(views(keyspace, table));
        Ok(elements)
    }

    fn index(&self, name: &QualifiedName) -> Found<'a> {
        let keyspace = self.keyspace_or_current(name.keyspace.as_ref())?;
        match keyspace.index(name.name.as_str()) {
            Some((table, index)) => Ok(vec![Element::Index(table, index)]),
            None => Err(CqlError::invalid(format!(
                "Table for existing index '{}' not found in '{}'",
                name.name, keyspace.name
            ))),
        }
    }

    fn view(&self, name: &QualifiedName) -> Found<'a> {
        let keyspace = self.keyspace_or_current(name.keyspace.as_ref())?;
        match keyspace.tables.get(name.name.as_str()) {
            Some(view) if view.is_view() => Ok(vec![Element::Table(view)]),
            _ => Err(CqlError::invalid(format!(
                "Materialized view '{}' not found in '{}'",
                name.name, keyspace.name
            ))),
        }
    }

    fn user_type(&self, name: &QualifiedName) -> Found<'a> {
        let keyspace = self.keyspace_or_current(name.keyspace.as_ref())?;
        match keyspace.types.get(name.name.as_str()) {
            Some(ty) => Ok(vec![Element::Type(ty)]),
            None => Err(CqlError::invalid(format!(
                "User defined type '{}' not found in '{}'",
                name.name, keyspace.name
            ))),
        }
    }

    fn function(&self, name: &FunctionName) -> Found<'a> {
        let keyspace = self.keyspace_or_current(name.keyspace.as_ref())?;
        let found = functions(keyspace, |known| known == name.name.as_str());
        some(found, "function", keyspace, name)
    }

    fn aggregate(&self, name: &FunctionName) -> Found<'a> {
        let keyspace = self.keyspace_or_current(name.keyspace.as_ref())?;
        let found = aggregates(keyspace, |known| known == name.name.as_str());
        some(found, "aggregate", keyspace, name)
    }

    /// Returns the keyspace of that name, or otherwise the table, index or view.
    fn generic(&self, name: &QualifiedName) -> Found<'a> {
        let keyspace = match (&name.keyspace, self.current) {
            (Some(keyspace), _) => keyspace.as_str(),
            (None, current) => {
                if let Some(keyspace) = self.schema.keyspace(name.name.as_str()) {
                    return Ok(self.keyspace_elements(keyspace));
                }
                current.unwrap_or(name.name.as_str())
            }
        };
        let found = self.keyspace(keyspace)?;
        let qualified = QualifiedName {
            keyspace: Some(Ident::from(keyspace)),
            name: name.name.clone(),
        };
        match found.tables.get(name.name.as_str()) {
            Some(table) if table.is_view() => self.view(&qualified),
            Some(_) => self.table(&qualified),
            None if found.index(name.name.as_str()).is_some() => self.index(&qualified),
            None => Err(CqlError::invalid(format!(
                "'{}' not found in keyspace '{keyspace}'",
                name.name
            ))),
        }
    }
}
