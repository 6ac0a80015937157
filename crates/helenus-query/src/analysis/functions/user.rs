//! Calls of user-defined functions and aggregates (Cassandra's `UDFunction.execute` and `UDAggregate`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_cql::ast::TypeName;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, UserType};
use helenus_cql::value::{CqlValue, is_null};
use helenus_java::{Failure, Types};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::{AggregateFunction, AggregateState, Function, ScalarFunction};
use crate::analysis::EvalContext;
use crate::analysis::types::resolve_type;
use crate::limits::scope;
use crate::schema::roles::Resource;
use crate::schema::{Keyspace, Schema, UserAggregate, UserFunction, signature};

/// Maximum time of a call (`user_defined_functions_fail_timeout`). Cassandra stops the whole server after this time. Here the request
/// fails.
const CALL_TIMEOUT: Duration = Duration::from_millis(1500);

/// Maximum time for which a call may keep a thread that other requests wait for.
const PATIENCE: Duration = Duration::from_millis(5);

/// Runs a long computation. Requests of other connections get another thread meanwhile.
fn aside<T>(run: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().map(|handle| handle.runtime_flavor());
    match runtime {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(run),
        _ => run(),
    }
}

/// Returns the user-defined functions and aggregates of a name in a keyspace.
pub(crate) fn named(schema: &Schema, keyspace: &str, name: &str) -> Result<Vec<Function>, CqlError> {
    let Some(keyspace) = schema.keyspace(keyspace) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for function in keyspace
        .functions
        .values()
        .filter(|function| function.name == name)
    {
        found.push(Function::Scalar(Arc::new(Scalar::new(
            schema, keyspace, function,
        ))));
    }
    for aggregate in keyspace
        .aggregates
        .values()
        .filter(|aggregate| aggregate.name == name)
    {
        found.push(Function::Aggregate(Arc::new(Aggregate::new(
            schema, keyspace, aggregate,
        )?)));
    }
    Ok(found)
}

/// The types of a function's keyspace.
#[derive(Debug)]
struct KeyspaceTypes {
    schema: Schema,
    keyspace: String,
}

impl Types for KeyspaceTypes {
    fn user_type(&self, name: &str) -> Option<CqlType> {
        let types = &self.schema.keyspace(&self.keyspace)?.types;
        let definition: &Arc<UserType> = types.get(&name.to_lowercase()).or_else(|| types.get(name))?;
        Some(CqlType::Udt {
            definition: definition.clone(),
            frozen: true,
        })
    }

    fn named(&self, definition: &str) -> Option<CqlType> {
        let name: TypeName = helenus_cql::parser::parse_type(definition).ok()?;
        resolve_type(&self.schema, &self.keyspace, &name).ok()
    }
}

/// A user-defined function and the source of its types.
#[derive(Debug)]
struct Scalar {
    /// The function's name with its keyspace.
    name: String,
    arg_types: Vec<CqlType>,
    function: Arc<UserFunction>,
    types: KeyspaceTypes,
}

impl Scalar {
    fn new(schema: &Schema, keyspace: &Keyspace, function: &Arc<UserFunction>) -> Scalar {
        Scalar {
            name: format!("{}.{}", keyspace.name, function.name),
            arg_types: function.arg_types().cloned().collect(),
            function: function.clone(),
            types: KeyspaceTypes {
                schema: schema.clone(),
                keyspace: keyspace.name.clone(),
            },
        }
    }

    /// Returns false if a function that is not called on nulls would get a null. Bytes without a value, such as empty bytes for an int,
    /// count as null. `args` begins with the argument at index `first`.
    fn takes(&self, first: usize, args: &[Option<Bytes>]) -> bool {
        let is_given =
            |(ty, arg): (&CqlType, &Option<Bytes>)| arg.as_ref().is_some_and(|bytes| !is_null(ty, bytes));
        let types = self.arg_types.iter().skip(first);
        self.function.is_called_on_null || types.zip(args).all(is_given)
    }

    fn run(&self, args: &[Option<Bytes>]) -> Result<Option<Bytes>, CqlError> {
        if !self.takes(0, args) {
            return Ok(None);
        }
        let code = self
            .function
            .code()
            .map_err(|error| self.failure(&error.to_string()))?;
        let decode = |(ty, bytes): (&CqlType, &Option<Bytes>)| match bytes {
            Some(bytes) => CqlValue::decode(ty, bytes).map(Some),
            None => Ok(None),
        };
        let call = |timeout| {
            let values = self.arg_types.iter().zip(args).map(decode);
            let values = values
                .collect::<Result<Vec<_>, String>>()
                .map_err(|error| self.failure(&error))?;
            Ok(code.call(values, &self.types, Instant::now() + timeout))
        };
        scope::hurry();
        let result = match call(PATIENCE)? {
            // The call is started again from the beginning, because it had no effect outside.
            Err(Failure::TimedOut) => aside(|| call(CALL_TIMEOUT))?,
            result => result,
        };
        let result = result.map_err(|failure| match failure {
            Failure::TimedOut => self.failure(&format!(
                "User defined function {} ran longer than {}ms",
                super::signature(&self.name, &self.arg_types, &self.function.returns),
                CALL_TIMEOUT.as_millis()
            )),
            thrown @ Failure::Thrown { .. } => self.failure(&thrown.to_string()),
        })?;
        // The entries of a map are in the order in which the code left them.
        Ok(result.map(|value| value.encode_keeping_order(&self.function.returns)))
    }

