//! Methods, constants and constructors of the classes of dates and times, over the values of [`crate::time`].

pub(crate) mod date;
pub(crate) mod legacy;
pub(crate) mod methods;
pub(crate) mod statics;
#[cfg(test)]
mod time_tests;
