//! Terms.

use super::{Parsed, Parser};
use crate::ast::{ArithmeticOperator, Ident, Literal, LiteralKind, Term};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `constant`.
    pub(super) fn constant(&mut self) -> Parsed<Literal> {
        let (kind, text) = match self.kind() {
            Kind::StringLiteral | Kind::DollarString => (LiteralKind::String, None),
            Kind::Integer => (LiteralKind::Integer, None),
            Kind::FloatLiteral => (LiteralKind::Float, None),
            Kind::True | Kind::False => (LiteralKind::Boolean, None),
            Kind::DurationLiteral => (LiteralKind::Duration, None),
            Kind::UuidLiteral => (LiteralKind::Uuid, None),
            Kind::HexNumber => (LiteralKind::Hex, None),
            Kind::Nan | Kind::NegativeNan => (LiteralKind::Float, Some("NaN")),
            Kind::Infinity => (LiteralKind::Float, Some("Infinity")),
            Kind::NegativeInfinity => (LiteralKind::Float, Some("-Infinity")),
            _ => return Err(self.no_viable()),
        };
        let token = self.advance();
        Ok(Literal {
            kind,
            text: text.map_or_else(|| self.token_text(token), str::to_owned),
        })
    }

    /// Returns true if the next token begins a bind marker.
    pub(super) fn at_marker(&self) -> bool {
        matches!(self.kind(), Kind::QuestionMark | Kind::Colon)
    }

    /// Parses `?` or `:name`, and returns the marker's index.
    pub(super) fn marker(&mut self) -> Parsed<usize> {
        match self.kind() {
            Kind::QuestionMark => {
                self.advance();
                Ok(self.new_marker(None))
            }
            Kind::Colon => {
                self.advance();
                let name = self.ident()?;
                Ok(self.new_marker(Some(name)))
            }
            _ => Err(self.no_viable()),
        }
    }

    /// Parses rule `intValue`: an integer or a marker.
    pub(super) fn int_value(&mut self) -> Parsed<Term> {
        if self.at(Kind::Integer) {
            Ok(Term::Literal(self.constant()?))
        } else {
            Ok(Term::Marker(self.marker()?))
        }
    }

    /// Parses rules `term`, `termAddition`.
    pub(super) fn term(&mut self) -> Parsed<Term> {
        self.nested(|parser| {
            let mut term = parser.term_product()?;
            while let Some(operator) = parser.term_sum_operator() {
                if operator == ArithmeticOperator::Add && !parser.begins_term_at(1) {
                    return Err(parser.no_viable_at(1));
                }
                parser.link()?;
                term = operation(operator, term, parser.term_product()?);
            }
            if follows_term(parser.kind())
                || parser.begins_timeout()
                || parser.begins_bypass(0)
                || parser.ends_condition_term(0)
            {
                parser.reads(1);
                Ok(term)
            } else {
                Err(parser.no_viable())
            }
        })
    }

    /// Returns true if the token that is `distance` places ahead begins a term.
    pub(super) fn begins_term_at(&self, distance: usize) -> bool {
        let kind = self.kind_at(distance);
        matches!(
            kind,
            Kind::LeftParen
                | Kind::LeftBracket
                | Kind::LeftBrace
                | Kind::Null
                | Kind::QuestionMark
                | Kind::Colon
                | Kind::Minus
                | Kind::Token
        ) || kind.is_constant()
            || kind.is_ident()
    }

    /// Returns the operator of a next `+` or `-`. `None` for the `+` in `c = 1 + c`, which belongs to the assignment.
    fn term_sum_operator(&self) -> Option<ArithmeticOperator> {
        match self.kind() {
            Kind::Minus => Some(ArithmeticOperator::Subtract),
            Kind::Plus => {
                let calls = matches!(self.kind_at(2), Kind::LeftParen | Kind::Dot);
                (!self.is_column_at(1) || calls).then_some(ArithmeticOperator::Add)
            }
            _ => None,
        }
    }

    /// Parses rule `termMultiplication`.
    fn term_product(&mut self) -> Parsed<Term> {
        let mut term = self.term_group()?;
        while let Some(operator) = product_operator(self.kind()) {
            self.link()?;
            term = operation(operator, term, self.term_group()?);
        }
        Ok(term)
    }

    /// Parses rule `termGroup`.
    fn term_group(&mut self) -> Parsed<Term> {
        if self.accept(Kind::Minus) {
            return Ok(Term::Negation(Box::new(self.simple_term()?)));
        }
        self.simple_term()
    }

    /// Parses rule `simpleTerm`.
    pub(super) fn simple_term(&mut self) -> Parsed<Term> {
        match self.kind() {
            Kind::LeftParen => {
                if self.begins_hinted_term() {
                    return self.nested(Self::term_with_type_hint);
                }
                if self.kind_at(1).is_ident() && !self.begins_call(1) {
                    return Err(self.no_viable_at(self.name_length_at(1) + 1));
                }
                if !self.begins_term_at(1) {
                    return Err(self.no_viable_at(1));
                }
                self.tuple_literal()
            }
            Kind::LeftBracket => Ok(Term::List(self.term_list(Kind::LeftBracket, Kind::RightBracket)?)),
            Kind::LeftBrace => self.nested(Self::braces),
            Kind::Null => {
                self.advance();
                Ok(Term::Null)
            }
            Kind::QuestionMark
                if !follows_marker(self.kind_at(1))
                    && !self.begins_bypass(1)
                    && !self.ends_condition_term(1) =>
            {
                Err(self.no_viable_at(1))
            }
            Kind::QuestionMark | Kind::Colon => Ok(Term::Marker(self.marker()?)),
            Kind::Cast if self.kind_at(1) == Kind::LeftParen => self.nested(Self::cast),
            kind if kind.is_constant() => Ok(Term::Literal(self.constant()?)),
            _ if self.is_function_name_at(0) || self.kind().is_ident() => self.function_call(),
            _ => Err(self.no_viable()),
        }
    }

    /// Returns true if the parentheses can only contain a type. A string is taken for a type if a term follows.
    fn begins_hinted_term(&self) -> bool {
        let is_parameterised = self.kind_at(2) == Kind::Less;
        match self.kind_at(1) {
            Kind::Set => true,
            Kind::List | Kind::Map | Kind::Tuple | Kind::Vector | Kind::Frozen if is_parameterised => true,
            kind if kind.is_string() => self.begins_type_hint(Self::begins_simple_term),
            _ => self.begins_type_hint(|_, _| true),
        }
    }

    /// Returns the number of tokens of the name at that distance, with its keyspace if it has one. For an incomplete name, it is the number
    /// of tokens that fit.
    fn name_length_at(&self, distance: usize) -> usize {
        match (self.kind_at(distance + 1), self.kind_at(distance + 2).is_ident()) {
            (Kind::Dot, true) => 3,
            (Kind::Dot, false) => 2,
            _ => 1,
        }
    }

    /// Returns true if a type in parentheses comes next, followed by a token that `follows` accepts.
    pub(super) fn begins_type_hint(&self, follows: impl Fn(&Self, usize) -> bool) -> bool {
        self.type_length_at(1)
            .is_some_and(|length| self.kind_at(length + 1) == Kind::RightParen && follows(self, length + 2))
    }

    fn begins_simple_term(&self, distance: usize) -> bool {
        let kind = self.kind_at(distance);
        matches!(
            kind,
            Kind::LeftParen
                | Kind::LeftBracket
                | Kind::LeftBrace
                | Kind::Null
                | Kind::QuestionMark
        ) || kind.is_constant()
            || self.begins_call(distance)
            // Other tokens behind a colon are the value of a map, whose key is the string in parentheses.
            || (kind == Kind::Colon && self.kind_at(distance + 1).is_ident() && !self.begins_call(distance + 1))
    }

    /// Returns true if a call or a CAST begins at that distance.
    pub(super) fn begins_call(&self, distance: usize) -> bool {
        let next = self.kind_at(distance + 1);
        match next {
            Kind::LeftParen => self.is_function_name_at(distance) || self.kind_at(distance) == Kind::Cast,
            Kind::Dot => {
                self.kind_at(distance).is_ident()
                    && self.is_function_name_at(distance + 2)
                    && self.kind_at(distance + 3) == Kind::LeftParen
            }
            _ => false,
        }
    }

    fn term_with_type_hint(&mut self) -> Parsed<Term> {
        self.advance();
        let ty = self.type_name()?;
        self.expect(Kind::RightParen)?;
        Ok(Term::TypeHint {
            ty,
            term: Box::new(self.simple_term()?),
        })
    }

    fn cast(&mut self) -> Parsed<Term> {
        self.advance();
        self.expect(Kind::LeftParen)?;
        let term = self.simple_term()?;
        self.expect(Kind::As)?;
        let ty = self.native_type()?;
        self.expect(Kind::RightParen)?;
        Ok(Term::Cast {
            term: Box::new(term),
            ty,
        })
    }

    /// Parses rule `function`.
    fn function_call(&mut self) -> Parsed<Term> {
        let lookahead = self.function_lookahead();
        if let Some(distance) = lookahead {
            return Err(self.no_viable_at(distance));
        }
        let name = self.function_name()?;
        let args = self.term_list(Kind::LeftParen, Kind::RightParen)?;
        Ok(Term::Function { name, args })
    }

    /// Returns the distance of the first token that does not fit a call. `None` if the next tokens look like a call.
    fn function_lookahead(&self) -> Option<usize> {
        match self.kind_at(1) {
            Kind::LeftParen if self.is_function_name_at(0) => self.args_lookahead(2),
            Kind::Dot if self.kind().is_ident() => {
                if !self.is_function_name_at(2) {
                    Some(2)
                } else if self.kind_at(3) != Kind::LeftParen {
                    Some(3)
                } else {
                    self.args_lookahead(4)
                }
            }
            _ => Some(1),
        }
    }

    fn args_lookahead(&self, distance: usize) -> Option<usize> {
        let fits = self.kind_at(distance) == Kind::RightParen || self.begins_term_at(distance);
        (!fits).then_some(distance)
    }

    /// Parses rule `tupleLiteral`.
    pub(super) fn tuple_literal(&mut self) -> Parsed<Term> {
        self.expect(Kind::LeftParen)?;
        let terms = self.comma_separated(Self::term)?;
        self.expect(Kind::RightParen)?;
        Ok(Term::Tuple(terms))
    }

    /// Parses zero or more terms between `open` and `close`.
    pub(super) fn term_list(&mut self, open: Kind, close: Kind) -> Parsed<Vec<Term>> {
        self.expect(open)?;
        if !self.begins_term_at(0) {
            self.expect(close)?;
            return Ok(Vec::new());
        }
        let terms = self.comma_separated(Self::term)?;
        self.expect(close)?;
        Ok(terms)
    }

    /// Parses a set, a map or a user type. `{}` is an empty set.
    fn braces(&mut self) -> Parsed<Term> {
        if self.kind_at(1).is_ident() && self.kind_at(2) == Kind::Colon {
            return self.user_type_literal();
        }
        if !self.begins_term_at(1) && self.kind_at(1) != Kind::RightBrace {
            return Err(self.no_viable_at(1));
        }
        if self.kind_at(1).is_ident() && !matches!(self.kind_at(2), Kind::LeftParen | Kind::Dot) {
            return Err(self.no_viable_at(2));
        }
        self.advance();
        if self.accept(Kind::RightBrace) {
            return Ok(Term::Set(Vec::new()));
        }
        let first = self.term()?;
        if !self.at(Kind::Colon) {
            return self.set_literal(first);
        }
        let entries = self.map_entries(first)?;
        self.expect(Kind::RightBrace)?;
        Ok(Term::Map(entries))
    }

    fn set_literal(&mut self, first: Term) -> Parsed<Term> {
        let mut elements = vec![first];
        if !matches!(self.kind(), Kind::Comma | Kind::RightBrace) {
            return Err(self.no_viable());
        }
        while self.accept(Kind::Comma) {
            elements.push(self.term()?);
        }
        self.expect(Kind::RightBrace)?;
        Ok(Term::Set(elements))
    }

    /// Parses the rest of a map, behind its first key.
    fn map_entries(&mut self, first_key: Term) -> Parsed<Vec<(Term, Term)>> {
        self.expect(Kind::Colon)?;
        let mut entries = vec![(first_key, self.term()?)];
        while self.accept(Kind::Comma) {
            let key = self.term()?;
            self.expect(Kind::Colon)?;
            entries.push((key, self.term()?));
        }
        Ok(entries)
    }

    /// Parses rule `fullMapLiteral`.
    pub(super) fn full_map_literal(&mut self) -> Parsed<Vec<(Term, Term)>> {
        self.expect(Kind::LeftBrace)?;
        if !self.begins_term_at(0) {
            self.expect(Kind::RightBrace)?;
            return Ok(Vec::new());
        }
        let first = self.term()?;
        let entries = self.map_entries(first)?;
        self.expect(Kind::RightBrace)?;
        Ok(entries)
    }

    /// Parses rule `usertypeLiteral`.
    fn user_type_literal(&mut self) -> Parsed<Term> {
        self.advance();
        let mut fields: Vec<(Ident, Term)> = Vec::new();
        loop {
            let field = self.ident()?;
            self.expect(Kind::Colon)?;
            let value = self.term()?;
            fields.push((field, value));
            if !self.accept(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightBrace)?;
        Ok(Term::UserType(last_of_each(fields)))
    }
}