    /// Returns a `FunctionExecutionException`.
    fn failure(&self, reason: &str) -> CqlError {
        let arg_types: Vec<String> = self.arg_types.iter().map(ToString::to_string).collect();
        CqlError::FunctionFailure {
            message: reason.to_owned(),
            keyspace: self.function.keyspace.clone(),
            function: self.function.name.clone(),
            arg_types,
        }
    }
}

impl ScalarFunction for Scalar {
    fn name(&self) -> &str {
        &self.name
    }

    fn arg_types(&self) -> &[CqlType] {
        &self.arg_types
    }

    fn return_type(&self) -> &CqlType {
        &self.function.returns
    }

    /// Returns false, because a user-defined function may be impure.
    fn is_pure(&self) -> bool {
        false
    }

    fn sorts_elements(&self) -> bool {
        false
    }

    fn executed(&self) -> Vec<Resource> {
        let function = &self.function;
        vec![Resource::function(
            &function.keyspace,
            &function.name,
            &self.arg_types,
        )]
    }

    fn call(&self, args: &[Option<Bytes>], _: &EvalContext<'_>) -> Result<Option<Bytes>, CqlError> {
        self.run(args)
    }
}

/// A user-defined aggregate and its functions.
#[derive(Debug)]
struct Aggregate {
    /// The aggregate's name with its keyspace.
    name: String,
    definition: Arc<UserAggregate>,
    functions: Arc<StateFunctions>,
}

#[derive(Debug)]
struct StateFunctions {
    next: Scalar,
    last: Option<Scalar>,
    initial: Option<Bytes>,
}

impl Aggregate {
    fn new(
        schema: &Schema,
        keyspace: &Keyspace,
        definition: &Arc<UserAggregate>,
    ) -> Result<Aggregate, CqlError> {
        let find = |name: &str, types: Vec<&CqlType>| {
            let found = keyspace.functions.get(&signature(name, types));
            let found = found.map(|function| Scalar::new(schema, keyspace, function));
            found.ok_or_else(|| {
                CqlError::Server(format!(
                    "function {name} of aggregate {}.{} is gone",
                    keyspace.name, definition.name
                ))
            })
        };
        let state_type = std::iter::once(&definition.state_type);
        let next = find(
            &definition.state_function,
            state_type.clone().chain(&definition.arg_types).collect(),
        )?;
        let last = match &definition.final_function {
            Some(name) => Some(find(name, state_type.collect())?),
            None => None,
        };
        Ok(Aggregate {
            name: format!("{}.{}", keyspace.name, definition.name),
            definition: definition.clone(),
            functions: Arc::new(StateFunctions {
                next,
                last,
                initial: definition.initial.clone(),
            }),
        })
    }
}

impl AggregateFunction for Aggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn arg_types(&self) -> &[CqlType] {
        &self.definition.arg_types
    }

    fn return_type(&self) -> &CqlType {
        &self.definition.returns
    }

    fn executed(&self) -> Vec<Resource> {
        let definition = &self.definition;
        let own = Resource::function(&definition.keyspace, &definition.name, &definition.arg_types);
        let StateFunctions { next, last, .. } = self.functions.as_ref();
        let parts = std::iter::once(next).chain(last).flat_map(Scalar::executed);
        std::iter::once(own).chain(parts).collect()
    }

    fn new_state(&self) -> Box<dyn AggregateState> {
        Box::new(State {
            functions: self.functions.clone(),
            value: self.functions.initial.clone(),
        })
    }
}

/// The state of an aggregate over the rows so far.
struct State {
    functions: Arc<StateFunctions>,
    value: Option<Bytes>,
}

impl AggregateState for State {
    fn add(&mut self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        let next = &self.functions.next;
        // A row with a null leaves the state as it is, unless the function takes nulls.
        if !next.takes(1, args) {
            return Ok(());
        }
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(self.value.take());
        all.extend_from_slice(args);
        self.value = next.run(&all)?;
        Ok(())
    }

    fn result(&self) -> Result<Option<Bytes>, CqlError> {
        match &self.functions.last {
            Some(last) => last.run(std::slice::from_ref(&self.value)),
            None => Ok(self.value.clone()),
        }
    }

    fn reset(&mut self) {
        self.value = self.functions.initial.clone();
    }
}
