//! What a node shall be: flags, settings and environment, read and checked before anything is
//! opened.
//!
//! Flags win over `settings.json`, which wins over the defaults. The environment is read here and
//! in the flags' own declarations, nowhere else.

pub(crate) mod folder;
pub(crate) mod settings;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nexus_contract::catalog::Set;
use nexus_contract::limits;
use nexus_discovery::Seed;
use nexus_domain::command::Timing;

pub(crate) use folder::{Folder, FolderError};
pub(crate) use settings::{Settings, SettingsError};

use crate::cli::value;

/// Where HTTP is served unless the user says otherwise.
pub(crate) const HTTP_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5688);
/// The cluster's UDP port unless the user says otherwise.
pub(crate) const CLUSTER_PORT: u16 = nexus_discovery::seeds::DEFAULT_PORT;
/// Calls a second and caller, as clients of n2n-nexus know it.
const RATE_DEFAULT: u32 = 20;
/// Calls at once, as clients of n2n-nexus know it.
const BURST_DEFAULT: u32 = 60;
/// Minutes for which a meeting is quiet before its approvers are reminded, as users of n2n-nexus
/// know it.
const REMINDER_DEFAULT: u32 = 10;

/// What `nexus up` takes on its command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Flags {
    /// The node's name [default: the host's]; a taken one gets a number, and a member that is
    /// given another one is renamed
    #[arg(long, value_name = "NAME", value_parser = value::node_name)]
    pub(crate) name: Option<String>,
    /// Where to serve HTTP [default: 127.0.0.1:5688]; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", value_parser = value::http)]
    pub(crate) http: Option<SocketAddr>,
    /// Where other nodes reach this one (UDP); bound and advertised as given, so that this alone
    /// opens the LAN [default: loopback until invite or --join, then port 5689 on all interfaces]
    #[arg(long, value_name = "ADDR:PORT", value_parser = value::cluster)]
    pub(crate) cluster: Option<SocketAddr>,
    /// Join the cluster that printed this code (`nexus invite` there)
    #[arg(long, value_name = "CODE")]
    pub(crate) join: Option<String>,
    /// Where a member may be, for a LAN without multicast; several may be given
    #[arg(long = "seed", value_name = "HOST:PORT")]
    pub(crate) seeds: Vec<Seed>,
    /// Neither announce this node on the LAN nor look there
    #[arg(long)]
    pub(crate) no_mdns: bool,
    /// Make a new cluster although the settings expect another one
    #[arg(long, conflicts_with = "join")]
    pub(crate) new: bool,
    /// With --join: leave the present cluster; its folder is kept beside this one
    #[arg(long, requires = "join")]
    pub(crate) discard: bool,
}

/// Where the cluster's port is bound, and what of that is told to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Loopback: nobody was invited yet, so nobody needs to reach this node.
    Silent,
    /// Every interface: an invite or a join opened the LAN.
    Lan,
    /// As the user gave it, loopback too.
    Given(SocketAddr),
}

impl Place {
    /// Returns the address to bind.
    pub(crate) fn bind(self) -> SocketAddr {
        match self {
            // Nobody is told of this port, so it need not be known; and the known one stays free
            // for the LAN, which opens before loopback closes.
            Self::Silent => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            Self::Lan => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), CLUSTER_PORT),
            Self::Given(address) => address,
        }
    }

    /// Returns whether this node may be heard on the LAN.
    pub(crate) fn is_open(self) -> bool {
        match self {
            Self::Silent => false,
            Self::Lan => true,
            Self::Given(address) => !address.ip().is_loopback(),
        }
    }
}

/// One address that the settings say to tell to others; without a port the bound one is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advertised {
    /// The address.
    pub(crate) ip: IpAddr,
    /// The port, when it is not the bound one.
    pub(crate) port: Option<u16>,
}

/// A seed, and where the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenSeed {
    /// The address or name.
    pub(crate) seed: Seed,
    /// The flag, or the field of the settings.
    pub(crate) field: String,
}

/// Whether loopback calls need the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LocalTrust {
    /// Every call brings it.
    #[default]
    Token,
    /// Tool calls from this machine come without, as clients of n2n-nexus make them.
    Open,
}

/// Everything that a node is started with.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The data folder.
    pub(crate) folder: Folder,
    /// The name to ask for.
    pub(crate) name: String,
    /// Whether the user gave it: then a member of another name asks for it too.
    pub(crate) name_given: bool,
    /// What tells this machine from others.
    pub(crate) host: String,
    /// Where to serve HTTP.
    pub(crate) http: SocketAddr,
    /// Where to bind the cluster's port.
    pub(crate) place: Place,
    /// What to tell others instead of what is found.
    pub(crate) advertise: Vec<Advertised>,
    /// Names besides addresses under which HTTP may be called.
    pub(crate) allowed_hosts: Vec<String>,
    /// Whether loopback calls need the token.
    pub(crate) local_trust: LocalTrust,
    /// The cluster that this folder is expected to belong to.
    pub(crate) expected: Option<String>,
    /// Whether multicast DNS may be used at all.
    pub(crate) mdns: bool,
    /// Whether it was turned off on the command line.
    pub(crate) no_mdns: bool,
    /// The timing profile, if one is set.
    pub(crate) timing: Option<Timing>,
    /// Calls a second and caller; 0 is no limit.
    pub(crate) rate_limit: u32,
    /// Calls at once and caller.
    pub(crate) rate_burst: u32,
    /// For how many minutes a meeting must be quiet before those without a stance on a draft that
    /// is published here are reminded; 0: for ever.
    pub(crate) stance_reminder_minutes: u32,
    /// The tools of `/mcp`.
    pub(crate) tools: Set,
    /// Where members may be.
    pub(crate) seeds: Vec<GivenSeed>,
    /// The invite code to join with.
    pub(crate) join: Option<nexus_raft::InviteCode>,
    /// Whether to make a new cluster although another one is expected.
    pub(crate) new: bool,
    /// Whether to leave the present cluster for the code's.
    pub(crate) discard: bool,
}

