//! Chooses the kind of a statement and parses it.

use super::{Parsed, Parser};
use crate::ast::{Modification, Statement};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `query`: a statement, followed only by semicolons.
    pub(super) fn query(&mut self) -> Parsed<Statement> {
        let statement = self.statement()?;
        while self.accept(Kind::Semicolon) {}
        if !self.at(Kind::Eof) {
            return Err(self.mismatched(Kind::Eof));
        }
        match self.any_lex_error() {
            Some(error) => Err(error),
            None => Ok(statement),
        }
    }

    /// Parses rule `cqlStatement`.
    fn statement(&mut self) -> Parsed<Statement> {
        if let Some(statement) = self.service_level()? {
            return Ok(statement);
        }
        match self.kind() {
            Kind::Select => Ok(Statement::Select(Box::new(self.select()?))),
            Kind::Insert if self.begins_insert_rows() => {
                Ok(Statement::InsertRows(Box::new(self.insert_rows()?)))
            }
            Kind::Insert | Kind::Update | Kind::Delete => Ok(match self.modification()? {
                Modification::Insert(insert) => Statement::Insert(Box::new(insert)),
                Modification::InsertJson(insert) => Statement::InsertJson(Box::new(insert)),
                Modification::Update(update) => Statement::Update(Box::new(update)),
                Modification::Delete(delete) => Statement::Delete(Box::new(delete)),
            }),
            Kind::Begin if self.begins_transaction() => {
                Ok(Statement::Transaction(Box::new(self.transaction()?)))
            }
            Kind::Begin => Ok(Statement::Batch(Box::new(self.batch()?))),
            Kind::Use => {
                self.advance();
                Ok(Statement::Use(self.keyspace_name()?))
            }
            Kind::Truncate => {
                self.advance();
                if matches!(self.kind(), Kind::ColumnFamily | Kind::Table) {
                    self.advance();
                }
                Ok(Statement::Truncate(self.table_name()?))
            }
            Kind::Create => self.create(),
            Kind::Alter => self.alter(),
            Kind::Drop => self.drop(),
            Kind::Grant => self.grant(),
            Kind::Revoke => self.revoke(),
            Kind::List => self.list(),
            Kind::Add => Ok(Statement::AddIdentity(self.add_identity()?)),
            Kind::Describe | Kind::Desc => Ok(Statement::Describe(self.describe()?)),
            _ => Err(self.no_viable()),
        }
    }

    fn create(&mut self) -> Parsed<Statement> {
        match self.kind_at(1) {
            Kind::Keyspace => self.create_keyspace(),
            Kind::ColumnFamily | Kind::Table => self.create_table(),
            Kind::Index | Kind::Custom => Ok(Statement::CreateIndex(Box::new(self.create_index()?))),
            Kind::Type => Ok(Statement::CreateType(self.create_type()?)),
            Kind::Materialized => Ok(Statement::CreateView(Box::new(self.create_view()?))),
            Kind::Trigger => Ok(Statement::CreateTrigger(self.create_trigger()?)),
            Kind::Function => Ok(Statement::CreateFunction(Box::new(self.create_function()?))),
            Kind::Aggregate => Ok(Statement::CreateAggregate(Box::new(self.create_aggregate()?))),
            Kind::User => Ok(Statement::CreateRole(self.create_user()?)),
            Kind::Role => Ok(Statement::CreateRole(self.create_role()?)),
            Kind::Generated if self.kind_at(2) == Kind::Role => {
                Ok(Statement::CreateRole(self.create_role()?))
            }
            Kind::Generated => Err(self.no_viable_at(2)),
            Kind::Or => match (self.kind_at(2), self.kind_at(3)) {
                (Kind::Replace, Kind::Function) => {
                    Ok(Statement::CreateFunction(Box::new(self.create_function()?)))
                }
                (Kind::Replace, Kind::Aggregate) => {
                    Ok(Statement::CreateAggregate(Box::new(self.create_aggregate()?)))
                }
                (Kind::Replace, _) => Err(self.no_viable_at(3)),
                _ => Err(self.no_viable_at(2)),
            },
            _ => Err(self.no_viable_at(1)),
        }
    }

    fn alter(&mut self) -> Parsed<Statement> {
        match self.kind_at(1) {
            Kind::ColumnFamily | Kind::Table => Ok(Statement::AlterTable(Box::new(self.alter_table()?))),
            Kind::Keyspace => Ok(Statement::AlterKeyspace(self.alter_keyspace()?)),
            Kind::Type => Ok(Statement::AlterType(self.alter_type()?)),
            Kind::Materialized => Ok(Statement::AlterView(self.alter_view()?)),
            Kind::User => Ok(Statement::AlterRole(self.alter_user()?)),
            Kind::Role => Ok(Statement::AlterRole(self.alter_role()?)),
            _ => Err(self.no_viable_at(1)),
        }
    }

    fn drop(&mut self) -> Parsed<Statement> {
        match self.kind_at(1) {
            Kind::Keyspace => Ok(Statement::DropKeyspace(self.drop_keyspace()?)),
            Kind::ColumnFamily | Kind::Table => Ok(Statement::DropTable(self.drop_table()?)),
            Kind::Index => Ok(Statement::DropIndex(self.drop_index()?)),
            Kind::Type => Ok(Statement::DropType(self.drop_type()?)),
            Kind::Materialized => Ok(Statement::DropView(self.drop_view()?)),
            Kind::Trigger => Ok(Statement::DropTrigger(self.drop_trigger()?)),
            Kind::Function => Ok(Statement::DropFunction(self.drop_function()?)),
            Kind::Aggregate => Ok(Statement::DropAggregate(self.drop_function()?)),
            Kind::User => Ok(Statement::DropRole(self.drop_user()?)),
            Kind::Role => Ok(Statement::DropRole(self.drop_role()?)),
            Kind::Identity => Ok(Statement::DropIdentity(self.drop_identity()?)),
            _ => Err(self.no_viable_at(1)),
        }
    }
}
