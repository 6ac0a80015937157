//! CREATE and ALTER TABLE.

use super::{Parsed, Parser};
use crate::ast::{
    AlterTable, ClusteringOrder, ColumnDefinition, ColumnMask, CopyTable, CreateTable, CreateTableLike,
    FunctionName, Ident, Statement, TableChange,
};
use crate::error::CqlError;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `createTableStatement`.
    pub(super) fn create_table(&mut self) -> Parsed<Statement> {
        self.advance();
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let table = self.new_table_name()?;
        if self.copy_of() {
            return Ok(Statement::CopyTable(Box::new(CopyTable {
                table,
                if_not_exists,
                origin: self.table_name()?,
                as_of: self.as_of()?,
            })));
        }
        if self.accept(Kind::Like) {
            let mut like = CreateTableLike {
                table,
                if_not_exists,
                source: self.table_name()?,
                copies_indexes: false,
                properties: Default::default(),
            };
            self.like_options(&mut like)?;
            return Ok(Statement::CreateTableLike(Box::new(like)));
        }
        let mut create = CreateTable {
            table,
            if_not_exists,
            columns: Vec::new(),
            partition_key: None,
            clustering_columns: Vec::new(),
            clustering_order: Vec::new(),
            compact_storage: false,
            properties: Default::default(),
        };
        self.table_definition(&mut create)?;
        Ok(Statement::CreateTable(Box::new(create)))
    }

    /// Parses the options of `CREATE TABLE … LIKE`: properties, and the parts of the source that are copied besides its columns and options.
    fn like_options(&mut self, like: &mut CreateTableLike) -> Parsed<()> {
        if !self.accept(Kind::With) {
            return Ok(());
        }
        loop {
            if self.kind_at(1) == Kind::EqSign {
                self.property(&mut like.properties)?;
            } else if self.is_word(0, "indexes") {
                self.advance();
                like.copies_indexes = true;
            } else if self.is_word(0, "comments") {
                // The comment of a table is one of its options. Columns have no comments.
                self.advance();
            } else if self.is_word(0, "security") && self.is_word(1, "labels") {
                return Err(CqlError::Invalid(
                    "WITH SECURITY LABELS is not supported: tables have no security labels here".to_owned(),
                ));
            } else {
                self.property(&mut like.properties)?;
            }
            if !self.accept(Kind::And) {
                return Ok(());
            }
        }
    }

    /// Parses rule `tableDefinition`.
    fn table_definition(&mut self, create: &mut CreateTable) -> Parsed<()> {
        let mut names = std::collections::HashSet::new();
        self.expect(Kind::LeftParen)?;
        self.table_column(create, &mut names)?;
        while self.accept(Kind::Comma) {
            if self.at(Kind::Primary) || self.kind().is_ident() {
                self.table_column(create, &mut names)?;
            }
        }
        self.expect(Kind::RightParen)?;
        if !self.accept(Kind::With) {
            return Ok(());
        }
        loop {
            self.table_property(create)?;
            if !self.accept(Kind::And) {
                return Ok(());
            }
        }
    }

    /// Parses rule `tableColumns`.
    fn table_column(
        &mut self,
        create: &mut CreateTable,
        names: &mut std::collections::HashSet<Ident>,
    ) -> Parsed<()> {
        if self.accept(Kind::Primary) {
            return self.table_primary_key(create);
        }
        let mut column = self.column_definition()?;
        column.constraints = self.column_constraints()?;
        let name = column.name.clone();
        if !names.insert(name.clone()) {
            return Err(CqlError::Invalid(format!(
                "Duplicate column '{name}' declaration for table '{}'",
                create.table
            )));
        }
        create.columns.push(column);
        if self.accept(Kind::Primary) {
            self.expect(Kind::Key)?;
            set_partition_key(create, vec![name])?;
        }
        Ok(())
    }

    fn table_primary_key(&mut self, create: &mut CreateTable) -> Parsed<()> {
        self.expect_all(&[Kind::Key, Kind::LeftParen])?;
        let partition_key = self.partition_key()?;
        set_partition_key(create, partition_key)?;
        while self.accept(Kind::Comma) {
            create.clustering_columns.push(self.ident()?);
        }
        self.expect(Kind::RightParen)?;
        Ok(())
    }

    /// Parses rules `tablePartitionKey`, `viewPartitionKey`.
    pub(super) fn partition_key(&mut self) -> Parsed<Vec<Ident>> {
        if !self.accept(Kind::LeftParen) {
            return Ok(vec![self.ident()?]);
        }
        let columns = self.comma_separated(Self::ident)?;
        self.expect(Kind::RightParen)?;
        Ok(columns)
    }

    /// Parses a column's name, type, STATIC and mask. Only the columns of CREATE TABLE have constraints, which follow.
    fn column_definition(&mut self) -> Parsed<ColumnDefinition> {
        Ok(ColumnDefinition {
            name: self.ident()?,
            ty: self.type_name()?,
            is_static: self.accept(Kind::Static),
            mask: if self.at(Kind::Masked) {
                Some(self.column_mask()?)
            } else {
                None
            },
            constraints: Vec::new(),
        })
    }

    /// Parses rule `columnMask`.
    fn column_mask(&mut self) -> Parsed<ColumnMask> {
        if self.kind_at(1) != Kind::With {
            return Err(self.no_viable_at(1));
        }
        self.expect_all(&[Kind::Masked, Kind::With])?;
        if self.at(Kind::Default) && !matches!(self.kind_at(1), Kind::LeftParen | Kind::Dot) {
            self.advance();
            return Ok(ColumnMask {
                function: FunctionName::native("mask_default"),
                args: Vec::new(),
            });
        }
        Ok(ColumnMask {
            function: self.function_name()?,
            args: self.term_list(Kind::LeftParen, Kind::RightParen)?,
        })
    }

    /// Parses rule `tableProperty`.
    fn table_property(&mut self, create: &mut CreateTable) -> Parsed<()> {
        match (self.kind(), self.kind_at(1)) {
            (Kind::Compact, Kind::Storage) => {
                self.advance();
                self.advance();
                create.compact_storage = true;
                Ok(())
            }
            (Kind::Clustering, Kind::Order) => {
                let what = format!("table '{}'", create.table);
                self.clustering_order(&mut create.clustering_order, &what)
            }
            _ => self.property(&mut create.properties),
        }
    }

    /// Parses `CLUSTERING ORDER BY (...)`. `what` is the table's name in messages.
    pub(super) fn clustering_order(&mut self, order: &mut Vec<ClusteringOrder>, what: &str) -> Parsed<()> {
        self.expect_all(&[Kind::Clustering, Kind::Order, Kind::By, Kind::LeftParen])?;
        loop {
            let column = self.ident()?;
            let descending = match self.kind() {
                Kind::Asc => false,
                Kind::Desc => true,
                _ => return Err(self.no_viable()),
            };
            self.advance();
            if order.iter().any(|earlier| earlier.column == column) {
                return Err(CqlError::Invalid(format!(
                    "Duplicate column '{column}' in CLUSTERING ORDER BY clause for {what}"
                )));
            }
            order.push(ClusteringOrder { column, descending });
            if !self.accept(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightParen)?;
        Ok(())
    }

    /// Parses rule `alterTableStatement`.
    pub(super) fn alter_table(&mut self) -> Parsed<AlterTable> {
        self.advance();
        self.advance();
        let if_exists = self.if_exists()?;
        let table = self.table_name()?;
        let change = match self.kind() {
            Kind::Alter => self.alter_column()?,
            Kind::Add => self.add_columns()?,
            Kind::Drop if self.kind_at(1) == Kind::Compact && self.kind_at(2) == Kind::Storage => {
                self.expect_all(&[Kind::Drop, Kind::Compact, Kind::Storage])?;
                TableChange::DropCompactStorage
            }
            Kind::Drop => {
                if !self.kind_at(1).is_ident() && !matches!(self.kind_at(1), Kind::If | Kind::LeftParen) {
                    return Err(self.no_viable_at(1));
                }
                self.drop_columns()?
            }
            Kind::Rename => {
                self.advance();
                TableChange::Rename {
                    if_exists: self.if_exists()?,
                    columns: self.renames()?,
                }
            }
            Kind::With => {
                self.advance();
                TableChange::Properties(self.properties()?)
            }
            _ => return Err(self.no_viable()),
        };
        Ok(AlterTable {
            table,
            if_exists,
            change,
        })
    }

    /// Parses `ALTER c TYPE t`, `ALTER c MASKED WITH ...`, `ALTER c CHECK ...`, or `ALTER c DROP` with MASKED or CHECK.
    fn alter_column(&mut self) -> Parsed<TableChange> {
        if self.kind_at(1) != Kind::If {
            if !self.is_column_at(1) {
                return Err(self.no_viable_at(1));
            }
            if !matches!(
                self.kind_at(2),
                Kind::Type | Kind::Masked | Kind::Check | Kind::Drop
            ) {
                return Err(self.no_viable_at(2));
            }
        }
        self.advance();
        let if_exists = self.if_exists()?;
        let column = self.column()?;
        match self.kind() {
            Kind::Type if !if_exists => {
                self.advance();
                Ok(TableChange::AlterType {
                    column,
                    ty: self.type_name()?,
                })
            }
            Kind::Masked => Ok(TableChange::Mask {
                column,
                if_exists,
                mask: Some(self.column_mask()?),
            }),
            Kind::Check => Ok(TableChange::Constrain {
                column,
                if_exists,
                constraints: self.column_constraints()?,
            }),
            Kind::Drop if self.kind_at(1) == Kind::Check => {
                self.expect_all(&[Kind::Drop, Kind::Check])?;
                Ok(TableChange::Constrain {
                    column,
                    if_exists,
                    constraints: Vec::new(),
                })
            }
            Kind::Drop => {
                self.expect_all(&[Kind::Drop, Kind::Masked])?;
                Ok(TableChange::Mask {
                    column,
                    if_exists,
                    mask: None,
                })
            }
            _ => Err(self.no_viable()),
        }
    }

    fn add_columns(&mut self) -> Parsed<TableChange> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let columns = if self.accept(Kind::LeftParen) {
            let columns = self.comma_separated(Self::column_definition)?;
            self.expect(Kind::RightParen)?;
            columns
        } else {
            vec![self.column_definition()?]
        };
        Ok(TableChange::Add {
            if_not_exists,
            columns,
        })
    }

    fn drop_columns(&mut self) -> Parsed<TableChange> {
        self.advance();
        let if_exists = self.if_exists()?;
        let columns = if self.accept(Kind::LeftParen) {
            let columns = self.comma_separated(Self::ident)?;
            self.expect(Kind::RightParen)?;
            columns
        } else {
            vec![self.ident()?]
        };
        let timestamp = if self.accept(Kind::Using) {
            self.expect(Kind::Timestamp)?;
            Some(self.drop_timestamp()?)
        } else {
            None
        };
        Ok(TableChange::Drop {
            if_exists,
            columns,
            timestamp,
        })
    }

    fn drop_timestamp(&mut self) -> Parsed<i64> {
        let token = self.expect(Kind::Integer)?;
        let text = self.slice(token);
        text.parse().map_err(|_| {
            self.failed_parsing("NumberFormatException", &format!("For input string: \"{text}\""))
        })
    }

    /// Parses `a TO b AND c TO d`.
    pub(super) fn renames(&mut self) -> Parsed<Vec<(Ident, Ident)>> {
        let mut renames = Vec::new();
        loop {
            let from = self.ident()?;
            self.expect(Kind::To)?;
            renames.push((from, self.ident()?));
            if !self.accept(Kind::And) {
                return Ok(renames);
            }
        }
    }
}

fn set_partition_key(create: &mut CreateTable, columns: Vec<Ident>) -> Parsed<()> {
    if create.partition_key.is_some() {
        return Err(CqlError::Invalid(format!(
            "Multiple PRIMARY KEY specified for table '{}' (exactly one required)",
            create.table
        )));
    }
    create.partition_key = Some(columns);
    Ok(())
}