/// Returns the fields without duplicates. The last of equal fields is kept.
fn last_of_each(mut fields: Vec<(Ident, Term)>) -> Vec<(Ident, Term)> {
    let mut seen = std::collections::HashSet::with_capacity(fields.len());
    fields.reverse();
    fields.retain(|(field, _)| seen.insert(field.clone()));
    fields.reverse();
    fields
}

pub(super) fn product_operator(kind: Kind) -> Option<ArithmeticOperator> {
    match kind {
        Kind::Star => Some(ArithmeticOperator::Multiply),
        Kind::Slash => Some(ArithmeticOperator::Divide),
        Kind::Percent => Some(ArithmeticOperator::Modulo),
        _ => None,
    }
}

fn operation(operator: ArithmeticOperator, left: Term, right: Term) -> Term {
    Term::Operation {
        operator,
        left: Box::new(left),
        right: Box::new(right),
    }
}

/// Returns true for tokens that may follow a term in any statement.
fn follows_term(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        Comma
            | RightParen
            | RightBracket
            | RightBrace
            | Colon
            | Plus
            | Range
            | Eof
            | Semicolon
            | And
            | Order
            | Group
            | Per
            | Limit
            | Allow
            | Asc
            | Desc
            | If
            | Where
            | Primary
            | Insert
            | Update
            | Delete
            | Apply
    )
}

/// Returns true for tokens that may follow a marker in a term.
fn follows_marker(kind: Kind) -> bool {
    use Kind::*;
    follows_term(kind) || matches!(kind, Minus | Star | Slash | Percent | As)
}
