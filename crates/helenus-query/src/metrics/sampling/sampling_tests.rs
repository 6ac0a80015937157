use std::collections::HashSet;

use super::*;

fn plan(tables: SampledTables, kinds: &[SamplerKind]) -> SamplingPlan {
    SamplingPlan {
        tables,
        capacity: 16,
        kinds: kinds.to_vec(),
    }
}

fn read(sampling: &PartitionSampling, table: Uuid, key: &str) {
    let interest = sampling.interest([SamplerKind::Reads, SamplerKind::ReadRowCount]);
    sampling.record(interest, SamplerKind::Reads, table, key.as_bytes(), 1);
    sampling.record(
        interest,
        SamplerKind::ReadRowCount,
        table,
        key.as_bytes(),
        key.len() as u64,
    );
}

#[test]
fn nothing_is_of_interest_unless_somebody_samples_it() {
    let sampling = Arc::new(PartitionSampling::default());
    assert!(sampling.interest(SamplerKind::ALL).is_none());
    let running = sampling
        .begin(plan(SampledTables::All, &[SamplerKind::WriteSize]))
        .unwrap();
    assert!(sampling.interest([SamplerKind::Reads]).is_none());
    let interest = sampling.interest(SamplerKind::ALL);
    assert!(interest.has(SamplerKind::WriteSize) && !interest.has(SamplerKind::Reads));
    drop(running);
    assert!(sampling.interest(SamplerKind::ALL).is_none());
}

#[test]
fn samplings_side_by_side_have_the_tables_that_they_ask_for() {
    let sampling = Arc::new(PartitionSampling::default());
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let kinds = [SamplerKind::Reads, SamplerKind::ReadRowCount];
    let all = sampling.begin(plan(SampledTables::All, &kinds)).unwrap();
    let these = SampledTables::These(HashSet::from([one]));
    let some = sampling.begin(plan(these, &[SamplerKind::Reads])).unwrap();
    for (table, key) in [
        (one, "a"),
        (other, "long"),
        (one, "a"),
        (other, "long"),
        (other, "long"),
    ] {
        read(&sampling, table, key);
    }
    read(&sampling, one, &"x".repeat(KEY_LEN_MAX + 1));
    let found = some.finish(10);
    assert_eq!(found.len(), 1);
    let (kind, samples) = &found[0];
    assert_eq!((*kind, samples.len()), (SamplerKind::Reads, 1));
    assert_eq!((samples[0].table, samples[0].count), (one, 2));
    let found = all.finish(1);
    assert_eq!(found[0].1[0].count, 3);
    // Rows of a read are not added up: the greatest value counts.
    assert_eq!((found[1].0, found[1].1[0].count), (SamplerKind::ReadRowCount, 4));
}

#[test]
fn samplings_are_limited() {
    let sampling = Arc::new(PartitionSampling::default());
    let begin = || sampling.begin(plan(SampledTables::All, &SamplerKind::ALL));
    let running: Vec<_> = (0..JOBS_MAX).map(|_| begin().unwrap()).collect();
    assert!(begin().unwrap_err().contains("already in progress"));
    drop(running);
    assert!(begin().is_ok());
}

#[test]
fn the_list_of_the_last_minutes_needs_no_sampling() {
    let sampling = Arc::new(PartitionSampling::default());
    sampling.set_recent_interval(1);
    // Requests that this thread still has to skip come first.
    while sampling.interest([SamplerKind::Reads]).is_none() {}
    for _ in 0..5 {
        read(&sampling, Uuid::nil(), "hot");
    }
    let report = sampling.recent.report(10);
    assert_eq!((report.reads.total, report.writes.total), (5, 0));
    assert_eq!(report.reads.top[0].item, b"hot");
    sampling.set_recent_interval(0);
    read(&sampling, Uuid::nil(), "hot");
    assert_eq!(sampling.recent.report(10), RecentReport::default_of(0));
}

impl RecentReport {
    fn default_of(interval: u32) -> RecentReport {
        RecentReport {
            interval,
            ..RecentReport::default()
        }
    }
}

use super::recent::RecentReport;
