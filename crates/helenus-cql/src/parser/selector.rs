//! The selectors of SELECT.

use super::term::product_operator;
use super::{Parsed, Parser};
use crate::ast::{ArithmeticOperator, CellAttribute, FunctionName, Selector, Term};
use crate::error::CqlError;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rules `unaliasedSelector`, `selectionAddition`.
    pub(super) fn selector(&mut self) -> Parsed<Selector> {
        self.nested(|parser| {
            let mut selector = parser.selector_product()?;
            loop {
                let operator = match parser.kind() {
                    Kind::Plus => ArithmeticOperator::Add,
                    Kind::Minus => ArithmeticOperator::Subtract,
                    _ => break,
                };
                parser.link()?;
                selector = operation(operator, selector, parser.selector_product()?);
            }
            Ok(selector)
        })
    }

    /// Parses rule `selectionMultiplication`.
    fn selector_product(&mut self) -> Parsed<Selector> {
        let mut selector = self.selector_group()?;
        while let Some(operator) = product_operator(self.kind()) {
            self.link()?;
            selector = operation(operator, selector, self.selector_group()?);
        }
        Ok(selector)
    }

    /// Parses rules `selectionGroup`, `selectionGroupWithField`.
    fn selector_group(&mut self) -> Parsed<Selector> {
        if self.at(Kind::Minus) {
            return self.nested(|parser| {
                parser.advance();
                Ok(Selector::Negation(Box::new(parser.selector_group()?)))
            });
        }
        if self.kind().is_constant() || matches!(self.kind(), Kind::Colon | Kind::Null) {
            self.reads(2);
        }
        let selector = self.selector_without_field()?;
        if !matches!(self.kind(), Kind::Dot | Kind::LeftBracket) {
            return Ok(selector);
        }
        // Cassandra's parser tries the modifiers, and continues without them if they don't parse to their end.
        let (position, markers) = (self.position, self.bind_markers.len());
        let is_column = matches!(selector, Selector::Column(_));
        self.selector_modifiers(selector.clone()).or_else(|_| {
            self.reads(1);
            self.position = position;
            self.bind_markers.truncate(markers);
            if is_column && self.at(Kind::Dot) {
                self.check_qualified_column()?;
            }
            Ok(selector)
        })
    }

    /// Checks the tokens at a dot behind a column. Only a name may follow, and then only tokens that may follow a column. If a call seems
    /// to follow, its word can't name a function. The caller then reports the dot as the error.
    fn check_qualified_column(&mut self) -> Parsed<()> {
        if self.kind_at(1).is_ident() && self.kind_at(2) == Kind::LeftParen {
            self.reads(3);
            return Ok(());
        }
        let failing = if !self.kind_at(1).is_ident() {
            1
        } else if !follows_column(self.kind_at(2)) {
            2
        } else {
            return Ok(());
        };
        self.position -= 1;
        Err(self.no_viable_at(failing + 1))
    }

    /// Parses rule `selectorModifier`: fields, elements and slices of `receiver`.
    fn selector_modifiers(&mut self, mut receiver: Selector) -> Parsed<Selector> {
        let start = self.position;
        loop {
            match self.kind() {
                Kind::Dot => {
                    self.link()?;
                    receiver = Selector::Field {
                        receiver: Box::new(receiver),
                        field: self.ident()?,
                    };
                }
                Kind::LeftBracket if self.kind_at(1) == Kind::Range && !self.begins_term_at(2) => {
                    self.reads(2);
                    return Ok(receiver);
                }
                Kind::LeftBracket if self.kind_at(1) != Kind::Range && !self.begins_term_at(1) => {
                    self.reads(1);
                    return Ok(receiver);
                }
                Kind::LeftBracket => {
                    self.link()?;
                    receiver = self.sub_selection(receiver)?;
                    self.expect(Kind::RightBracket)?;
                }
                kind if follows_modifiers(kind) => {
                    if self.position > start {
                        self.reads(1);
                    }
                    return Ok(receiver);
                }
                _ => return Err(self.no_viable()),
            }
        }
    }

    /// Parses rule `collectionSubSelection`.
    fn sub_selection(&mut self, receiver: Selector) -> Parsed<Selector> {
        let receiver = Box::new(receiver);
        if self.accept(Kind::Range) {
            let to = Some(self.term()?);
            return Ok(Selector::Slice {
                receiver,
                from: None,
                to,
            });
        }
        let element = self.term()?;
        if !self.accept(Kind::Range) {
            return Ok(Selector::Element { receiver, element });
        }
        let to = if self.begins_term_at(0) {
            Some(self.term()?)
        } else {
            None
        };
        Ok(Selector::Slice {
            receiver,
            from: Some(element),
            to,
        })
    }

    /// Parses rule `selectionGroupWithoutField`.
    fn selector_without_field(&mut self) -> Parsed<Selector> {
        match self.kind() {
            Kind::LeftParen => self.nested(|parser| {
                let next = parser.kind_at(1);
                let begins =
                    matches!(next, Kind::Minus | Kind::Set) || parser.begins_selector_without_field(1);
                parser.reads(if begins { 3 } else { 2 });
                if parser.begins_type_hint(Self::begins_selector_without_field) {
                    // Cassandra's parser tries the hint, and continues without it if it does not parse to its end.
                    let (position, markers) = (parser.position, parser.bind_markers.len());
                    match parser.selector_with_type_hint() {
                        Err(error) if is_of_parser(&error) => {
                            parser.position = position;
                            parser.bind_markers.truncate(markers);
                        }
                        hinted => return hinted,
                    }
                }
                parser.advance();
                if parser.at(Kind::RightParen) {
                    parser.reads(1);
                }
                let selectors = parser.comma_separated(Self::selector)?;
                parser.expect(Kind::RightParen)?;
                Ok(Selector::ParenthesesOrTuple(selectors))
            }),
            Kind::LeftBracket => {
                self.advance();
                let mut selectors = Vec::new();
                if self.begins_term_at(0) {
                    selectors = self.comma_separated(Self::selector)?;
                }
                self.expect(Kind::RightBracket)?;
                Ok(Selector::List(selectors))
            }
            Kind::LeftBrace => self.selector_braces(),
            _ => self.simple_selector(),
        }
    }

    fn begins_selector_without_field(&self, distance: usize) -> bool {
        let kind = self.kind_at(distance);
        matches!(
            kind,
            Kind::LeftParen
                | Kind::LeftBracket
                | Kind::LeftBrace
                | Kind::Null
                | Kind::QuestionMark
                | Kind::Colon
                | Kind::Token
        ) || kind.is_constant()
            || (kind.is_ident() && !matches!(kind, Kind::As))
            || (kind == Kind::As && !self.kind_at(distance + 1).is_ident())
    }

    /// Parses rule `selectionTypeHint`.
    fn selector_with_type_hint(&mut self) -> Parsed<Selector> {
        self.advance();
        let ty = self.type_name()?;
        self.expect(Kind::RightParen)?;
        Ok(Selector::TypeHint {
            ty,
            selector: Box::new(self.selector_without_field()?),
        })
    }

    /// Parses rule `selectionMapOrSet`.
    fn selector_braces(&mut self) -> Parsed<Selector> {
        self.advance();
        if self.accept(Kind::RightBrace) {
            return Ok(Selector::Set(Vec::new()));
        }
        let first = self.selector()?;
        let selector = match self.kind() {
            Kind::Colon => {
                self.advance();
                let mut entries = vec![(first, self.selector()?)];
                while self.accept(Kind::Comma) {
                    let key = self.selector()?;
                    self.expect(Kind::Colon)?;
                    entries.push((key, self.selector()?));
                }
                Selector::MapOrUserType(entries)
            }
            Kind::Comma | Kind::RightBrace => {
                let mut elements = vec![first];
                while self.accept(Kind::Comma) {
                    elements.push(self.selector()?);
                }
                Selector::Set(elements)
            }
            _ => return Err(self.no_viable()),
        };
        self.expect(Kind::RightBrace)?;
        Ok(selector)
    }

    /// Parses rule `simpleUnaliasedSelector`: a column, a literal or a function.
    fn simple_selector(&mut self) -> Parsed<Selector> {
        let kind = self.kind();
        if kind.is_constant() {
            return Ok(Selector::Term(Term::Literal(self.constant()?)));
        }
        match kind {
            Kind::Null => {
                self.advance();
                return Ok(Selector::Term(Term::Null));
            }
            Kind::QuestionMark if self.kind_at(1) != Kind::Dot => {
                return Ok(Selector::Term(Term::Marker(self.marker()?)));
            }
            Kind::Colon => return Ok(Selector::Term(Term::Marker(self.marker()?))),
            _ => {}
        }
        let call = match self.kind_at(1) {
            Kind::LeftParen => true,
            Kind::Dot => self.is_function_name_at(2) && self.kind_at(3) == Kind::LeftParen,
            _ => kind == Kind::Token,
        };
        if call {
            return self.selector_function();
        }
        if !kind.is_ident() {
            return Err(self.no_viable());
        }
        if !follows_column(self.kind_at(1)) {
            self.reads(2);
            return Err(self.no_viable_at(1));
        }
        if self.kind_at(1) == Kind::Dot && self.kind_at(2) == Kind::Star {
            return Err(self.no_viable_at(2));
        }
        self.reads(2);
        Ok(Selector::Column(self.ident()?))
    }

    /// Parses rule `selectionFunction`.
    fn selector_function(&mut self) -> Parsed<Selector> {
        let open = self.kind_at(1) == Kind::LeftParen;
        match self.kind() {
            Kind::Count if open && self.kind_at(2) == Kind::Star => {
                self.advance();
                self.advance();
                self.advance();
                self.expect(Kind::RightParen)?;
                Ok(Selector::CountRows)
            }
            Kind::Count if open && !self.begins_term_at(2) && self.kind_at(2) != Kind::RightParen => {
                Err(self.no_viable_at(2))
            }
            Kind::WriteTime if open => self.cell_attribute(CellAttribute::WriteTime),
            Kind::MaxWriteTime if open => self.cell_attribute(CellAttribute::MaxWriteTime),
            Kind::Ttl if open => self.cell_attribute(CellAttribute::Ttl),
            Kind::Cast if open => {
                self.advance();
                self.advance();
                let selector = Box::new(self.selector()?);
                self.expect(Kind::As)?;
                let ty = self.native_type()?;
                self.expect(Kind::RightParen)?;
                Ok(Selector::Cast { selector, ty })
            }
            _ if open && !self.is_function_name_at(0) => {
                Err(self.no_viable_at(usize::from(self.kind().is_ident())))
            }
            _ => {
                self.reads(2);
                let name = self.function_name()?;
                self.expect(Kind::LeftParen)?;
                let mut args = Vec::new();
                if self.begins_term_at(0) {
                    args = self.comma_separated(Self::selector)?;
                }
                self.expect(Kind::RightParen)?;
                Ok(counted_rows(&name, &args).unwrap_or(Selector::Function { name, args }))
            }
        }
    }

    fn cell_attribute(&mut self, attribute: CellAttribute) -> Parsed<Selector> {
        self.advance();
        self.advance();
        let column = self.ident()?;
        if self.at(Kind::LeftParen) {
            return Err(self.no_viable());
        }
        let selected = self.selector_modifiers(Selector::Column(column.clone()))?;
        if self.at(Kind::LeftBracket) {
            // The bracket begins a slice without bounds, which is an error.
            self.advance();
            self.advance();
            return Err(self.no_viable());
        }
        self.expect(Kind::RightParen)?;
        Ok(Selector::CellAttribute {
            attribute,
            column,
            selected: Box::new(selected),
        })
    }
}

