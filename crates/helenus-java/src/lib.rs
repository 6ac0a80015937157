//! The part of Java that functions of users are written in.
//!
//! Cassandra compiles a function's body with Eclipse's compiler, as the body of a method, and lets it call what is in a list of classes
//! (`org.apache.cassandra.cql3.functions.JavaBasedUDFunction`). Here the body is read and interpreted: statements and expressions
//! of Java without arrays, classes and lambdas, and the classes that stand for CQL's types. A function reads no file and no clock but
//! `System.currentTimeMillis`, and ends when its time is over.

mod ast;
mod check;
mod collections;
mod context;
mod error;
mod expression;
mod fields;
mod format;
#[cfg(test)]
mod function_tests;
mod interpret;
mod lexer;
mod methods;
mod number;
mod parser;
mod statics;
mod strings;
mod text;
mod value;

use std::time::Instant;

use helenus_cql::types::CqlType;
use helenus_cql::value::CqlValue;

pub use error::{CompileError, Failure};

use context::Context;
use value::{Value, java_type};

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
    /// The user type of the function's keyspace.
    fn user_type(&self, name: &str) -> Option<CqlType>;
    /// A type as CQL writes it.
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
    /// The first thing in it that is no Java, or no Java that is understood here.
    pub fn compile(source: &str, signature: Signature) -> Result<Function, CompileError> {
        let is_nullable = signature.is_called_on_null;
        let arguments = signature.arguments.iter();
        let arguments: Vec<_> = arguments
            .map(|(name, ty)| (name.clone(), java_type(ty, is_nullable)))
            .collect();
        let body = parser::parse(source, &arguments)?;
        check::check(&body, &java_type(&signature.returns, is_nullable))?;
        Ok(Function { signature, body })
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
        let declared = self.signature.arguments.iter();
        let arguments = declared.zip(arguments);
        let arguments = arguments
            .map(|((_, ty), value)| Value::from_cql(ty, value))
            .collect();
        let context = Context {
            signature: &self.signature,
            types,
        };
        let result = interpret::run(&self.body, arguments, &context, deadline)?;
        let result = interpret::assigned(
            result,
            &java_type(&self.signature.returns, self.signature.is_called_on_null),
        )?;
        result.into_cql(&self.signature.returns)
    }
}
