//! The plan of an INSERT, UPDATE, DELETE or BATCH as text: a line for each decision that planning makes.

use helenus_cql::ast::BatchKind;
use helenus_cql::types::CqlType;

use super::operation::{Action, Operation};
use super::{BatchPlan, ModificationPlan};
use crate::analysis::restrictions::StatementKind;
use crate::analysis::terms::Term;
use crate::schema::Table;

fn action_text(action: &Action, ty: Option<&CqlType>) -> String {
    let plain = |term: &Term| term.explain(None);
    match action {
        Action::Set(term) => format!("set to {}", term.explain(ty)),
        Action::Delete => "deleted".to_owned(),
        Action::Increment { delta, is_negated } => {
            let verb = if *is_negated { "decremented" } else { "incremented" };
            format!("{verb} by {}", delta.explain(Some(&CqlType::BIGINT)))
        }
        Action::AddValue(term) => format!("plus {}", term.explain(ty)),
        Action::SubtractValue(term) => format!("minus {}", term.explain(ty)),
        Action::Add(term) => format!("elements added: {}", term.explain(ty)),
        Action::Prepend(term) => format!("elements prepended: {}", term.explain(ty)),
        Action::DiscardValues(term) => format!("elements removed by value: {}", term.explain(ty)),
        Action::DiscardKeys { keys, ty } => format!("elements removed by key: {}", keys.explain(Some(ty))),
        Action::SetIndex { index, value } => format!("element at {} set to {}", plain(index), plain(value)),
        Action::SetKey { key, value } => format!("element of key {} set to {}", plain(key), plain(value)),
        Action::SetField { position, value } => format!("field {position} set to {}", plain(value)),
        Action::DeleteIndex(index) => format!("element at {} deleted", plain(index)),
        Action::DeleteKey(key) => format!("element of key {} deleted", plain(key)),
        Action::DeleteField(position) => format!("field {position} deleted"),
        Action::Refused(message) => format!("refused when it runs: {message}"),
    }
}

fn operation_text(table: &Table, operation: &Operation) -> String {
    let column = table.columns.get(operation.column);
    let name = column.map_or("", |column| column.name.as_str());
    let is_static = if operation.is_static { "static " } else { "" };
    let action = action_text(&operation.action, column.map(|column| &column.ty));
    format!("operation: {is_static}{name} {action}")
}

impl ModificationPlan {
    /// Returns the plan, line by line.
    pub(crate) fn explain(&self) -> Vec<String> {
        let mut lines = vec![format!("target: {}", self.explain_target())];
        lines.extend(self.restrictions.explain());
        lines.extend(
            self.operations
                .iter()
                .map(|operation| operation_text(&self.table, operation)),
        );
        lines.extend(
            self.conditions
                .explain(&self.table)
                .map(|text| format!("condition: {text}")),
        );
        lines.extend(self.explain_using());
        let reads = self.explain_reads();
        if !reads.is_empty() {
            lines.push(format!("read first: {}", reads.join(", ")));
        }
        lines.extend(self.explain_derived_tables());
        lines.push(format!("kind of write: {}", self.write_type().name()));
        lines.push(format!("repeatable: {}", self.is_repeatable()));
        lines
    }

    fn explain_target(&self) -> &'static str {
        let has_rows = !self.restrictions.clustering.is_empty() || self.table.clustering_count == 0;
        let (statics, regulars) = self.operation_kinds();
        match self.kind {
            _ if self.json.is_some() => "row of the JSON document",
            StatementKind::Delete if self.operations.is_empty() && !has_rows => "whole partitions",
            StatementKind::Delete if self.operations.is_empty() && self.point.is_none() => {
                "rows or ranges of rows"
            }
            StatementKind::Delete if self.operations.is_empty() => "row by its primary key",
            _ if statics && !regulars && self.restrictions.clustering.is_empty() => "static row",
            _ if self.point.is_some() => "row by its primary key",
            _ => "several rows",
        }
    }

    fn explain_using(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.attributes.has_timestamp() {
            let origin = if self.attributes.has_timestamp_marker() {
                "bound"
            } else {
                "given"
            };
            lines.push(format!("timestamp: {origin}"));
        }
        match (
            self.attributes.has_ttl(),
            self.table.options.default_time_to_live_s,
        ) {
            (true, _) => lines.push("time to live: given".to_owned()),
            (false, seconds) if seconds > 0 => lines.push(format!("time to live: {seconds} s, the table's")),
            _ => {}
        }
        lines
    }

    /// Returns the reasons for which the partition is locked and read before the write.
    fn explain_reads(&self) -> Vec<&'static str> {
        let by_operation = self
            .operations
            .iter()
            .any(|operation| operation.action.requires_read());
        [
            (self.is_conditional(), "condition"),
            (by_operation, "operations"),
            (self.table.has_derived_tables(), "indexes and views"),
            (self.table.has_images, "images of changes"),
        ]
        .into_iter()
        .filter_map(|(applies, reason)| applies.then_some(reason))
        .collect()
    }

    fn explain_derived_tables(&self) -> Vec<String> {
        let indexes: Vec<&str> = self
            .table
            .indexes
            .iter()
            .map(|index| index.name.as_str())
            .collect();
        let mut lines = Vec::new();
        for (kind, names) in [
            ("indexes", indexes.join(", ")),
            ("views", self.table.views.join(", ")),
        ] {
            if !names.is_empty() {
                lines.push(format!("{kind}: {names}"));
            }
        }
        lines
    }
}

impl BatchPlan {
    /// Returns the plan, line by line. The lines of the batch's statements follow, indented.
    pub(crate) fn explain(&self) -> Vec<String> {
        let kind = match self.kind() {
            BatchKind::Logged => "logged",
            BatchKind::Unlogged => "unlogged",
            BatchKind::Counter => "counter",
        };
        let routed_by = self
            .routed_by()
            .map_or("none, several tables".to_owned(), Table::full_name);
        let mut lines = vec![format!("batch: {kind}"), format!("routed by: {routed_by}")];
        for modification in self.modifications() {
            lines.push(format!(
                "{} {}",
                modification.kind,
                modification.table().full_name()
            ));
            lines.extend(modification.explain().into_iter().map(|line| format!("  {line}")));
        }
        lines
    }
}
