//! Statements that change the schema (Cassandra's `cql3.statements.schema`).
//!
//! Each statement is a pure function from a [`Schema`] to a [`Change`]. [`execute`] runs the waiting statements one after the other
//! ([`queue`]) and writes their changes down together ([`journal`]). Then it installs the new schema and notifies the subscribers.

pub(crate) mod aggregate;
pub(crate) mod alter_table;
pub(crate) mod branch;
pub(crate) mod compact_storage;
pub(crate) mod difference;
pub(crate) mod function;
#[cfg(test)]
pub(crate) mod in_memory;
pub(crate) mod index;
pub(crate) mod keyspace;
pub(crate) mod queue;
mod renumber;
pub(crate) mod roles;
pub(crate) mod schema_store;
pub(crate) mod snapshots;
pub(crate) mod table;
mod table_like;
pub(crate) mod truncate;
pub(crate) mod user_type;
pub(crate) mod view;

use std::sync::Arc;

use async_trait::async_trait;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_tablet::{Store, TableOrigin};
use tokio::sync::{Mutex, broadcast};

use super::Engine;
use super::access::{self, AccessControl, RoleContext};
use crate::execution::backfill::{self, SchemaChanges, SchemaFunction};
use crate::limits::AutoSnapshot;
use crate::request::{ClientState, no_keyspace};
use crate::response::{ChangeKind, Outcome, Response, SchemaChange, SchemaTarget};
use crate::schema::cdc_log::with_logs;
use crate::schema::names::{is_replicated_system_name, is_system_name};
use crate::schema::{Derivation, Keyspace, Schema, Table};
use crate::storage::agreement::await_schema_agreement;

pub(crate) use queue::DdlQueue;
pub(crate) use roles::make_superuser;
pub(crate) use schema_store::SystemKeyspaces;

/// Maximum number of events that a slow subscriber may lag behind before it loses some.
const EVENTS_MAX: usize = 1024;

/// The changes of the schema on this node: their order, and their subscribers.
pub(crate) struct SchemaUpdates {
    /// Held while statements change the schema, because changes are serial.
    pub changing: Mutex<()>,
    pub queue: DdlQueue,
    /// Held while a newer schema is read.
    pub loading: Mutex<()>,
    /// Held while a schema is installed.
    installing: parking_lot::Mutex<()>,
    events: broadcast::Sender<SchemaChange>,
    /// Function that returns the virtual keyspaces.
    system_keyspaces: SystemKeyspaces,
}

impl SchemaUpdates {
    pub fn new(system_keyspaces: SystemKeyspaces) -> SchemaUpdates {
        SchemaUpdates {
            changing: Mutex::default(),
            queue: DdlQueue::default(),
            loading: Mutex::default(),
            installing: parking_lot::Mutex::default(),
            events: broadcast::channel(EVENTS_MAX).0,
            system_keyspaces,
        }
    }

    /// Returns a receiver of changes of the schema.
    pub fn subscribe(&self) -> broadcast::Receiver<SchemaChange> {
        self.events.subscribe()
    }

    /// Notifies the subscribers of changes.
    pub fn announce(&self, events: Vec<SchemaChange>) {
        for event in events {
            // Sending fails if there is no subscriber.
            let _ = self.events.send(event);
        }
    }
}

/// The effect of a statement that changes the schema.
pub(crate) struct Change {
    pub schema: Schema,
    pub event: SchemaChange,
    pub warnings: Vec<String>,
    /// The index or view that must be built from the rows written before. `None` if there is none.
    pub to_build: Option<Derivation>,
}

impl Change {
    fn new(schema: Schema, change: ChangeKind, keyspace: &str, target: SchemaTarget) -> Change {
        Change {
            schema,
            event: SchemaChange {
                change,
                keyspace: keyspace.to_owned(),
                target,
            },
            warnings: Vec::new(),
            to_build: None,
        }
    }
}

/// The result of a statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeResult {
    /// The event in the response to the client. `None` if the schema is unchanged, or if TRUNCATE has changed only parts that clients do
    /// not see.
    pub event: Option<SchemaChange>,
    /// All events for clients, including `event`.
    pub events: Vec<SchemaChange>,
    pub warnings: Vec<String>,
    pub to_build: Option<Derivation>,
}

/// The effect of a statement on the schema.
pub(crate) enum Effect {
    Changed(Change),
    /// No change, with warnings. `IF [NOT] EXISTS` has found the schema as wanted.
    Unchanged(Vec<String>),
}

