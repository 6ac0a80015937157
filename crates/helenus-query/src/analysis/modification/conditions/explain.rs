//! Conditions as text, for printed plans.

use super::{ColumnCondition, Conditions, Part, Test};
use crate::schema::Table;

impl Conditions {
    /// Returns the text of the IF clause. `None` if there is no IF clause.
    pub(crate) fn explain(&self, table: &Table) -> Option<String> {
        match self {
            Conditions::None => None,
            Conditions::Exists => Some("the row exists".to_owned()),
            Conditions::NotExists => Some("the row does not exist".to_owned()),
            Conditions::Columns(conditions) => {
                let texts: Vec<String> = conditions
                    .iter()
                    .map(|condition| condition.explain(table))
                    .collect();
                Some(texts.join(" AND "))
            }
        }
    }
}

impl ColumnCondition {
    fn explain(&self, table: &Table) -> String {
        let column = table.columns.get(self.column);
        let name = column.map_or("", |column| column.name.as_str());
        let ty = column.map(|column| &column.ty);
        let (left, ty) = match &self.part {
            Part::Whole => (name.to_owned(), ty),
            Part::Element(key) => (format!("{name}[{}]", key.explain(None)), None),
            Part::Field(position) => (format!("{name}.field {position}"), None),
        };
        match &self.test {
            Test::Compare(operator, term) => format!("{left} {} {}", operator.symbol(), term.explain(ty)),
            Test::InMarker { index, .. } => format!("{left} IN ?{index}"),
            Test::InValues(_) | Test::InMarkers(_) => {
                let texts: Vec<String> = self.test.values().map(|term| term.explain(ty)).collect();
                format!("{left} IN ({})", texts.join(", "))
            }
        }
    }
}
