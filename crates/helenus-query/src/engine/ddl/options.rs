//! Table options: from the WITH clause to [`TableOptions`], validated as Cassandra does (`TableAttributes`,
//! `TableParams.validate`, `CachingParams`, `SpeculativeRetryPolicy`).

use helenus_cql::ast::{Properties, PropertyValue};
use helenus_cql::error::CqlError;

use super::compaction::compaction;
use super::compression::compression;
use crate::analysis::properties::{self, Options};
use crate::engine::ddl::option_values::{config, java};
use crate::schema::TableOptions;

const KNOWN: [&str; 20] = [
    "additional_write_policy",
    "allow_auto_snapshot",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "speculative_retry",
];

/// Longest TTL: 20 years (`Attributes.MAX_TTL`).
const TTL_MAX_S: i32 = 20 * 365 * 24 * 60 * 60;

/// A chance of false positives that stands for the one that suits the compaction.
const FP_CHANCE_UNSET: f64 = -1.0;

/// The options of what is created with a WITH clause.
pub fn of_new(properties: &Properties) -> Result<TableOptions, CqlError> {
    let unset = TableOptions {
        bloom_filter_fp_chance: FP_CHANCE_UNSET,
        ..TableOptions::default()
    };
    apply(properties, unset)
}

/// The options that result from a WITH clause on top of those that were there.
pub fn apply(properties: &Properties, options: TableOptions) -> Result<TableOptions, CqlError> {
    properties::check_known(properties, &KNOWN)?;
    let options = read(properties, options)?;
    validate(&options)?;
    Ok(options)
}

/// Refuses what does not read as an option's value, before anything else of a statement is looked at.
pub fn check_form(properties: &Properties) -> Result<(), CqlError> {
    let mut properties = properties.clone();
    for (name, value) in &mut properties.0 {
        // The strategies look at their own options later.
        if let (true, PropertyValue::Map(entries)) = (name == "compaction", value) {
            entries.retain(|(option, _)| option == "class");
        }
    }
    read(&properties, TableOptions::default()).map(drop)
}

/// The options as declared on top of those that were there; what does not read as an option's value is refused, whether the options make
/// sense together is not asked.
pub fn read(properties: &Properties, mut options: TableOptions) -> Result<TableOptions, CqlError> {
    let int = |name: &str| properties::number::<i32>(properties, name, "integer");
    let double = |name: &str| properties::double(properties, name);
    let boolean = |name: &str| properties::boolean(properties, name);
    let text = |name: &str| Ok::<_, CqlError>(properties::text(properties, name)?.map(str::to_owned));
    let set = |name: &str| properties::map(properties, name);
    replace(
        &mut options.bloom_filter_fp_chance,
        double("bloom_filter_fp_chance")?,
    );
    replace(&mut options.caching, set("caching")?.map(caching).transpose()?);
    replace(&mut options.comment, text("comment")?);
    replace(
        &mut options.compaction,
        set("compaction")?.map(compaction).transpose()?,
    );
    replace(
        &mut options.compression,
        set("compression")?.map(compression).transpose()?,
    );
    replace(
        &mut options.memtable,
        text("memtable")?.map(memtable).transpose()?,
    );
    replace(&mut options.default_time_to_live_s, int("default_time_to_live")?);
    replace(&mut options.gc_grace_s, int("gc_grace_seconds")?);
    replace(&mut options.max_index_interval, int("max_index_interval")?);
    replace(
        &mut options.memtable_flush_period_ms,
        int("memtable_flush_period_in_ms")?,
    );
    replace(&mut options.min_index_interval, int("min_index_interval")?);
    replace(
        &mut options.speculative_retry,
        text("speculative_retry")?.map(retry_policy).transpose()?,
    );
    replace(
        &mut options.additional_write_policy,
        text("additional_write_policy")?.map(retry_policy).transpose()?,
    );
    replace(&mut options.crc_check_chance, double("crc_check_chance")?);
    replace(&mut options.cdc, boolean("cdc")?);
    replace(
        &mut options.read_repair,
        text("read_repair")?.map(read_repair).transpose()?,
    );
    replace(&mut options.allow_auto_snapshot, boolean("allow_auto_snapshot")?);
    replace(&mut options.incremental_backups, boolean("incremental_backups")?);
    if options.bloom_filter_fp_chance == FP_CHANCE_UNSET {
        let is_leveled = |class: &String| class.ends_with(".LeveledCompactionStrategy");
        options.bloom_filter_fp_chance = match options.compaction.get("class").is_some_and(is_leveled) {
            true => 0.1,
            false => 0.01,
        };
    }
    Ok(options)
}

fn replace<T>(option: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *option = value;
    }
}

fn validate(options: &TableOptions) -> Result<(), CqlError> {
    const FP_CHANCE_MIN: f64 = 6.71e-5;
    if !(options.bloom_filter_fp_chance > FP_CHANCE_MIN && options.bloom_filter_fp_chance <= 1.0) {
        return config(format!(
            "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 (got {})",
            java(options.bloom_filter_fp_chance)
        ));
    }
    if !(0.0..=1.0).contains(&options.crc_check_chance) {
        return config(format!(
            "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})",
            java(options.crc_check_chance)
        ));
    }
    at_least("default_time_to_live", options.default_time_to_live_s, 0)?;
    if options.default_time_to_live_s > TTL_MAX_S {
        return config(format!(
            "default_time_to_live must be less than or equal to {TTL_MAX_S} (got {})",
            options.default_time_to_live_s
        ));
    }
    at_least("gc_grace_seconds", options.gc_grace_s, 0)?;
    at_least("min_index_interval", options.min_index_interval, 1)?;
    if options.max_index_interval < options.min_index_interval {
        return config(format!(
            "max_index_interval must be greater than or equal to min_index_interval ({}) (got {})",
            options.min_index_interval, options.max_index_interval
        ));
    }
    at_least("memtable_flush_period_in_ms", options.memtable_flush_period_ms, 0)
}

