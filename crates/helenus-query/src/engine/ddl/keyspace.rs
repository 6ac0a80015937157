//! CREATE, ALTER and DROP KEYSPACE.

use std::collections::BTreeMap;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use uuid::Uuid;

use super::{Applied, Change, DdlContext, Effect, snapshots, system_keyspace, unchanged};
use crate::properties::{self, Options};
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::names::{NAME_LEN_MAX, is_replicated_system_name, is_system_name, is_valid_name};
use crate::schema::{Keyspace, Replication};

const KNOWN: [&str; 2] = ["replication", "durable_writes"];
const LOCATOR_PACKAGE: &str = "org.apache.cassandra.locator.";

/// Refuses names that no new keyspace may have.
fn check_name(name: &str) -> Result<(), CqlError> {
    if is_system_name(name) && !is_replicated_system_name(name) {
        return Err(system_keyspace(name));
    }
    match is_valid_name(name, NAME_LEN_MAX) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Keyspace name must not be empty, more than {NAME_LEN_MAX} characters long, or contain \
             non-alphanumeric-underscore characters (got '{name}')"
        ))),
    }
}

fn already_exists(name: &str) -> CqlError {
    CqlError::AlreadyExists {
        message: format!("Cannot add existing keyspace \"{name}\""),
        keyspace: name.to_owned(),
        table: String::new(),
    }
}

/// Refuses the name of a new keyspace that is a copy of another, if the name is invalid or in use.
pub(super) fn check_new(ctx: &DdlContext<'_>, name: &ast::Ident) -> Result<(), CqlError> {
    let name = name.as_str();
    if is_system_name(name) {
        return Err(system_keyspace(name));
    }
    check_name(name)?;
    match ctx.schema.keyspace(name) {
        Some(_) => Err(already_exists(name)),
        None => Ok(()),
    }
}

/// Sets the declared options of a keyspace. Other options stay. Returns warnings about the options.
pub(super) fn options(
    ctx: &DdlContext<'_>,
    keyspace: &mut Keyspace,
    properties: &ast::Properties,
) -> Result<Vec<String>, CqlError> {
    properties::check_known(properties, &KNOWN)?;
    let declared = properties::map(properties, "replication")?;
    if let Some(durable_writes) = properties::boolean(properties, "durable_writes")? {
        keyspace.durable_writes = durable_writes;
    }
    if let Some(declared) = declared {
        check_class(&declared)?;
        keyspace.replication = replication(ctx, &keyspace.name, declared, None)?;
    }
    Ok(factor_warning(ctx, &keyspace.name, &keyspace.replication))
}

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateKeyspace) -> Applied {
    let name = statement.name.as_str();
    check_name(name)?;
    properties::check_known(&statement.properties, &KNOWN)?;
    let declared = properties::map(&statement.properties, "replication")?;
    let durable_writes = properties::boolean(&statement.properties, "durable_writes");
    let Some(declared) = declared else {
        return Err(CqlError::invalid("Missing mandatory option 'replication'"));
    };
    check_class(&declared)?;
    if ctx.schema.keyspace(name).is_some() {
        return match statement.if_not_exists {
            true => unchanged(),
            false => Err(already_exists(name)),
        };
    }
    let replication = replication(ctx, name, declared, None)?;
    let warnings = factor_warning(ctx, name, &replication);
    let keyspace = Keyspace {
        name: name.to_owned(),
        id: Some(Uuid::new_v4()),
        replication,
        durable_writes: durable_writes?.unwrap_or(true),
        is_virtual: false,
        types: BTreeMap::new(),
        tables: BTreeMap::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
    };
    let schema = ctx.schema.with_keyspace(keyspace);
    let change = Change::new(schema, ChangeKind::Created, name, SchemaTarget::Keyspace);
    Ok(Effect::Changed(Change { warnings, ..change }))
}

