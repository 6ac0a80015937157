use std::time::Duration;

use super::config::Config;
use super::settings::{self, load};
use super::{live, settings_file, settings_live, settings_shown};

fn pairs(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

fn refusal(command_line: &[(&str, &str)]) -> String {
    load(&pairs(command_line), None, &[])
        .err()
        .expect("accepted")
        .to_string()
}

#[test]
fn defaults() {
    let config = load(&[], None, &[]).ok().unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:9042");
    assert_eq!(config.store.url, Config::default_store());
}

#[test]
fn the_command_line_wins_over_the_environment_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helenus.toml");
    std::fs::write(
        &file,
        "rack = \"file\"\ndata_center = \"file\"\ncluster_name = \"file\"\ntablet_count = 7\n",
    )
    .unwrap();
    let environment = pairs(&[
        ("HELENUS_RACK", "env"),
        ("HELENUS_DATA_CENTER", "env"),
        ("HELENUS_TEST_X", "1"),
    ]);
    let config = load(&pairs(&[("rack", "line")]), Some(&file), &environment)
        .ok()
        .unwrap();
    assert_eq!(config.rack, "line");
    assert_eq!(config.data_center, "env");
    assert_eq!(config.cluster_name, "file");
    assert_eq!(config.store.tablet_count, 7);
    let by_environment = pairs(&[("HELENUS_CONFIG", file.to_str().unwrap())]);
    assert_eq!(load(&[], None, &by_environment).ok().unwrap().rack, "file");
}

#[test]
fn release_version_is_a_version() {
    let of = |version| load(&pairs(&[("release_version", version)]), None, &[]);
    assert_eq!(of("6.0.0").ok().unwrap().release_version, "6.0.0");
    assert_eq!(of("6.0.0-alpha2").ok().unwrap().release_version, "6.0.0-alpha2");
    for wrong in ["6", "6.0", "6.0.x", "6.0.0-", "", "6.0.0.0"] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn values_have_units() {
    let settings = pairs(&[
        ("memtable_bytes", "64MiB"),
        ("idle_timeout", "5m"),
        ("http", "off"),
        ("page_bytes_max", "1000"),
    ]);
    let config = load(&settings, None, &[]).ok().unwrap();
    assert_eq!(config.store.memtable_bytes, 64 << 20);
    assert_eq!(config.server.idle_timeout, Some(Duration::from_secs(300)));
    assert_eq!(config.http, None);
    assert_eq!(config.limits.page_bytes_max, 1000);
}

#[test]
fn prices_are_dollars() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helenus.toml");
    let text = "bucket_put_dollars_per_1000 = 0.0054\nbucket_read_dollars_per_gb = 1\n";
    std::fs::write(&file, text).unwrap();
    let line = pairs(&[("bucket_get_dollars_per_1000", "0")]);
    let prices = load(&line, Some(&file), &[]).ok().unwrap().bucket_prices;
    assert_eq!(prices.put_dollars_per_1000, 0.0054);
    assert_eq!(prices.get_dollars_per_1000, 0.0);
    assert_eq!(prices.read_dollars_per_gb, 1.0);
    for wrong in ["-0.1", "NaN", "inf", "1e7"] {
        assert_eq!(
            refusal(&[("bucket_put_dollars_per_1000", wrong)]),
            format!(
                "command line: bucket_put_dollars_per_1000 = \"{wrong}\": not such an amount; \
                 allowed is a number of dollars from 0 to 1000000, such as 0.005"
            )
        );
    }
    let unit = refusal(&[("bucket_put_dollars_per_1000", "$5")]);
    assert!(unit.contains("not a number"), "{unit}");
    std::fs::write(&file, "tablet_count = 1.5\n").unwrap();
    let part = load(&[], Some(&file), &[]).err().unwrap().to_string();
    assert!(
        part.contains("not a whole number; allowed is 1 to 1024"),
        "{part}"
    );
}

#[test]
fn a_store_in_a_bucket_has_defaults_of_its_own() {
    let settings = |given| {
        load(
            &pairs(given),
            None,
            &pairs(&[("HELENUS_STORE", "s3://bucket/prefix")]),
        )
    };
    let bucket = settings(&[]).unwrap();
    assert_eq!(bucket.store.tablet_count, 16);
    let few = settings(&[("tablet_count", "3")]).unwrap();
    assert_eq!(few.store.tablet_count, 3);
    assert_eq!(few.store.url.to_string(), bucket.store.url.to_string());
    let folder = settings(&[("store", "/tmp/x")]).unwrap();
    let alone = Config::new(folder.store.url.clone());
    assert_eq!(
        folder.store.compaction_poll_interval,
        alone.store.compaction_poll_interval
    );
}

