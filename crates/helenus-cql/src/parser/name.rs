//! Identifiers and names.

use super::{Parsed, Parser};
use crate::ast::{FunctionName, Ident, QualifiedName};
use crate::lexer::{Kind, Token};

/// Names of things that can't be bound, as messages call them.
const KEYSPACE_NAMES: &str = "keyspace names";
const TABLE_NAMES: &str = "table names";
const INDEX_NAMES: &str = "index names";

impl Parser<'_> {
    /// Returns the name that a token denotes: in lower case, unless it was quoted.
    pub(super) fn name_of(&self, token: Token) -> Ident {
        match token.kind {
            Kind::QuotedName => Ident(self.token_text(token)),
            Kind::EmptyQuotedName => Ident(String::new()),
            _ => Ident(self.slice(token).to_ascii_lowercase()),
        }
    }

    /// Parses rules `ident`, `fident`, `noncol_ident`.
    pub(super) fn ident(&mut self) -> Parsed<Ident> {
        if !self.kind().is_ident() {
            return Err(self.no_viable());
        }
        let token = self.advance();
        Ok(self.name_of(token))
    }

    /// Returns true if the token that is `distance` places ahead begins a `cident`.
    pub(super) fn is_column_at(&self, distance: usize) -> bool {
        let kind = self.kind_at(distance);
        kind.is_ident() || kind == Kind::EmptyQuotedName
    }

    /// Parses rule `cident`: a column, whose name may be empty.
    pub(super) fn column(&mut self) -> Parsed<Ident> {
        if self.at(Kind::EmptyQuotedName) {
            let token = self.advance();
            return Ok(self.name_of(token));
        }
        self.ident()
    }

    fn bindless_name(&mut self, what: &str) -> Parsed<Ident> {
        if self.at(Kind::QuestionMark) {
            return Err(self.recognition_error(format!("Bind variables cannot be used for {what}")));
        }
        self.ident()
    }

    /// Parses rule `keyspaceName`.
    pub(super) fn keyspace_name(&mut self) -> Parsed<Ident> {
        self.bindless_name(KEYSPACE_NAMES)
    }

    /// Parses rule `idxName`, without a keyspace.
    pub(super) fn plain_index_name(&mut self) -> Parsed<Ident> {
        self.bindless_name(INDEX_NAMES)
    }

    /// Parses a keyspace and a dot, or nothing. `follows` returns true for tokens that may follow a name without a keyspace.
    fn qualifier(&mut self, follows: fn(Kind) -> bool) -> Parsed<Option<Ident>> {
        let next = self.kind_at(1);
        if !self.kind().is_ident() && !self.at(Kind::QuestionMark) {
            return Ok(None);
        }
        if next == Kind::Dot {
            let keyspace = self.keyspace_name()?;
            self.advance();
            return Ok(Some(keyspace));
        }
        if follows(next) {
            self.reads(2);
            Ok(None)
        } else {
            Err(self.no_viable_at(1))
        }
    }

    fn qualified(&mut self, what: &str) -> Parsed<QualifiedName> {
        Ok(QualifiedName {
            keyspace: self.qualifier(follows_table)?,
            name: self.bindless_name(what)?,
        })
    }

    /// Parses rule `columnFamilyName`.
    pub(super) fn table_name(&mut self) -> Parsed<QualifiedName> {
        self.qualified(TABLE_NAMES)
    }

    /// Parses rule `columnFamilyName` where LIKE may follow, as in Cassandra 6.
    pub(super) fn new_table_name(&mut self) -> Parsed<QualifiedName> {
        if self.kind_at(1) != Kind::Like {
            return self.table_name();
        }
        Ok(QualifiedName {
            keyspace: None,
            name: self.bindless_name(TABLE_NAMES)?,
        })
    }

    /// Parses rule `indexName`.
    pub(super) fn index_name(&mut self) -> Parsed<QualifiedName> {
        self.qualified(INDEX_NAMES)
    }

    /// Parses rule `userTypeName`.
    pub(super) fn user_type_name(&mut self) -> Parsed<QualifiedName> {
        let keyspace = if self.kind().is_ident() && self.kind_at(1) == Kind::Dot {
            let keyspace = self.ident()?;
            self.advance();
            Some(keyspace)
        } else if self.kind().is_native_type() || (self.kind().is_ident() && !self.begins_non_type_ident()) {
            self.advance();
            return Err(self.mismatched(Kind::Dot));
        } else {
            None
        };
        Ok(QualifiedName {
            keyspace,
            name: self.non_type_ident()?,
        })
    }

    fn begins_non_type_ident(&self) -> bool {
        let kind = self.kind();
        matches!(kind, Kind::Identifier | Kind::QuotedName | Kind::Key) || kind.is_basic_unreserved()
    }

    /// Parses rule `non_type_ident`: an identifier that is not the name of a native type.
    fn non_type_ident(&mut self) -> Parsed<Ident> {
        const RESERVED: [&str; 7] = [
            "byte",
            "complex",
            "enum",
            "date",
            "interval",
            "macaddr",
            "bitstring",
        ];
        let kind = self.kind();
        if !self.begins_non_type_ident() {
            return Err(self.no_viable());
        }
        let token = self.advance();
        let text = self.slice(token);
        if kind == Kind::Identifier && RESERVED.contains(&text) {
            return Err(self.recognition_error(format!("Invalid (reserved) user type name {text}")));
        }
        Ok(self.name_of(token))
    }

    /// Returns true if the token that is `distance` places ahead may be the last part of a function's name.
    pub(super) fn is_function_name_at(&self, distance: usize) -> bool {
        let kind = self.kind_at(distance);
        matches!(
            kind,
            Kind::Identifier | Kind::QuotedName | Kind::Token | Kind::Count
        ) || kind.is_unreserved_function()
    }

    /// Parses rule `allowedFunctionName`. A keyword of Cassandra 5 keeps its written case.
    pub(super) fn plain_function_name(&mut self) -> Parsed<Ident> {
        if !self.is_function_name_at(0) {
            return Err(self.no_viable());
        }
        let token = self.advance();
        match token.kind {
            Kind::Between | Kind::Check | Kind::Generated | Kind::Superusers => Ok(self.name_of(token)),
            kind if kind.is_basic_unreserved() => Ok(Ident(self.slice(token).to_owned())),
            _ => Ok(self.name_of(token)),
        }
    }

    /// Parses rule `functionName`.
    pub(super) fn function_name(&mut self) -> Parsed<FunctionName> {
        if self.kind().is_ident() && !self.is_function_name_at(0) && self.kind_at(1) != Kind::Dot {
            self.advance();
            return Err(self.mismatched(Kind::Dot));
        }
        Ok(FunctionName {
            keyspace: self.qualifier(follows_function)?,
            name: self.plain_function_name()?,
        })
    }

    /// Parses rules `userOrRoleName`, `roleName`.
    pub(super) fn role_name(&mut self) -> Parsed<String> {
        if self.kind().is_string() {
            return self.expect_string();
        }
        Ok(self.bindless_name("role names")?.0)
    }
}

/// Returns true for tokens that may follow the name of a table in any statement.
fn follows_table(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        Eof | Semicolon
            | Where
            | Group
            | Order
            | Per
            | Limit
            | Allow
            | LeftParen
            | Json
            | Using
            | Set
            | With
            | As
            | Primary
            | Alter
            | Add
            | Drop
            | Rename
            | To
            | From
            | Of
            | NoRecursive
    )
}

/// Returns true for tokens that may follow a type in any statement.
pub(super) fn follows_type(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        Eof | Semicolon
            | RightParen
            | Comma
            | Greater
            | Static
            | Masked
            | Check
            | Primary
            | FinalFunc
            | InitCond
            | Language
    )
}

/// Returns true for tokens that may follow the name of a function in any statement.
fn follows_function(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::LeftParen
            | Kind::Eof
            | Kind::Semicolon
            | Kind::With
            | Kind::To
            | Kind::From
            | Kind::Of
            | Kind::NoRecursive
    )
}