pub fn alter(ctx: &DdlContext<'_>, statement: &ast::AlterKeyspace) -> Applied {
    let name = statement.name.as_str();
    properties::check_known(&statement.properties, &KNOWN)?;
    if let Some(declared) = properties::map(&statement.properties, "replication")? {
        check_class(&declared)?;
    }
    let current = match ctx.keyspace_to_alter(name) {
        Err(CqlError::Invalid(_)) if statement.if_exists => return unchanged(),
        found => found?,
    };
    let mut keyspace = Keyspace::clone(current);
    let declared = properties::map(&statement.properties, "replication")?;
    if let Some(declared) = declared.filter(|declared| !declared.is_empty()) {
        keyspace.replication = replication(ctx, name, declared, Some(&current.replication))?;
    }
    if let Some(durable_writes) = properties::boolean(&statement.properties, "durable_writes")? {
        keyspace.durable_writes = durable_writes;
    }
    let mut warnings = factor_warning(ctx, name, &keyspace.replication);
    if total_factor(&keyspace.replication) > total_factor(&current.replication) {
        warnings.push(
            "When increasing replication factor you need to run a full (-full) repair to distribute the data."
                .to_owned(),
        );
    }
    if keyspace.replication == current.replication && keyspace.durable_writes == current.durable_writes {
        return Ok(Effect::Unchanged(warnings));
    }
    let change = Change::new(
        ctx.schema.with_keyspace(keyspace),
        ChangeKind::Updated,
        name,
        SchemaTarget::Keyspace,
    );
    Ok(Effect::Changed(Change { warnings, ..change }))
}

pub fn drop(ctx: &DdlContext<'_>, statement: &ast::DropKeyspace) -> Applied {
    let name = statement.name.as_str();
    let keyspace = match ctx.keyspace_to_change(name) {
        Err(CqlError::Invalid(_)) if statement.if_exists => return unchanged(),
        found => found?,
    };
    let mut schema = ctx.schema.clone();
    schema.keyspaces.remove(name);
    snapshots::before_drop_keyspace(ctx, &mut schema, keyspace);
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Dropped,
        name,
        SchemaTarget::Keyspace,
    )))
}

/// Refuses a map without a class. Cassandra checks this first.
fn check_class(declared: &Options) -> Result<(), CqlError> {
    match declared.is_empty() || declared.contains_key("class") {
        true => Ok(()),
        false => Err(no_class()),
    }
}

fn no_class() -> CqlError {
    CqlError::Config("Missing replication strategy class".to_owned())
}

/// Returns the replication for the given options (Cassandra's `ReplicationParams` and the checks of its strategies).
fn replication(
    ctx: &DdlContext<'_>,
    keyspace: &str,
    mut declared: Options,
    previous: Option<&Replication>,
) -> Result<Replication, CqlError> {
    let class = declared.remove("class").ok_or_else(no_class)?;
    let short = class.strip_prefix(LOCATOR_PACKAGE).unwrap_or(&class).to_owned();
    match short.as_str() {
        "SimpleStrategy" => {
            refuse_unknown(
                &declared,
                |option| option == "replication_factor",
                &short,
                keyspace,
            )?;
            let default = previous.filter(|previous| previous.class == short);
            let factor = declared
                .get("replication_factor")
                .or_else(|| default?.options.get("replication_factor"))
                .map_or("1", String::as_str);
            check_factor(factor)?;
            let options = Options::from([("replication_factor".to_owned(), factor.to_owned())]);
            Ok(Replication::new(short, options))
        }
        "NetworkTopologyStrategy" => {
            let options = by_data_center(ctx, declared, previous)?;
            let known = |option: &str| ctx.data_centers.iter().any(|known| known == option);
            refuse_unknown(&options, known, &short, keyspace)?;
            Ok(Replication::new(short, options))
        }
        "LocalStrategy" => Err(CqlError::invalid(
            "Unable to use given strategy class: LocalStrategy is reserved for internal use.",
        )),
        "OldNetworkTopologyStrategy" => Err(CqlError::Config(
            "The support for the OldNetworkTopologyStrategy has been removed in C* version 4.0. The keyspace \
             strategy should be switch to NetworkTopologyStrategy"
                .to_owned(),
        )),
        _ => {
            let class = if class.contains('.') {
                class
            } else {
                format!("{LOCATOR_PACKAGE}{class}")
            };
            Err(CqlError::Config(format!(
                "Unable to find replication strategy class '{class}'"
            )))
        }
    }
}

