//! `helenus nodetool`: a node's answers over HTTP, as tables.
//!
//! A command is a file of this folder and an entry of the registry below: a variant of [`Command`], whose comment is its help text, and an arm
//! of [`run`]. Cassandra's other commands are in [`cassandra_commands`]. [`client`] has the requests to the node, [`output`] the tables.

mod auditlog;
mod cassandra_commands;
mod client;
mod clientstats;
mod describecluster;
mod describering;
mod drain;
mod flush;
mod health;
mod info;
mod logging;
mod output;
mod ring;
mod status;
mod tablets;
mod version;

use std::process::ExitCode;

use clap::{ArgAction, Args, Command as ClapCommand, Subcommand};

use self::client::NodeClient;

// Cassandra's nodetool takes a host by -h.
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

/// The registry of commands.
#[derive(Subcommand, Clone, Debug, PartialEq, Eq)]
enum Command {
    /// The nodes: whether they are up, where they are, what they own
    Status,
    /// The tokens at which tablets end, and whose they are
    Ring,
    /// The tablets: ranges, owners, what they go through
    Tablets,
    /// The cluster as a whole
    Describecluster,
    /// This node: load, uptime, memory, caches, and the requests to its bucket with what they cost
    Info {
        /// Show all tokens
        #[arg(short = 'T', long)]
        tokens: bool,
    },
    /// Whether the node serves; exits with 1 if not
    Health,
    /// Hand this node's tablets over and end it
    Drain,
    /// The same as drain: a node keeps nothing that would have to be moved
    Decommission,
    /// The ranges of tokens and their owners
    Describering {
        /// Any keyspace: all have the same ranges
        keyspace: String,
    },
    /// The clients of this node by user
    Clientstats {
        /// List every connection
        #[arg(long)]
        all: bool,
    },
    /// Write the memtables of this node to SSTables
    Flush {
        /// Tables share the memtables of a tablet: all are flushed, these among them
        tables: Vec<String>,
    },
    /// The options of the audit log
    Getauditlog,
    /// Note the requests and log-ins of clients in the audit log
    Enableauditlog(auditlog::AuditLogArgs),
    /// Switch the audit log off
    Disableauditlog,
    /// What this node logs, by target
    Getlogginglevels,
    /// Set what this node logs until it ends; without arguments, as it began
    Setlogginglevel {
        /// A module such as helenus_server, or ROOT
        #[arg(requires = "level")]
        target: Option<String>,
        /// trace, debug, info, warn, error or off
        level: Option<String>,
    },
    /// The version that drivers and tools are told
    Version,
    /// Any other command of Cassandra's nodetool, with its arguments
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// The names of the commands above.
fn command_names() -> Vec<String> {
    let registry = Command::augment_subcommands(ClapCommand::new("nodetool"));
    let names = registry
        .get_subcommands()
        .map(|command| command.get_name().to_owned());
    names.collect()
}

/// Runs a command.
pub fn run(args: &NodetoolArgs) -> anyhow::Result<ExitCode> {
    let node = &args.node;
    match &args.command {
        Command::Status => status::run(node),
        Command::Ring => ring::run(node),
        Command::Tablets => tablets::run(node),
        Command::Describecluster => describecluster::run(node),
        Command::Info { tokens } => info::run(node, *tokens),
        Command::Health => health::run(node),
        Command::Drain | Command::Decommission => drain::run(node),
        Command::Describering { keyspace: _ } => describering::run(node),
        Command::Clientstats { all } => clientstats::run(node, *all),
        Command::Flush { tables: _ } => flush::run(node),
        Command::Getauditlog => auditlog::show(node),
        Command::Enableauditlog(args) => auditlog::enable(node, args),
        Command::Disableauditlog => auditlog::disable(node),
        Command::Getlogginglevels => logging::show(node),
        Command::Setlogginglevel { target, level } => logging::set(node, target.as_deref(), level.as_deref()),
        Command::Version => version::run(node),
        Command::Other(words) => cassandra_commands::run(words.first().map_or("", String::as_str)),
    }
}
