//! Types.

use super::name::follows_type;
use super::{Parsed, Parser};
use crate::ast::TypeName;
use crate::lexer::Kind;
use crate::types::NativeType;
use crate::types::class_name::class_refusal;

impl Parser<'_> {
    /// Parses rule `native_type`.
    pub(super) fn native_type(&mut self) -> Parsed<NativeType> {
        if !self.kind().is_native_type() {
            return Err(self.no_viable());
        }
        let token = self.advance();
        NativeType::from_name(self.slice(token)).ok_or_else(|| self.no_viable())
    }

    /// Parses rule `comparatorType`.
    pub(super) fn type_name(&mut self) -> Parsed<TypeName> {
        self.nested(Self::type_name_here)
    }

    fn type_name_here(&mut self) -> Parsed<TypeName> {
        let kind = self.kind();
        let parameterised = self.kind_at(1) == Kind::Less;
        let qualified = self.kind_at(1) == Kind::Dot;
        match kind {
            _ if kind.is_native_type() && !qualified => {
                if !follows_type(self.kind_at(1)) {
                    return Err(self.no_viable_at(1));
                }
                self.reads(2);
                Ok(TypeName::Native(self.native_type()?))
            }
            Kind::Map if parameterised => {
                let (key, value) = self.type_parameters(|parser| {
                    let key = parser.type_name()?;
                    parser.expect(Kind::Comma)?;
                    Ok((key, parser.type_name()?))
                })?;
                Ok(TypeName::Map(Box::new(key), Box::new(value)))
            }
            Kind::List if parameterised => {
                let element = self.type_parameters(Self::type_name)?;
                Ok(TypeName::List(Box::new(element)))
            }
            Kind::Set => {
                let element = self.type_parameters(Self::type_name)?;
                Ok(TypeName::Set(Box::new(element)))
            }
            Kind::Tuple if parameterised => {
                let elements = self.type_parameters(|parser| parser.comma_separated(Self::type_name))?;
                Ok(TypeName::Tuple(elements))
            }
            Kind::Vector if parameterised => self.vector_type(),
            Kind::Frozen if parameterised => self.frozen_type(),
            _ if kind.is_string() => self.custom_type(),
            _ if kind.is_ident() => {
                let is_keyword = matches!(
                    kind,
                    Kind::Map | Kind::List | Kind::Tuple | Kind::Vector | Kind::Frozen
                );
                if is_keyword && !qualified && !follows_type(self.kind_at(1)) {
                    return Err(self.no_viable_at(1));
                }
                Ok(TypeName::UserType(self.user_type_name()?))
            }
            _ => Err(self.no_viable()),
        }
    }

    /// Parses the name of a class. An unknown class is a syntax error.
    fn custom_type(&mut self) -> Parsed<TypeName> {
        let class = self.expect_string()?;
        match class_refusal(&class) {
            Some(refusal) => Err(self.recognition_error(refusal)),
            None => Ok(TypeName::Custom(class)),
        }
    }

    fn type_parameters<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.advance();
        self.expect(Kind::Less)?;
        let parsed = parse(self)?;
        self.expect(Kind::Greater)?;
        Ok(parsed)
    }

    fn vector_type(&mut self) -> Parsed<TypeName> {
        let (element, dimension) = self.type_parameters(|parser| {
            let element = parser.type_name()?;
            parser.expect(Kind::Comma)?;
            Ok((element, parser.expect(Kind::Integer)?))
        })?;
        let text = self.slice(dimension);
        let dimension = text.parse().map_err(|_| {
            self.failed_parsing("NumberFormatException", &format!("For input string: \"{text}\""))
        })?;
        Ok(TypeName::Vector {
            element: Box::new(element),
            dimension,
        })
    }

    fn frozen_type(&mut self) -> Parsed<TypeName> {
        let inner = self.type_parameters(Self::type_name)?;
        if matches!(inner, TypeName::Native(_) | TypeName::Custom(_)) {
            return Err(self.recognition_error(format!(
                "frozen<> is only allowed on collections, tuples, and user-defined types (got {inner})"
            )));
        }
        Ok(TypeName::Frozen(Box::new(inner)))
    }

    /// Returns true if the next token begins a type.
    pub(super) fn begins_type(&self) -> bool {
        let kind = self.kind();
        kind.is_ident() || kind.is_string() || kind == Kind::Set
    }

    /// Returns the number of tokens of the type at that distance. `None` if the tokens are not a type.
    pub(super) fn type_length_at(&self, distance: usize) -> Option<usize> {
        let mut index = distance;
        let mut open = 0_usize;
        loop {
            let kind = self.kind_at(index);
            let begins = kind.is_ident() || kind.is_string() || kind == Kind::Set;
            if !begins {
                return None;
            }
            index += 1;
            if kind.is_ident() && self.kind_at(index) == Kind::Dot {
                if !self.kind_at(index + 1).is_ident() {
                    return None;
                }
                index += 2;
            }
            if self.kind_at(index) == Kind::Less && !kind.is_string() {
                open += 1;
                index += 1;
                continue;
            }
            index = self.type_end(index, &mut open)?;
            if open == 0 {
                return Some(index - distance);
            }
            index += 1;
        }
    }

    /// Skips closing brackets and a vector's dimension behind a type. Returns the index of the next comma, or of the outermost type's end.
    /// `None` if another token follows.
    fn type_end(&self, mut index: usize, open: &mut usize) -> Option<usize> {
        loop {
            if *open == 0 {
                return Some(index);
            }
            match self.kind_at(index) {
                Kind::Greater => {
                    *open -= 1;
                    index += 1;
                }
                Kind::Comma if self.kind_at(index + 1) == Kind::Integer => index += 2,
                Kind::Comma => return Some(index),
                _ => return None,
            }
        }
    }

    /// Returns the error for an exception in the grammar's actions, in Cassandra's words.
    pub(super) fn failed_parsing(&self, exception: &str, message: &str) -> crate::error::CqlError {
        crate::error::CqlError::Syntax(format!(
            "Failed parsing statement: [{}] reason: {exception} {message}",
            self.text
        ))
    }
}
