//! Service levels. Their words are not keywords of Cassandra's, so the parser compares the text of tokens. `SERVICE_LEVEL` is one word or
//! two, as in ScyllaDB.

use super::{Parsed, Parser};
use crate::ast::{
    AlterServiceLevel, CreateServiceLevel, DropServiceLevel, ListServiceLevels, ServiceLevelOption,
    ServiceLevelStatement, Statement,
};
use crate::error::CqlError;
use crate::lexer::Kind;

const LEVEL: &str = "LEVEL";
const LEVELS: &str = "LEVELS";

impl Parser<'_> {
    /// Returns true if the token that is `distance` places ahead is the given word without quotes, ignoring case.
    pub(super) fn has_word_at(&self, distance: usize, word: &str) -> bool {
        let token = self.token_at(self.position + distance);
        token.kind == Kind::Identifier && self.slice(token).eq_ignore_ascii_case(word)
    }

    /// Returns the number of tokens of `SERVICE LEVEL` at that distance. `None` if other tokens are there.
    fn level_words_at(&self, distance: usize, noun: &str) -> Option<usize> {
        if self.has_word_at(distance, "SERVICE") && self.has_word_at(distance + 1, noun) {
            return Some(2);
        }
        let joined = match noun {
            LEVELS => "SERVICE_LEVELS",
            _ => "SERVICE_LEVEL",
        };
        self.has_word_at(distance, joined).then_some(1)
    }

    fn advance_by(&mut self, count: usize) {
        for _ in 0..count {
            self.advance();
        }
    }

    /// Takes a verb, `words` and `SERVICE LEVEL`. Returns false, without taking any token, if the statement is not about service levels.
    fn accept_level_words(&mut self, words: &[&str], noun: &str) -> bool {
        let mut places = words.iter().enumerate();
        let Some(count) = self.level_words_at(1 + words.len(), noun) else {
            return false;
        };
        let matches = places.all(|(place, word)| {
            self.has_word_at(1 + place, word) || (*word == "ALL" && self.kind_at(1 + place) == Kind::All)
        });
        if matches {
            self.advance_by(1 + words.len() + count);
        }
        matches
    }

    /// Parses a statement about service levels. `None` if the next words do not begin one.
    ///
    /// # Errors
    /// The words that begin the statement are not followed by the rest of a valid one.
    pub(super) fn service_level(&mut self) -> Parsed<Option<Statement>> {
        let verb = self.kind();
        let is_attach = self.has_word_at(0, "ATTACH");
        let is_detach = self.has_word_at(0, "DETACH");
        if verb == Kind::List {
            let list = self.list_service_levels()?;
            return Ok(list.map(|list| Statement::ServiceLevel(ServiceLevelStatement::List(list))));
        }
        let is_verb = is_attach || is_detach || matches!(verb, Kind::Create | Kind::Alter | Kind::Drop);
        if !is_verb || !self.accept_level_words(&[], LEVEL) {
            return Ok(None);
        }
        let statement = match verb {
            Kind::Create => ServiceLevelStatement::Create(self.create_service_level()?),
            Kind::Alter => ServiceLevelStatement::Alter(self.alter_service_level()?),
            Kind::Drop => ServiceLevelStatement::Drop(DropServiceLevel {
                if_exists: self.if_exists()?,
                name: self.service_level_name()?,
            }),
            _ if is_attach => {
                let level = self.service_level_name()?;
                self.expect(Kind::To)?;
                let role = self.role_name()?;
                ServiceLevelStatement::Attach { level, role }
            }
            _ => {
                self.expect(Kind::From)?;
                let role = self.role_name()?;
                ServiceLevelStatement::Detach { role }
            }
        };
        Ok(Some(Statement::ServiceLevel(statement)))
    }

    fn create_service_level(&mut self) -> Parsed<CreateServiceLevel> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.service_level_name()?;
        let options = match self.accept(Kind::With) {
            true => self.service_level_options()?,
            false => Vec::new(),
        };
        Ok(CreateServiceLevel {
            name,
            if_not_exists,
            options,
        })
    }

    fn alter_service_level(&mut self) -> Parsed<AlterServiceLevel> {
        let name = self.service_level_name()?;
        self.expect(Kind::With)?;
        Ok(AlterServiceLevel {
            name,
            options: self.service_level_options()?,
        })
    }

    fn list_service_levels(&mut self) -> Parsed<Option<ListServiceLevels>> {
        if self.accept_level_words(&[], LEVEL) {
            return Ok(Some(ListServiceLevels::One(self.service_level_name()?)));
        }
        if self.accept_level_words(&["ALL"], LEVELS) {
            return Ok(Some(ListServiceLevels::All));
        }
        if self.accept_level_words(&["ALL", "ATTACHED"], LEVELS) {
            return Ok(Some(ListServiceLevels::AllAttached));
        }
        if self.accept_level_words(&["ATTACHED"], LEVEL) {
            self.expect(Kind::Of)?;
            return Ok(Some(ListServiceLevels::AttachedTo(self.role_name()?)));
        }
        if self.accept_level_words(&["EFFECTIVE"], LEVEL) {
            self.expect(Kind::Of)?;
            return Ok(Some(ListServiceLevels::EffectiveOf(self.role_name()?)));
        }
        Ok(None)
    }

    /// Parses a name as those of roles: in lower case, unless it is quoted.
    fn service_level_name(&mut self) -> Parsed<String> {
        self.role_name()
    }

    fn service_level_options(&mut self) -> Parsed<Vec<ServiceLevelOption>> {
        let mut options: Vec<ServiceLevelOption> = Vec::new();
        loop {
            let name = self.ident()?.0;
            self.expect(Kind::EqSign)?;
            let value = if self.accept(Kind::Null) {
                None
            } else if self.kind().is_constant() {
                Some(self.constant()?.text)
            } else {
                Some(self.ident()?.0)
            };
            if options.iter().any(|option| option.name == name) {
                return Err(CqlError::Syntax(format!(
                    "Multiple definition for property '{name}'"
                )));
            }
            options.push(ServiceLevelOption { name, value });
            if !self.accept(Kind::And) {
                return Ok(options);
            }
        }
    }
}

#[cfg(test)]
#[path = "service_level_tests.rs"]
mod tests;
