//! The registry of table options: how each is read from a WITH clause, checked, shown by DESCRIBE, and reported to drivers.

use bytes::Bytes;
use helenus_cql::ast::Properties;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_text;

use super::TableOptions;
use super::caching::caching;
use super::cdc;
use super::compaction::compaction;
use super::compression::compression;
use super::partition_rate_limit::{self, PartitionRateLimit, partition_rate_limit};
use super::retry_policy::retry_policy;
use super::transactional_mode;
use super::values::{
    TTL_MAX_S, at_least, blob_map_literal, config, java, map_literal, memtable, read_repair,
};
use crate::properties::{self, Options};
use crate::rows::cells::{boolean, double, int, text, text_map};

/// One option of a table.
pub(super) struct TableOption {
    /// The name in the WITH clause, and of the column in `system_schema.tables` and `system_schema.views`.
    pub name: &'static str,
    /// Replaces the option by the declared value, if there is one.
    pub read: fn(Declared<'_>, &mut TableOptions) -> Result<(), CqlError>,
    /// Refuses values out of range.
    pub check: fn(&TableOptions) -> Result<(), CqlError>,
    /// The value as DESCRIBE shows it.
    pub literal: fn(&TableOptions) -> String,
    /// The value in the tables that drivers read. `None` for options younger than Cassandra 4.0 that have their default. `cdc` is always
    /// null, as in Cassandra without change data capture.
    pub cell: fn(&TableOptions) -> Option<Bytes>,
}

/// A WITH clause, and the name of the option to read from it. Each method replaces an option by its declared value, if there is one.
#[derive(Clone, Copy)]
pub(super) struct Declared<'a> {
    pub properties: &'a Properties,
    pub name: &'a str,
}

impl Declared<'_> {
    fn text(
        self,
        option: &mut String,
        parse: fn(String) -> Result<String, CqlError>,
    ) -> Result<(), CqlError> {
        let value = properties::text(self.properties, self.name)?.map(str::to_owned);
        replace(option, value.map(parse).transpose()?)
    }

    fn map(
        self,
        option: &mut Options,
        parse: fn(Options) -> Result<Options, CqlError>,
    ) -> Result<(), CqlError> {
        let value = properties::map(self.properties, self.name)?;
        replace(option, value.map(parse).transpose()?)
    }

    fn rate_limit(self, option: &mut Option<PartitionRateLimit>) -> Result<(), CqlError> {
        let value = properties::map(self.properties, self.name)?;
        replace(option, value.as_ref().map(partition_rate_limit).transpose()?)
    }

    fn integer(self, option: &mut i32) -> Result<(), CqlError> {
        replace(option, properties::number(self.properties, self.name, "integer")?)
    }

    fn double(self, option: &mut f64) -> Result<(), CqlError> {
        replace(option, properties::double(self.properties, self.name)?)
    }

    fn boolean(self, option: &mut bool) -> Result<(), CqlError> {
        replace(option, properties::boolean(self.properties, self.name)?)
    }
}

fn replace<T>(option: &mut T, value: Option<T>) -> Result<(), CqlError> {
    if let Some(value) = value {
        *option = value;
    }
    Ok(())
}

