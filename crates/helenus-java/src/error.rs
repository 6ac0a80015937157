//! Errors: diagnostics of the compiler, and failures of a running function.

/// Why a function's source is refused, in Cassandra's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// In the order of the source.
    #[error("Java source compilation failed:\n{}\n", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Mistakes(Vec<Diagnostic>),
    /// What is Java, and not allowed in functions (Cassandra's `UDFByteCodeVerifier`).
    #[error("Java UDF validation failed: [{}]", .0.join(", "))]
    Forbidden(Vec<String>),
}

/// One thing that is wrong with a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {message}")]
pub struct Diagnostic {
    /// Counted from 1.
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

/// What a function threw, or that it was stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An exception, with the class's whole name.
    #[error("{class}{}", message.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Thrown { class: String, message: Option<String> },
    /// It ran for longer than it may.
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

    /// Returns a null where something is asked of an object, with what Java says of it.
    pub(crate) fn null_pointer_because(message: impl Into<String>) -> Failure {
        Failure::thrown(NULL_POINTER, message)
    }

    /// Whether it is a null pointer of which nothing has been said yet.
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

    /// As a function's caller sees it: an `Error` is in a `RuntimeException`.
    pub(crate) fn seen_outside(self) -> Failure {
        match &self {
            Failure::Thrown { class, .. } if class.ends_with("Error") => {
                Failure::thrown("java.lang.RuntimeException", self.to_string())
            }
            _ => self,
        }
    }

    /// What would need more memory than a function may take.
    pub(crate) fn out_of_memory() -> Failure {
        Failure::thrown("java.lang.OutOfMemoryError", "Java heap space")
    }
}

const NULL_POINTER: &str = "java.lang.NullPointerException";
