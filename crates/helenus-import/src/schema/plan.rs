//! The statements that make what the target lacks.

use std::collections::BTreeSet;

use helenus_cql::ast::Properties;

use super::live::LiveSchema;
use super::replication;
use super::source::SourceSchema;
use crate::table_name::TableName;

/// Options of tables that Helenus stores and shows, and that have no effect in it.
const WITHOUT_EFFECT: [&str; 14] = [
    "additional_write_policy",
    "bloom_filter_fp_chance",
    "compaction",
    "compression",
    "crc_check_chance",
    "dclocal_read_repair_chance",
    "extensions",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "min_index_interval",
    "read_repair",
    "read_repair_chance",
    "speculative_retry",
];

/// The statements, in the order in which they run, and facts for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub statements: Vec<PlannedStatement>,
    pub notes: BTreeSet<String>,
    /// Options of tables that have no effect on the target.
    pub without_effect: BTreeSet<String>,
}

/// A statement that makes something that the target lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStatement {
    /// The made thing in words, for example `table shop.users`.
    pub what: String,
    pub text: String,
}

/// Tables whose schema is wanted.
pub struct PlanOptions<'a> {
    /// Returns true for a wanted table.
    pub is_wanted: &'a dyn Fn(&TableName) -> bool,
    /// Tables with SSTables. Their keyspaces are made even without CREATE TABLE.
    pub with_data: BTreeSet<TableName>,
}

/// Returns the statements that the target lacks: keyspaces, types, functions, tables with the drops of their columns, indexes, and views.
pub fn plan(source: &SourceSchema, live: &LiveSchema, options: &PlanOptions<'_>) -> Plan {
    let mut plan = Plan {
        notes: source.notes.clone(),
        ..Plan::default()
    };
    let tables = || source.tables.iter().filter(|(name, _)| (options.is_wanted)(name));
    let keyspaces: BTreeSet<&str> = tables()
        .map(|(name, _)| name)
        .chain(options.with_data.iter().filter(|name| (options.is_wanted)(name)))
        .map(|name| name.keyspace.as_str())
        .collect();
    plan.add_keyspaces(source, live, &keyspaces);
    for script in &source.types {
        let is_missing = live
            .types
            .get(&script.name.keyspace, &script.name.table)
            .is_none();
        if keyspaces.contains(script.name.keyspace.as_str()) && is_missing {
            plan.add(format!("type {}", script.name), &script.text);
        }
    }
    for is_aggregate in [false, true] {
        for function in source
            .functions
            .iter()
            .filter(|of| of.is_aggregate == is_aggregate)
        {
            let key = (function.keyspace.clone(), function.name.clone());
            if keyspaces.contains(function.keyspace.as_str()) && !live.functions.contains(&key) {
                let kind = if is_aggregate { "aggregate" } else { "function" };
                let name = TableName::new(&*function.keyspace, &*function.name);
                plan.add(format!("{kind} {name}"), &function.text);
            }
        }
    }
    for (name, script) in tables() {
        plan.note_options(script.properties());
        if live.tables.contains_key(name) {
            continue;
        }
        plan.add(format!("table {name}"), &script.text);
        for (_, text) in &script.changes {
            plan.add(format!("change of {name}"), text);
        }
    }
    for (name, script) in tables() {
        for index in &script.indexes {
            let key = index
                .name
                .as_ref()
                .map(|index| (name.keyspace.clone(), index.clone()));
            // An index without a name can't be looked up; it belongs to a table that is made here.
            let is_missing = match &key {
                Some(key) => !live.indexes.contains(key),
                None => !live.tables.contains_key(name),
            };
            if is_missing {
                plan.add(format!("index on {name}"), &index.text);
            }
        }
    }
    for (name, script) in &source.views {
        let is_wanted = (options.is_wanted)(&script.base);
        let has_base = source.tables.contains_key(&script.base) || live.tables.contains_key(&script.base);
        if is_wanted && has_base && !live.views.contains(name) {
            plan.add(format!("view {name}"), &script.text);
        }
    }
    plan
}

impl Plan {
    fn add(&mut self, what: String, text: &str) {
        let text = text.to_owned();
        self.statements.push(PlannedStatement { what, text });
    }

    fn add_keyspaces(&mut self, source: &SourceSchema, live: &LiveSchema, keyspaces: &BTreeSet<&str>) {
        for keyspace in keyspaces {
            if live.keyspaces.contains(*keyspace) {
                continue;
            }
            let made = match source.keyspaces.get(*keyspace) {
                Some(create) => replication::statement_for(create, &live.data_centers),
                None => replication::default_statement(keyspace),
            };
            self.add(format!("keyspace {keyspace}"), &made.text);
            self.notes.extend(made.note);
        }
    }

    fn note_options(&mut self, properties: &Properties) {
        let names = properties.0.iter().map(|(name, _)| name.as_str());
        let without_effect = names.filter(|name| WITHOUT_EFFECT.contains(name));
        self.without_effect.extend(without_effect.map(str::to_owned));
    }
}
