//! The plan of a SELECT as text: a line for each decision that planning makes.

use helenus_cql::types::CqlType;

use super::plan::{Aggregation, SelectPlan};
use crate::analysis::EvalContext;
use crate::analysis::restrictions::restriction::names;
use crate::clock::SystemClock;
use crate::index::kinds::registered;
use crate::index::lookup::{IndexLookup, lookups};
use crate::schema::{Index, TableKind};

fn index_text(index: &Index) -> String {
    let kind = match registered(index) {
        kind if kind.finds_only_rows => "SASI",
        kind if kind.ranks_vectors => "SAI",
        _ => "equality",
    };
    let (target, column) = (index.target.kind.name(), &index.target.column);
    match target {
        "" => format!("{} ({kind} on {column})", index.name),
        _ => format!("{} ({kind} on {target}({column}))", index.name),
    }
}

fn lookup_text(lookup: &IndexLookup) -> String {
    let range = if lookup.is_range() { "range of " } else { "" };
    format!("{range}index {}", index_text(&lookup.index))
}

impl SelectPlan {
    /// Returns the plan, line by line.
    pub(crate) fn explain(&self) -> Vec<String> {
        let mut lines = vec![format!("access: {}", self.explain_access())];
        lines.extend(self.restrictions.explain());
        lines.extend(self.explain_rows());
        lines.extend(self.explain_order());
        lines.extend(self.explain_aggregation());
        let limits = [
            ("limit", &self.limit),
            ("limit per partition", &self.per_partition_limit),
        ];
        for (name, limit) in limits {
            if let Some(term) = limit {
                lines.push(format!("{name}: {}", term.explain(Some(&CqlType::INT))));
            }
        }
        lines.push(format!("paging: {}", self.explain_paging()));
        lines.push(format!(
            "columns: {}",
            names(&self.table, self.selection.columns(), ", ")
        ));
        lines
    }

    fn explain_access(&self) -> String {
        if self.point.is_some() {
            return "row by its primary key".to_owned();
        }
        let restrictions = &self.restrictions;
        let range = match (restrictions.is_key_range, &restrictions.partition.token) {
            (false, _) if restrictions.key_is_in() => "several partitions",
            (false, _) => "one partition",
            (true, Some(_)) => "a range of tokens",
            (true, None) => "all partitions",
        };
        if self.table.kind == TableKind::Virtual {
            return format!("virtual table, {range}");
        }
        let lists = self.nearest.as_ref().filter(|_| restrictions.is_key_range);
        if let Some(index) = lists.and_then(|nearest| nearest.posting_lists(&self.table)) {
            let few = match restrictions.uses_index {
                true => format!(", or {} if that finds few rows,", self.explain_index()),
                false => String::new(),
            };
            return format!("posting lists of {}{few} in {range}", index.name);
        }
        if let Some(ordering) = &self.by_value {
            let is_restricted = restrictions.columns().contains(&ordering.column);
            let part = if is_restricted { "range of " } else { "" };
            return format!(
                "{part}index {} in the order of its values, {range}",
                index_text(&ordering.index)
            );
        }
        match restrictions.uses_index {
            true => format!("{} in {range}", self.explain_index()),
            false => range.to_owned(),
        }
    }

    /// Returns the index that is read. For some operators it depends on the values.
    fn explain_index(&self) -> String {
        let ctx = EvalContext {
            values: &[],
            clock: &SystemClock,
            protocol_version: 4,
        };
        let Ok(filter) = self.restrictions.filter(&ctx) else {
            return "index chosen by the bound values".to_owned();
        };
        let lookups = match lookups(&self.table, filter.expressions()) {
            Ok(lookups) => lookups,
            Err(error) => return format!("error: {error}"),
        };
        let is_usable = |lookup: &&IndexLookup| self.restrictions.is_key_range || !lookup.is_range();
        let texts: Vec<String> = lookups.iter().filter(is_usable).map(lookup_text).collect();
        match texts.as_slice() {
            [] => "index required, scan".to_owned(),
            [text] => text.clone(),
            _ => format!("whichever finds least of {}", texts.join(", ")),
        }
    }

    fn explain_rows(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.is_distinct {
            lines.push("distinct: partitions".to_owned());
        }
        if self.needs_static {
            let alone = match self.restrictions.returns_static_alone() {
                true => "read, a row of its own where a partition has no other",
                false => "read",
            };
            lines.push(format!("static row: {alone}"));
        }
        lines
    }

    fn explain_order(&self) -> Option<String> {
        if let Some(nearest) = &self.nearest {
            return Some(format!(
                "order: nearest by {}",
                names(&self.table, &[nearest.column], "")
            ));
        }
        if let Some(ordering) = &self.by_value {
            let direction = match ordering.is_descending {
                true => ", read backwards",
                false => "",
            };
            return Some(format!(
                "order: that of the index by {}{direction}",
                names(&self.table, &[ordering.column], "")
            ));
        }
        let sorted = names(&self.table, &self.sort_columns, ", ");
        let reversed = if self.is_reversed {
            ", partitions read backwards"
        } else {
            ""
        };
        match (sorted.is_empty(), self.is_reversed) {
            (true, false) => None,
            (true, true) => Some("order: partitions read backwards".to_owned()),
            (false, _) => Some(format!("order: sorted by {sorted} after the read{reversed}")),
        }
    }

    fn explain_aggregation(&self) -> Option<String> {
        match &self.aggregation {
            Aggregation::None => None,
            Aggregation::Everything => Some("groups: one of all rows".to_owned()),
            Aggregation::Groups(grouping) => {
                let by_function = if grouping.function.is_some() {
                    ", the last through a function"
                } else {
                    ""
                };
                Some(match grouping.prefix_len {
                    0 => "groups: by partition".to_owned(),
                    count => format!("groups: by partition and {count} clustering columns{by_function}"),
                })
            }
        }
    }

    fn explain_paging(&self) -> &'static str {
        match () {
            () if self.point.is_some() => "one row",
            () if self.nearest.is_some() => "none, the nearest rows are ranked",
            () if !self.sort_columns.is_empty() => "none, rows are sorted after the read",
            () => match self.aggregation {
                Aggregation::Everything => "none, one row",
                Aggregation::Groups(_) => "by groups",
                Aggregation::None => "by rows",
            },
        }
    }
}
