//! The part of Java that functions of users are written in.
//!
//! Cassandra compiles a function's body with Eclipse's compiler, as the body of a method, and lets it call what is in a list of classes
//! (`org.apache.cassandra.cql3.functions.JavaBasedUDFunction`). Here the body is read and interpreted: statements and expressions
//! of Java without classes and lambdas, and the methods that `signatures.txt` lists. A function reads no file and nothing of its
//! surroundings but `System`'s clocks and `Math.random`, and ends when its time or its memory is spent.

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

/// Whether a word can be a name in Java.
pub fn is_name(word: &str) -> bool {
    word.starts_with(lexer::is_word_start)
        && word.chars().all(lexer::is_word_part)
        && !parser::is_keyword(word)
}

/// What a function takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub arguments: Vec<(String, CqlType)>,
    pub returns: CqlType,
    /// Arguments and the result may be null, and are boxed therefore.
    pub is_called_on_null: bool,
}

/// The types that a function makes values of by name.
pub trait Types {
    /// Returns the user type of the function's keyspace.
    fn user_type(&self, name: &str) -> Option<CqlType>;
    /// Returns a type as CQL writes it.
    fn named(&self, definition: &str) -> Option<CqlType>;
}

/// A function that can be called.
#[derive(Debug)]
pub struct Function {
    signature: Signature,
    body: ast::Body,
}

impl Function {
    /// Reads and checks a body.
    ///
    /// # Errors
    /// What in it is no Java, or no Java that is understood here.
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

    /// Calls it; the arguments must be as many as it takes, and none null unless it is called on null.
    ///
    /// # Errors
    /// What it throws, or that the deadline has passed.
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
