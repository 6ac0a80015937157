//! The Cassandra query language and its wire format: types, values, protocol frames and messages, lexer, parser and syntax tree. The format
//! of the full query log, which uses them, is also here. The crate does no I/O.

pub mod ast;
pub mod error;
pub mod frame;
pub mod identifier;
pub mod lexer;
pub mod parser;
pub mod query_log;
pub mod types;
pub mod value;
