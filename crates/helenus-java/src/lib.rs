//! The part of Java in which users write functions.
//!
//! Cassandra compiles a function's body with Eclipse's compiler, as the body of a method, and lets it use a list of classes
//! (`org.apache.cassandra.cql3.functions.JavaBasedUDFunction`). This crate parses and interprets the body. It supports statements and
//! expressions of Java without classes and lambdas, and the methods that `signatures.txt` lists. A function reads no file, and nothing of
//! its environment except `System`'s clocks and `Math.random`. It is stopped when its time or its memory is used up.

mod arrays;
mod ast;
mod budget;
#[cfg(test)]
mod budget_tests;
mod buffer;
mod check;
mod check_expression;
mod classes;
mod collections;
mod context;
mod conversion;
mod create;
mod error;
mod expression;
mod fields;
mod flow;
mod format;
mod format_real;
#[cfg(test)]
mod function_tests;
#[cfg(test)]
mod fuzz_tests;
mod interpret;
mod lexer;
mod library;
mod limits;
mod lvalue;
mod math;
mod methods;
mod null;
mod number;
mod ordered;
mod parser;
mod primary;
mod rounding;
mod signatures;
mod statement;
mod static_type;
mod statics;
mod strings;
mod text;
mod time;
mod time_library;
mod types;
mod value;

use std::time::Instant;

use helenus_cql::types::CqlType;
use helenus_cql::value::CqlValue;

pub use error::{CompileError, Diagnostic, Failure};

use context::Context;
use value::{Value, parameter_type};

/// Returns true if a word can be a name in Java.
pub fn is_name(word: &str) -> bool {
    word.starts_with(lexer::is_word_start)
        && word.chars().all(lexer::is_word_part)
        && !parser::is_keyword(word)
}

/// A function's parameters and result.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub arguments: Vec<(String, CqlType)>,
    pub returns: CqlType,
    /// True if arguments and the result may be null. Primitive types are then boxed.
    pub is_called_on_null: bool,
}

/// The types that a function names to create values of them.
pub trait Types {
    /// Returns a user type of the function's keyspace. `None` if there is no such type.
    fn user_type(&self, name: &str) -> Option<CqlType>;
    /// Returns the type with this CQL definition. `None` if it is not a valid type.
    fn named(&self, definition: &str) -> Option<CqlType>;
}

/// A compiled function.
#[derive(Debug)]
pub struct Function {
    signature: Signature,
    body: ast::Body,
}

impl Function {
    /// Parses and checks a body.
    ///
    /// # Errors
    /// The parts of the body that are not Java, or not the part of Java that is supported here.
    pub fn compile(source: &str, signature: Signature) -> Result<Function, CompileError> {
        let is_nullable = signature.is_called_on_null;
        let arguments = signature.arguments.iter();
        let arguments: Vec<_> = arguments
            .map(|(name, ty)| (name.clone(), parameter_type(ty, is_nullable)))
            .collect();
        let parser::Source {
            mut body,
            mut mistakes,
            forbidden,
        } = parser::parse(source, &arguments).map_err(|mistake| CompileError::Mistakes(vec![mistake]))?;
        check::check(
            &mut body,
            &parameter_type(&signature.returns, is_nullable),
            &mut mistakes,
        );
        mistakes.sort_by_key(|mistake| mistake.line);
        match (mistakes.is_empty(), forbidden.is_empty()) {
            (true, true) => Ok(Function { signature, body }),
            (true, false) => Err(CompileError::Forbidden(forbidden.into_iter().collect())),
            (false, _) => Err(CompileError::Mistakes(mistakes)),
        }
    }

    /// Calls the function. The number of arguments must be that of the signature. No argument may be null unless `is_called_on_null` is
    /// set.
    ///
    /// # Errors
    /// The exception that the function throws, or that the deadline has passed.
    pub fn call(
        &self,
        arguments: Vec<Option<CqlValue>>,
        types: &dyn Types,
        deadline: Instant,
    ) -> Result<Option<CqlValue>, Failure> {
        let context = Context {
            signature: &self.signature,
            types,
        };
        let _running = budget::begin(deadline);
        self.run(arguments, &context).map_err(Failure::seen_outside)
    }

    fn run(
        &self,
        arguments: Vec<Option<CqlValue>>,
        context: &Context<'_>,
    ) -> Result<Option<CqlValue>, Failure> {
        let declared = self.signature.arguments.iter();
        let arguments = declared.zip(arguments);
        let arguments = arguments.map(|((_, ty), value)| Value::of_parameter(ty, value));
        interpret::run(&self.body, arguments.collect::<Result<_, _>>()?, context)
    }
}
