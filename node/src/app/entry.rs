//! Into which cluster this folder goes: found, resumed, joined, or refused (traps.md 17).
//!
//! What the folder is, what the settings expect and what the command line asks are held against
//! each other before anything is made; a folder is never emptied, only set aside.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nexus_discovery::{Discovery, Hint as Wanted};
use nexus_domain::chat;
use nexus_domain::cluster;
use nexus_domain::command::Room;
use nexus_raft::identity::Fingerprint;
use nexus_raft::transport::quic::{JoinError, StartError};
use nexus_raft::{Cluster, Folder as Held, InviteCode, OpenError, Start};
use nexus_rt::{Clock, Jobs};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lan::advertised;
use super::port;
use crate::cli::out::Out;
use crate::cli::{VERSION, chain};
use crate::config::folder::Lock;
use crate::config::{Config, FolderError, Place, Settings, SettingsError};

/// How long an inviter is looked for before the user is told what may be wrong.
const LOOK: Duration = Duration::from_secs(5);
/// How long to wait after a try that failed, unless a new address is found.
const AGAIN: Duration = Duration::from_secs(3);
/// How often the user is told what is being done, while nothing comes of it.
const TELL: Duration = Duration::from_secs(30);

/// What is said of a join that has come to nothing.
const TAKEN_BACK: &str =
    "nothing is left of this try: plain `nexus up` does here what it did before";

/// Why the folder goes into no cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EntryError {
    #[error(
        "data folder {} is empty, and its settings expect cluster {cluster}: was it moved or lost?",
        path.display()
    )]
    Lost { path: PathBuf, cluster: String },
    #[error(
        "data folder {} is of cluster {found}, and its settings expect cluster {expected}",
        path.display()
    )]
    Other { path: PathBuf, found: String, expected: String },
    #[error("data folder {} is of another cluster already: {why}", path.display())]
    Taken { path: PathBuf, why: String, command: String },
    #[error("the node in {} cannot start", path.display())]
    Open { path: PathBuf, address: SocketAddr, source: Box<OpenError> },
    #[error("cluster cannot be joined")]
    Join {
        /// Whether the folder is as it was before the try.
        taken_back: bool,
        source: OpenError,
    },
    #[error("cluster is not joined: told to stop before this machine was let in")]
    Stopped {
        /// Whether the folder is as it was before the try.
        taken_back: bool,
    },
    #[error(
        "--join has nowhere to look for a member: multicast DNS is off ({off}), and no --seed is \
         given"
    )]
    Nowhere { off: &'static str },
    #[error("local state cannot be read")]
    Read(#[source] nexus_raft::ReadError),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl EntryError {
    /// Returns what the user can do, where there is something.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Lost { cluster, .. } => Some(format!(
                "if it was moved: give its place with --data, or move it back; to come back into \
                 cluster {cluster} without it: `nexus invite` on a member, then `nexus up --join \
                 CODE` here; to begin a new cluster: `nexus up --new`"
            )),
            Self::Other { .. } => Some(
                "give the folder of that cluster with --data, or take clusterId out of \
                 settings.json if this folder is the right one"
                    .to_owned(),
            ),
            Self::Taken { command, .. } => Some(format!(
                "to leave that cluster and keep its folder beside this one: {command}"
            )),
            Self::Join { taken_back, .. } => {
                let then = if *taken_back {
                    TAKEN_BACK
                } else {
                    "the join stays open here: give the new code with --join"
                };
                Some(format!(
                    "codes are good once and for a limited time: make a new one with `nexus \
                     invite` on a member; {then}"
                ))
            }
            Self::Stopped { taken_back: true } => Some(TAKEN_BACK.to_owned()),
            Self::Stopped { taken_back: false } => Some(
                "a member was asked, and may have let this machine in: to go on, type the same \
                 command again"
                    .to_owned(),
            ),
            Self::Nowhere { .. } => Some(
                "add --seed ADDRESS:PORT, as the second command that `nexus invite` printed has \
                 it, or let multicast DNS look"
                    .to_owned(),
            ),
            Self::Open { source, address, .. } => match **source {
                OpenError::Transport(StartError::Bind { ref source, .. }) => {
                    Some(port_hint(*address, source.kind()))
                }
                OpenError::Transport(StartError::Tls(_)) => None,
                OpenError::Store(_)
                | OpenError::Identity(_)
                | OpenError::Authority(_)
                | OpenError::Invite(_)
                | OpenError::Unreachable(_)
                | OpenError::Later(_)
                | OpenError::Refused(_)
                | OpenError::Folder { .. }
                | OpenError::Raft(_) => full_hint(&**source),
            },
            Self::Read(_) | Self::Folder(_) | Self::Settings(_) => None,
        }
    }
}

