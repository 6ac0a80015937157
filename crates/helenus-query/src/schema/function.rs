//! User-defined functions and aggregates.

use std::sync::OnceLock;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_java::{CompileError, Function, Signature};

/// A user-defined function (Cassandra's `UDFunction`).
#[derive(Debug)]
pub struct UserFunction {
    pub keyspace: String,
    pub name: String,
    /// Names and types of the arguments, in order.
    pub arguments: Vec<(String, CqlType)>,
    pub returns: CqlType,
    /// True if the function is called with null arguments too. Otherwise the result is null if an argument is.
    pub is_called_on_null: bool,
    /// The language in lower case. Only `java` functions can be created.
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

    /// Returns the compiled function. The body is compiled at the first call.
    ///
    /// # Errors
    /// The body cannot be compiled.
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

    /// Returns true if an argument or the result involves the user type.
    pub fn references_udt(&self, keyspace: &str, name: &str) -> bool {
        self.arg_types()
            .chain([&self.returns])
            .any(|ty| ty.references_udt(keyspace, name))
    }

    /// Returns the name with the types of the arguments, such as `f(int, text)`. It is unique among the functions and aggregates of the
    /// keyspace.
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

/// A user-defined aggregate (Cassandra's `UDAggregate`). Its functions are looked up by name and types when it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct UserAggregate {
    pub keyspace: String,
    pub name: String,
    pub arg_types: Vec<CqlType>,
    /// The function of the state and the arguments that returns the next state. It is in the same keyspace, as is the final function.
    pub state_function: String,
    pub state_type: CqlType,
    /// The function that computes the result from the last state. `None` if the last state is the result.
    pub final_function: Option<String>,
    /// The serialized initial state. `None` if it is null.
    pub initial: Option<Bytes>,
    pub returns: CqlType,
}

impl UserAggregate {
    /// Returns the name with the types of the arguments, as [`UserFunction::signature`] does.
    pub fn signature(&self) -> String {
        signature(&self.name, &self.arg_types)
    }

    /// Returns true if the function of that signature is the state function or the final function.
    pub fn calls(&self, function: &str) -> bool {
        let state_type = std::iter::once(&self.state_type);
        let types = state_type.clone().chain(&self.arg_types);
        let is_last = |name: &String| signature(name, state_type.clone()) == function;
        signature(&self.state_function, types) == function
            || self.final_function.as_ref().is_some_and(is_last)
    }

    /// Returns true if an argument, the state or the result involves the user type.
    pub fn references_udt(&self, keyspace: &str, name: &str) -> bool {
        let mut types = self.arg_types.iter().chain([&self.state_type, &self.returns]);
        types.any(|ty| ty.references_udt(keyspace, name))
    }
}

/// Returns a name with types, which is the key of a function. All types are frozen in it, because no two functions differ only in that.
pub fn signature<'a>(name: &str, types: impl IntoIterator<Item = &'a CqlType>) -> String {
    let types: Vec<String> = types.into_iter().map(|ty| ty.freeze().to_string()).collect();
    format!("{name}({})", types.join(", "))
}