type Applied = Result<Effect, CqlError>;

/// Returns the effect of a statement that changes nothing.
fn unchanged() -> Applied {
    Ok(Effect::Unchanged(Vec::new()))
}

/// The context that a statement is applied in.
pub(crate) struct DdlContext<'a> {
    pub schema: &'a Schema,
    /// The data center of each node.
    pub data_centers: Vec<String>,
    /// The keyspace in use. `None` if there is none.
    pub keyspace: Option<&'a str>,
    /// The authenticated role, and the access control that applies to it. `None` if authentication is off.
    pub user: Option<&'a str>,
    pub control: AccessControl,
    /// True if columns may be masked.
    pub masks_columns: bool,
    pub auto_snapshot: AutoSnapshot,
    /// Time of the statement, newer than all timestamps that this node has given to writes. So a dropped column hides all of them.
    pub now_us: i64,
}

impl<'a> DdlContext<'a> {
    /// Returns the context for a statement of a client.
    pub(crate) fn new(
        engine: &Engine,
        schema: &'a Schema,
        user: Option<&'a str>,
        keyspace: Option<&'a str>,
    ) -> DdlContext<'a> {
        DdlContext {
            schema,
            data_centers: data_centers(engine),
            keyspace,
            user,
            control: engine.access.control,
            masks_columns: engine.masks_columns(),
            auto_snapshot: engine.context.limits().auto_snapshot,
            now_us: engine.context.next_timestamp_us(),
        }
    }
}

impl DdlContext<'_> {
    fn check_masks(&self, columns: &[ast::ColumnDefinition]) -> Result<(), CqlError> {
        table::check_masks(self.masks_columns, columns)
    }

    fn roles(&self) -> RoleContext<'_> {
        RoleContext {
            control: self.control,
            schema: self.schema,
            data_centers: &self.data_centers,
            user: self.user,
            keyspace: self.keyspace,
        }
    }

    /// Returns the keyspace of a name.
    fn keyspace_of<'b>(&'b self, name: &'b ast::QualifiedName) -> Result<&'b str, CqlError> {
        match &name.keyspace {
            Some(keyspace) => Ok(keyspace.as_str()),
            None => self.keyspace.ok_or_else(no_keyspace),
        }
    }

    /// Refuses a keyspace that may not be changed.
    fn modifiable(&self, keyspace: &str) -> Result<(), CqlError> {
        let is_system = |keyspace: &Arc<Keyspace>| keyspace.is_virtual;
        if is_system_name(keyspace) || self.schema.keyspace(keyspace).is_some_and(is_system) {
            return Err(CqlError::Unauthorized(format!(
                "{keyspace} keyspace is not user-modifiable."
            )));
        }
        Ok(())
    }

    /// Returns the table or view of that name, which must be in a keyspace that may be changed. `None` if it does not exist.
    fn found(&self, name: &ast::QualifiedName) -> Result<Option<(&Keyspace, &Table)>, CqlError> {
        self.modifiable(self.keyspace_of(name)?)?;
        self.named(name)
    }

    /// Returns the table or view of that name. `None` if it does not exist.
    fn named(&self, name: &ast::QualifiedName) -> Result<Option<(&Keyspace, &Table)>, CqlError> {
        let keyspace = self.schema.keyspace(self.keyspace_of(name)?);
        Ok(keyspace.and_then(|keyspace| {
            let table = keyspace.tables.get(name.name.as_str())?;
            Some((keyspace.as_ref(), table.as_ref()))
        }))
    }

    /// Returns a keyspace whose replication may be changed: a user's keyspace, or a system keyspace that Cassandra replicates.
    fn keyspace_to_alter(&self, keyspace: &str) -> Result<&Arc<Keyspace>, CqlError> {
        match self.schema.keyspace(keyspace) {
            Some(found) if is_replicated_system_name(keyspace) => Ok(found),
            _ => self.keyspace_to_change(keyspace),
        }
    }

    /// Returns a keyspace, which must exist and may be changed.
    fn keyspace_to_change(&self, keyspace: &str) -> Result<&Arc<Keyspace>, CqlError> {
        self.modifiable(keyspace)?;
        self.schema
            .keyspace(keyspace)
            .ok_or_else(|| CqlError::invalid(format!("Keyspace '{keyspace}' doesn't exist")))
    }
}

