//! The `compression` option, validated like Cassandra does (`CompressionParams` and the compressors). The option has no effect here.

use helenus_cql::error::CqlError;
use helenus_cql::value::java::parse_double;

use super::values::{config, java, qualify};
use crate::properties::Options;

const PACKAGE: &str = "org.apache.cassandra.io.compress";

/// The compressors, each with its options besides [`COMMON`].
const COMPRESSORS: [(&str, &[&str]); 5] = [
    (
        "LZ4Compressor",
        &["lz4_compressor_type", "lz4_high_compressor_level"],
    ),
    ("SnappyCompressor", &[]),
    ("DeflateCompressor", &[]),
    ("ZstdCompressor", &["compression_level"]),
    ("NoopCompressor", &[]),
];
const COMMON: [&str; 3] = ["chunk_length_in_kb", "class", "min_compress_ratio"];

const CHUNK_KIB_DEFAULT: i32 = 16;

const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;
const LZ4_LEVELS: std::ops::RangeInclusive<i32> = 1..=17;

fn uncompressed() -> Options {
    Options::from([("enabled".to_owned(), "false".to_owned())])
}

/// Returns the complete option: the class with its package, and the length of chunks.
pub fn compression(mut declared: Options) -> Result<Options, CqlError> {
    if declared.is_empty() {
        return Ok(uncompressed());
    }
    let is_enabled = declared
        .remove("enabled")
        .is_none_or(|text| text.eq_ignore_ascii_case("true"));
    if !is_enabled && declared.is_empty() {
        return Ok(uncompressed());
    }
    if !is_enabled {
        return config(
            "If the 'enabled' option is set to false no other options must be specified".to_owned(),
        );
    }
    let class = match declared.get("class").map(String::as_str) {
        Some("") => {
            return config(
                "The 'class' option must not be empty. To disable compression use 'enabled' : false"
                    .to_owned(),
            );
        }
        Some(class) => qualify(class, PACKAGE),
        None => return config("Missing sub-option 'class' for the 'compression' option.".to_owned()),
    };
    let chunk_kib = chunk_length(&declared)?;
    let ratio = ratio(&declared)?;
    let Some((_, own)) = COMPRESSORS
        .iter()
        .find(|(name, _)| class == format!("{PACKAGE}.{name}"))
    else {
        return config(format!("Could not create Compression for type {class}"));
    };
    check_compressor(&declared)?;
    let is_known = |key: &str| COMMON.contains(&key) || own.contains(&key);
    if let Some(unknown) = declared.keys().find(|key| !is_known(key)) {
        return config(format!("Unknown compression options {unknown}"));
    }
    check_values(chunk_kib, ratio)?;
    let chunk_kib = chunk_kib.unwrap_or(CHUNK_KIB_DEFAULT);
    declared.insert("chunk_length_in_kb".to_owned(), chunk_kib.to_string());
    match ratio {
        Some(ratio) if ratio != 0.0 => declared.insert("min_compress_ratio".to_owned(), java(ratio)),
        _ => declared.remove("min_compress_ratio"),
    };
    declared.insert("class".to_owned(), class);
    Ok(declared)
}

fn chunk_length(declared: &Options) -> Result<Option<i32>, CqlError> {
    let Some(text) = declared.get("chunk_length_in_kb") else {
        return Ok(None);
    };
    match text.parse::<i32>() {
        Ok(length) if length > i32::MAX / 1024 => {
            config(format!("Value of chunk_length_in_kb is too large ({length})"))
        }
        Ok(length) => Ok(Some(length)),
        Err(_) => config("Invalid value for chunk_length_in_kb".to_owned()),
    }
}

fn ratio(declared: &Options) -> Result<Option<f64>, CqlError> {
    let Some(text) = declared.get("min_compress_ratio") else {
        return Ok(None);
    };
    let invalid = || CqlError::Config(format!("Invalid value for min_compress_ratio: {text}"));
    parse_double(text).map(Some).ok_or_else(invalid)
}

/// Checks the options of single compressors.
fn check_compressor(declared: &Options) -> Result<(), CqlError> {
    if let Some(text) = declared.get("lz4_compressor_type")
        && !["fast", "high"].contains(&text.as_str())
    {
        return config(format!(
            "Invalid compressor type '{text}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options are \
             [high, fast]."
        ));
    }
    if let Some(text) = declared.get("lz4_high_compressor_level")
        && !text.parse().is_ok_and(|level| LZ4_LEVELS.contains(&level))
    {
        return config(format!(
            "Invalid value [{text}] for parameter 'lz4_high_compressor_level'. Value must be between 1 and 17."
        ));
    }
    match declared.get("compression_level").map(|text| (text, text.parse())) {
        Some((_, Ok(level))) if ZSTD_LEVELS.contains(&level) => Ok(()),
        Some((_, Ok(level))) => config(format!(
            "ZstdCompressor.create() threw an error: java.lang.IllegalArgumentException compression_level={level} is \
             invalid"
        )),
        Some((text, Err(_))) => config(format!(
            "ZstdCompressor.create() threw an error: java.lang.NumberFormatException For input string: \"{text}\""
        )),
        None => Ok(()),
    }
}

fn check_values(chunk_kib: Option<i32>, ratio: Option<f64>) -> Result<(), CqlError> {
    match chunk_kib.map(|length| (length, u32::try_from(length))) {
        Some((..=0, _) | (_, Err(_))) => {
            return config("Invalid negative or null chunk_length_in_kb".to_owned());
        }
        Some((_, Ok(length))) if !length.is_power_of_two() => {
            return config("chunk_length_in_kb must be a power of 2".to_owned());
        }
        _ => {}
    }
    match ratio {
        Some(ratio) if ratio < 0.0 => config("Invalid negative min_compress_ratio".to_owned()),
        Some(ratio) if ratio > 0.0 && ratio < 1.0 => {
            config("min_compress_ratio can either be 0 or greater than or equal to 1".to_owned())
        }
        _ => Ok(()),
    }
}
