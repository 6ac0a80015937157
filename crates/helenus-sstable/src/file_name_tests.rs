use super::*;

fn parsed(name: &str) -> FileName {
    parse_file_name(name).unwrap().unwrap()
}

#[test]
fn names_are_parsed_and_written() {
    for name in [
        "md-1-big-Data.db",
        "me-17-big-Statistics.db",
        "nb-3fzj_0s2f_5g8hc2a9kwfrq3mntx-big-Data.db",
        "oa-2-big-SAI+aa+idx+Meta.db",
        "da-3fzj_0s2f_5g8hc2a9kwfrq3mntx-bti-Partitions.db",
    ] {
        let parsed = parsed(name);
        assert_eq!(parsed.descriptor.file_name(&parsed.component), name);
    }
    let name = parsed("da-12-bti-Data.db");
    assert_eq!(
        (name.descriptor.version, name.descriptor.id),
        (Version::Da, SstableId::Sequence(12))
    );
}

#[test]
fn other_versions_are_refused_by_name() {
    for (name, named) in [
        ("mc-1-big-Data.db", "version mc of format big"),
        ("la-1-big-Data.db", "version la of format big"),
        ("nc-1-big-Data.db", "version nc of format big"),
        ("ea-1-bti-Data.db", "version ea of format bti"),
        ("oa-1-bti-Data.db", "version oa of format bti"),
        ("ks-tab-ka-1-Data.db", "version ka of Cassandra before 2.2"),
    ] {
        let error = parse_file_name(name).unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains(named) && text.contains("upgradesstables"), "{text}");
    }
}

#[test]
fn other_files_belong_to_no_sstable() {
    for name in [
        "manifest.json",
        "schema.cql",
        "nb_txn_flush_5c5e4f60.log",
        "nb-1-tiny-Index.db",
        "nb-1_2-big-Index.db",
        "",
    ] {
        assert_eq!(parse_file_name(name), None, "{name}");
    }
}