/// Runs TRUNCATE, a statement that changes the schema, or one that changes or lists roles.
pub async fn execute(
    engine: &Arc<Engine>,
    client: &ClientState,
    keyspace: Option<&str>,
    statement: &ast::Statement,
) -> Result<Outcome, CqlError> {
    if crate::schema::roles::is_about_roles(statement) {
        return roles::manage(engine, client, keyspace, statement).await;
    }
    if let ast::Statement::Truncate(name) = statement
        && truncate::forget_traces(engine.traces(), keyspace, name)
    {
        return Ok(Response::Void.into());
    }
    let done = queue::run(engine, client, keyspace, statement.clone()).await?;
    let mut warnings = done.warnings;
    if engine.schema().has_cdc() {
        engine.context.begin_generations().await?;
    }
    if let Some(derivation) = done.to_build {
        let schemas: Arc<dyn SchemaChanges> = engine.clone();
        warnings.extend(backfill::run(&engine.context, &schemas, &derivation).await?);
    }
    let Some(event) = done.event else {
        return Ok(Response::Void.with(warnings));
    };
    engine.schema_updates.announce(done.events);
    Ok(Response::SchemaChange(event).with(warnings))
}

pub(crate) fn data_centers(engine: &Engine) -> Vec<String> {
    match engine.cluster() {
        Some(cluster) => cluster.nodes().into_iter().map(|node| node.data_center).collect(),
        None => vec![engine.node.data_center.clone()],
    }
}

fn apply(ctx: &DdlContext<'_>, statement: &ast::Statement) -> Applied {
    check_system_keyspace(ctx, statement)?;
    apply_allowed(ctx, statement)
}

fn apply_allowed(ctx: &DdlContext<'_>, statement: &ast::Statement) -> Applied {
    use ast::Statement;
    match statement {
        Statement::CreateKeyspace(statement) => keyspace::create(ctx, statement),
        Statement::AlterKeyspace(statement) => keyspace::alter(ctx, statement),
        Statement::DropKeyspace(statement) => keyspace::drop(ctx, statement),
        Statement::CreateTable(statement) => table::create(ctx, statement),
        Statement::CreateTableLike(statement) => table_like::create(ctx, statement),
        Statement::AlterTable(statement) => alter_table::alter(ctx, statement),
        Statement::DropTable(statement) => table::drop(ctx, statement),
        Statement::CreateType(statement) => user_type::create(ctx, statement),
        Statement::AlterType(statement) => user_type::alter(ctx, statement),
        Statement::DropType(statement) => user_type::drop(ctx, statement),
        Statement::CreateIndex(statement) => index::create(ctx, statement),
        Statement::DropIndex(statement) => index::drop(ctx, statement),
        Statement::CreateView(statement) => view::create(ctx, statement),
        Statement::AlterView(statement) => view::alter(ctx, statement),
        Statement::DropView(statement) => view::drop(ctx, statement),
        Statement::CreateFunction(statement) => function::create(ctx, statement),
        Statement::CreateAggregate(statement) => aggregate::create(ctx, statement),
        Statement::DropFunction(statement) => function::drop(ctx, statement, function::Kind::Function),
        Statement::DropAggregate(statement) => function::drop(ctx, statement, function::Kind::Aggregate),
        Statement::CreateTrigger(statement) => create_trigger(ctx, statement),
        Statement::DropTrigger(statement) if statement.if_exists => unchanged(),
        Statement::DropTrigger(statement) => Err(CqlError::invalid(format!(
            "Trigger '{}' on '{}' doesn't exist",
            statement.name,
            qualified(ctx, &statement.table)?
        ))),
        // All other statements are executed elsewhere.
        _ => unchanged(),
    }
}

