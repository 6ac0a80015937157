//! Keys, and values that can be verified when they are read.

pub mod fields;
pub mod keys;
pub mod value;
mod words;
