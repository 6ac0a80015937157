//! Requirements on a topic, without which acknowledged records could be lost.

use std::collections::BTreeMap;

use crate::config::{TopicConfig, TopicUrl};

/// A topic as the brokers describe it.
#[derive(Debug, Clone, Default)]
pub(super) struct TopicDescription {
    /// Number of replicas of the partition that has the fewest.
    pub replicas: u16,
    /// Reported settings by name. A setting is missing if the kind of broker does not have it; such a broker handles the matter by itself.
    pub settings: BTreeMap<String, String>,
}

const REPLICAS_IN_SYNC: &str = "min.insync.replicas";
const UNCLEAN_ELECTIONS: &str = "unclean.leader.election.enable";
const CLEANUP: &str = "cleanup.policy";

/// Returns the number of replicas that must have a record before it is acknowledged: one less than all, so that the loss of one replica
/// does not interrupt writes.
fn replicas_in_sync(replicas_min: u16) -> u16 {
    replicas_min.saturating_sub(1).max(1)
}

/// Returns the settings of a new topic.
pub(super) fn settings(replicas_min: u16) -> [(&'static str, String); 5] {
    [
        (REPLICAS_IN_SYNC, replicas_in_sync(replicas_min).to_string()),
        ("retention.ms", "-1".to_owned()),
        ("retention.bytes", "-1".to_owned()),
        (UNCLEAN_ELECTIONS, "false".to_owned()),
        (CLEANUP, "delete".to_owned()),
    ]
}

/// Returns why a setting of a topic could lose records. `None` if it is safe.
fn fault(name: &str, value: &str, replicas_min: u16) -> Option<&'static str> {
    let is_weak = match name {
        REPLICAS_IN_SYNC => value
            .parse::<u16>()
            .is_ok_and(|replicas| replicas < replicas_in_sync(replicas_min)),
        UNCLEAN_ELECTIONS => value == "true" && replicas_min > 1,
        CLEANUP => value.contains("compact"),
        _ => value != "-1",
    };
    is_weak.then_some(match name {
        REPLICAS_IN_SYNC => "a record would be acknowledged by too few replicas",
        UNCLEAN_ELECTIONS => "a replica that lacks acknowledged records could become the leader",
        CLEANUP => "records of the same key would be deleted",
        _ => "records that are still needed would be deleted",
    })
}

/// Returns why a topic is not safe, and the commands that correct it. `None` if it is safe.
pub(super) fn weaknesses(found: &TopicDescription, url: &TopicUrl, config: &TopicConfig) -> Option<String> {
    let (needed, topic, brokers) = (config.replicas_min, &url.topic, url.brokers.join(","));
    let (mut faults, mut mended, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    if found.replicas < needed {
        faults.push(format!(
            "its replication factor is {}, and must be {needed}",
            found.replicas
        ));
        commands.push(format!(
            "kafka-reassign-partitions.sh --bootstrap-server {brokers} --execute --reassignment-json-file FILE   (FILE names {needed} brokers \
             for each partition)"
        ));
    }
    for (name, good) in settings(needed) {
        let Some(value) = found.settings.get(name) else {
            continue;
        };
        if let Some(why) = fault(name, value, needed) {
            faults.push(format!("{name} is {value}, and must be {good}: {why}"));
            mended.push(format!("{name}={good}"));
        }
    }
    if faults.is_empty() {
        return None;
    }
    if !mended.is_empty() {
        commands.push(format!(
            "kafka-configs.sh --bootstrap-server {brokers} --alter --entity-type topics --entity-name {topic} --add-config {}",
            mended.join(",")
        ));
    }
    Some(format!(
        "the topic {topic} is too weak for acknowledged writes: {}. Mend it with:  {}  (log_store_replicas_min, {needed} now, allows fewer \
         replicas)",
        faults.join("; "),
        commands.join("  and  ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(replicas_min: u16, replicas: u16, changed: &[(&str, &str)]) -> Option<String> {
        let mut found = TopicDescription {
            replicas,
            settings: settings(replicas_min)
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        };
        for (name, value) in changed {
            found.settings.insert((*name).to_owned(), (*value).to_owned());
        }
        let url = TopicUrl::parse("kafka://one:9092,two:9092/log").unwrap().unwrap();
        let config = TopicConfig {
            replicas_min,
            ..TopicConfig::default()
        };
        weaknesses(&found, &url, &config)
    }

    #[test]
    fn a_topic_as_it_is_made_is_good() {
        for replicas in 1..=3 {
            assert_eq!(judged(replicas, replicas, &[]), None);
        }
        assert_eq!(judged(3, 5, &[("min.insync.replicas", "3")]), None);
    }

    #[test]
    fn each_weakness_is_named_with_its_value_and_its_remedy() {
        for (name, value, good) in [
            ("min.insync.replicas", "1", "2"),
            ("retention.ms", "604800000", "-1"),
            ("retention.bytes", "1073741824", "-1"),
            ("unclean.leader.election.enable", "true", "false"),
            ("cleanup.policy", "compact,delete", "delete"),
        ] {
            let text = judged(3, 3, &[(name, value)]).unwrap();
            assert!(
                text.contains(&format!("{name} is {value}, and must be {good}")),
                "{text}"
            );
            assert!(
                text.contains(&format!("--entity-name log --add-config {name}={good} ")),
                "{text}"
            );
        }
        let text = judged(3, 1, &[]).unwrap();
        assert!(
            text.contains("its replication factor is 1, and must be 3"),
            "{text}"
        );
        assert!(
            text.contains("kafka-reassign-partitions.sh --bootstrap-server one:9092,two:9092"),
            "{text}"
        );
    }

    #[test]
    fn fewer_replicas_may_be_allowed_but_no_retention() {
        let weak = [
            ("min.insync.replicas", "1"),
            ("unclean.leader.election.enable", "true"),
        ];
        assert_eq!(judged(1, 1, &weak), None);
        assert!(judged(2, 2, &weak[..1]).is_none());
        assert!(judged(2, 2, &weak).is_some());
        assert!(judged(2, 1, &[]).is_some());
        assert!(judged(1, 1, &[("retention.ms", "1000")]).is_some());
    }

    #[test]
    fn a_setting_that_the_broker_lacks_is_no_weakness() {
        let url = TopicUrl::parse("kafka://one:9092/log").unwrap().unwrap();
        let found = TopicDescription {
            replicas: 3,
            ..TopicDescription::default()
        };
        assert_eq!(weaknesses(&found, &url, &TopicConfig::default()), None);
    }
}
