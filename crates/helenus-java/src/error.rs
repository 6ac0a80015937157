//! What is wrong with a function, and what went wrong in it.

/// Why a function's source is refused: lines as Cassandra's compiler words them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {message}")]
pub struct CompileError {
    /// Counted from 1.
    pub line: u32,
    pub message: String,
}

impl CompileError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> CompileError {
        CompileError {
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
            class: "java.lang.NullPointerException".to_owned(),
            message: None,
        }
    }

    pub(crate) fn class_cast(from: &str, to: &str) -> Failure {
        Failure::thrown(
            "java.lang.ClassCastException",
            format!("class {from} cannot be cast to class {to}"),
        )
    }
}
