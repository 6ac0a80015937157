//! The commands of Cassandra 5.0's nodetool (`org.apache.cassandra.tools.NodeTool`) that have no command of their own here: those that have
//! nothing to do succeed with a line that says why, so that the jobs that call them go on, and those that are missing are refused by name.

use std::process::ExitCode;

use anyhow::bail;

/// What a command of Cassandra's does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It succeeds without doing anything, for this reason.
    NothingToDo(&'static str),
    /// It is refused: it would do something, but is not there.
    Missing,
}

use Outcome::{Missing, NothingToDo};

const NO_REPLICAS: &str =
    "a partition has one owner and one copy in the store, so there are no replicas that could differ";
const NO_HINTS: &str = "there are no hints: a write waits for the log, not for other nodes";
const NO_GOSSIP: &str = "there is no gossip: nodes find each other by the cluster document in the store";
const NO_STREAMS: &str =
    "nodes stream no data to each other: tablets move by a change of owner, their files stay in the store";
const NO_BATCHLOG: &str = "there is no batchlog: a logged batch is one record of the log";
const ONE_FORMAT: &str = "files of older formats are read as they are, and compaction rewrites them";
const CHECKSUMS: &str = "every block has a checksum that is verified whenever it is read";
const NO_CACHE: &str = "there is no such cache";
const NO_JMX: &str = "there is no JMX";
const NO_DIRECTORIES: &str = "tablets have no data directories to choose among";
const ALWAYS_CURRENT: &str = "each node follows the schema in the store and keeps no copy that could differ";
const ROW_CACHE: &str = "the row cache follows every write, so it is never stale";
const ROLES: &str = "roles and permissions are kept in memory, which follows every change of them";

/// By name, in alphabetical order.
const COMMANDS: &[(&str, Outcome)] = &[
    ("abortbootstrap", NothingToDo(NO_STREAMS)),
    ("assassinate", NothingToDo(NO_GOSSIP)),
    ("bootstrap", NothingToDo(NO_STREAMS)),
    ("cidrfilteringstats", Missing),
    (
        "cleanup",
        NothingToDo("a node keeps no data of tablets that it does not own"),
    ),
    ("clearsnapshot", Missing),
    ("compact", Missing),
    ("compactionhistory", Missing),
    ("compactionstats", Missing),
    ("datapaths", Missing),
    ("disableautocompaction", Missing),
    ("disablebackup", Missing),
    ("disablebinary", Missing),
    ("disablefullquerylog", Missing),
    ("disablegossip", NothingToDo(NO_GOSSIP)),
    ("disablehandoff", NothingToDo(NO_HINTS)),
    ("disablehintsfordc", NothingToDo(NO_HINTS)),
    ("disableoldprotocolversions", Missing),
    ("dropcidrgroup", Missing),
    ("enableautocompaction", Missing),
    ("enablebackup", Missing),
    ("enablebinary", Missing),
    ("enablefullquerylog", Missing),
    ("enablegossip", NothingToDo(NO_GOSSIP)),
    ("enablehandoff", NothingToDo(NO_HINTS)),
    ("enablehintsfordc", NothingToDo(NO_HINTS)),
    ("enableoldprotocolversions", Missing),
    ("failuredetector", Missing),
    ("forcecompact", Missing),
    ("garbagecollect", Missing),
    (
        "gcstats",
        NothingToDo("there is no garbage collector that could stop the process"),
    ),
    ("getauthcacheconfig", Missing),
    ("getbatchlogreplaythrottle", NothingToDo(NO_BATCHLOG)),
    ("getcidrgroupsofip", Missing),
    ("getcolumnindexsize", Missing),
    ("getcompactionthreshold", Missing),
    ("getcompactionthroughput", Missing),
    ("getconcurrency", Missing),
    ("getconcurrentcompactors", Missing),
    ("getconcurrentviewbuilders", Missing),
    ("getdefaultrf", Missing),
    ("getendpoints", Missing),
    ("getfullquerylog", Missing),
    ("getinterdcstreamthroughput", NothingToDo(NO_STREAMS)),
    ("getmaxhintwindow", NothingToDo(NO_HINTS)),
    ("getseeds", NothingToDo(NO_GOSSIP)),
    ("getsnapshotthrottle", Missing),
    ("getsstables", Missing),
    ("getstreamthroughput", NothingToDo(NO_STREAMS)),
    ("gettimeout", Missing),
    ("gettraceprobability", Missing),
    ("gossipinfo", Missing),
    ("import", Missing),
    ("invalidatecidrpermissionscache", NothingToDo(ROLES)),
    ("invalidatecountercache", NothingToDo(NO_CACHE)),
    ("invalidatecredentialscache", NothingToDo(ROLES)),
    ("invalidatejmxpermissionscache", NothingToDo(NO_JMX)),
    ("invalidatekeycache", NothingToDo(NO_CACHE)),
    ("invalidatenetworkpermissionscache", NothingToDo(ROLES)),
    ("invalidatepermissionscache", NothingToDo(ROLES)),
    ("invalidaterolescache", NothingToDo(ROLES)),
    ("invalidaterowcache", NothingToDo(ROW_CACHE)),
    ("join", NothingToDo("a node joins when it starts")),
    ("listcidrgroups", Missing),
    ("listpendinghints", NothingToDo(NO_HINTS)),
    ("listsnapshots", Missing),
    (
        "move",
        NothingToDo("tablets are split and moved by load, not by tokens of nodes"),
    ),
    ("netstats", Missing),
    ("pausehandoff", NothingToDo(NO_HINTS)),
    ("profileload", Missing),
    ("proxyhistograms", Missing),
    ("rangekeysample", Missing),
    ("rebuild", NothingToDo(NO_STREAMS)),
    ("rebuild_index", Missing),
    ("recompress_sstables", Missing),
    ("refresh", Missing),
    ("refreshsizeestimates", Missing),
    ("reloadcidrgroupscache", Missing),
    ("reloadlocalschema", NothingToDo(ALWAYS_CURRENT)),
    ("reloadseeds", NothingToDo(NO_GOSSIP)),
    ("reloadssl", Missing),
    ("reloadtriggers", Missing),
    ("relocatesstables", NothingToDo(NO_DIRECTORIES)),
    ("removenode", Missing),
    ("repair", NothingToDo(NO_REPLICAS)),
    ("repair_admin", NothingToDo(NO_REPLICAS)),
    ("replaybatchlog", NothingToDo(NO_BATCHLOG)),
    ("resetfullquerylog", Missing),
    ("resetlocalschema", NothingToDo(ALWAYS_CURRENT)),
    ("resumehandoff", NothingToDo(NO_HINTS)),
    ("scrub", NothingToDo(CHECKSUMS)),
    ("setauthcacheconfig", Missing),
    ("setbatchlogreplaythrottle", NothingToDo(NO_BATCHLOG)),
    ("setcachecapacity", Missing),
    ("setcachekeystosave", NothingToDo("caches are not saved")),
    ("setcolumnindexsize", Missing),
    ("setcompactionthreshold", Missing),
    ("setcompactionthroughput", Missing),
    ("setconcurrency", Missing),
    ("setconcurrentcompactors", Missing),
    ("setconcurrentviewbuilders", Missing),
    ("setdefaultrf", Missing),
    ("sethintedhandoffthrottlekb", NothingToDo(NO_HINTS)),
    ("setinterdcstreamthroughput", NothingToDo(NO_STREAMS)),
    ("setmaxhintwindow", NothingToDo(NO_HINTS)),
    ("setsnapshotthrottle", Missing),
    ("setstreamthroughput", NothingToDo(NO_STREAMS)),
    ("settimeout", Missing),
    ("settraceprobability", Missing),
    ("sjk", NothingToDo(NO_JMX)),
    ("snapshot", Missing),
    ("sstablerepairedset", NothingToDo(NO_REPLICAS)),
    ("statusautocompaction", Missing),
    ("statusbackup", Missing),
    ("statusbinary", Missing),
    ("statusgossip", NothingToDo(NO_GOSSIP)),
    ("statushandoff", NothingToDo(NO_HINTS)),
    ("stop", Missing),
    ("stopdaemon", Missing),
    ("tablehistograms", Missing),
    ("tablestats", Missing),
    ("toppartitions", Missing),
    ("tpstats", Missing),
    ("truncatehints", NothingToDo(NO_HINTS)),
    ("updatecidrgroup", Missing),
    ("upgradesstables", NothingToDo(ONE_FORMAT)),
    ("verify", Missing),
    ("viewbuildstatus", Missing),
];

