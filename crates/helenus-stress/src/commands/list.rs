//! `list`, `info` and `fields`: describe the workloads, without a server.

use std::io::Write;

use anyhow::Result;
use clap::Parser;

use super::Ended;
use crate::cli::options::RateArgs;
use crate::data::fields::GENERATORS;
use crate::operation::Class;
use crate::workloads::{self, Info, Setup};

/// Prints each workload on a line.
pub fn list() -> Result<Ended> {
    let mut out = std::io::stdout().lock();
    for info in workloads::ALL {
        let aliases = match info.aliases.first() {
            Some(alias) => format!(" ({alias})"),
            None => String::new(),
        };
        writeln!(out, "{:<14} {}{aliases}", info.name, info.about)?;
    }
    Ok(Ended::Well)
}

/// Prints the generators for columns.
pub fn fields() -> Result<Ended> {
    let mut out = std::io::stdout().lock();
    for (call, about) in GENERATORS {
        writeln!(out, "{call:<20} {about}")?;
    }
    writeln!(
        out,
        "\nAs in --field.keyvalue.value='random(1000,2000)'. Every value begins with its key's mark, a version and a checksum:\n\
         32 letters, in a blob 16 bytes."
    )?;
    Ok(Ended::Well)
}

/// Prints the description of a workload.
pub fn info(name: &str) -> Result<Ended> {
    let text = describe(workloads::find(name)?)?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Ended::Well)
}

/// Returns the text of `info`.
pub fn describe(info: &'static Info) -> Result<String> {
    let setup = Setup::new(info, &Defaults::parse_from([""]).load)?;
    let mut text = format!("{}: {}\n", info.name, info.about);
    if !info.aliases.is_empty() {
        text += &format!("Also called {}.\n", info.aliases.join(", "));
    }
    text += "\nTables\n";
    for statement in (info.schema)(&setup)?.iter().take(10) {
        text += &format!("  {statement};\n");
    }
    text += "\nOperations\n";
    let all: f64 = info.operations.iter().map(|operation| operation.weight).sum();
    for operation in info.operations {
        let class = match operation.class {
            Class::Read => "a read",
            Class::Write => "a write",
            Class::Delete => "a deletion",
        };
        let part = operation.weight / all * 100.0;
        text += &format!(
            "  {:<14} {part:>3.0}%  {class}: {}\n",
            operation.name, operation.about
        );
    }
    text += &section(
        "Parameters (--workload.NAME=VALUE)",
        info.parameters,
        |parameter| {
            let alias = parameter
                .alias
                .map_or(String::new(), |alias| format!(" (or {alias})"));
            format!(
                "{}={}{alias}: {}",
                parameter.name, parameter.default, parameter.about
            )
        },
    );
    text += &section("Fields (--field.NAME=GENERATOR)", info.fields, |field| {
        format!("{}={}", field.name, field.default)
    });
    text += &section("Published", info.published, |line| (*line).to_owned());
    Ok(text)
}

fn section<T>(head: &str, items: &[T], line: impl Fn(&T) -> String) -> String {
    if items.is_empty() {
        return String::new();
    }
    let lines: String = items.iter().map(|item| format!("  {}\n", line(item))).collect();
    format!("\n{head}\n{lines}")
}

/// The settings of an empty command line.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    load: RateArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_describes_itself_and_has_names_of_its_own() {
        let mut names = Vec::new();
        for info in workloads::ALL {
            let text = describe(info).unwrap();
            assert!(text.contains("CREATE TABLE"), "{text}");
            for name in info.aliases.iter().chain([&info.name]) {
                assert_eq!(workloads::find(&name.to_uppercase()).unwrap().name, info.name);
                names.push(name.to_lowercase());
            }
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
