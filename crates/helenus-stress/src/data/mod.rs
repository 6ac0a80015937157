//! Keys, and values that can be checked when they are read.

pub mod fields;
pub mod keys;
pub mod value;
mod words;
