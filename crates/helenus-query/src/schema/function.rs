//! Functions and aggregates of users.

use std::sync::OnceLock;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_java::{CompileError, Function, Signature};

/// A function of a user (Cassandra's `UDFunction`).
#[derive(Debug)]
pub struct UserFunction {
    pub keyspace: String,
    pub name: String,
    /// Names and types, in order.
    pub arguments: Vec<(String, CqlType)>,
    pub returns: CqlType,
    /// Called although an argument is null; else the result is null then.
    pub is_called_on_null: bool,
    /// In lower case; only `java` can be made.
    pub language: String,
    pub body: String,
    code: OnceLock<Result<Function, CompileError>>,
}

impl UserFunction {
    pub fn new(
        keyspace: &str,
        name: &str,
        arguments: Vec<(String, CqlType)>,
        returns: CqlType,
        is_called_on_null: bool,
        language: &str,
        body: &str,
    ) -> UserFunction {
        UserFunction {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            arguments,
            returns,
            is_called_on_null,
            language: language.to_owned(),
            body: body.to_owned(),
            code: OnceLock::new(),
        }
    }

    /// What can be called; the body is read when it is asked for first.
    ///
    /// # Errors
    /// What is wrong with the body.
    pub fn code(&self) -> Result<&Function, CompileError> {
        let compile = || {
            let signature = Signature {
                arguments: self.arguments.clone(),
                returns: self.returns.clone(),
                is_called_on_null: self.is_called_on_null,
            };
            Function::compile(&self.body, signature)
        };
        self.code.get_or_init(compile).as_ref().map_err(Clone::clone)
    }

    pub fn arg_types(&self) -> impl Iterator<Item = &CqlType> {
        self.arguments.iter().map(|(_, ty)| ty)
    }

    /// Whether it takes or gives values of a user type.
    pub fn references_udt(&self, keyspace: &str, name: &str) -> bool {
        self.arg_types()
            .chain([&self.returns])
            .any(|ty| ty.references_udt(keyspace, name))
    }

    /// Its name and types, which no other function or aggregate of the keyspace has: `f(int, text)`.
    pub fn signature(&self) -> String {
        signature(&self.name, self.arg_types())
    }
}

impl PartialEq for UserFunction {
    fn eq(&self, other: &UserFunction) -> bool {
        self.keyspace == other.keyspace
            && self.name == other.name
            && self.arguments == other.arguments
            && self.returns == other.returns
            && self.is_called_on_null == other.is_called_on_null
            && self.language == other.language
            && self.body == other.body
    }
}

/// An aggregate of a user (Cassandra's `UDAggregate`). Its functions are found by their names and types when it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct UserAggregate {
    pub keyspace: String,
    pub name: String,
    pub arg_types: Vec<CqlType>,
    /// Takes the state and the arguments, and gives the next state. In the same keyspace, as is the final function.
    pub state_function: String,
    pub state_type: CqlType,
    /// Makes the result of the last state.
    pub final_function: Option<String>,
    /// The first state, serialized; null if there is none.
    pub initial: Option<Bytes>,
    pub returns: CqlType,
}

impl UserAggregate {
    /// As [`UserFunction::signature`].
    pub fn signature(&self) -> String {
        signature(&self.name, &self.arg_types)
    }

    /// Whether the function of that signature is one of its two.
    pub fn calls(&self, function: &str) -> bool {
        let state_type = std::iter::once(&self.state_type);
        let types = state_type.clone().chain(&self.arg_types);
        let is_last = |name: &String| signature(name, state_type.clone()) == function;
        signature(&self.state_function, types) == function
            || self.final_function.as_ref().is_some_and(is_last)
    }

    /// Whether it, or one of its functions, takes or gives values of a user type.
    pub fn references_udt(&self, keyspace: &str, name: &str) -> bool {
        let mut types = self.arg_types.iter().chain([&self.state_type, &self.returns]);
        types.any(|ty| ty.references_udt(keyspace, name))
    }
}

/// Returns a name with types, as functions are kept by: all types frozen, since that tells no two of them apart.
pub fn signature<'a>(name: &str, types: impl IntoIterator<Item = &'a CqlType>) -> String {
    let types: Vec<String> = types.into_iter().map(|ty| ty.freeze().to_string()).collect();
    format!("{name}({})", types.join(", "))
}
