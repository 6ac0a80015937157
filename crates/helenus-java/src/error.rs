//! Errors: diagnostics of the compiler, and failures of a running function.

/// The reason why a function's source is refused, in Cassandra's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Errors of the source, in its order.
    #[error("Java source compilation failed:\n{}\n", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Mistakes(Vec<Diagnostic>),
    /// Valid Java that functions may not use (Cassandra's `UDFByteCodeVerifier`).
    #[error("Java UDF validation failed: [{}]", .0.join(", "))]
    Forbidden(Vec<String>),
}

/// An error in a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {message}")]
pub struct Diagnostic {
    /// The line, counted from 1.
    pub line: u32,
    pub message: String,
}

impl Diagnostic {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            line,
            message: message.into(),
        }
    }
}

/// The failure of a call: an exception, or the end of the call's time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An exception, with the full name of its class.
    #[error("{class}{}", message.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Thrown { class: String, message: Option<String> },
    /// The function ran longer than its time limit.
    #[error("it ran for longer than it may")]
    TimedOut,
}

impl Failure {
    pub(crate) fn thrown(class: &str, message: impl Into<String>) -> Failure {
        Failure::Thrown {
            class: class.to_owned(),
            message: Some(message.into()),
        }
    }

    pub(crate) fn null_pointer() -> Failure {
        Failure::Thrown {
            class: NULL_POINTER.to_owned(),
            message: None,
        }
    }

    /// Returns a null pointer exception with Java's explanation.
    pub(crate) fn null_pointer_because(message: impl Into<String>) -> Failure {
        Failure::thrown(NULL_POINTER, message)
    }

    /// Returns true for a null pointer exception that has no message yet.
    pub(crate) fn is_bare_null_pointer(&self) -> bool {
        matches!(self, Failure::Thrown { class, message: None } if class == NULL_POINTER)
    }

    pub(crate) fn class_cast(from: &str, to: &str) -> Failure {
        let mut message = format!("class {from} cannot be cast to class {to}");
        if from.starts_with("java.") && to.starts_with("java.") {
            message += &format!(" ({from} and {to} are in module java.base of loader 'bootstrap')");
        }
        Failure::thrown("java.lang.ClassCastException", message)
    }

    /// Returns the failure that the function's caller sees: an `Error` is wrapped in a `RuntimeException`.
    pub(crate) fn seen_outside(self) -> Failure {
        match &self {
            Failure::Thrown { class, .. } if class.ends_with("Error") => {
                Failure::thrown("java.lang.RuntimeException", self.to_string())
            }
            _ => self,
        }
    }

    /// Returns the error of an operation that needs more memory than a function may take.
    pub(crate) fn out_of_memory() -> Failure {
        Failure::thrown("java.lang.OutOfMemoryError", "Java heap space")
    }
}

const NULL_POINTER: &str = "java.lang.NullPointerException";
