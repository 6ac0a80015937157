//! Settings of the process that commands show and change while the node runs. The binary implements the traits, because it reads the
//! settings and starts the log.
//!
//! The settings with which a part starts are with that part, such as `transport/config.rs`.

mod live_settings;
mod log_levels;

pub(crate) use live_settings::unusual_settings;
pub use live_settings::{LiveSettings, Reloaded, SettingState};
pub use log_levels::{LogLevel, LogLevels};
