//! The commands of Cassandra 5.0's nodetool (`org.apache.cassandra.tools.NodeTool`) that have no implementation here.
//!
//! Commands that have nothing to do succeed, so that scripts that call them go on, and print the reason. Commands that cannot be done fail
//! with a reason.

use std::process::ExitCode;

use anyhow::bail;

/// Outcome of a Cassandra command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The command succeeds without doing anything, for this reason.
    NothingToDo(&'static str),
    /// The command fails for this reason, because its caller relies on the effect.
    Refused(&'static str),
}

use Outcome::{NothingToDo, Refused};

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

const NO_CIDR: &str = "there is no CIDR filtering: firewalls decide who may connect";
const NO_BACKUPS: &str = "there are no incremental backups: files are never changed once they are written";
const ALWAYS_COMPACTS: &str = "the compaction of tablets, which all tables share, is always on";
const ALL_PROTOCOLS: &str = "all versions of the protocol that there are here are served";
const NO_COLUMN_INDEX: &str = "partitions have no index of their own: rows are found in blocks by their keys";
const NO_THRESHOLDS: &str = "tablets are compacted by sizes and garbage, not by numbers of files";
const NO_STAGES: &str =
    "stages have no threads of their own: requests share those of the node (worker_threads)";
const ONE_BUILDER: &str = "a view is built by one task of one node";
const ONE_COPY: &str = "a partition has one owner and one copy in the store, whatever the replication factor";
const ON_REQUEST: &str = "requests are traced if their clients request it";
const SHARED_FILES: &str = "files belong to tablets, which all tables share; see nodetool tablets";
const NO_ESTIMATES: &str = "estimates are made when they are read";
const OTHER_FILES: &str =
    "files of Cassandra can't be read; copy the rows by CQL, for example by COPY of the shell";
const COMPACTORS: &str =
    "the setting background_threads says how many parts of compactions run at a time, and takes a restart";

/// Commands by name. Must be in alphabetical order for the binary search.
const COMMANDS: &[(&str, Outcome)] = &[
    ("abortbootstrap", NothingToDo(NO_STREAMS)),
    ("bootstrap", NothingToDo(NO_STREAMS)),
    ("checktokenmetadata", NothingToDo(NO_GOSSIP)),
    ("cidrfilteringstats", NothingToDo(NO_CIDR)),
    (
        "cleanup",
        NothingToDo("a node keeps no data of tablets that it does not own"),
    ),
    ("datapaths", NothingToDo(SHARED_FILES)),
    ("disableautocompaction", NothingToDo(ALWAYS_COMPACTS)),
    ("disablebackup", NothingToDo(NO_BACKUPS)),
    ("disablegossip", NothingToDo(NO_GOSSIP)),
    ("disablehandoff", NothingToDo(NO_HINTS)),
    ("disablehintsfordc", NothingToDo(NO_HINTS)),
    ("disableoldprotocolversions", NothingToDo(ALL_PROTOCOLS)),
    ("dropcidrgroup", NothingToDo(NO_CIDR)),
    ("enableautocompaction", NothingToDo(ALWAYS_COMPACTS)),
    ("enablebackup", NothingToDo(NO_BACKUPS)),
    ("enablegossip", NothingToDo(NO_GOSSIP)),
    ("enablehandoff", NothingToDo(NO_HINTS)),
    ("enablehintsfordc", NothingToDo(NO_HINTS)),
    ("enableoldprotocolversions", NothingToDo(ALL_PROTOCOLS)),
    (
        "forcecompact",
        NothingToDo(
            "a tombstone goes once nothing is left that it shadows; nodetool compact compacts all files",
        ),
    ),
    (
        "gcstats",
        NothingToDo("there is no garbage collector that could stop the process"),
    ),
    ("getauthcacheconfig", NothingToDo(ROLES)),
    ("getbatchlogreplaythrottle", NothingToDo(NO_BATCHLOG)),
    ("getcidrgroupsofip", NothingToDo(NO_CIDR)),
    ("getcolumnindexsize", NothingToDo(NO_COLUMN_INDEX)),
    ("getcompactionthreshold", NothingToDo(NO_THRESHOLDS)),
    ("getconcurrency", NothingToDo(NO_STAGES)),
    ("getconcurrentcompactors", NothingToDo(COMPACTORS)),
    ("getconcurrentviewbuilders", NothingToDo(ONE_BUILDER)),
    ("getdefaultrf", NothingToDo(ONE_COPY)),
    ("getinterdcstreamthroughput", NothingToDo(NO_STREAMS)),
    ("getmaxhintwindow", NothingToDo(NO_HINTS)),
    ("getseeds", NothingToDo(NO_GOSSIP)),
    (
        "getsnapshotthrottle",
        NothingToDo("there are no snapshots whose making could be slowed down"),
    ),
    ("getsstables", NothingToDo(SHARED_FILES)),
    ("getstreamthroughput", NothingToDo(NO_STREAMS)),
    ("gettraceprobability", NothingToDo(ON_REQUEST)),
    ("import", Refused(OTHER_FILES)),
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
    ("listcidrgroups", NothingToDo(NO_CIDR)),
    ("listpendinghints", NothingToDo(NO_HINTS)),
    (
        "move",
        NothingToDo("tablets are split and moved by load, not by tokens of nodes"),
    ),
    ("pausehandoff", NothingToDo(NO_HINTS)),
    ("rangekeysample", NothingToDo(SHARED_FILES)),
    ("rebuild", NothingToDo(NO_STREAMS)),
    (
        "rebuild_index",
        NothingToDo(
            "an entry of an index is written in one log record with its row, and a build that was interrupted goes on by itself",
        ),
    ),
    ("recompress_sstables", NothingToDo(ONE_FORMAT)),
    ("refresh", Refused(OTHER_FILES)),
    ("refreshsizeestimates", NothingToDo(NO_ESTIMATES)),
    ("reloadcidrgroupscache", NothingToDo(NO_CIDR)),
    ("reloadlocalschema", NothingToDo(ALWAYS_CURRENT)),
    ("reloadseeds", NothingToDo(NO_GOSSIP)),
    ("reloadtriggers", NothingToDo("there are no triggers")),
    ("relocatesstables", NothingToDo(NO_DIRECTORIES)),
    ("repair", NothingToDo(NO_REPLICAS)),
    ("repair_admin", NothingToDo(NO_REPLICAS)),
    ("replaybatchlog", NothingToDo(NO_BATCHLOG)),
    ("resetlocalschema", NothingToDo(ALWAYS_CURRENT)),
    ("resumehandoff", NothingToDo(NO_HINTS)),
    ("scrub", NothingToDo(CHECKSUMS)),
    ("setauthcacheconfig", NothingToDo(ROLES)),
    ("setbatchlogreplaythrottle", NothingToDo(NO_BATCHLOG)),
    (
        "setcachecapacity",
        Refused(
            "the sizes of caches are settings (row_cache_bytes, block_cache_bytes), which take a restart",
        ),
    ),
    ("setcachekeystosave", NothingToDo("caches are not saved")),
    ("setcolumnindexsize", NothingToDo(NO_COLUMN_INDEX)),
    ("setcompactionthreshold", NothingToDo(NO_THRESHOLDS)),
    ("setconcurrency", NothingToDo(NO_STAGES)),
    ("setconcurrentcompactors", Refused(COMPACTORS)),
    ("setconcurrentviewbuilders", NothingToDo(ONE_BUILDER)),
    ("setdefaultrf", NothingToDo(ONE_COPY)),
    ("sethintedhandoffthrottlekb", NothingToDo(NO_HINTS)),
    ("setinterdcstreamthroughput", NothingToDo(NO_STREAMS)),
    ("setmaxhintwindow", NothingToDo(NO_HINTS)),
    (
        "setsnapshotthrottle",
        NothingToDo("there are no snapshots whose making could be slowed down"),
    ),
    ("setstreamthroughput", NothingToDo(NO_STREAMS)),
    ("settraceprobability", NothingToDo(ON_REQUEST)),
    ("sjk", NothingToDo(NO_JMX)),
    ("sstablerepairedset", NothingToDo(NO_REPLICAS)),
    ("statusautocompaction", NothingToDo(ALWAYS_COMPACTS)),
    ("statusbackup", NothingToDo(NO_BACKUPS)),
    ("statushandoff", NothingToDo(NO_HINTS)),
    (
        "stop",
        Refused("compactions can't be stopped; nodetool setcompactionthroughput slows them down"),
    ),
    ("truncatehints", NothingToDo(NO_HINTS)),
    ("updatecidrgroup", NothingToDo(NO_CIDR)),
    ("upgradesstables", NothingToDo(ONE_FORMAT)),
    ("verify", NothingToDo(CHECKSUMS)),
];

/// Runs a command that has no file of its own.
///
/// # Errors
/// Fails if Cassandra's nodetool has no such command, or if the command cannot be done here.
pub(super) fn run(name: &str) -> anyhow::Result<ExitCode> {
    let found = COMMANDS.binary_search_by_key(&name, |(known, _)| known);
    match found.map(|index| COMMANDS[index].1) {
        Ok(NothingToDo(why)) => {
            println!("nodetool {name}: nothing to do: {why}.");
            Ok(ExitCode::SUCCESS)
        }
        Ok(Refused(why)) => bail!("nodetool {name}: {why}"),
        Err(_) => bail!("{}", unknown(name)),
    }
}

/// Minimum similarity, from 0 to 1, of a name that is suggested.
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
    fn no_op_commands_succeed_and_impossible_are_refused() {
        assert_eq!(run("repair").unwrap(), ExitCode::SUCCESS);
        let refused = run("import").unwrap_err().to_string();
        assert!(
            refused.starts_with("nodetool import: files of Cassandra"),
            "{refused}"
        );
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