/// Why a node cannot be started with what was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("invite code (--join) cannot be used")]
    Code(#[source] nexus_raft::InviteError),
}

impl ConfigError {
    /// Returns whether the command line is wrong, and not a file.
    pub(crate) fn is_usage(&self) -> bool {
        match self {
            Self::Code(_) => true,
            Self::Settings(_) => false,
        }
    }
}

impl Config {
    /// Reads and checks everything; opens nothing.
    pub(crate) fn load(folder: Folder, flags: Flags) -> Result<Self, ConfigError> {
        let settings = Settings::read(&folder.settings())?;
        let join = match &flags.join {
            Some(code) => Some(nexus_raft::InviteCode::parse(code).map_err(ConfigError::Code)?),
            None => None,
        };
        let place = match flags.cluster.or(settings.cluster) {
            Some(address) => Place::Given(address),
            None if join.is_some() || settings.lan => Place::Lan,
            None => Place::Silent,
        };
        let of_flag = |seed| GivenSeed { seed, field: "--seed".to_owned() };
        let mut seeds: Vec<GivenSeed> = flags.seeds.into_iter().map(of_flag).collect();
        seeds.extend(settings.seeds);
        let name = flags.name.or(settings.name);
        Ok(Self {
            name_given: name.is_some(),
            name: name.unwrap_or_else(host_name),
            host: settings.host_id.unwrap_or_else(host_id),
            http: flags.http.or(settings.http).unwrap_or(HTTP_DEFAULT),
            place,
            advertise: settings.advertise,
            allowed_hosts: settings.allowed_hosts,
            local_trust: settings.local_trust,
            expected: settings.cluster_id,
            mdns: settings.mdns && !flags.no_mdns,
            no_mdns: flags.no_mdns,
            timing: settings.timing,
            rate_limit: settings.rate_limit.unwrap_or(RATE_DEFAULT),
            rate_burst: settings.rate_burst.unwrap_or(BURST_DEFAULT),
            stance_reminder_minutes: settings.stance_reminder_minutes.unwrap_or(REMINDER_DEFAULT),
            tools: settings.tools,
            seeds,
            join,
            new: flags.new,
            discard: flags.discard,
            folder,
        })
    }
}

/// Returns whether a name may have this letter.
fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._@#-".contains(letter)
}

/// Checks a node's name.
///
/// # Errors
/// What is right.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let length = u32::try_from(name.chars().count()).unwrap_or(u32::MAX);
    if name.chars().all(is_of_name) && (1..=limits::NAME_CHARS_MAX).contains(&length) {
        return Ok(());
    }
    let most = limits::NAME_CHARS_MAX;
    Err(format!("give 1 to {most} characters out of A-Z a-z 0-9 . _ @ # -"))
}

/// Checks an address for the cluster's port.
///
/// # Errors
/// What is right.
pub(crate) fn check_cluster(address: SocketAddr) -> Result<(), String> {
    if address.ip().is_multicast() {
        return Err("it names no single machine: give an address of this one, or 0.0.0.0 or [::] \
                    for all of its interfaces"
            .to_owned());
    }
    Ok(())
}

/// Returns the host's name as a node's name: its first label, with what names are made of.
fn host_name() -> String {
    let full = gethostname::gethostname().to_string_lossy().into_owned();
    let label = full.split('.').next().unwrap_or_default();
    let most = usize::try_from(limits::NAME_CHARS_MAX).unwrap_or(usize::MAX);
    let plain = |letter| if is_of_name(letter) { letter } else { '-' };
    let name: String = label.chars().take(most).map(plain).collect();
    if name.is_empty() { "node".to_owned() } else { name }
}

/// Returns what tells this machine from others: its machine id, and its network namespace, since
/// containers of one image share the first.
fn host_id() -> String {
    let machine = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .into_iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| gethostname::gethostname().to_string_lossy().into_owned());
    match std::fs::read_link("/proc/self/ns/net") {
        Ok(namespace) => format!("{machine}/{}", namespace.display()),
        Err(_no_namespaces_here) => machine,
    }
}

/// Returns the token that the environment gives (`NEXUS_TOKEN`), if any.
pub(crate) fn token_given() -> Option<String> {
    environment("NEXUS_TOKEN")
}

/// Returns the instance id that the environment gives (`NEXUS_INSTANCE_ID`), if any.
pub(crate) fn instance_given() -> Option<String> {
    environment("NEXUS_INSTANCE_ID")
}

/// Returns what shall be logged (`NEXUS_LOG`), if the environment says so.
pub(crate) fn log_filter() -> Option<String> {
    environment("NEXUS_LOG")
}

#[expect(clippy::disallowed_methods, reason = "the configuration reads the environment")]
fn environment(key: &str) -> Option<String> {
    let value = std::env::var(key).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Returns the name of the user who runs this process, for `cli-<user>`.
pub(crate) fn os_user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(environment);
    named.unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()))
}

#[cfg(test)]
mod tests;
