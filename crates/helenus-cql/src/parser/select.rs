//! SELECT.

use super::selector::follows_column;
use super::{Parsed, Parser};
use crate::ast::{AsOf, Ordering, Select, SelectItem};
use crate::error::CqlError;
use crate::lexer::Kind;
use crate::value::Duration;

impl Parser<'_> {
    /// Parses rule `selectStatement`.
    pub(super) fn select(&mut self) -> Parsed<Select> {
        self.expect(Kind::Select)?;
        let json = self.select_modifier(Kind::Json)?;
        let distinct = self.select_modifier(Kind::Distinct)?;
        let items = self.select_items()?;
        self.expect(Kind::From)?;
        let mut select = Select {
            table: self.table_name()?,
            as_of: self.as_of()?,
            json,
            distinct,
            items,
            relations: Vec::new(),
            group_by: Vec::new(),
            order_by: Vec::new(),
            per_partition_limit: None,
            limit: None,
            allow_filtering: false,
            timeout: None,
        };
        self.select_options(&mut select)?;
        Ok(select)
    }

    fn select_options(&mut self, select: &mut Select) -> Parsed<()> {
        if self.accept(Kind::Where) {
            select.relations = self.where_clause()?;
        }
        if self.accept(Kind::Group) {
            self.expect(Kind::By)?;
            select.group_by = self.comma_separated(Self::selector)?;
        }
        if self.accept(Kind::Order) {
            self.expect(Kind::By)?;
            select.order_by = self.comma_separated(Self::ordering)?;
        }
        if self.accept(Kind::Per) {
            self.expect_all(&[Kind::Partition, Kind::Limit])?;
            select.per_partition_limit = Some(self.int_value()?);
        }
        if self.accept(Kind::Limit) {
            select.limit = Some(self.int_value()?);
        }
        if self.accept(Kind::Allow) {
            self.expect(Kind::Filtering)?;
            select.allow_filtering = true;
        }
        // ScyllaDB's clause is taken without an effect: its readers of CDC logs always write it.
        if self.begins_bypass(0) {
            self.advance();
            self.advance();
        }
        if self.begins_timeout() {
            select.timeout = Some(self.timeout()?);
        }
        Ok(())
    }

    /// Parses `AS OF SNAPSHOT name`, with the name as a string or a word, or `AS OF` and a time. `None` for any other AS, which is not
    /// taken, so that the error is Cassandra's.
    pub(super) fn as_of(&mut self) -> Parsed<Option<AsOf>> {
        if !(self.at(Kind::As) && self.is_word(1, "of")) {
            return Ok(None);
        }
        self.advance();
        self.advance();
        if self.kind().is_string() || self.at(Kind::Integer) {
            return Ok(Some(AsOf::Time(self.constant()?.text)));
        }
        if !self.is_word(0, "snapshot") {
            return Err(CqlError::Syntax(
                "AS OF is followed by a time, such as '2026-11-23 14:00:00Z', or by SNAPSHOT and the name of a snapshot".to_owned(),
            ));
        }
        self.advance();
        let name = match self.kind().is_string() {
            true => self.expect_string()?,
            false => self.ident()?.as_str().to_owned(),
        };
        Ok(Some(AsOf::Snapshot(name)))
    }

    /// Returns true if the token that is `ahead` places ahead is the given word, ignoring case.
    pub(super) fn is_word(&self, ahead: usize, word: &str) -> bool {
        let token = self.token_at(self.position + ahead);
        self.slice(token).eq_ignore_ascii_case(word)
    }

    /// Returns true at ScyllaDB's `USING TIMEOUT`. Its drivers add this clause to their reads of metadata if the server supports tablets.
    /// Other uses of USING are left to Cassandra's error.
    pub(super) fn begins_timeout(&self) -> bool {
        let word = || self.slice(self.token_at(self.position + 1));
        self.at(Kind::Using)
            && self.kind_at(2) == Kind::DurationLiteral
            && word().eq_ignore_ascii_case("timeout")
    }

    /// Returns true if ScyllaDB's `BYPASS CACHE` begins `ahead` tokens from here.
    pub(super) fn begins_bypass(&self, ahead: usize) -> bool {
        self.is_word(ahead, "bypass") && self.is_word(ahead + 1, "cache")
    }

    fn timeout(&mut self) -> Parsed<std::time::Duration> {
        self.advance();
        self.advance();
        let token = self.advance();
        let parsed = Duration::parse(self.slice(token)).map_err(CqlError::invalid)?;
        match (parsed.months, parsed.days, u64::try_from(parsed.nanoseconds)) {
            (0, 0, Ok(nanoseconds)) => Ok(std::time::Duration::from_nanos(nanoseconds)),
            _ => Err(CqlError::invalid(
                "A timeout can't be negative, or of days or months",
            )),
        }
    }

    /// Takes JSON or DISTINCT, unless it is the name of a column.
    fn select_modifier(&mut self, modifier: Kind) -> Parsed<bool> {
        if !self.at(modifier) {
            return Ok(false);
        }
        let found = match self.kind_at(1) {
            Kind::As => match self.kind_at(2) {
                Kind::As => self.kind_at(3).is_ident(),
                kind => !kind.is_ident(),
            },
            Kind::LeftParen
            | Kind::LeftBracket
            | Kind::LeftBrace
            | Kind::Star
            | Kind::Minus
            | Kind::Null
            | Kind::Token
            | Kind::QuestionMark
            | Kind::Colon => true,
            kind => kind.is_ident() || kind.is_constant(),
        };
        if found {
            if !self.begins_item_at(1, modifier == Kind::Json) || !self.parses_items_behind(modifier)? {
                return Err(self.no_viable_at(1));
            }
            self.advance();
        }
        Ok(found)
    }

    /// Returns true if the selected items behind JSON or DISTINCT can be parsed to their end. Cassandra's parser tries this before it takes
    /// the word for a modifier.
    fn parses_items_behind(&mut self, modifier: Kind) -> Parsed<bool> {
        let (position, markers) = (self.position, self.bind_markers.len());
        self.advance();
        let distinct = match modifier {
            Kind::Json => self.select_modifier(Kind::Distinct),
            _ => Ok(false),
        };
        let parsed = match distinct {
            Ok(is_distinct) => self.select_items().map(|_| is_distinct),
            failed => failed,
        };
        self.position = position;
        self.bind_markers.truncate(markers);
        match parsed {
            Ok(_) => Ok(true),
            // The errors of the parser have a position. Other errors do not, and are returned.
            Err(CqlError::Syntax(message)) if message.starts_with("line ") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the tokens look like a first item to Cassandra's parser, when it must decide if JSON or DISTINCT is a column.
    fn begins_item_at(&self, distance: usize, may_be_distinct: bool) -> bool {
        if !self.kind_at(distance).is_ident() {
            return true;
        }
        let next = self.kind_at(distance + 1);
        if may_be_distinct && self.kind_at(distance) == Kind::Distinct {
            if next.is_ident() && next != Kind::As {
                return self.begins_item_at(distance + 1, false);
            }
            let is_all = next == Kind::Star && !self.begins_term_at(distance + 2);
            if next.is_constant()
                || matches!(
                    next,
                    Kind::Null | Kind::Token | Kind::QuestionMark | Kind::LeftBrace
                )
                || is_all
            {
                return true;
            }
        }
        match next {
            Kind::LeftParen => true,
            Kind::Dot => {
                let behind = self.kind_at(distance + 3);
                !self.kind_at(distance + 2).is_ident() || behind == Kind::LeftParen || follows_column(behind)
            }
            Kind::Plus | Kind::Minus | Kind::Star | Kind::Slash | Kind::Percent => {
                self.begins_term_at(distance + 2)
            }
            kind => follows_column(kind),
        }
    }

    /// Parses rule `selectors`. Empty for `*`.
    pub(super) fn select_items(&mut self) -> Parsed<Vec<SelectItem>> {
        if self.accept(Kind::Star) {
            return Ok(Vec::new());
        }
        self.comma_separated(|parser| {
            let selector = parser.selector()?;
            let alias = if parser.accept(Kind::As) {
                Some(parser.ident()?)
            } else {
                None
            };
            Ok(SelectItem { selector, alias })
        })
    }

    /// Parses rule `orderByClause`.
    fn ordering(&mut self) -> Parsed<Ordering> {
        let column = self.column()?;
        let ann_of = if self.accept(Kind::Ann) {
            self.expect(Kind::Of)?;
            Some(self.term()?)
        } else {
            None
        };
        let descending = !self.accept(Kind::Asc) && self.accept(Kind::Desc);
        Ok(Ordering {
            column,
            ann_of,
            descending,
        })
    }
}
