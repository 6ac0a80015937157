//! DESCRIBE.

use super::{Parsed, Parser};
use crate::ast::{Describe, DescribeTarget, QualifiedName};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `describeStatement`.
    pub(super) fn describe(&mut self) -> Parsed<Describe> {
        self.advance();
        let target = self.describe_target()?;
        let with_internals = self.accept(Kind::With);
        if with_internals {
            self.expect(Kind::Internals)?;
        }
        Ok(Describe {
            target,
            with_internals,
        })
    }

    fn describe_target(&mut self) -> Parsed<DescribeTarget> {
        let next = self.kind_at(1);
        let next_is_name = next.is_ident();
        let word = match self.kind() {
            Kind::Cluster => DescribeTarget::Cluster,
            Kind::Keyspaces => DescribeTarget::Keyspaces,
            Kind::Tables | Kind::ColumnFamilies => DescribeTarget::Tables,
            Kind::Types => DescribeTarget::Types,
            Kind::Functions => DescribeTarget::Functions,
            Kind::Aggregates => DescribeTarget::Aggregates,
            Kind::Schema => {
                self.advance();
                return Ok(DescribeTarget::Schema { full: false });
            }
            Kind::Full => {
                self.advance();
                self.expect(Kind::Schema)?;
                return Ok(DescribeTarget::Schema { full: true });
            }
            Kind::Only if next == Kind::Keyspace => {
                self.advance();
                return self.describe_keyspace(true);
            }
            Kind::Keyspace => return self.describe_keyspace(false),
            Kind::ColumnFamily | Kind::Table => {
                self.advance();
                return Ok(DescribeTarget::Table(self.table_name()?));
            }
            Kind::Index => {
                self.advance();
                return Ok(DescribeTarget::Index(self.table_name()?));
            }
            Kind::Materialized => {
                self.expect_all(&[Kind::Materialized, Kind::View])?;
                return Ok(DescribeTarget::View(self.table_name()?));
            }
            Kind::Type if next_is_name => {
                self.advance();
                return Ok(DescribeTarget::Type(self.user_type_name()?));
            }
            Kind::Function if next_is_name || next == Kind::Token => {
                self.advance();
                return Ok(DescribeTarget::Function(self.function_name()?));
            }
            Kind::Aggregate if next_is_name || next == Kind::Token => {
                self.advance();
                return Ok(DescribeTarget::Aggregate(self.function_name()?));
            }
            Kind::Type | Kind::Function | Kind::Aggregate | Kind::Only
                if !matches!(next, Kind::Dot | Kind::With | Kind::Eof | Kind::Semicolon) =>
            {
                return Err(self.no_viable_at(1));
            }
            _ => return self.describe_generic(),
        };
        // Cassandra's parser reads one token more to distinguish the word from a name. An error therefore quotes one token more.
        self.reads(2);
        self.advance();
        Ok(word)
    }

    fn describe_keyspace(&mut self, only: bool) -> Parsed<DescribeTarget> {
        self.expect(Kind::Keyspace)?;
        let named = self.kind().is_ident() || self.at(Kind::QuestionMark);
        let name = if named { Some(self.keyspace_name()?) } else { None };
        Ok(DescribeTarget::Keyspace { name, only })
    }

    fn describe_generic(&mut self) -> Parsed<DescribeTarget> {
        if self.kind().is_ident()
            && !matches!(
                self.kind_at(1),
                Kind::Dot | Kind::With | Kind::Eof | Kind::Semicolon
            )
        {
            return Err(self.no_viable_at(1));
        }
        let first = self.ident()?;
        if !self.accept(Kind::Dot) {
            return Ok(DescribeTarget::Generic(QualifiedName {
                keyspace: None,
                name: first,
            }));
        }
        Ok(DescribeTarget::Generic(QualifiedName {
            keyspace: Some(first),
            name: self.ident()?,
        }))
    }
}