/// Returns true for tokens that may follow the fields and elements of a selector.
fn follows_modifiers(kind: Kind) -> bool {
    follows_column(kind) && !matches!(kind, Kind::Dot | Kind::LeftBracket | Kind::Semicolon)
}

/// Returns true for tokens that may follow a column in any selector.
pub(super) fn follows_column(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Comma
            | Kind::As
            | Kind::From
            | Kind::Plus
            | Kind::Minus
            | Kind::Star
            | Kind::Slash
            | Kind::Percent
            | Kind::Dot
            | Kind::LeftBracket
            | Kind::RightBracket
            | Kind::RightParen
            | Kind::RightBrace
            | Kind::Colon
            | Kind::Order
            | Kind::Per
            | Kind::Limit
            | Kind::Allow
            | Kind::Semicolon
            | Kind::Eof
    )
}

fn operation(operator: ArithmeticOperator, left: Selector, right: Selector) -> Selector {
    Selector::Operation {
        operator,
        left: Box::new(left),
        right: Box::new(right),
    }
}

/// Returns the selector that counts rows, for `count` of a constant. `None` for other functions.
fn counted_rows(name: &FunctionName, args: &[Selector]) -> Option<Selector> {
    let native = name
        .keyspace
        .as_ref()
        .is_none_or(|keyspace| *keyspace == "system");
    let constant = matches!(args, [Selector::Term(Term::Literal(_))]);
    (native && name.name == "count" && constant).then_some(Selector::CountRows)
}

/// Returns true for errors at an unexpected token, and false for errors in the content of what was parsed.
fn is_of_parser(error: &CqlError) -> bool {
    matches!(error, CqlError::Syntax(message) if message.starts_with("line "))
}
