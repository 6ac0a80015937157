//! Settings that change while the node runs: the file is read again (SIGHUP, `nodetool reloadconfig`), or they are set one by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_query::engine::{Engine, Limits, guardrails_shown};
use helenus_server::settings::{LiveSettings, Reloaded, SettingState};
use helenus_server::transport::SlowRequestLog;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::config::Config;
use super::guardrail_settings;
use super::log_filter::LogFilter;
use super::settings::{self, ExplicitSettings, Sources};
use super::settings_live::{LIVE, is_live};
use super::settings_shown;

/// Divisor of the memory for clients that is the maximum size of a page.
const PAGES_IN_FLIGHT: usize = 32;
const PAGE_BYTES_MIN: usize = 256 * 1024;

/// Returns the limits of requests that follow from the settings.
pub fn limits(config: &Config) -> Limits {
    // Many pages are in memory at the same time.
    let page_bytes_max = config.server.node_in_flight_bytes / PAGES_IN_FLIGHT;
    let limits = &config.limits;
    Limits {
        page_bytes_max: limits.page_bytes_max.min(page_bytes_max.max(PAGE_BYTES_MIN)),
        client_memory_bytes: config.server.node_in_flight_bytes,
        ..limits.clone()
    }
}

/// The settings of a running node.
pub struct Live {
    sources: Sources,
    state: Mutex<State>,
    applied_to: AppliedTo,
}

struct State {
    /// The configuration in effect. Its throttles are shared with the store.
    config: Config,
    /// The given settings when the node started. They show which settings need a restart.
    given: ExplicitSettings,
}

/// The parts of the node whose settings change.
pub struct AppliedTo {
    pub log: Arc<LogFilter>,
    pub engine: Arc<Engine>,
    pub slow_requests: SlowRequestLog,
    /// Notified when certificate files must be read again.
    pub certificates: Arc<Notify>,
}

impl AppliedTo {
    /// Applies a configuration. The log filter is applied only if `with_log`, because nodetool can change it separately.
    fn apply(&self, config: &Config, with_log: bool) -> Result<(), String> {
        if with_log {
            self.log.restart_with(&config.log)?;
        }
        self.engine.set_limits(limits(config));
        self.slow_requests
            .set_timeout(config.server.slow_request_log_timeout);
        self.slow_requests.set_kept(config.server.slow_requests_kept);
        Ok(())
    }
}

impl Live {
    /// Creates the settings of a node that was started with `config`, which was read from `sources`.
    pub fn new(sources: Sources, given: ExplicitSettings, config: Config, applied_to: AppliedTo) -> Live {
        Live {
            sources,
            state: Mutex::new(State { config, given }),
            applied_to,
        }
    }

    /// Reads the settings again after each notification.
    pub async fn follow(self: Arc<Self>, notify: Arc<Notify>) {
        loop {
            notify.notified().await;
            let live = self.clone();
            // A blocking thread is needed because files are read.
            match tokio::task::spawn_blocking(move || live.reload()).await {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => tracing::warn!(why, "the settings stay as they were"),
                Err(_) => return,
            }
        }
    }
}

impl LiveSettings for Live {
    fn settings(&self) -> Vec<SettingState> {
        let state = self.state.lock();
        let defaults = Config::new(state.config.store.url.clone());
        let setting = |name| SettingState {
            name,
            value: settings_shown::value(name, &state.config),
            default: settings_shown::default(name, &defaults),
            is_live: is_live(name),
        };
        settings::names().map(setting).collect()
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        if guardrail_settings::has(name) {
            return self.set_guardrails(&[(name, value)]);
        }
        let mut state = self.state.lock();
        let mut changed = Config::new(state.config.store.url.clone());
        settings::apply(&mut changed, name, value, "nodetool").map_err(|error| error.to_string())?;
        let take = LIVE.iter().find(|(known, _)| *known == name);
        let (_, take) = take.ok_or_else(|| {
            format!(
                "{name} can't change while the node runs: set it in the file of settings and restart the node"
            )
        })?;
        let before = settings_shown::value(name, &state.config);
        let mut config = state.config.clone();
        take(&mut config, &changed);
        self.applied_to.apply(&config, name == "log")?;
        state.config = config;
        tracing::info!(setting = name, before, now = value, "a setting was changed");
        Ok(())
    }

    fn guardrails(&self) -> Vec<(String, Option<String>)> {
        guardrails_shown(&self.state.lock().config.limits.guardrails)
    }

    fn set_guardrails(&self, changes: &[(&str, &str)]) -> Result<(), String> {
        let mut state = self.state.lock();
        let mut config = state.config.clone();
        guardrail_settings::set(&mut config, changes)?;
        self.applied_to.apply(&config, false)?;
        for (name, _) in changes {
            log_change(name, &state.config, &config);
        }
        state.config = config;
        Ok(())
    }

    fn reload(&self) -> Result<Reloaded, String> {
        self.applied_to.certificates.notify_one();
        let (fresh, given) = self.sources.load().map_err(|error| format!("{error:#}"))?;
        let mut state = self.state.lock();
        let mut config = state.config.clone();
        let mut reloaded = Reloaded::default();
        for (name, take) in LIVE {
            if settings_shown::value(name, &config) != settings_shown::value(name, &fresh) {
                log_change(name, &config, &fresh);
                take(&mut config, &fresh);
                reloaded.changed.push(name);
            }
        }
        take_guardrails(&mut config, &fresh, &mut reloaded.changed);
        let is_log_changed = reloaded.changed.contains(&"log");
        self.applied_to.apply(&config, is_log_changed)?;
        reloaded.waiting = differing(&state.given, &given);
        state.config = config;
        tracing::info!(
            changed = reloaded.changed.join(", "),
            "the settings were read again"
        );
        if !reloaded.waiting.is_empty() {
            let settings = reloaded.waiting.join(", ");
            tracing::warn!(settings, "changed settings that take effect after a restart");
        }
        Ok(reloaded)
    }
}

/// Copies the guardrails of another configuration, and adds the names of the changed settings to `changed`.
fn take_guardrails(config: &mut Config, fresh: &Config, changed: &mut Vec<&'static str>) {
    for setting in guardrail_settings::all() {
        let value = |config: &Config| settings_shown::value(setting.name, config);
        if value(config) != value(fresh) {
            log_change(setting.name, config, fresh);
            changed.push(setting.name);
        }
    }
    config.limits.guardrails = fresh.limits.guardrails.clone();
}

fn log_change(name: &str, before: &Config, now: &Config) {
    let value = |config: &Config| settings_shown::value(name, config);
    tracing::info!(
        setting = name,
        before = value(before),
        now = value(now),
        "a setting was changed"
    );
}

/// Returns the settings that differ from those at the start of the node and take effect only after a restart.
fn differing(began: &ExplicitSettings, now: &ExplicitSettings) -> Vec<&'static str> {
    settings::names()
        .filter(|name| !is_live(name) && began.get(*name) != now.get(*name))
        .collect()
}

/// Returns the settings that differ from their defaults, as pairs of name and value. Secrets are hidden.
pub fn unusual(config: &Config) -> BTreeMap<&'static str, String> {
    let defaults = Config::new(config.store.url.clone());
    settings::names()
        .map(|name| (name, settings_shown::value(name, config)))
        .filter(|(name, value)| *name == "store" || *value != settings_shown::value(name, &defaults))
        .collect()
}
