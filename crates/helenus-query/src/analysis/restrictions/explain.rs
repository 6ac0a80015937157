//! Restrictions as text, for printed plans.

use helenus_cql::types::CqlType;

use super::restriction::{Contains, InList, Restriction, Slice, SliceBound, Test, Tuple, names};
use super::token::TokenRestriction;
use super::{StatementRestrictions, is_filter};
use crate::analysis::terms::Term;
use crate::index::choice;
use crate::schema::Table;

fn ty(table: &Table, column: usize) -> Option<&CqlType> {
    table.columns.get(column).map(|column| &column.ty)
}

fn tuple_text(table: &Table, columns: &[usize], tuple: &Tuple) -> String {
    match tuple {
        Tuple::Value(term) => term.explain(columns.first().and_then(|column| ty(table, *column))),
        Tuple::Elements(terms) => {
            let terms = terms.iter().zip(columns);
            let texts: Vec<String> = terms
                .map(|(term, column)| term.explain(ty(table, *column)))
                .collect();
            format!("({})", texts.join(", "))
        }
        Tuple::Marker { index, .. } => format!("?{index}"),
    }
}

fn slice_text(table: &Table, restriction: &Restriction, left: &str, slice: &Slice) -> String {
    let side = |bound: &SliceBound, sign: char| {
        let equal = if bound.is_inclusive { "=" } else { "" };
        format!(
            "{left} {sign}{equal} {}",
            tuple_text(table, &restriction.columns, &bound.tuple)
        )
    };
    let mut texts: Vec<String> = match (&slice.start, &slice.end) {
        (Some(start), Some(end)) if slice.is_between => {
            let columns = &restriction.columns;
            let [first, second] = [start, end].map(|bound| tuple_text(table, columns, &bound.tuple));
            vec![format!("{left} BETWEEN {first} AND {second}")]
        }
        (start, end) => {
            let start = start.as_ref().map(|bound| side(bound, '>'));
            let end = end.as_ref().map(|bound| side(bound, '<'));
            start.into_iter().chain(end).collect()
        }
    };
    let excluded = slice.excluded.iter();
    texts.extend(excluded.map(|excluded| {
        let list = list_text(table, &excluded.columns, &excluded.list);
        format!("{left} NOT IN {list}")
    }));
    texts.join(" AND ")
}

fn list_text(table: &Table, columns: &[usize], list: &InList) -> String {
    if let InList::Marker { index, .. } = list {
        return format!("?{index}");
    }
    let texts: Vec<String> = list
        .values()
        .map(|tuple| tuple_text(table, columns, &tuple))
        .collect();
    format!("({})", texts.join(", "))
}

fn contains_text(column: Option<&CqlType>, left: &str, contains: &Contains) -> String {
    let (key, value) = match column {
        Some(CqlType::Map { key, value, .. }) => (Some(key.as_ref()), Some(value.as_ref())),
        Some(CqlType::List { element, .. } | CqlType::Set { element, .. }) => (None, Some(element.as_ref())),
        _ => (None, None),
    };
    let values = contains
        .values
        .iter()
        .map(|term| format!("{left} CONTAINS {}", term.explain(value)));
    let keys = contains
        .keys
        .iter()
        .map(|term| format!("{left} CONTAINS KEY {}", term.explain(key)));
    let entries = contains.entries.iter();
    let entries = entries.map(|(at, term)| format!("{left}[{}] = {}", at.explain(key), term.explain(value)));
    let absent_values = contains.absent_values.iter();
    let absent_values = absent_values.map(|term| format!("{left} NOT CONTAINS {}", term.explain(value)));
    let absent_keys = contains.absent_keys.iter();
    let absent_keys = absent_keys.map(|term| format!("{left} NOT CONTAINS KEY {}", term.explain(key)));
    values
        .chain(keys)
        .chain(entries)
        .chain(absent_values)
        .chain(absent_keys)
        .collect::<Vec<_>>()
        .join(" AND ")
}

