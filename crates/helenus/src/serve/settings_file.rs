//! The settings file that packages ship, generated from the descriptions of the settings.

use std::fmt::Write;

use super::config::Config;
use super::setting::Setting;
use super::settings::{all, apply};
use super::{settings_live, settings_shown};

/// Returns a file of all settings. The given ones are set; all others are commented out and have their defaults.
///
/// # Errors
/// Fails if a given setting is unknown or wrong.
pub fn text(given: &[(String, String)]) -> anyhow::Result<String> {
    let defaults = Config::new(Config::default_store());
    let mut checked = defaults.clone();
    for (name, value) in given {
        apply(&mut checked, name, value, "command line")?;
    }
    let mut text = FILE_HEADER.to_owned();
    for setting in all() {
        let value = given.iter().find(|(name, _)| name == setting.name);
        describe(
            &mut text,
            setting,
            value.map(|(_, value)| value.as_str()),
            &defaults,
        );
    }
    Ok(text)
}

/// Appends a setting with its description, allowed values and default.
fn describe(text: &mut String, setting: &Setting, value: Option<&str>, defaults: &Config) {
    let name = setting.name;
    let change = if settings_live::is_live(name) {
        " Changes on reload."
    } else {
        ""
    };
    text.push('\n');
    comment(text, &format!("{}.{change}", capitalized(setting.about)));
    comment(text, &format!("Allowed: {}.", setting.allowed));
    let default = settings_shown::default(name, defaults);
    let is_value = !settings_shown::is_computed(name) && !default.is_empty();
    if !is_value || value.is_some() {
        let default = if default.is_empty() { "none" } else { &default };
        comment(text, &format!("Default: {default}."));
    }
    let mark = if value.is_some() { "" } else { "#" };
    let shown = value.unwrap_or(if is_value { &default } else { "" });
    let _ = writeln!(text, "{mark}{name} = {}", toml::Value::from(shown));
}

const FILE_HEADER: &str = "\
# Settings of a Helenus node. Each is shown with its default, or with no value where the default depends on the machine; take the # away and
# change the value to set one. Settings of the command line win over those of the environment (HELENUS_NAME), which win over this file.
# `helenus nodetool reloadconfig` and SIGHUP read it again; what does not change on reload takes a restart.
";

/// Maximum length of a comment's line.
const COMMENT_WIDTH: usize = 120;

/// Appends a comment, wrapped at the maximum length.
fn comment(text: &mut String, words: &str) {
    let mut line = "#".to_owned();
    for word in words.split_whitespace() {
        if line.len() + 1 + word.len() > COMMENT_WIDTH {
            let _ = writeln!(text, "{line}");
            line = "#".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