/// Returns the replication factor of each data center (`NetworkTopologyStrategy.prepareOptions`). A general factor applies to data centers
/// that have not had their own before.
fn by_data_center(
    ctx: &DdlContext<'_>,
    mut declared: Options,
    previous: Option<&Replication>,
) -> Result<Options, CqlError> {
    const GENERAL: &str = "replication_factor";
    let before = previous.map(|previous| &previous.options);
    let mut general = declared.remove(GENERAL);
    if let Some(factor) = &mut general {
        let copies = check_factor(factor).unwrap_or(0);
        *factor = copies.to_string();
    }
    if general.is_some() {
        for (data_center, factor) in before.into_iter().flatten().filter(|(name, _)| *name != GENERAL) {
            declared
                .entry(data_center.clone())
                .or_insert_with(|| factor.clone());
        }
    } else if declared.is_empty() {
        let from_simple = before.and_then(|options| options.get(GENERAL));
        general = Some(from_simple.map_or("1", String::as_str).to_owned());
    }
    if let Some(general) = general {
        for data_center in &ctx.data_centers {
            declared
                .entry(data_center.clone())
                .or_insert_with(|| general.clone());
        }
    }
    declared.retain(|_, factor| factor != "0");
    let options = declared;
    for factor in options.values() {
        check_factor(factor)?;
    }
    match options.is_empty() {
        true => Err(CqlError::Config(
            "Configuration for at least one datacenter must be present".to_owned(),
        )),
        false => Ok(options),
    }
}

fn refuse_unknown(
    declared: &Options,
    known: impl Fn(&str) -> bool,
    strategy: &str,
    keyspace: &str,
) -> Result<(), CqlError> {
    let unknown = declared.keys().filter(|option| !known(option));
    match unknown.min_by_key(|option| java_bucket(option)) {
        Some(unknown) => Err(CqlError::Config(format!(
            "Unrecognized strategy option {{{unknown}}} passed to {strategy} for keyspace {keyspace}"
        ))),
        None => Ok(()),
    }
}

/// Returns the bucket of a text in a Java `HashMap` of initial size. Cassandra checks options in the order of these buckets.
fn java_bucket(text: &str) -> u32 {
    let hash = text.encode_utf16().fold(0_u32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(u32::from(unit))
    });
    (hash ^ (hash >> 16)) & 15
}

/// Returns the number of copies that a replication factor means. Transient replicas (`3/1`) are off, as in a default Cassandra.
fn check_factor(text: &str) -> Result<i32, CqlError> {
    let refused = |message: String| Err(CqlError::Config(message));
    let text = match text.split_once('/') {
        Some((full, transient)) if [full, transient].iter().all(|part| part.parse::<u32>().is_ok()) => {
            if transient.parse::<u32>() != Ok(0) {
                return refused("Transient replication is not enabled on this node".to_owned());
            }
            full
        }
        _ => text,
    };
    if text.split('/').count() > 2 {
        return refused("Replication factor format is <replicas> or <replicas>/<transient>".to_owned());
    }
    match text.parse::<i32>() {
        Ok(factor) if factor >= 0 => Ok(factor),
        Ok(factor) => refused(format!("Replication factor must be non-negative, found {factor}")),
        Err(_) => refused(format!("For input string: \"{text}\"")),
    }
}

fn total_factor(replication: &Replication) -> i64 {
    let copies = |factor: &String| check_factor(factor).ok().map(i64::from);
    replication.options.values().filter_map(copies).sum()
}

/// Returns Cassandra's warning about more copies than nodes.
fn factor_warning(ctx: &DdlContext<'_>, keyspace: &str, replication: &Replication) -> Vec<String> {
    let too_high = |(option, factor): (&String, &String)| {
        let (nodes, place) = match option.as_str() {
            "replication_factor" => (ctx.data_centers.len(), String::new()),
            data_center => {
                let nodes = ctx.data_centers.iter().filter(|known| *known == data_center);
                (nodes.count(), format!(" for datacenter {data_center}"))
            }
        };
        let factor = usize::try_from(check_factor(factor).ok()?).ok()?;
        let factor = Some(factor).filter(|factor| *factor > nodes)?;
        Some(format!(
            "Your replication factor {factor} for keyspace {keyspace} is higher than the number of nodes {nodes}{place}"
        ))
    };
    match is_system_name(keyspace) {
        true => Vec::new(),
        false => replication.options.iter().filter_map(too_high).collect(),
    }
}
