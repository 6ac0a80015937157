//! Settings as commands show and change them.

use std::collections::BTreeMap;

/// A setting and its present value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingState {
    pub name: &'static str,
    pub value: String,
    /// The value of a setting that is not set.
    pub default: String,
    /// True if the setting can change while the node runs.
    pub is_live: bool,
}

/// The settings whose values a reload found changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Settings whose new values have taken effect.
    pub changed: Vec<&'static str>,
    /// Settings whose new values take effect after a restart.
    pub waiting: Vec<&'static str>,
}

/// The settings of the process.
pub trait LiveSettings: Send + Sync {
    /// Returns all settings.
    fn settings(&self) -> Vec<SettingState>;

    /// Changes a setting until the node stops, or until the settings are read again.
    ///
    /// # Errors
    /// The reason why the setting was not changed.
    fn set(&self, name: &str, value: &str) -> Result<(), String>;

    /// Returns the settings of guardrails and their values, in the form of `system_views.settings`.
    fn guardrails(&self) -> Vec<(String, Option<String>)>;

    /// Changes all given settings of guardrails, or none of them, until the node stops or the settings are read again.
    ///
    /// # Errors
    /// The reason why no setting was changed.
    fn set_guardrails(&self, changes: &[(&str, &str)]) -> Result<(), String>;

    /// Reads the file of settings and the certificates again. The file's values replace those of [`LiveSettings::set`].
    ///
    /// # Errors
    /// The reason why nothing was changed.
    fn reload(&self) -> Result<Reloaded, String>;
}

/// Returns the settings that differ from their defaults, by name. Secrets are not shown.
pub(crate) fn unusual_settings(settings: &dyn LiveSettings) -> BTreeMap<String, String> {
    let all = settings.settings().into_iter();
    let unusual = all.filter(|setting| setting.value != setting.default);
    unusual
        .map(|setting| (setting.name.to_owned(), setting.value))
        .collect()
}
