//! Native functions as plain data: a name, types and a body.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::ScalarFunction;
use crate::analysis::EvalContext;

/// The arguments of a call, one for each parameter.
pub type Args<'a> = &'a [Option<Bytes>];

/// The result of a call.
pub type Output = Result<Option<Bytes>, CqlError>;

type Body = Arc<dyn Fn(Args<'_>, &EvalContext<'_>) -> Output + Send + Sync>;

type Check = Arc<dyn Fn(Args<'_>) -> Result<(), CqlError> + Send + Sync>;

/// The form of a call's column name in the result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ColumnName {
    /// `system.name(a, b)`
    Call,
    /// `a + b`
    Infix(char),
    /// `-a`
    Prefix(char),
    /// `cast(a as type)`
    Cast,
}

/// A native scalar function.
#[derive(Clone)]
pub struct NativeFunction {
    name: String,
    arg_types: Vec<CqlType>,
    return_type: CqlType,
    pure: bool,
    column_name: ColumnName,
    body: Body,
    check: Option<Check>,
}

impl NativeFunction {
    /// Returns a pure function of the keyspace `system`.
    pub fn new(
        name: &str,
        arg_types: impl Into<Vec<CqlType>>,
        return_type: CqlType,
        body: impl Fn(Args<'_>, &EvalContext<'_>) -> Output + Send + Sync + 'static,
    ) -> NativeFunction {
        NativeFunction {
            name: format!("system.{name}"),
            arg_types: arg_types.into(),
            return_type,
            pure: true,
            column_name: ColumnName::Call,
            body: Arc::new(body),
            check: None,
        }
    }

    /// Returns a function like [`NativeFunction::new`]. Its result is null if an argument is null, or is empty where empty bytes mean no
    /// value.
    pub fn strict(
        name: &str,
        arg_types: impl Into<Vec<CqlType>>,
        return_type: CqlType,
        body: impl Fn(&[Bytes], &EvalContext<'_>) -> Output + Send + Sync + 'static,
    ) -> NativeFunction {
        let arg_types = arg_types.into();
        let types = arg_types.clone();
        NativeFunction::new(name, arg_types, return_type, move |args, ctx| {
            match non_null(&types, args) {
                Some(args) => body(&args, ctx),
                None => Ok(None),
            }
        })
    }

    /// Marks the function as one that gives another result on each call.
    pub fn impure(mut self) -> NativeFunction {
        self.pure = false;
        self
    }

    /// Adds a check of constant arguments, which runs before any row is read. Arguments that are not constant are passed to it as nulls.
    pub(crate) fn checking(
        mut self,
        check: impl Fn(Args<'_>) -> Result<(), CqlError> + Send + Sync + 'static,
    ) -> NativeFunction {
        self.check = Some(Arc::new(check));
        self
    }

    pub(crate) fn named_as(mut self, column_name: ColumnName) -> NativeFunction {
        self.column_name = column_name;
        self
    }

    /// Returns the same function under another name.
    pub fn alias(&self, name: &str) -> NativeFunction {
        NativeFunction {
            name: format!("system.{name}"),
            ..self.clone()
        }
    }

    /// Returns the name without its keyspace.
    pub fn short_name(&self) -> &str {
        self.name.strip_prefix("system.").unwrap_or(&self.name)
    }
}

/// Returns all the arguments. `None` if one is null, or is empty where empty bytes mean null.
pub fn non_null(types: &[CqlType], args: Args<'_>) -> Option<Vec<Bytes>> {
    args.iter()
        .zip(types)
        .map(|(arg, ty)| {
            let arg = arg.as_ref()?;
            let is_null = arg.is_empty() && helenus_cql::value::is_empty_meaningless(ty);
            (!is_null).then(|| arg.clone())
        })
        .collect()
}

impl fmt::Debug for NativeFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::signature(&self.name, &self.arg_types, &self.return_type))
    }
}

impl ScalarFunction for NativeFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn arg_types(&self) -> &[CqlType] {
        &self.arg_types
    }

    fn return_type(&self) -> &CqlType {
        &self.return_type
    }

    fn is_pure(&self) -> bool {
        self.pure
    }

    fn call(&self, args: &[Option<Bytes>], ctx: &EvalContext<'_>) -> Output {
        (self.body)(args, ctx)
    }

    fn checks_constants(&self) -> bool {
        self.check.is_some()
    }

    fn check_constants(&self, args: &[Option<Bytes>]) -> Result<(), CqlError> {
        self.check.as_ref().map_or(Ok(()), |check| check(args))
    }

    fn column_name(&self, args: &[String]) -> String {
        let arg = |position: usize| args.get(position).map_or("", String::as_str);
        match &self.column_name {
            ColumnName::Call => format!("{}({})", self.name, args.join(", ")),
            ColumnName::Infix(operator) => format!("{} {operator} {}", arg(0), arg(1)),
            ColumnName::Prefix(operator) => format!("{operator}{}", arg(0)),
            ColumnName::Cast => format!("cast({} as {})", arg(0), self.return_type),
        }
    }
}
