//! A function's body as a tree, with resolved names.

use std::fmt;
use std::sync::Arc;

/// A type.
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
    /// The last part of the class's name, and its type arguments as far as they are known.
    Class(Arc<str>, Arc<[Type]>),
    /// An array, with the type of its elements.
    Array(Arc<Type>),
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
        Type::generic(name, Vec::new())
    }

    pub fn generic(name: &str, arguments: Vec<Type>) -> Type {
        Type::Class(Arc::from(name), Arc::from(arguments))
    }

    pub fn array(of: Type) -> Type {
        Type::Array(Arc::new(of))
    }

    pub fn is_primitive(&self) -> bool {
        !matches!(self, Type::Class(..) | Type::Array(_))
    }

    /// Returns the type arguments of a class.
    pub fn arguments(&self) -> &[Type] {
        match self {
            Type::Class(_, arguments) => arguments,
            _ => &[],
        }
    }

    /// Returns the class of a primitive type's box. Other types are returned unchanged.
    pub fn boxed(&self) -> Type {
        Type::class(match self {
            Type::Boolean => "Boolean",
            Type::Char => "Character",
            Type::Byte => "Byte",
            Type::Short => "Short",
            Type::Int => "Integer",
            Type::Long => "Long",
            Type::Float => "Float",
            Type::Double => "Double",
            Type::Class(..) | Type::Array(_) => return self.clone(),
        })
    }

    /// Returns the primitive type that this type or box holds. `None` for other types.
    pub fn unboxed(&self) -> Option<Type> {
        Some(match self.name() {
            _ if self.is_primitive() => self.clone(),
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

    /// Returns the name of a primitive type, or the last part of a class's name.
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
            Type::Class(name, _) => name,
            Type::Array(_) => "array",
        }
    }
}

/// A type as compilers show it: `Map<String,Integer>`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Array(of) => write!(f, "{of}[]"),
            Type::Class(name, arguments) if !arguments.is_empty() => {
                let arguments: Vec<String> = arguments.iter().map(Type::to_string).collect();
                write!(f, "{name}<{}>", arguments.join(","))
            }
            _ => f.write_str(self.name().rsplit('.').next().unwrap_or_default()),
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
    /// The variable `udfContext`, with which a function creates values of user types and tuples.
    Context,
    /// An assignment, with an operator as in `+=`. `None` for a plain `=`.
    Assign {
        target: AssignTarget,
        operator: Option<Operator>,
        value: Box<Expr>,
    },
    /// `++` and `--`.
    Increment {
        target: AssignTarget,
        by: i8,
        /// True if the expression's value is the one before the change.
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
        class: Type,
        arguments: Vec<Expr>,
    },
    /// `String.class`
    ClassLiteral(Type),
    /// `array[index]`
    Element {
        array: Box<Expr>,
        index: Box<Expr>,
    },
    /// `array.length`
    Length(Box<Expr>),
    /// `new int[2][3]`, with the type of the whole array.
    NewArray {
        ty: Type,
        lengths: Vec<Expr>,
    },
    /// `{1, 2}`
    ArrayOf {
        ty: Type,
        elements: Vec<Expr>,
    },
    /// An invalid expression, for which a mistake has been noted.
    Meaningless,
}

/// The target of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AssignTarget {
    Local(usize),
    Element { array: Box<Expr>, index: Box<Expr> },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Catch {
    pub classes: Vec<String>,
    pub slot: usize,
    pub body: Vec<Statement>,
}

/// The label of a `case`, or `default`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CaseLabel {
    Value(Expr),
    Default,
}

impl CaseLabel {
    pub fn value(&self) -> Option<&Expr> {
        match self {
            CaseLabel::Value(value) => Some(value),
            CaseLabel::Default => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub labels: Vec<CaseLabel>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StatementKind {
    /// A declaration of a variable. `value` is `None` if the variable is declared without a value.
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

/// A statement, and the line on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub line: u32,
    pub kind: StatementKind,
}

/// A function's body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    pub statements: Vec<Statement>,
    /// The types of all variables, the parameters first.
    pub slots: Vec<Type>,
}
