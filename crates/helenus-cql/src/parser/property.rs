//! The properties of WITH clauses.

use super::{Parsed, Parser};
use crate::ast::{Properties, PropertyValue, Term};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `properties`.
    pub(super) fn properties(&mut self) -> Parsed<Properties> {
        let mut properties = Properties::default();
        loop {
            self.property(&mut properties)?;
            if !self.accept(Kind::And) {
                return Ok(properties);
            }
        }
    }

    /// Parses rule `property`.
    pub(super) fn property(&mut self, properties: &mut Properties) -> Parsed<()> {
        self.check_property_ahead()?;
        let name = self.ident()?.0;
        self.expect(Kind::EqSign)?;
        let value = if self.at(Kind::LeftBrace) {
            let entries = self.full_map_literal()?;
            PropertyValue::Map(self.property_map(entries)?)
        } else if self.kind().is_constant() {
            PropertyValue::Text(self.constant()?.text)
        } else {
            PropertyValue::Text(self.ident()?.0)
        };
        if properties.get(&name).is_some() {
            return Err(self.recognition_error(format!("Multiple definitions for property '{name}'")));
        }
        properties.0.push((name, value));
        Ok(())
    }

    fn check_property_ahead(&self) -> Parsed<()> {
        if !self.kind().is_ident() {
            return Err(self.no_viable());
        }
        if self.kind_at(1) != Kind::EqSign {
            return Err(self.no_viable_at(1));
        }
        let value = self.kind_at(2);
        if value == Kind::LeftBrace || value.is_constant() || value.is_unreserved() {
            Ok(())
        } else {
            Err(self.no_viable_at(2))
        }
    }

    /// Converts a map of properties as Cassandra's `convertPropertyMap`: names and values must be constants, and names unique.
    pub(super) fn property_map(&self, entries: Vec<(Term, Term)>) -> Parsed<Vec<(String, String)>> {
        let mut map: Vec<(String, String)> = Vec::with_capacity(entries.len());
        let mut names = std::collections::HashSet::with_capacity(entries.len());
        for (name, value) in entries {
            let Term::Literal(name) = name else {
                return Err(self.not_a_constant(format!("Invalid property name: {name}"), &name));
            };
            let Term::Literal(value) = value else {
                let message = format!("Invalid property value: {value} for property: {name}");
                return Err(self.not_a_constant(message, &value));
            };
            if !names.insert(name.text.clone()) {
                return Err(self.recognition_error(format!("Multiple definition for property {}", name.text)));
            }
            map.push((name.text, value.text));
        }
        Ok(map)
    }

    fn not_a_constant(&self, mut message: String, term: &Term) -> crate::error::CqlError {
        if matches!(term, Term::Marker(_)) {
            message.push_str(" (bind variables are not supported in DDL queries)");
        }
        self.recognition_error(message)
    }
}