/// Refuses changes of the server's keyspaces, with Cassandra's messages. For replicated keyspaces Cassandra checks permissions first, and
/// for the others it first looks for the named element.
fn check_system_keyspace(ctx: &DdlContext<'_>, statement: &ast::Statement) -> Result<(), CqlError> {
    use ast::Statement;
    let all_tables = |keyspace: &str| format!("<all tables in {keyspace}>");
    let table = |keyspace: &str, name: &ast::QualifiedName| format!("<table {keyspace}.{}>", name.name);
    let keyspace_of = |name| ctx.keyspace_of(name).unwrap_or_default();
    let (keyspace, verb, resource) = match statement {
        Statement::DropIndex(ast::DropIndex { name, .. })
        | Statement::CreateTrigger(ast::CreateTrigger { table: name, .. })
        | Statement::DropTrigger(ast::DropTrigger { table: name, .. })
        | Statement::AlterView(ast::AlterView { view: name, .. })
        | Statement::DropView(ast::DropView { view: name, .. }) => {
            let keyspace = keyspace_of(name);
            return match is_system_name(keyspace) && !is_replicated_system_name(keyspace) {
                true => Err(system_keyspace(keyspace)),
                false => Ok(()),
            };
        }
        Statement::DropKeyspace(statement) => {
            let keyspace = statement.name.as_str();
            (keyspace, "DROP", format!("<keyspace {keyspace}>"))
        }
        Statement::CreateTable(statement) => {
            let keyspace = keyspace_of(&statement.table);
            (keyspace, "CREATE", all_tables(keyspace))
        }
        Statement::CreateTableLike(statement) => {
            let keyspace = keyspace_of(&statement.table);
            (keyspace, "CREATE", all_tables(keyspace))
        }
        Statement::AlterTable(statement) => {
            let keyspace = keyspace_of(&statement.table);
            (keyspace, "ALTER", table(keyspace, &statement.table))
        }
        Statement::CreateIndex(statement) => {
            let keyspace = keyspace_of(&statement.table);
            (keyspace, "ALTER", table(keyspace, &statement.table))
        }
        Statement::CreateView(statement) => {
            let keyspace = keyspace_of(&statement.view);
            (keyspace, "ALTER", table(keyspace, &statement.base))
        }
        Statement::DropTable(statement) => {
            let keyspace = keyspace_of(&statement.table);
            (keyspace, "DROP", table(keyspace, &statement.table))
        }
        Statement::CreateType(statement) => {
            let keyspace = keyspace_of(&statement.name);
            (keyspace, "CREATE", all_tables(keyspace))
        }
        Statement::AlterType(statement) => {
            let keyspace = keyspace_of(&statement.name);
            (keyspace, "ALTER", all_tables(keyspace))
        }
        Statement::DropType(statement) => {
            let keyspace = keyspace_of(&statement.name);
            (keyspace, "DROP", all_tables(keyspace))
        }
        _ => return Ok(()),
    };
    match is_replicated_system_name(keyspace) {
        true => Err(CqlError::Unauthorized(format!("Cannot {verb} {resource}"))),
        false => Ok(()),
    }
}

fn system_keyspace(keyspace: &str) -> CqlError {
    CqlError::invalid(format!("System keyspace '{keyspace}' is not user-modifiable"))
}

/// Refuses every trigger, because no class can be loaded. The table is checked first.
fn create_trigger(ctx: &DdlContext<'_>, statement: &ast::CreateTrigger) -> Applied {
    let keyspace = ctx.keyspace_to_alter(ctx.keyspace_of(&statement.table)?)?;
    let name = &statement.table.name;
    Err(CqlError::invalid(match keyspace.tables.get(name.as_str()) {
        None => format!("Table '{name}' doesn't exist"),
        Some(table) if table.is_view() => "Cannot CREATE TRIGGER for a materialized view".to_owned(),
        Some(_) => format!("Trigger class '{}' couldn't be loaded", statement.using),
    }))
}

/// Refuses to prepare statements that no client may run.
pub(crate) fn check_prepare(
    engine: &Engine,
    client: &ClientState,
    keyspace: Option<&str>,
    statement: &ast::Statement,
) -> Result<(), CqlError> {
    match statement {
        _ if crate::schema::roles::is_about_roles(statement) => {
            let (schema, data_centers) = (engine.schema(), data_centers(engine));
            let ctx = engine.role_context(&schema, &data_centers, client, keyspace);
            access::validate(&ctx, statement)
        }
        ast::Statement::CreateTable(statement) => {
            table::check_masks(engine.masks_columns(), &statement.columns)
        }
        ast::Statement::AlterTable(statement) => {
            alter_table::check_mask(engine.masks_columns(), &statement.change)
        }
        _ => Ok(()),
    }
}

/// Returns `keyspace.name` for messages.
fn qualified(ctx: &DdlContext<'_>, name: &ast::QualifiedName) -> Result<String, CqlError> {
    Ok(format!("{}.{}", ctx.keyspace_of(name)?, name.name))
}

