//! Parses primary expressions: literals, names and `new`.

use std::sync::Arc;

use crate::ast::{Constant, Expr, ExprKind, Type};
use crate::classes;
use crate::error::Diagnostic;
use crate::lexer::Kind;
use crate::parser::{Parsed, Parser, UNKNOWN};

/// The variable with which functions create values of user types and tuples.
const CONTEXT: &str = "udfContext";

impl Parser {
    pub fn primary(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let constant = match self.peek().clone() {
            Kind::Int(value) => Constant::Int(value),
            Kind::Long(value) => Constant::Long(value),
            Kind::Float(value) => Constant::Float(value),
            Kind::Double(value) => Constant::Double(value),
            Kind::Char(value) => Constant::Char(value),
            Kind::String(value) => Constant::String(Arc::from(value)),
            Kind::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Kind::Word(word) => match word.as_str() {
                "null" => Constant::Null,
                "true" => Constant::Boolean(true),
                "false" => Constant::Boolean(false),
                "new" => return self.creation(),
                _ => return self.named(&word),
            },
            Kind::Symbol(_) | Kind::End => return Err(self.unexpected()),
        };
        self.advance();
        let kind = ExprKind::Constant(constant);
        Ok(Expr { line, kind })
    }

    fn creation(&mut self) -> Parsed<Expr> {
        let line = self.line();
        self.advance();
        let mut ty = self.element_type()?;
        if self.is_symbol("[") {
            return self.new_array(line, ty);
        }
        if ty.is_primitive() {
            return Err(self.unexpected());
        }
        let arguments = self.arguments()?;
        if self.is_symbol("{") {
            return Err(self.error("classes are not supported in functions"));
        }
        if ty.name() == UNKNOWN {
            ty = Type::class(UNKNOWN);
        }
        let kind = ExprKind::New { class: ty, arguments };
        Ok(Expr { line, kind })
    }

    /// Reads the rest of a new array: `[2][3]`, or `[]{1, 2}`.
    fn new_array(&mut self, line: u32, of: Type) -> Parsed<Expr> {
        let mut ty = of;
        let mut lengths = Vec::new();
        while self.take_symbol("[") {
            if !self.is_symbol("]") {
                lengths.push(self.expression()?);
            }
            self.expect("]")?;
            ty = Type::array(ty);
        }
        if lengths.is_empty() {
            return self.array_of(&ty);
        }
        let kind = ExprKind::NewArray { ty, lengths };
        Ok(Expr { line, kind })
    }

    /// Reads the elements `{1, 2}` of an array of type `ty`.
    pub fn array_of(&mut self, ty: &Type) -> Parsed<Expr> {
        let line = self.line();
        let Type::Array(of) = ty else {
            let message = format!("Type mismatch: cannot convert from Object[] to {ty}");
            return Err(Diagnostic::new(line, message));
        };
        self.expect("{")?;
        let mut elements = Vec::new();
        while !self.take_symbol("}") {
            elements.push(match self.is_symbol("{") {
                true => self.deeper(|parser| parser.array_of(of))?,
                false => self.expression()?,
            });
            if !self.is_symbol("}") && !self.take_symbol(",") {
                return Err(self.unexpected());
            }
        }
        let ty = ty.clone();
        let kind = ExprKind::ArrayOf { ty, elements };
        Ok(Expr { line, kind })
    }

    /// Reads an expression that begins with a name: a variable, or a class with a method or field.
    fn named(&mut self, word: &str) -> Parsed<Expr> {
        let line = self.line();
        let kind = if let Some(slot) = self.slot(word) {
            self.advance();
            ExprKind::Local(slot)
        } else if word == CONTEXT {
            self.advance();
            ExprKind::Context
        } else if let Some(ty) = Type::primitive(word) {
            self.advance();
            if !(self.take_symbol(".") && self.take_word("class")) {
                return Err(self.unexpected());
            }
            ExprKind::ClassLiteral(ty)
        } else {
            self.member(line)?
        };
        Ok(Expr { line, kind })
    }

    /// Reads `Class.field`, `Class.method(…)` or `Class.class`.
    fn member(&mut self, line: u32) -> Parsed<ExprKind> {
        let mut last = self.name()?;
        if self.is_symbol("(") {
            let arguments = self.arguments()?;
            if matches!(
                last.as_str(),
                "clone" | "finalize" | "notify" | "notifyAll" | "wait"
            ) {
                self.forbid(format!("call to java.lang.Object.{last}()"));
                return Ok(ExprKind::Meaningless);
            }
            let shown = if arguments.is_empty() { "" } else { "…" };
            self.note(
                line,
                format!("The method {last}({shown}) is undefined for the type"),
            );
            return Ok(ExprKind::Meaningless);
        }
        let mut class = String::new();
        while self.is_symbol(".") {
            // `last` is a field, and the rest of the expression uses the field's object.
            if classes::resolve(&class).is_some() && !self.is_class(&class, &last) {
                break;
            }
            self.advance();
            if !class.is_empty() {
                class.push('.');
            }
            class.push_str(&last);
            if self.take_word("class") {
                let name = self.class(line, &class);
                return Ok(ExprKind::ClassLiteral(Type::class(name)));
            }
            self.type_arguments()?;
            last = self.name()?;
            if self.is_symbol("(") {
                let arguments = self.arguments()?;
                let Some(name) = classes::resolve(&class) else {
                    let message = match class.contains('.') {
                        true => classes::unknown(&class),
                        false => format!("{class} cannot be resolved"),
                    };
                    self.note(line, message);
                    return Ok(ExprKind::Meaningless);
                };
                if classes::is_forbidden(name, &last) {
                    self.forbid(format!("call to {}.{last}()", classes::whole_name(name)));
                    return Ok(ExprKind::Meaningless);
                }
                return Ok(ExprKind::StaticCall {
                    class: name.to_owned(),
                    method: last,
                    arguments,
                });
            }
        }
        if class.is_empty() {
            self.note(line, format!("{last} cannot be resolved to a variable"));
            return Ok(ExprKind::Meaningless);
        }
        match classes::resolve(&class) {
            Some(name) => Ok(ExprKind::StaticField {
                class: name.to_owned(),
                field: last,
            }),
            None => {
                let message = match classes::is_of_java(&class) {
                    true => classes::unknown(&class),
                    false => format!("{class}.{last} cannot be resolved to a type"),
                };
                self.note(line, message);
                Ok(ExprKind::Meaningless)
            }
        }
    }

    fn is_class(&self, outer: &str, inner: &str) -> bool {
        classes::resolve(&format!("{outer}.{inner}")).is_some()
    }

    fn class(&mut self, line: u32, written: &str) -> &'static str {
        classes::resolve(written).unwrap_or_else(|| {
            self.note(line, classes::unknown(written));
            UNKNOWN
        })
    }
}
