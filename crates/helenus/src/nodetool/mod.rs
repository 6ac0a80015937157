//! `helenus nodetool`: shows a node's answers over HTTP as tables.
//!
//! A command is a file of this folder and an entry of the registry below: a variant of [`Command`], whose comment is its help text, and an
//! arm of [`run`]. Cassandra's other commands are in [`cassandra_commands`]. [`client`] has the requests to the node, [`output`] the
//! tables.

mod auditlog;
mod binary;
mod cassandra_commands;
pub(crate) mod client;
mod clientstats;
mod compactions;
mod describecluster;
mod describering;
mod drain;
mod flush;
mod formats;
mod full_query_log;
mod getendpoints;
mod gossipinfo;
mod guardrails;
mod health;
mod histograms;
mod info;
mod logging;
mod netstats;
pub(crate) mod output;
mod pointintime;
mod profileload;
mod reloadconfig;
mod removenode;
mod ring;
mod settings;
mod slowstatements;
mod snapshots;
mod status;
mod tablestats;
mod tablets;
mod topology;
mod tpstats;
mod version;
mod viewbuildstatus;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgAction, Args, Command as ClapCommand, Subcommand};

use self::client::NodeClient;
use self::clientstats::Listing;
use self::output::Format;
use self::tablestats::TableStatsArgs;
use self::topology::Naming;

// Help has no short option, because -h is the host in Cassandra's nodetool.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct NodetoolArgs {
    #[command(flatten)]
    node: NodeClient,
    /// Print help
    #[arg(long, action = ArgAction::Help, global = true)]
    help: Option<bool>,
    #[command(subcommand)]
    command: Command,
}

/// Form of nodes' names in a command's answer.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
struct NamingArgs {
    /// Show the names of nodes instead of their addresses
    #[arg(short, long)]
    resolve_ip: bool,
}

/// Format of an answer for scripts.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
struct FormatArgs {
    /// Write a document in this format
    #[arg(short = 'F', long, value_name = "FORMAT")]
    format: Option<Format>,
}

