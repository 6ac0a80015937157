//! Values of `java.time`, and of the older `java.util.Calendar`, `java.util.TimeZone` and `java.text.SimpleDateFormat`. The calendar and
//! the names are those of the United States, which a server without a configured locale uses. The default time zone is UTC. The methods
//! that functions call are in [`crate::time_library`].

pub(crate) mod calendar;
pub(crate) mod civil;
pub(crate) mod date_format;
pub(crate) mod formatter;
pub(crate) mod pattern;
pub(crate) mod reader;
pub(crate) mod shift;
pub(crate) mod temporal;
pub(crate) mod unit;
pub(crate) mod zone;