fn restriction_text(table: &Table, restriction: &Restriction) -> String {
    let columns = &restriction.columns;
    let left = match restriction.is_multi {
        true => format!("({})", names(table, columns, ", ")),
        false => names(table, columns, ", "),
    };
    let first = columns.first().and_then(|column| ty(table, *column));
    match &restriction.test {
        Test::Eq(tuple) => format!("{left} = {}", tuple_text(table, columns, tuple)),
        Test::In(list) => format!("{left} IN {}", list_text(table, columns, list)),
        Test::Slice(slice) => slice_text(table, restriction, &left, slice),
        Test::Contains(contains) => contains_text(first, &left, contains),
        Test::Like(term) => format!("{left} LIKE {}", term.explain(first)),
        Test::IsNotNull => format!("{left} IS NOT NULL"),
    }
}

fn set_text<'r>(table: &Table, restrictions: impl Iterator<Item = &'r Restriction>) -> String {
    let texts: Vec<String> = restrictions
        .map(|restriction| restriction_text(table, restriction))
        .collect();
    texts.join(" AND ")
}

fn token_text(table: &Table, token: &TokenRestriction) -> String {
    let key: Vec<usize> = (0..table.partition_key_count).collect();
    let left = format!("token({})", names(table, &key, ", "));
    let side = |bound: &Option<(Term, bool)>, sign: char| {
        let (term, is_inclusive) = bound.as_ref()?;
        let equal = if *is_inclusive { "=" } else { "" };
        Some(format!(
            "{left} {sign}{equal} {}",
            term.explain(Some(&CqlType::BIGINT))
        ))
    };
    match token {
        TokenRestriction::Eq(term) => format!("{left} = {}", term.explain(Some(&CqlType::BIGINT))),
        TokenRestriction::Slice { start, end, .. } => {
            let sides = side(start, '>').into_iter().chain(side(end, '<'));
            sides.collect::<Vec<_>>().join(" AND ")
        }
    }
}

impl StatementRestrictions {
    /// Returns a line for each part of the WHERE clause: the partitions, the rows in them, and the filters.
    pub(crate) fn explain(&self) -> Vec<String> {
        let table = &self.table;
        let mut lines = Vec::new();
        if !self.partition.set.is_empty() && !self.filters_partition {
            lines.push(format!(
                "partitions: {}",
                set_text(table, self.partition.set.iter())
            ));
        }
        if let Some(token) = &self.partition.token {
            lines.push(format!("tokens: {}", token_text(table, token)));
        }
        let rows = set_text(table, self.unfiltered_clustering().into_iter());
        if !rows.is_empty() {
            let kind = if self.names_slices() { "slices" } else { "names" };
            lines.push(format!("rows: {rows} ({kind})"));
        }
        let filters = self.filtered();
        if !filters.is_empty() {
            lines.push(format!("filter: {}", set_text(table, filters.into_iter())));
        }
        lines
    }

    fn is_filtered_clustering(&self, restriction: &Restriction, position: usize) -> bool {
        self.filters_clustering
            && (is_filter(restriction, position)
                || choice::has_supporting_index(&self.table, &restriction.index_use()))
    }

    fn clustering_parts(&self) -> (Vec<&Restriction>, Vec<&Restriction>) {
        let (mut unfiltered, mut filtered) = (Vec::new(), Vec::new());
        let mut position = self.table.partition_key_count;
        for restriction in self.clustering.iter() {
            if self.is_filtered_clustering(restriction, position) {
                filtered.push(restriction);
                continue;
            }
            unfiltered.push(restriction);
            if !restriction.is_slice() {
                position = restriction.last_column() + 1;
            }
        }
        (unfiltered, filtered)
    }

    fn unfiltered_clustering(&self) -> Vec<&Restriction> {
        self.clustering_parts().0
    }

    fn filtered(&self) -> Vec<&Restriction> {
        let partition: Vec<&Restriction> = match self.filters_partition {
            true => self.partition.set.iter().collect(),
            false => Vec::new(),
        };
        let parts = partition.into_iter().chain(self.clustering_parts().1);
        parts.chain(self.regular.iter()).collect()
    }
}