/// The registry of commands.
#[derive(Subcommand, Clone, Debug, PartialEq, Eq)]
enum Command {
    /// The nodes: state, place and share of the data
    Status {
        #[command(flatten)]
        naming: NamingArgs,
        /// Ignored: a node owns the same share of every keyspace
        keyspace: Option<String>,
    },
    /// The tokens at which tablets end, with their owners
    Ring {
        #[command(flatten)]
        naming: NamingArgs,
        /// Ignored: all keyspaces have the same ranges
        keyspace: Option<String>,
    },
    /// The tablets: ranges, owners and states
    Tablets,
    /// The cluster as a whole
    Describecluster,
    /// This node: load, uptime, memory, caches, and the requests to its bucket with their cost
    Info {
        /// Show all tokens
        #[arg(short = 'T', long)]
        tokens: bool,
    },
    /// The state that each node publishes in the store, which replaces gossip
    Gossipinfo {
        #[command(flatten)]
        naming: NamingArgs,
    },
    /// The other nodes, and whether their leases are valid
    Failuredetector,
    /// Check that the node serves clients; exits with 1 if not
    Health,
    /// Hand over this node's tablets and stop the node; a node that is alone flushes them and stops
    Drain,
    /// Hand over this node's tablets and stop the node; no data has to be moved
    Decommission {
        /// Ignored: there are no replicas whose number could fall
        #[arg(short, long, hide = true)]
        force: bool,
    },
    /// Stop this node gracefully
    Stopdaemon,
    /// Remove a lost node from the list of nodes
    Removenode {
        /// The host id of the node, or status, or force
        node: String,
    },
    /// Like removenode, with the node's address
    Assassinate {
        /// The address of the node
        address: String,
    },
    /// The ranges of tokens and their owners
    Describering {
        /// Ignored: all keyspaces have the same ranges
        keyspace: String,
    },
    /// The node that owns a partition
    Getendpoints {
        keyspace: String,
        table: String,
        /// The partition key; the components of a composite key are separated by colons
        key: String,
    },
    /// The clients of this node by user
    Clientstats {
        /// List every connection
        #[arg(long)]
        all: bool,
        /// List every connection with its options of STARTUP
        #[arg(long)]
        client_options: bool,
    },
    /// The task pools of this node: active, pending and completed tasks
    Tpstats {
        #[command(flatten)]
        format: FormatArgs,
    },
    /// The compactions of this node
    Compactionstats {
        /// Write sizes with units
        #[arg(short = 'H', long)]
        human_readable: bool,
        /// Ignored: the figures are those of `system_views.sstable_tasks` in any case
        #[arg(short = 'V', long, hide = true)]
        vtable: bool,
    },
    /// The compactions of this node that have ended
    Compactionhistory {
        #[command(flatten)]
        format: FormatArgs,
        /// Write sizes with units
        #[arg(short = 'H', long)]
        human_readable: bool,
    },
    /// Flush this node's tablets, and merge the files of each into one sorted run
    #[command(visible_alias = "garbagecollect")]
    Compact {
        /// Ignored: tables share tablets, so all are compacted. Options of Cassandra's are accepted and have no effect
        #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
        tables: Vec<String>,
    },
    /// The mode of this node. Nodes have no streams and no repairs
    Netstats {
        /// Ignored: no sizes are shown
        #[arg(short = 'H', long, hide = true)]
        human_readable: bool,
    },
    /// Write the memtables of this node to SSTables
    Flush {
        /// Ignored: tables share the memtables of a tablet, so all are flushed
        tables: Vec<String>,
    },
    /// Figures of tables: sizes, counts and latencies
    #[command(visible_alias = "cfstats")]
    Tablestats(TableStatsArgs),
    /// Percentiles of the latencies and the partition sizes of tables
    #[command(visible_alias = "cfhistograms")]
    Tablehistograms {
        /// KEYSPACE TABLE or KEYSPACE.TABLE [default: all tables]
        tables: Vec<String>,
    },
    /// Percentiles of the latencies of this node's clients
    Proxyhistograms,
    /// Sample for a while which partitions are read and written most, and which statements take longest
    Profileload(profileload::ProfileArgs),
    /// Another name of profileload
    Toppartitions(profileload::ProfileArgs),
    /// The last slow requests of this node, with the time of each stage
    Slowstatements(slowstatements::SlowStatementsArgs),
    /// A timeout: read, range, write, counterwrite, cascontention, truncate or misc
    Gettimeout { kind: String },
    /// Set a timeout of this node, until it stops or reloads its settings
    Settimeout {
        /// read, range, write, counterwrite, cascontention, truncate or misc
        kind: String,
        milliseconds: u64,
    },
    /// The limit on the throughput of compactions
    Getcompactionthroughput {
        /// Show a decimal
        #[arg(short = 'd', long)]
        precise_mib: bool,
    },
    /// Limit the throughput of this node's compactions, until it stops or reloads its settings
    Setcompactionthroughput {
        /// MiB per second of all tablets together; 0 for no limit
        mib: u32,
    },
    /// Open the port for CQL clients
    Enablebinary,
    /// Close the port for CQL clients and all their connections
    Disablebinary,
    /// Show whether the port for CQL clients is open
    Statusbinary,
    /// Show whether the node takes part in the cluster
    Statusgossip,
    /// Show whether a view is built; exits with 1 if not
    Viewbuildstatus {
        /// The keyspace, or KEYSPACE.VIEW
        keyspace: String,
        view: Option<String>,
    },
    /// The options of the audit log
    Getauditlog,
    /// Record the requests and log-ins of clients in the audit log
    Enableauditlog(auditlog::AuditLogArgs),
    /// Switch the audit log off
    Disableauditlog,
    /// The options of the full query log
    Getfullquerylog,
    /// Record the requests of clients, with their values, in files that can be replayed
    Enablefullquerylog(full_query_log::FullQueryLogArgs),
    /// Switch the full query log off
    Disablefullquerylog,
    /// Switch the full query log off and delete its files
    Resetfullquerylog,
    /// The guardrails of this node
    Getguardrailsconfig(guardrails::ShowArgs),
    /// Set a guardrail of this node, until it stops or reloads its settings
    Setguardrailsconfig(guardrails::SetArgs),
    /// Take a snapshot of tables, as they are now or as of a time
    Snapshot(snapshots::TakeArgs),
    /// The snapshots that were taken, and those of TRUNCATE, DROP TABLE and DROP KEYSPACE
    Listsnapshots(snapshots::ListArgs),
    /// Remove snapshots; compaction then removes their rows
    Clearsnapshot(snapshots::ClearArgs),
    /// Restore tables on all nodes, from a snapshot or as of a time
    Restore(snapshots::RestoreArgs),
    /// The length of the history that can be read, and the space that it takes
    Pointintime,
    /// The log levels of this node, by target
    Getlogginglevels,
    /// Set a log level of this node until it stops; without arguments, restore the initial levels
    Setlogginglevel {
        /// A module such as helenus_server, or ROOT
        #[arg(requires = "level")]
        target: Option<String>,
        /// trace, debug, info, warn, error or off
        level: Option<String>,
    },
    /// Read this node's file of settings and its certificates again
    #[command(visible_alias = "reloadssl")]
    Reloadconfig,
    /// The version reported to drivers and tools
    Version {
        /// Show the version of Helenus too
        #[arg(short, long)]
        verbose: bool,
    },
    /// Any other command of Cassandra's nodetool, with its arguments
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// Returns the names of the commands in [`Command`], with their aliases.
fn command_names() -> Vec<String> {
    let registry = Command::augment_subcommands(ClapCommand::new("nodetool"));
    let names = registry.get_subcommands().flat_map(|command| {
        let aliases = command.get_visible_aliases().map(str::to_owned);
        std::iter::once(command.get_name().to_owned()).chain(aliases.collect::<Vec<_>>())
    });
    names.collect()
}

/// Replaces Cassandra's options of one dash and several letters, such as `-pwf`, which clap cannot parse, by long options.
pub fn normalized(arguments: Vec<OsString>) -> Vec<OsString> {
    let known = [
        ("-pw", "--password"),
        ("-pwf", "--password-file"),
        ("-pp", "--print-port"),
        ("-kt", "--kt"),
        ("-kc", "--kc.list"),
        ("-cf", "--column-family"),
        ("-sf", "--skip-flush"),
        ("-nt", "--no-ttl"),
    ];
    let normalized = |argument: OsString| {
        let found = known.into_iter().find(|(short, _)| argument == *short);
        found.map_or(argument, |(_, long)| long.into())
    };
    arguments.into_iter().map(normalized).collect()
}

/// Runs a command.
pub fn run(args: &NodetoolArgs) -> anyhow::Result<ExitCode> {
    let node = &args.node;
    let named = |naming: &NamingArgs| Naming {
        by_name: naming.resolve_ip,
        with_port: node.print_port,
    };
    let by_address = Naming {
        by_name: false,
        with_port: node.print_port,
    };
    match &args.command {
        Command::Status { naming, keyspace } => status::run(node, keyspace.as_deref(), named(naming)),
        Command::Ring { naming, keyspace } => ring::run(node, keyspace.as_deref(), named(naming)),
        Command::Tablets => tablets::run(node),
        Command::Describecluster => describecluster::run(node, by_address),
        Command::Info { tokens } => info::run(node, *tokens),
        Command::Gossipinfo { naming } => gossipinfo::run(node, named(naming)),
        Command::Failuredetector => gossipinfo::failure_detector(node, by_address),
        Command::Health => health::run(node),
        Command::Drain => drain::drain(node),
        Command::Decommission { force: _ } => drain::run(node),
        Command::Stopdaemon => drain::stop(node),
        Command::Removenode { node: what } => removenode::run(node, what),
        Command::Assassinate { address } => removenode::by_address(node, address),
        Command::Describering { keyspace } => describering::run(node, keyspace),
        Command::Getendpoints { keyspace, table, key } => {
            getendpoints::run(node, keyspace, table, key, by_address)
        }
        Command::Clientstats { all, client_options } => {
            let listing = match (all, client_options) {
                (_, true) => Listing::Options,
                (true, false) => Listing::All,
                (false, false) => Listing::None,
            };
            clientstats::run(node, listing)
        }
        Command::Tpstats { format } => tpstats::run(node, format.format),
        Command::Compactionstats {
            human_readable,
            vtable: _,
        } => compactions::stats(node, *human_readable),
        Command::Compactionhistory {
            format,
            human_readable,
        } => compactions::history(node, format.format, *human_readable),
        Command::Compact { tables: _ } => compactions::compact(node),
        Command::Netstats { human_readable: _ } => netstats::run(node),
        Command::Flush { tables: _ } => flush::run(node),
        Command::Tablestats(args) => tablestats::run(node, args),
        Command::Tablehistograms { tables } => histograms::run_tables(node, tables),
        Command::Proxyhistograms => histograms::run_proxy(node),
        Command::Profileload(args) | Command::Toppartitions(args) => profileload::run(node, args),
        Command::Slowstatements(args) => slowstatements::run(node, args),
        Command::Gettimeout { kind } => settings::show_timeout(node, kind),
        Command::Settimeout { kind, milliseconds } => settings::set_timeout(node, kind, *milliseconds),
        Command::Getcompactionthroughput { precise_mib } => settings::show_throughput(node, *precise_mib),
        Command::Setcompactionthroughput { mib } => settings::set_throughput(node, *mib),
        Command::Enablebinary => binary::switch(node, true),
        Command::Disablebinary => binary::switch(node, false),
        Command::Statusbinary => binary::status(node),
        Command::Statusgossip => binary::gossip(node),
        Command::Viewbuildstatus { keyspace, view } => viewbuildstatus::run(node, keyspace, view.as_deref()),
        Command::Getauditlog => auditlog::show(node),
        Command::Enableauditlog(args) => auditlog::enable(node, args),
        Command::Disableauditlog => auditlog::disable(node),
        Command::Getfullquerylog => full_query_log::show(node),
        Command::Enablefullquerylog(args) => full_query_log::enable(node, args),
        Command::Disablefullquerylog => full_query_log::disable(node),
        Command::Resetfullquerylog => full_query_log::reset(node),
        Command::Getguardrailsconfig(args) => guardrails::show(node, args),
        Command::Setguardrailsconfig(args) => guardrails::set(node, args),
        Command::Snapshot(args) => snapshots::take(node, args),
        Command::Listsnapshots(args) => snapshots::list_all(node, args),
        Command::Clearsnapshot(args) => snapshots::clear(node, args),
        Command::Restore(args) => snapshots::restore(node, args),
        Command::Pointintime => pointintime::run(node),
        Command::Getlogginglevels => logging::show(node),
        Command::Setlogginglevel { target, level } => logging::set(node, target.as_deref(), level.as_deref()),
        Command::Reloadconfig => reloadconfig::run(node),
        Command::Version { verbose } => version::run(node, *verbose),
        Command::Other(words) => cassandra_commands::run(words.first().map_or("", String::as_str)),
    }
}