fn at_least(name: &str, value: i32, least: i32) -> Result<(), CqlError> {
    match value >= least {
        true => Ok(()),
        false => config(format!(
            "{name} must be greater than or equal to {least} (got {value})"
        )),
    }
}

fn caching(declared: Options) -> Result<Options, CqlError> {
    let keys = declared.get("keys").map_or("NONE", String::as_str);
    if !["ALL", "NONE"]
        .iter()
        .any(|allowed| keys.eq_ignore_ascii_case(allowed))
    {
        return config(format!(
            "Invalid value '{keys}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed"
        ));
    }
    let rows = declared.get("rows_per_partition").map_or("NONE", String::as_str);
    let is_word = ["ALL", "NONE"]
        .iter()
        .any(|allowed| rows.eq_ignore_ascii_case(allowed));
    if !is_word && !rows.parse::<i32>().is_ok_and(|count| count >= 0) {
        return config(format!(
            "Invalid value '{rows}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and integer \
             values are allowed"
        ));
    }
    let unknown: Vec<&str> = declared
        .keys()
        .map(String::as_str)
        .filter(|key| !["keys", "rows_per_partition"].contains(key))
        .collect();
    if !unknown.is_empty() {
        return config(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        ));
    }
    let rows = match rows.parse::<i32>() {
        Ok(0) => "NONE".to_owned(),
        Ok(i32::MAX) => "ALL".to_owned(),
        Ok(count) => count.to_string(),
        Err(_) => rows.to_ascii_uppercase(),
    };
    Ok(Options::from([
        ("keys".to_owned(), keys.to_ascii_uppercase()),
        ("rows_per_partition".to_owned(), rows),
    ]))
}

/// The memtable configurations of a stock `cassandra.yaml`.
fn memtable(name: String) -> Result<String, CqlError> {
    match name.as_str() {
        "default" | "skiplist" | "trie" => Ok(name),
        _ => config(format!("Memtable configuration \"{name}\" not found.")),
    }
}

fn read_repair(text: String) -> Result<String, CqlError> {
    let text = text.to_ascii_uppercase();
    match text.as_str() {
        "NONE" | "BLOCKING" => Ok(text),
        _ => config(format!(
            "Invalid value {text} for option 'read_repair': it is NONE or BLOCKING"
        )),
    }
}

/// A retry policy in the form in which Cassandra shows it back: `99p`, `50ms`, `ALWAYS`, `NEVER`, `MIN(99p,50ms)`.
fn retry_policy(text: String) -> Result<String, CqlError> {
    let invalid = || CqlError::Config(format!("Invalid value {text} for option 'speculative_retry'"));
    let upper = text.to_ascii_uppercase();
    match upper.as_str() {
        "ALWAYS" => return Ok(upper),
        "NONE" | "NEVER" => return Ok("NEVER".to_owned()),
        _ => {}
    }
    for function in ["MIN", "MAX"] {
        let args = upper
            .strip_prefix(function)
            .and_then(|rest| rest.trim().strip_prefix('('));
        if let Some(args) = args.and_then(|rest| rest.strip_suffix(')')) {
            let (left, right) = args.split_once(',').ok_or_else(invalid)?;
            let part = |part: &str| simple_retry_policy(part.trim(), &text);
            let (left, right) = (part(left)?, part(right)?);
            let kind = |part: &str| {
                if part.ends_with("ms") {
                    "FIXED"
                } else {
                    "PERCENTILE"
                }
            };
            if kind(&left) == kind(&right) {
                return config(format!(
                    "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different \
                     types, but both are of type {}",
                    kind(&left)
                ));
            }
            let (percentile, fixed) = match kind(&left) {
                "FIXED" => (right, left),
                _ => (left, right),
            };
            return Ok(format!("{function}({percentile},{fixed})"));
        }
    }
    simple_retry_policy(&upper, &text)
}

fn simple_retry_policy(upper: &str, whole: &str) -> Result<String, CqlError> {
    let invalid = || CqlError::Config(format!("Invalid value {whole} for option 'speculative_retry'"));
    if let Some(number) = upper.strip_suffix("MS") {
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let ms: f64 = number.parse().ok().filter(|_| is_number).ok_or_else(invalid)?;
        return Ok(format!("{}ms", ms.trunc()));
    }
    let number = upper
        .strip_suffix("PERCENTILE")
        .or_else(|| upper.strip_suffix('P'))
        .ok_or_else(invalid)?;
    let is_number = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = Some(number).filter(is_number).ok_or_else(invalid)?;
    let percentile: f64 = number.parse().map_err(|_| invalid())?;
    if !(percentile > 0.0 && percentile < 100.0) {
        return config(format!(
            "Invalid value {whole} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
        ));
    }
    Ok(format!("{}p", plain(percentile)))
}

/// A number without a fraction of zero.
fn plain(number: f64) -> String {
    number.to_string()
}