/// All options, in the order in which DESCRIBE shows them (`TableParams.appendCqlTo`).
pub(super) static REGISTRY: [TableOption; 21] = [
    TableOption {
        name: "additional_write_policy",
        read: |declared, options| declared.text(&mut options.additional_write_policy, retry_policy),
        check: any_value,
        literal: |options| quote_text(&options.additional_write_policy),
        cell: |options| text(&options.additional_write_policy),
    },
    TableOption {
        name: "allow_auto_snapshot",
        read: |declared, options| declared.boolean(&mut options.allow_auto_snapshot),
        check: any_value,
        literal: |options| options.allow_auto_snapshot.to_string(),
        cell: |options| {
            if options.allow_auto_snapshot {
                None
            } else {
                boolean(false)
            }
        },
    },
    TableOption {
        name: "bloom_filter_fp_chance",
        read: |declared, options| declared.double(&mut options.bloom_filter_fp_chance),
        check: check_fp_chance,
        literal: |options| java(options.bloom_filter_fp_chance),
        cell: |options| double(options.bloom_filter_fp_chance),
    },
    TableOption {
        name: "caching",
        read: |declared, options| declared.map(&mut options.caching, caching),
        check: any_value,
        literal: |options| map_literal(&options.caching),
        cell: |options| text_map(&options.caching),
    },
    TableOption {
        name: "cdc",
        read: |declared, options| cdc::read(declared.properties, declared.name, &mut options.cdc),
        check: any_value,
        literal: |options| options.cdc.literal(),
        cell: |_| None,
    },
    TableOption {
        name: "comment",
        read: |declared, options| declared.text(&mut options.comment, Ok),
        check: any_value,
        literal: |options| quote_text(&options.comment),
        cell: |options| text(&options.comment),
    },
    TableOption {
        name: "compaction",
        read: |declared, options| declared.map(&mut options.compaction, compaction),
        check: any_value,
        literal: |options| map_literal(&options.compaction),
        cell: |options| text_map(&options.compaction),
    },
    TableOption {
        name: "compression",
        read: |declared, options| declared.map(&mut options.compression, compression),
        check: any_value,
        literal: |options| map_literal(&options.compression),
        cell: |options| text_map(&options.compression),
    },
    TableOption {
        name: "memtable",
        read: |declared, options| declared.text(&mut options.memtable, memtable),
        check: any_value,
        literal: |options| quote_text(&options.memtable),
        cell: |options| match options.memtable.as_str() {
            "default" => None,
            name => text(name),
        },
    },
    TableOption {
        name: "crc_check_chance",
        read: |declared, options| declared.double(&mut options.crc_check_chance),
        check: check_crc_chance,
        literal: |options| java(options.crc_check_chance),
        cell: |options| double(options.crc_check_chance),
    },
    TableOption {
        name: "default_time_to_live",
        read: |declared, options| declared.integer(&mut options.default_time_to_live_s),
        check: check_time_to_live,
        literal: |options| options.default_time_to_live_s.to_string(),
        cell: |options| int(options.default_time_to_live_s),
    },
    TableOption {
        name: "extensions",
        read: |_, _| Ok(()),
        check: any_value,
        literal: |options| blob_map_literal(&options.extensions),
        cell: extensions,
    },
    TableOption {
        name: "gc_grace_seconds",
        read: |declared, options| declared.integer(&mut options.gc_grace_s),
        check: |options| at_least("gc_grace_seconds", options.gc_grace_s, 0),
        literal: |options| options.gc_grace_s.to_string(),
        cell: |options| int(options.gc_grace_s),
    },
    TableOption {
        name: "incremental_backups",
        read: |declared, options| declared.boolean(&mut options.incremental_backups),
        check: any_value,
        literal: |options| options.incremental_backups.to_string(),
        cell: |options| {
            if options.incremental_backups {
                None
            } else {
                boolean(false)
            }
        },
    },
    TableOption {
        name: "max_index_interval",
        read: |declared, options| declared.integer(&mut options.max_index_interval),
        check: check_index_intervals,
        literal: |options| options.max_index_interval.to_string(),
        cell: |options| int(options.max_index_interval),
    },
    TableOption {
        name: "memtable_flush_period_in_ms",
        read: |declared, options| declared.integer(&mut options.memtable_flush_period_ms),
        check: |options| at_least("memtable_flush_period_in_ms", options.memtable_flush_period_ms, 0),
        literal: |options| options.memtable_flush_period_ms.to_string(),
        cell: |options| int(options.memtable_flush_period_ms),
    },
    TableOption {
        name: "min_index_interval",
        read: |declared, options| declared.integer(&mut options.min_index_interval),
        check: any_value,
        literal: |options| options.min_index_interval.to_string(),
        cell: |options| int(options.min_index_interval),
    },
    TableOption {
        name: partition_rate_limit::NAME,
        read: |declared, options| declared.rate_limit(&mut options.per_partition_rate_limit),
        check: any_value,
        literal: |options| {
            let limit = options.per_partition_rate_limit.as_ref();
            limit.map_or_else(|| "{}".to_owned(), PartitionRateLimit::literal)
        },
        // The value is among the extensions, as in ScyllaDB, because Cassandra's table has no such column.
        cell: |_| None,
    },
    TableOption {
        name: "read_repair",
        read: |declared, options| declared.text(&mut options.read_repair, read_repair),
        check: any_value,
        literal: |options| quote_text(&options.read_repair),
        cell: |options| text(&options.read_repair),
    },
    TableOption {
        name: "speculative_retry",
        read: |declared, options| declared.text(&mut options.speculative_retry, retry_policy),
        check: any_value,
        literal: |options| quote_text(&options.speculative_retry),
        cell: |options| text(&options.speculative_retry),
    },
    TableOption {
        name: transactional_mode::NAME,
        read: |declared, options| {
            transactional_mode::read(declared.properties, &mut options.transactional_mode)
        },
        check: any_value,
        literal: |options| quote_text(options.transactional_mode.name()),
        // The value is among the extensions, because the table of Cassandra 5 has no such column.
        cell: |_| None,
    },
];

