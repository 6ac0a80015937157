//! Execution of SELECT: binds the values of a request, reads partition by partition ([`source`]), and collects pages ([`output`]).

pub(crate) mod output;
pub(crate) mod point;
pub(crate) mod run;
pub(crate) mod size;
pub(crate) mod source;
pub(crate) mod stored_row;
pub(crate) mod tombstones;
pub(crate) mod virtual_read;

pub(crate) mod open_source;
#[cfg(test)]
mod select_tests;
