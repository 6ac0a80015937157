use super::*;

fn parse(entries: &[(&str, &str)]) -> Result<Option<PartitionRateLimit>, CqlError> {
    let declared = entries
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    partition_rate_limit(&declared)
}

fn refusal(entries: &[(&str, &str)]) -> String {
    match parse(entries) {
        Err(CqlError::Config(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn limits_read_as_they_are_written() {
    let limit = parse(&[(READS, "10"), (WRITES, "0")]).unwrap().unwrap();
    assert_eq!(
        (limit.reads_per_second, limit.writes_per_second),
        (Some(10), Some(0))
    );
    assert_eq!(
        limit.literal(),
        "{'max_reads_per_second': 10, 'max_writes_per_second': 0}"
    );
    let limit = parse(&[(WRITES, "4294967295")]).unwrap().unwrap();
    assert_eq!(limit.literal(), "{'max_writes_per_second': 4294967295}");
}

#[test]
fn an_empty_map_takes_the_limit_away() {
    assert_eq!(parse(&[]).unwrap(), None);
}

#[test]
fn what_is_no_limit_is_refused_by_name() {
    assert_eq!(
        refusal(&[("max_scans_per_second", "1")]),
        "Unknown sub-option 'max_scans_per_second' of per_partition_rate_limit: only 'max_reads_per_second' and \
         'max_writes_per_second' are allowed"
    );
    for value in ["-1", "1.5", "many", "", "4294967296"] {
        assert_eq!(
            refusal(&[(READS, value)]),
            format!(
                "Invalid value '{value}' for sub-option 'max_reads_per_second' of per_partition_rate_limit: it must \
                 be a whole number from 0 to 4294967295"
            )
        );
    }
}