/// Returns the extensions, together with options that Cassandra does not have.
fn extensions(options: &TableOptions) -> Option<Bytes> {
    let mut extensions = options.extensions.clone();
    if let Some(limit) = &options.per_partition_rate_limit {
        extensions.insert(
            partition_rate_limit::NAME.to_owned(),
            limit.literal().into_bytes(),
        );
    }
    if !options.transactional_mode.is_off() {
        extensions.insert(
            transactional_mode::NAME.to_owned(),
            options.transactional_mode.name().as_bytes().to_vec(),
        );
    }
    if options.cdc.enabled {
        extensions.insert("cdc".to_owned(), options.cdc.extension());
    }
    text_map(&extensions)
}

fn any_value(_: &TableOptions) -> Result<(), CqlError> {
    Ok(())
}

fn check_fp_chance(options: &TableOptions) -> Result<(), CqlError> {
    const FP_CHANCE_MIN: f64 = 6.71e-5;
    let chance = options.bloom_filter_fp_chance;
    match chance > FP_CHANCE_MIN && chance <= 1.0 {
        true => Ok(()),
        false => config(format!(
            "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 (got {})",
            java(chance)
        )),
    }
}

fn check_crc_chance(options: &TableOptions) -> Result<(), CqlError> {
    match (0.0..=1.0).contains(&options.crc_check_chance) {
        true => Ok(()),
        false => config(format!(
            "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})",
            java(options.crc_check_chance)
        )),
    }
}

fn check_time_to_live(options: &TableOptions) -> Result<(), CqlError> {
    let ttl_s = options.default_time_to_live_s;
    at_least("default_time_to_live", ttl_s, 0)?;
    match ttl_s <= TTL_MAX_S {
        true => Ok(()),
        false => config(format!(
            "default_time_to_live must be less than or equal to {TTL_MAX_S} (got {ttl_s})"
        )),
    }
}

/// Checks `max_index_interval` and `min_index_interval`.
fn check_index_intervals(options: &TableOptions) -> Result<(), CqlError> {
    at_least("min_index_interval", options.min_index_interval, 1)?;
    match options.max_index_interval >= options.min_index_interval {
        true => Ok(()),
        false => config(format!(
            "max_index_interval must be greater than or equal to min_index_interval ({}) (got {})",
            options.min_index_interval, options.max_index_interval
        )),
    }
}