fn not_opened(path: &Path, address: SocketAddr, source: OpenError) -> EntryError {
    EntryError::Open { path: path.to_owned(), address, source: Box::new(source) }
}

/// Says what to do about a cluster port that cannot be bound.
fn port_hint(address: SocketAddr, kind: ErrorKind) -> String {
    if kind == ErrorKind::AddrNotAvailable {
        return format!(
            "{}; give one of them with --cluster ADDRESS:PORT, or [::]:{} for all of them",
            port::foreign(address),
            address.port()
        );
    }
    if kind == ErrorKind::PermissionDenied {
        return "ports below 1024 belong to root: give --cluster ADDRESS:PORT with another one, \
                such as 5689"
            .to_owned();
    }
    format!(
        "find who has it with `ss -lunp 'sport = :{}'`, or give another one of this machine's: \
         --cluster ADDRESS:PORT (port 0 picks a free one)",
        address.port()
    )
}

/// Says what to do about a full disk, if that is what an error comes from.
fn full_hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    use ErrorKind::{QuotaExceeded, StorageFull};
    let mut next = Some(error);
    while let Some(cause) = next {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        // RocksDB says it in words alone.
        if matches!(kind, Some(StorageFull | QuotaExceeded))
            || cause.to_string().contains("No space left on device")
        {
            return Some(
                "the disk is full: free some space and start again; nothing that was answered is \
                 lost"
                    .to_owned(),
            );
        }
        next = cause.source();
    }
    None
}

/// What to do with a folder.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// Make a cluster of one.
    Found,
    /// Go on as the member that it is.
    Resume,
    /// Join with the code.
    Join,
    /// Go on, after it was seen whether the code is this cluster's.
    ResumeOrJoin,
}

/// Holds the folder, the settings and the command line against each other.
fn plan(held: &Held, config: &Config) -> Result<Plan, EntryError> {
    let path = || config.folder.path().to_owned();
    match held {
        Held::Empty => match (&config.join, &config.expected) {
            (Some(_), _) => Ok(Plan::Join),
            (None, Some(cluster)) if !config.new => {
                Err(EntryError::Lost { path: path(), cluster: cluster.clone() })
            }
            (None, _) => Ok(Plan::Found),
        },
        // The key and the code of a join that was begun are kept in the folder.
        Held::Joining { .. } => Ok(if config.join.is_some() { Plan::Join } else { Plan::Resume }),
        Held::Member { cluster, .. } => match (&config.join, &config.expected) {
            (Some(_), _) => Ok(Plan::ResumeOrJoin),
            (None, Some(expected)) if expected != cluster => Err(EntryError::Other {
                path: path(),
                found: cluster.clone(),
                expected: expected.clone(),
            }),
            (None, _) => Ok(Plan::Resume),
        },
    }
}

/// The cluster, and the folder that it is in.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) cluster: Cluster,
    pub(super) lock: Lock,
}

/// What opening needs.
pub(super) struct Parts<'a> {
    pub(super) config: &'a Config,
    pub(super) discovery: &'a Discovery,
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) jobs: &'a Jobs,
    /// Cancelled when somebody asks for the end.
    pub(super) stop: &'a CancellationToken,
}

/// Goes into the cluster that the plan says.
pub(super) async fn enter(
    parts: &Parts<'_>,
    lock: Lock,
    out: &mut Out,
) -> Result<Entered, EntryError> {
    let config = parts.config;
    let path = config.folder.path();
    let address = config.place.bind();
    let held = nexus_raft::inspect(path).map_err(|source| not_opened(path, address, source))?;
    match (plan(&held, config)?, &config.join) {
        (Plan::Found, _) => {
            if config.new {
                Settings::change(&config.folder.settings(), &[("clusterId", Value::Null)])?;
            }
            if config.seeds.iter().any(|given| given.field == "--seed") {
                out.warning(
                    "--seed is given without --join: this node begins a cluster of its own, and \
                     asks nobody at that address; to join another cluster, stop it and give --join \
                     CODE too",
                );
            }
            Ok(Entered { cluster: parts.open(Start::Found).await?, lock })
        }
        (Plan::Join, Some(code)) => Ok(Entered { cluster: parts.join(code, out).await?, lock }),
        (Plan::ResumeOrJoin, Some(code)) => parts.resume_or_join(code, lock, out).await,
        (Plan::Resume | Plan::Join | Plan::ResumeOrJoin, _) => {
            Ok(Entered { cluster: parts.open(Start::Resume).await?, lock })
        }
    }
}

