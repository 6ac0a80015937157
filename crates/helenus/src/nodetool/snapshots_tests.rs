use super::*;

fn clear_args(tag: Option<&str>, keyspaces: &[&str]) -> ClearArgs {
    ClearArgs {
        tag: tag.map(str::to_owned),
        all: tag.is_none(),
        older_than: None,
        older_than_timestamp: None,
        keyspaces: keyspaces.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn snapshots_are_listed_as_by_cassandra() {
    assert_eq!(page(&[], false), "Snapshot Details: \nThere are no snapshots\n");
    let row = json!({
        "name": "truncated-1700000000123-orders",
        "keyspace_name": "shop",
        "table_name": "orders",
        "created_at": "2023-11-14 22:13:20.123Z",
        "ephemeral": false,
        "expires_at": null,
        "size_on_disk": 2048,
        "true_size": 2048,
    });
    let found = page(&[row], false);
    let lines: Vec<&str> = found.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "Snapshot Details:",
            "Snapshot name                  Keyspace name Column family name True size Size on disk Creation time            Expiration time",
            "truncated-1700000000123-orders shop          orders             2 KiB     2 KiB        2023-11-14T22:13:20.123Z",
            "",
            "Total TrueDiskSpaceUsed: 2 KiB",
            "",
        ]
    );
}

#[test]
fn what_is_cleared_is_announced_in_cassandras_words() {
    assert_eq!(
        clear_args(Some("t1"), &["a", "b"]).announcement().unwrap(),
        "Requested clearing snapshot(s) for [a, b] with snapshot name [t1]"
    );
    assert_eq!(
        clear_args(None, &[]).announcement().unwrap(),
        "Requested clearing snapshot(s) for [all keyspaces] with [all snapshots]"
    );
    let mut old = clear_args(None, &[]);
    old.older_than = Some("2h".to_owned());
    assert_eq!(
        old.announcement().unwrap(),
        "Requested clearing snapshot(s) for [all keyspaces] with [all snapshots] older than 7200 seconds."
    );
}

#[test]
fn an_age_is_a_time_before_now() {
    let now = UNIX_EPOCH + Duration::from_secs(10 * 24 * 3600);
    let args = |older_than: Option<&str>, timestamp: Option<&str>| ClearArgs {
        older_than: older_than.map(str::to_owned),
        older_than_timestamp: timestamp.map(str::to_owned),
        ..clear_args(None, &[])
    };
    let before_ms = |args: ClearArgs| args.taken_before_ms(now).unwrap();
    assert_eq!(before_ms(args(None, None)), None);
    assert_eq!(before_ms(args(Some("9d"), None)), Some(24 * 3600 * 1000));
    assert_eq!(before_ms(args(Some("20d"), None)), Some(0));
    assert_eq!(before_ms(args(None, Some("1970-01-01T00:00:02Z"))), Some(2000));
    let wrong = args(Some("soon"), None).taken_before_ms(now).unwrap_err();
    assert_eq!(wrong.to_string(), "soon is not a duration such as 12h");
}

#[test]
fn restore_report_names_snapshot_of_former_rows() {
    let restored =
        json!({ "snapshot": "t1", "keyspace": "ks", "tables": ["a", "b"], "replaced": "replaced-1-ks" });
    assert_eq!(
        report(&restored, false),
        "Restored ks.a, ks.b from snapshot t1\nThe replaced rows are in snapshot replaced-1-ks\n"
    );
    let args = |kt: Option<&str>| RestoreArgs {
        as_of: None,
        tag: None,
        kt: kt.map(str::to_owned),
        keyspace: None,
    };
    assert_eq!(args(Some("ks.t")).named().unwrap(), (Some("ks"), Some("t")));
    assert!(args(Some("ks.")).named().is_err());
    assert!(args(None).named().is_err());
}