#[test]
fn refusals_say_which_why_and_what_is_allowed() {
    assert_eq!(
        refusal(&[("listen", "here")]),
        "command line: listen = \"here\": the port is missing; allowed is HOST:PORT"
    );
    assert_eq!(
        refusal(&[("tablet_count", "5000")]),
        "command line: tablet_count = \"5000\": too large; allowed is 1 to 1024"
    );
    let unknown = refusal(&[("tablet_counts", "5")]);
    assert_eq!(
        unknown,
        "command line: there is no setting tablet_counts. Did you mean tablet_count?\nhelenus serve --help lists the settings."
    );
    let ftp = refusal(&[("store", "ftp://x")]);
    assert!(ftp.contains("unknown scheme ftp"), "{ftp}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h.toml");
    std::fs::write(&file, "[store]\nurl = 1\n").unwrap();
    let table = load(&[], Some(&file), &[]).err().unwrap().to_string();
    assert!(
        table.contains("store: a table can't be its value; allowed is file:///path"),
        "{table}"
    );
    let variable = load(&[], None, &pairs(&[("HELENUS_RACKS", "x")]))
        .err()
        .unwrap()
        .to_string();
    assert!(
        variable.starts_with("environment variable HELENUS_RACKS: there is no setting racks."),
        "{variable}"
    );
}

#[test]
fn each_setting_is_shown_and_each_that_is_live_is_a_setting() {
    let names: Vec<&str> = settings::names().collect();
    assert_eq!(names, settings_shown::names().collect::<Vec<_>>());
    for name in settings_live::names().chain(settings_shown::computed()) {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn the_file_of_defaults_sets_what_holds_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helenus.toml");
    let uncommented: String = settings_file::text(&[])
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix('#').filter(|line| !line.starts_with(' ')))
        .filter(|line| !line.ends_with("= \"\""))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(
        uncommented.contains("listen = \"127.0.0.1:9042\""),
        "{uncommented}"
    );
    std::fs::write(&file, uncommented).unwrap();
    let config = load(&[], Some(&file), &[]).unwrap();
    let unusual = live::unusual(&config);
    assert_eq!(unusual.into_keys().collect::<Vec<_>>(), ["store"]);
    let nothing_set = folder.path().join("none.toml");
    std::fs::write(&nothing_set, settings_file::text(&[]).unwrap()).unwrap();
    assert!(load(&[], Some(&nothing_set), &[]).is_ok());
}

#[test]
fn rates_have_units() {
    let rate = |text| {
        let config = load(&pairs(&[("compaction_throughput", text)]), None, &[]).unwrap();
        config.store.throttles.compaction.rate()
    };
    assert_eq!(rate("64MiB/s"), Some(64 << 20));
    assert_eq!(rate("512KiB"), Some(512 << 10));
    assert_eq!(rate("off"), None);
    assert!(refusal(&[("flush_throughput", "fast")]).contains("bytes per second"));
}

#[test]
fn non_default_settings_are_reported_without_secrets() {
    let config = load(
        &pairs(&[("rack", "r2"), ("cluster_secret", "12345678")]),
        None,
        &[],
    )
    .unwrap();
    let unusual = live::unusual(&config);
    assert_eq!(unusual["rack"], "r2");
    assert_eq!(unusual["cluster_secret"], "(hidden)");
    assert_eq!(unusual.len(), 3, "{unusual:?}");
}

#[test]
fn a_file_has_the_settings_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helenus.toml");
    let given = pairs(&[("store", "/var/lib/helenus"), ("rack", "r2")]);
    std::fs::write(&file, settings_file::text(&given).unwrap()).unwrap();
    let unusual = live::unusual(&load(&[], Some(&file), &[]).unwrap());
    let unusual: Vec<_> = unusual
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(unusual, [("rack", "r2"), ("store", "file:///var/lib/helenus")]);
    assert!(settings_file::text(&pairs(&[("racks", "r2")])).is_err());
}