impl Parts<'_> {
    fn raft(&self) -> nexus_raft::Config {
        let config = self.config;
        let bind = config.place.bind();
        nexus_raft::Config {
            data: config.folder.path().to_owned(),
            name: config.name.clone(),
            host: config.host.clone(),
            bind,
            // A port that is still to be picked cannot be told; the log tells what is bound then.
            advertise: match bind.port() {
                0 => Vec::new(),
                _ => advertised(config.place, bind, &config.advertise),
            },
            timing: config.timing,
            software: VERSION.to_owned(),
            clock: Arc::clone(self.clock),
            jobs: self.jobs.clone(),
        }
    }

    async fn open(&self, start: Start) -> Result<Cluster, EntryError> {
        let (path, address) = (self.config.folder.path(), self.config.place.bind());
        Cluster::open(self.raft(), start).await.map_err(|source| not_opened(path, address, source))
    }

    /// Joins with the code; it may take for ever, so it is given up when the end is asked for.
    async fn join(&self, code: &InviteCode, out: &mut Out) -> Result<Cluster, EntryError> {
        let joined = self.stop.run_until_cancelled(self.ask_to_join(code, out)).await;
        joined.unwrap_or_else(|| {
            let given_up = nexus_raft::give_up_join(self.config.folder.path());
            let taken_back = given_up.unwrap_or_else(|error| {
                tracing::warn!("the join could not be taken back: {}", chain(&error));
                false
            });
            Err(EntryError::Stopped { taken_back })
        })
    }

    /// Looks for a member that knows the code, and asks until one lets this machine in.
    async fn ask_to_join(&self, code: &InviteCode, out: &mut Out) -> Result<Cluster, EntryError> {
        let wanted = code.id().parse().map(Wanted::Invite).map_err(|error| {
            tracing::debug!(%error, "invite id cannot be searched for");
        });
        can_look(self.config)?;
        let mut search = wanted.ok().map(|wanted| self.discovery.search(wanted));
        let since = Instant::now();
        let mut words = Words::default();
        loop {
            let found = match &mut search {
                Some(search) => {
                    let limit = if words.is_silent() { LOOK } else { AGAIN };
                    let first = search.next(limit).await;
                    if first.is_none() {
                        search.again();
                    }
                    search.candidates()
                }
                None => Vec::new(),
            };
            let mut seeds: Vec<SocketAddr> = Vec::new();
            for address in found.into_iter().flat_map(|place| place.addresses) {
                if !seeds.contains(&address) {
                    seeds.push(address);
                }
            }
            if !seeds.is_empty() {
                let start = Start::Join { code: code.clone(), seeds: seeds.clone() };
                match Cluster::open(self.raft(), start).await {
                    Ok(cluster) => {
                        self.remember(&cluster)?;
                        return Ok(cluster);
                    }
                    Err(error) if self.may_pass(&error) => {
                        tracing::info!("not joined yet: {}", chain(&error));
                    }
                    Err(source @ OpenError::Transport(_)) => {
                        let (path, address) = (self.config.folder.path(), self.config.place.bind());
                        return Err(not_opened(path, address, source));
                    }
                    Err(source) => {
                        let left = nexus_raft::inspect(self.config.folder.path());
                        let taken_back = matches!(left, Ok(Held::Empty));
                        return Err(EntryError::Join { taken_back, source });
                    }
                }
            }
            let looked = since.elapsed();
            if words.are_due(looked) {
                out.note(&self.nobody_yet(&seeds, looked));
            }
        }
    }

    /// Returns whether another try may go better.
    fn may_pass(&self, error: &OpenError) -> bool {
        match error {
            // Whoever the user named is of another cluster: so is the code, or the address.
            OpenError::Unreachable(JoinError::WrongAuthority { .. }) => {
                self.config.seeds.is_empty()
            }
            OpenError::Unreachable(_) | OpenError::Later(_) => true,
            OpenError::Store(_)
            | OpenError::Identity(_)
            | OpenError::Authority(_)
            | OpenError::Invite(_)
            | OpenError::Transport(_)
            | OpenError::Refused(_)
            | OpenError::Folder { .. }
            | OpenError::Raft(_) => false,
        }
    }

    /// Says what is being done, for how long now, and what to do about it.
    fn nobody_yet(&self, tried: &[SocketAddr], looked: Duration) -> String {
        let status = self.discovery.status();
        let seconds = looked.as_secs();
        let mut text = if !tried.is_empty() {
            let tried: Vec<String> = tried.iter().map(ToString::to_string).collect();
            format!(
                "No member answers at {} yet, after {seconds} s; still trying. Does the node run \
                 there, and does its firewall let UDP in on that port?",
                tried.join(", ")
            )
        } else if self.config.mdns {
            format!(
                "No member that knows this code is heard on the LAN yet, after {seconds} s; still \
                 looking. If it stays so, the code's time may be over (`nexus invite` makes a new \
                 one), or the LAN carries no multicast: then stop this (Ctrl-C) and add --seed \
                 ADDRESS:PORT, as `nexus invite` printed it."
            )
        } else {
            format!(
                "No seed leads to an address yet, after {seconds} s; still trying. Check it, or \
                 give the address that `nexus invite` printed."
            )
        };
        let troubles = status.seed_troubles.iter().chain(&status.trouble);
        for trouble in troubles {
            text.push_str(&format!("\n  {trouble}"));
        }
        text
    }

    /// Writes down which cluster this folder belongs to, and that the LAN is open.
    fn remember(&self, cluster: &Cluster) -> Result<(), EntryError> {
        let mut changes = vec![("clusterId", Value::from(cluster.cluster_id()))];
        if self.config.place == Place::Lan {
            changes.push(("lan", Value::from(true)));
        }
        Settings::change(&self.config.folder.settings(), &changes)?;
        Ok(())
    }

    /// Goes on in the cluster that the folder is of if the code is that cluster's; else leaves it
    /// if nothing is lost by that, or the user says so.
    async fn resume_or_join(
        &self,
        code: &InviteCode,
        lock: Lock,
        out: &mut Out,
    ) -> Result<Entered, EntryError> {
        let cluster = self.open(Start::Resume).await?;
        let look = cluster.look(|view| {
            let info = cluster::info(view)?;
            let members = cluster::members(view)?.len();
            Ok((info, members, chat::last_id(view, &Room::Global)?))
        });
        let (info, members, messages) = look.map_err(EntryError::Read)?;
        let authority = info.map(|info| info.authority).unwrap_or_default();
        let own = Fingerprint::of_certificate(&authority.as_slice().into()).ok();
        if own == Some(code.authority()) {
            out.note("This node is a member of the code's cluster already; the code is ignored.");
            self.remember(&cluster)?;
            return Ok(Entered { cluster, lock });
        }
        let is_lone = members <= 1 && messages == 0;
        let id = cluster.cluster_id();
        cluster.shutdown().await;
        drop(cluster);
        let folder = &self.config.folder;
        if !is_lone && !self.config.discard {
            let why = if members > 1 {
                format!("it is one of {members} members of cluster {id}")
            } else {
                format!("it is cluster {id} with {messages} messages")
            };
            let data = folder.path().display();
            let command = format!("nexus up --data '{data}' --join {} --discard", code.encode());
            return Err(EntryError::Taken { path: folder.path().into(), why, command });
        }
        can_look(self.config)?;
        let stamp = crate::service::file_stamp(self.clock.wall_millis());
        let aside = folder.set_aside(&stamp)?;
        drop(lock);
        let settings = folder.settings();
        Settings::change(&settings, &[("clusterId", Value::Null), ("lan", Value::Null)])?;
        out.note(&format!("The former cluster's folder is kept as {}.", aside.display()));
        let lock = folder.lock(self.clock.wall_millis())?;
        match self.join(code, out).await {
            Ok(cluster) => Ok(Entered { cluster, lock }),
            Err(error) => {
                self.put_back(&aside, out);
                Err(error)
            }
        }
    }

    /// Puts the folder back that was set aside for a join which has come to nothing; while the join
    /// may yet have been done, its key is needed where it is.
    fn put_back(&self, aside: &Path, out: &mut Out) {
        let folder = &self.config.folder;
        if !matches!(nexus_raft::inspect(folder.path()), Ok(Held::Empty)) {
            return;
        }
        match folder.put_back(aside) {
            Ok(()) => out.note("The former cluster's folder is put back."),
            Err(error) => out.warning(&format!(
                "the former cluster's folder could not be put back ({}): move it back by hand",
                chain(&error)
            )),
        }
    }
}

/// Checks that there is somewhere to look for a member.
fn can_look(config: &Config) -> Result<(), EntryError> {
    if config.mdns || !config.seeds.is_empty() {
        return Ok(());
    }
    let off = if config.no_mdns { "--no-mdns" } else { "\"mdns\": false in settings.json" };
    Err(EntryError::Nowhere { off })
}

/// When the user is told what is being done: after the first look, and then now and again.
#[derive(Debug, Default)]
struct Words {
    last: Option<Duration>,
}

impl Words {
    fn is_silent(&self) -> bool {
        self.last.is_none()
    }

    /// Returns whether something shall be said after so long a look, and notes that it is.
    fn are_due(&mut self, looked: Duration) -> bool {
        let due = self.last.is_none_or(|last| looked.saturating_sub(last) >= TELL);
        if due {
            self.last = Some(looked);
        }
        due
    }
}

#[cfg(test)]
mod tests;
