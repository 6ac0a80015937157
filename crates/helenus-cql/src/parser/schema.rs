//! Keyspaces, types, indexes, views, functions, aggregates and triggers.

use super::{Parsed, Parser};
use crate::ast::{
    AlterKeyspace, AlterType, AlterView, CopyKeyspace, CreateAggregate, CreateFunction, CreateIndex,
    CreateKeyspace, CreateTrigger, CreateType, CreateView, DropFunction, DropIndex, DropKeyspace, DropTable,
    DropTrigger, DropType, DropView, Ident, IndexTarget, IndexTargetKind, Statement, TypeChange, TypeName,
};
use crate::error::CqlError;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `createKeyspaceStatement`.
    pub(super) fn create_keyspace(&mut self) -> Parsed<Statement> {
        self.expect_all(&[Kind::Create, Kind::Keyspace])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.keyspace_name()?;
        if self.copy_of() {
            return Ok(Statement::CopyKeyspace(CopyKeyspace {
                name,
                if_not_exists,
                origin: self.keyspace_name()?,
                as_of: self.as_of()?,
                properties: match self.accept(Kind::With) {
                    true => self.properties()?,
                    false => Default::default(),
                },
            }));
        }
        self.expect(Kind::With)?;
        Ok(Statement::CreateKeyspace(CreateKeyspace {
            name,
            if_not_exists,
            properties: self.properties()?,
        }))
    }

    /// Takes `AS COPY OF`. Returns false if the next tokens are others.
    pub(super) fn copy_of(&mut self) -> bool {
        let is_here = self.at(Kind::As) && self.is_word(1, "copy") && self.is_word(2, "of");
        if is_here {
            self.advance();
            self.advance();
            self.advance();
        }
        is_here
    }

    /// Parses rule `alterKeyspaceStatement`.
    pub(super) fn alter_keyspace(&mut self) -> Parsed<AlterKeyspace> {
        self.expect_all(&[Kind::Alter, Kind::Keyspace])?;
        let if_exists = self.if_exists()?;
        let name = self.keyspace_name()?;
        self.expect(Kind::With)?;
        Ok(AlterKeyspace {
            name,
            if_exists,
            properties: self.properties()?,
        })
    }

    /// Parses rule `dropKeyspaceStatement`.
    pub(super) fn drop_keyspace(&mut self) -> Parsed<DropKeyspace> {
        self.expect_all(&[Kind::Drop, Kind::Keyspace])?;
        Ok(DropKeyspace {
            if_exists: self.if_exists()?,
            name: self.keyspace_name()?,
        })
    }

    /// Parses rule `dropTableStatement`.
    pub(super) fn drop_table(&mut self) -> Parsed<DropTable> {
        self.advance();
        self.advance();
        Ok(DropTable {
            if_exists: self.if_exists()?,
            table: self.table_name()?,
        })
    }

    /// Parses rule `createTypeStatement`.
    pub(super) fn create_type(&mut self) -> Parsed<CreateType> {
        self.expect_all(&[Kind::Create, Kind::Type])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.user_type_name()?;
        self.expect(Kind::LeftParen)?;
        let mut fields = vec![self.type_field()?];
        while self.accept(Kind::Comma) {
            if self.kind().is_ident() {
                fields.push(self.type_field()?);
            }
        }
        self.expect(Kind::RightParen)?;
        Ok(CreateType {
            name,
            if_not_exists,
            fields,
        })
    }

    fn type_field(&mut self) -> Parsed<(Ident, TypeName)> {
        Ok((self.ident()?, self.type_name()?))
    }

    /// Parses rule `alterTypeStatement`.
    pub(super) fn alter_type(&mut self) -> Parsed<AlterType> {
        self.expect_all(&[Kind::Alter, Kind::Type])?;
        let if_exists = self.if_exists()?;
        let name = self.user_type_name()?;
        let change = match self.kind() {
            Kind::Alter => {
                self.advance();
                let field = self.ident()?;
                self.expect(Kind::Type)?;
                TypeChange::AlterField {
                    field,
                    ty: self.type_name()?,
                }
            }
            Kind::Add => {
                self.advance();
                TypeChange::AddField {
                    if_not_exists: self.if_not_exists()?,
                    field: self.ident()?,
                    ty: self.type_name()?,
                }
            }
            Kind::Rename => {
                self.advance();
                TypeChange::RenameFields {
                    if_exists: self.if_exists()?,
                    fields: self.renames()?,
                }
            }
            _ => return Err(self.no_viable()),
        };
        Ok(AlterType {
            name,
            if_exists,
            change,
        })
    }

    /// Parses rule `dropTypeStatement`.
    pub(super) fn drop_type(&mut self) -> Parsed<DropType> {
        self.expect_all(&[Kind::Drop, Kind::Type])?;
        Ok(DropType {
            if_exists: self.if_exists()?,
            name: self.user_type_name()?,
        })
    }

    /// Parses rule `createIndexStatement`.
    pub(super) fn create_index(&mut self) -> Parsed<CreateIndex> {
        self.expect(Kind::Create)?;
        let custom = self.accept(Kind::Custom);
        self.expect(Kind::Index)?;
        let if_not_exists = self.if_not_exists()?;
        let name = if self.kind().is_ident() || self.at(Kind::QuestionMark) {
            Some(self.plain_index_name()?)
        } else {
            None
        };
        self.expect(Kind::On)?;
        let table = self.table_name()?;
        self.expect(Kind::LeftParen)?;
        let targets = if self.is_column_at(0) || matches!(self.kind(), Kind::Entries | Kind::Full) {
            self.comma_separated(Self::index_target)?
        } else {
            Vec::new()
        };
        self.expect(Kind::RightParen)?;
        let using = if self.accept(Kind::Using) {
            Some(self.expect_string()?)
        } else {
            None
        };
        let properties = if self.accept(Kind::With) {
            self.properties()?
        } else {
            Default::default()
        };
        Ok(CreateIndex {
            custom,
            if_not_exists,
            name,
            table,
            targets,
            using,
            properties,
        })
    }

    /// Parses rule `indexIdent`.
    fn index_target(&mut self) -> Parsed<IndexTarget> {
        let kind = match self.kind() {
            Kind::Entries => IndexTargetKind::Entries,
            Kind::Full => IndexTargetKind::Full,
            Kind::Values if self.kind_at(1) == Kind::LeftParen => IndexTargetKind::Values,
            Kind::Keys if self.kind_at(1) == Kind::LeftParen => IndexTargetKind::Keys,
            Kind::Values | Kind::Keys if !matches!(self.kind_at(1), Kind::RightParen | Kind::Comma) => {
                return Err(self.no_viable_at(1));
            }
            _ => {
                return Ok(IndexTarget {
                    column: self.column()?,
                    kind: IndexTargetKind::Simple,
                });
            }
        };
        self.advance();
        self.expect(Kind::LeftParen)?;
        let column = self.column()?;
        self.expect(Kind::RightParen)?;
        Ok(IndexTarget { column, kind })
    }

    /// Parses rule `dropIndexStatement`.
    pub(super) fn drop_index(&mut self) -> Parsed<DropIndex> {
        self.expect_all(&[Kind::Drop, Kind::Index])?;
        let if_exists = self.if_exists()?;
        if self.kind().is_ident() && !matches!(self.kind_at(1), Kind::Dot | Kind::Eof | Kind::Semicolon) {
            return Err(self.no_viable_at(1));
        }
        Ok(DropIndex {
            if_exists,
            name: self.index_name()?,
        })
    }

    /// Parses rule `createMaterializedViewStatement`.
    pub(super) fn create_view(&mut self) -> Parsed<CreateView> {
        self.expect_all(&[Kind::Create, Kind::Materialized, Kind::View])?;
        let if_not_exists = self.if_not_exists()?;
        let view = self.table_name()?;
        self.expect_all(&[Kind::As, Kind::Select])?;
        let items = self.select_items()?;
        self.expect(Kind::From)?;
        let base = self.table_name()?;
        let relations = if self.accept(Kind::Where) {
            self.where_clause()?
        } else {
            Vec::new()
        };
        self.expect_all(&[Kind::Primary, Kind::Key, Kind::LeftParen])?;
        let mut create = CreateView {
            view,
            if_not_exists,
            base,
            items,
            relations,
            partition_key: self.partition_key()?,
            clustering_columns: Vec::new(),
            clustering_order: Vec::new(),
            properties: Default::default(),
        };
        while self.accept(Kind::Comma) {
            create.clustering_columns.push(self.ident()?);
        }
        self.expect(Kind::RightParen)?;
        self.view_properties(&mut create)?;
        Ok(create)
    }

    fn view_properties(&mut self, create: &mut CreateView) -> Parsed<()> {
        if !self.accept(Kind::With) {
            return Ok(());
        }
        loop {
            match (self.kind(), self.kind_at(1)) {
                (Kind::Compact, Kind::Storage) => {
                    return Err(CqlError::Syntax(
                        "COMPACT STORAGE tables are not allowed starting with version 4.0".to_owned(),
                    ));
                }
                (Kind::Clustering, Kind::Order) => {
                    let what = format!("view '{}'", create.view);
                    self.clustering_order(&mut create.clustering_order, &what)?;
                }
                _ => self.property(&mut create.properties)?,
            }
            if !self.accept(Kind::And) {
                return Ok(());
            }
        }
    }

    /// Parses rule `alterMaterializedViewStatement`.
    pub(super) fn alter_view(&mut self) -> Parsed<AlterView> {
        self.expect_all(&[Kind::Alter, Kind::Materialized, Kind::View])?;
        let if_exists = self.if_exists()?;
        let view = self.table_name()?;
        self.expect(Kind::With)?;
        Ok(AlterView {
            view,
            if_exists,
            properties: self.properties()?,
        })
    }

    /// Parses rule `dropMaterializedViewStatement`.
    pub(super) fn drop_view(&mut self) -> Parsed<DropView> {
        self.expect_all(&[Kind::Drop, Kind::Materialized, Kind::View])?;
        Ok(DropView {
            if_exists: self.if_exists()?,
            view: self.table_name()?,
        })
    }

    /// Parses `OR REPLACE`, or nothing.
    fn or_replace(&mut self) -> Parsed<bool> {
        if !self.accept(Kind::Or) {
            return Ok(false);
        }
        self.expect(Kind::Replace)?;
        Ok(true)
    }

    /// Parses rule `createFunctionStatement`.
    pub(super) fn create_function(&mut self) -> Parsed<CreateFunction> {
        self.expect(Kind::Create)?;
        let or_replace = self.or_replace()?;
        self.expect(Kind::Function)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        self.expect(Kind::LeftParen)?;
        let args = if self.kind().is_ident() {
            self.comma_separated(Self::type_field)?
        } else {
            Vec::new()
        };
        self.expect(Kind::RightParen)?;
        let called_on_null_input = match self.kind() {
            Kind::Returns => {
                self.advance();
                self.expect(Kind::Null)?;
                false
            }
            Kind::Called => {
                self.advance();
                true
            }
            _ => return Err(self.no_viable()),
        };
        self.expect_all(&[Kind::On, Kind::Null, Kind::Input, Kind::Returns])?;
        let returns = self.type_name()?;
        self.expect(Kind::Language)?;
        let language = self.expect(Kind::Identifier)?;
        let language = self.slice(language).to_ascii_lowercase();
        self.expect(Kind::As)?;
        Ok(CreateFunction {
            name,
            or_replace,
            if_not_exists,
            args,
            called_on_null_input,
            returns,
            language,
            body: self.expect_string()?,
        })
    }

    /// Parses rule `createAggregateStatement`.
    pub(super) fn create_aggregate(&mut self) -> Parsed<CreateAggregate> {
        self.expect(Kind::Create)?;
        let or_replace = self.or_replace()?;
        self.expect(Kind::Aggregate)?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.function_name()?;
        let arg_types = self.types_in_parentheses()?;
        self.expect(Kind::SFunc)?;
        let state_function = self.plain_function_name()?;
        self.expect(Kind::SType)?;
        let state_type = self.type_name()?;
        let final_function = if self.accept(Kind::FinalFunc) {
            Some(self.plain_function_name()?)
        } else {
            None
        };
        let initial_condition = if self.accept(Kind::InitCond) {
            Some(self.term()?)
        } else {
            None
        };
        Ok(CreateAggregate {
            name,
            or_replace,
            if_not_exists,
            arg_types,
            state_function,
            state_type,
            final_function,
            initial_condition,
        })
    }

    /// Parses zero or more types in parentheses.
    pub(super) fn types_in_parentheses(&mut self) -> Parsed<Vec<TypeName>> {
        self.expect(Kind::LeftParen)?;
        let types = if self.begins_type() {
            self.comma_separated(Self::type_name)?
        } else {
            Vec::new()
        };
        self.expect(Kind::RightParen)?;
        Ok(types)
    }

    /// Parses rules `dropFunctionStatement`, `dropAggregateStatement`.
    pub(super) fn drop_function(&mut self) -> Parsed<DropFunction> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let name = self.function_name()?;
        let arg_types = if self.at(Kind::LeftParen) {
            Some(self.types_in_parentheses()?)
        } else {
            None
        };
        Ok(DropFunction {
            name,
            if_exists,
            arg_types,
        })
    }

    /// Parses rule `createTriggerStatement`.
    pub(super) fn create_trigger(&mut self) -> Parsed<CreateTrigger> {
        self.expect_all(&[Kind::Create, Kind::Trigger])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.ident()?;
        self.expect(Kind::On)?;
        let table = self.table_name()?;
        self.expect(Kind::Using)?;
        Ok(CreateTrigger {
            name,
            if_not_exists,
            table,
            using: self.expect_string()?,
        })
    }

    /// Parses rule `dropTriggerStatement`.
    pub(super) fn drop_trigger(&mut self) -> Parsed<DropTrigger> {
        self.expect_all(&[Kind::Drop, Kind::Trigger])?;
        let if_exists = self.if_exists()?;
        let name = self.ident()?;
        self.expect(Kind::On)?;
        Ok(DropTrigger {
            name,
            if_exists,
            table: self.table_name()?,
        })
    }
}