/// Runs a command that has no file of its own.
///
/// # Errors
/// If Cassandra's nodetool has no such command, or if it is missing here.
pub(super) fn run(name: &str) -> anyhow::Result<ExitCode> {
    let found = COMMANDS.binary_search_by_key(&name, |(known, _)| known);
    match found.map(|index| COMMANDS[index].1) {
        Ok(NothingToDo(why)) => {
            println!("nodetool {name}: nothing to do: {why}.");
            Ok(ExitCode::SUCCESS)
        }
        Ok(Missing) => bail!("nodetool {name} is not there yet; see `helenus nodetool help` for what is"),
        Err(_) => bail!("{}", unknown(name)),
    }
}

/// The least similarity, from 0 to 1, of a name that is suggested.
const SIMILARITY_MIN: f64 = 0.8;

fn unknown(name: &str) -> String {
    let known = COMMANDS.iter().map(|(known, _)| (*known).to_owned());
    let here = super::command_names().into_iter();
    let nearest = known
        .chain(here)
        .map(|known| (strsim::jaro_winkler(name, &known), known))
        .max_by(|left, right| left.0.total_cmp(&right.0));
    let hint = match nearest {
        Some((similarity, known)) if similarity >= SIMILARITY_MIN => format!("; did you mean {known}?"),
        _ => "; see `helenus nodetool help`".to_owned(),
    };
    format!("nodetool has no command {name}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_none_has_a_command_of_its_own() {
        assert!(COMMANDS.is_sorted_by(|left, right| left.0 < right.0));
        let here = super::super::command_names();
        assert!(
            COMMANDS
                .iter()
                .all(|(name, _)| !here.iter().any(|other| other == name))
        );
    }

    #[test]
    fn what_has_nothing_to_do_succeeds_and_what_is_missing_is_refused() {
        assert_eq!(run("repair").unwrap(), ExitCode::SUCCESS);
        let refused = run("tpstats").unwrap_err().to_string();
        assert!(refused.contains("tpstats is not there"), "{refused}");
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        assert_eq!(
            unknown("staus"),
            "nodetool has no command staus; did you mean status?"
        );
        assert_eq!(
            unknown("clenup"),
            "nodetool has no command clenup; did you mean cleanup?"
        );
        assert!(unknown("xyz").ends_with("see `helenus nodetool help`"));
    }
}