/// Writes the schema down and installs it. The caller has added the logs of captured changes ([`with_logs`]). Returns false if another
/// node changed the document concurrently. The other node's schema is installed then.
pub(crate) async fn commit(engine: &Engine, before: &Schema, mut schema: Schema) -> Result<bool, CqlError> {
    let tried = uuid::Uuid::new_v4();
    schema.version = tried;
    match schema_store::store(&engine.context.store, before, schema).await? {
        Some(schema) => {
            engine.note_schema(before, &schema).await;
            install(engine, schema);
            Ok(true)
        }
        None => {
            reload(engine).await?;
            // A write that reported an error may have taken effect. The version shows it, since no other node has that version.
            Ok(engine.schema().version == tried)
        }
    }
}

/// Installs a schema if it is newer. Never waits: writes in progress here may be waiting for other nodes, and those may be waiting until
/// this node has the schema. The builder of an index or a view waits for older writes itself ([`await_old_writes`]).
fn install(engine: &Engine, mut schema: Schema) -> bool {
    let _installing = engine.schema_updates.installing.lock();
    let current = engine.schema();
    if schema.document_version <= current.document_version {
        return false;
    }
    schema.generation = current.generation + 1;
    // The set of live tables comes first, so that no compaction sweeps rows of the new tables. Old rows are swept only when no statement
    // reads them any more.
    engine.context.hooks.live_tables.set(&schema);
    set_origins(&engine.context.store, &schema);
    let are_roles_new = !Arc::ptr_eq(&current.access, &schema.access);
    engine.context.schema.store(Arc::new(schema));
    engine.context.writing.epochs.advance();
    if are_roles_new {
        engine.end_strangers();
    }
    let exists = engine.schema();
    let ids: std::collections::HashSet<_> = exists.stored_tables().map(|table| table.id).collect();
    engine.metrics().retain(|id| ids.contains(&id));
    engine.context.installed.notify_waiters();
    true
}

/// Returns true if the schema in the store may differ from the loaded one.
pub(crate) async fn has_changed(engine: &Engine) -> Result<bool, CqlError> {
    schema_store::has_changed(&engine.context.store).await
}

/// Makes the store read the tables of a schema over their origins. Must be called before any of these tables is read.
pub(super) fn set_origins(store: &Arc<Store>, schema: &Schema) {
    store.set_origins(origins(schema));
}

/// Returns the origins of a schema's tables and of the hidden tables of its indexes, by table number.
pub(super) fn origins(schema: &Schema) -> Vec<(u32, Arc<TableOrigin>)> {
    schema.kept_tables().flat_map(|table| table.origins()).collect()
}

/// Installs the schema of the store if it is newer, and notifies the subscribers of the changes.
pub(crate) async fn reload(engine: &Engine) -> Result<(), CqlError> {
    let before = engine.schema();
    let updates = &engine.schema_updates;
    let newer = schema_store::load_newer(&engine.context.store, &before, updates.system_keyspaces).await?;
    let Some(schema) = newer else { return Ok(()) };
    if install(engine, schema) {
        updates.announce(difference::events(&before, &engine.schema()));
    }
    Ok(())
}

/// Replaces the schema by the result of `change`, and waits until all nodes agree. `change` is called again if another node changes the
/// schema concurrently. Returns `None` if `change` leaves the schema as it is.
pub(crate) async fn change<T>(
    engine: &Engine,
    change: impl Fn(&Schema) -> Result<Option<(Schema, T)>, CqlError>,
) -> Result<Option<T>, CqlError> {
    let changing = engine.schema_updates.changing.lock().await;
    loop {
        let before = engine.schema();
        let Some((schema, done)) = change(&before)? else {
            return Ok(None);
        };
        let schema = with_logs(&before, schema, engine.context.clock.now_us())?;
        if commit(engine, &before, schema).await? {
            drop(changing);
            await_schema_agreement(&engine.context).await?;
            return Ok(Some(done));
        }
    }
}

#[async_trait]
impl SchemaChanges for Engine {
    async fn update(&self, function: &SchemaFunction<'_>) -> Result<(), CqlError> {
        change(self, |schema| Ok(function(schema).map(|next| (next, ())))).await?;
        Ok(())
    }
}

/// Reads the schema from the store. A new store has only the system keyspaces.
pub(crate) async fn load(store: &Store, system: SystemKeyspaces) -> Result<Schema, CqlError> {
    schema_store::load(store, system).await
}

pub(crate) mod role_changes;
#[cfg(test)]
#[path = "ddl_tests.rs"]
mod tests;
