//! A function's body, its names resolved.

use std::sync::Arc;

/// A type as it stands in the source; type arguments are read and forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Boolean,
    Char,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    /// The last part of its name.
    Class(Arc<str>),
}

impl Type {
    pub fn primitive(name: &str) -> Option<Type> {
        Some(match name {
            "boolean" => Type::Boolean,
            "char" => Type::Char,
            "byte" => Type::Byte,
            "short" => Type::Short,
            "int" => Type::Int,
            "long" => Type::Long,
            "float" => Type::Float,
            "double" => Type::Double,
            _ => return None,
        })
    }

    pub fn class(name: &str) -> Type {
        Type::Class(Arc::from(name))
    }

    /// The primitive type in a box of this class.
    pub fn unboxed(&self) -> Option<Type> {
        let Type::Class(name) = self else {
            return Some(self.clone());
        };
        Some(match name.as_ref() {
            "Boolean" => Type::Boolean,
            "Character" => Type::Char,
            "Byte" => Type::Byte,
            "Short" => Type::Short,
            "Integer" => Type::Int,
            "Long" => Type::Long,
            "Float" => Type::Float,
            "Double" => Type::Double,
            _ => return None,
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Type::Boolean => "boolean",
            Type::Char => "char",
            Type::Byte => "byte",
            Type::Short => "short",
            Type::Int => "int",
            Type::Long => "long",
            Type::Float => "float",
            Type::Double => "double",
            Type::Class(name) => name,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Constant {
    Null,
    Boolean(bool),
    Char(u16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    String(Arc<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOperator {
    Plus,
    Minus,
    Not,
    Complement,
}

/// An expression, and the line on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub line: u32,
    pub kind: ExprKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExprKind {
    Constant(Constant),
    /// A parameter or a local variable.
    Local(usize),
    /// What a function makes values of user types and tuples with.
    Context,
    /// To a variable; with an operator as in `+=`.
    Assign {
        slot: usize,
        operator: Option<Operator>,
        value: Box<Expr>,
    },
    /// `++` and `--`.
    Increment {
        slot: usize,
        by: i8,
        /// The value is the one before.
        is_postfix: bool,
    },
    Unary(UnaryOperator, Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    AndThen(Box<Expr>, Box<Expr>),
    OrElse(Box<Expr>, Box<Expr>),
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Type, Box<Expr>),
    InstanceOf(Box<Expr>, Type),
    Call {
        object: Box<Expr>,
        method: String,
        arguments: Vec<Expr>,
    },
    StaticCall {
        class: String,
        method: String,
        arguments: Vec<Expr>,
    },
    StaticField {
        class: String,
        field: String,
    },
    New {
        class: String,
        arguments: Vec<Expr>,
    },
    /// `String.class`
    ClassLiteral(Type),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Catch {
    pub classes: Vec<String>,
    pub slot: usize,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// None is `default`.
    pub labels: Vec<Option<Expr>>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    /// A variable, set to nothing if there is no value.
    Local {
        slot: usize,
        value: Option<Expr>,
    },
    Expr(Expr),
    Block(Vec<Statement>),
    If {
        condition: Expr,
        then: Box<Statement>,
        otherwise: Option<Box<Statement>>,
    },
    While {
        condition: Expr,
        body: Box<Statement>,
    },
    DoWhile {
        body: Box<Statement>,
        condition: Expr,
    },
    For {
        init: Vec<Statement>,
        condition: Option<Expr>,
        update: Vec<Expr>,
        body: Box<Statement>,
    },
    ForEach {
        slot: usize,
        of: Expr,
        body: Box<Statement>,
    },
    Switch {
        subject: Expr,
        cases: Vec<Case>,
    },
    Return(Expr),
    Throw(Expr),
    Try {
        body: Vec<Statement>,
        catches: Vec<Catch>,
        finally: Option<Vec<Statement>>,
    },
    Break,
    Continue,
}

/// A function's body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    pub statements: Vec<Statement>,
    /// The types of all variables, the parameters first.
    pub slots: Vec<Type>,
}
