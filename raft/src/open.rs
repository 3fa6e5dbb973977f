//! Starting: founding a cluster, joining one, or going on from the disk.
//!
//! `inspect` says what a folder is without touching it. The files, in the order they are written:
//! keys and certificates, the databases, and at last `member`, which makes the folder a member's.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use minicbor::{Decode, Encode};
use nexus_domain::NodeId;
use nexus_domain::command::Timing;
use nexus_rt::{Clock, Jobs};
use rustls::pki_types::CertificateDer;

use crate::identity::{
    Authority, AuthorityError, IdentityError, InviteCode, InviteError, NodeIdentity, NodeKey,
};
use crate::rpc::message::{JoinAnswer, JoinRequest, KnownMember};
use crate::store::StoreError;
use crate::store::folder::{check_format, write_file, write_format};
use crate::transport::quic::{self, JoinError, StartError};
use crate::wire::{decode, encode, seal, unseal};

/// How long one round of dialling for a join may take.
const JOIN_LIMIT: Duration = Duration::from_secs(15);

/// What a node needs to start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data folder.
    pub data: PathBuf,
    /// The name that the node asks for.
    pub name: String,
    /// What tells this machine from others.
    pub host: String,
    /// Where QUIC listens.
    pub bind: SocketAddr,
    /// Where other nodes can reach it; empty: only what is bound.
    pub advertise: Vec<SocketAddr>,
    /// The timing profile; `None`: what the cluster says.
    pub timing: Option<Timing>,
    /// The program's version.
    pub software: String,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where jobs run.
    pub jobs: Jobs,
}

impl Config {
    /// Returns where other nodes can reach this one: what is advertised, or what is bound.
    pub(crate) fn advertised(&self, bound: SocketAddr) -> Vec<String> {
        let usable = !bound.ip().is_unspecified() && bound.port() != 0;
        let own = (self.advertise.is_empty() && usable).then_some(&bound);
        self.advertise.iter().chain(own).map(ToString::to_string).collect()
    }
}

/// How a node starts.
#[derive(Clone, Debug)]
pub enum Start {
    /// Makes a cluster of one.
    Found,
    /// Goes on from the disk.
    Resume,
    /// Joins the cluster of an invite.
    Join {
        /// The invite.
        code: InviteCode,
        /// Where a member may be reached.
        seeds: Vec<SocketAddr>,
    },
}

/// What a data folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folder {
    /// Nothing is in it.
    Empty,
    /// A join was begun with this invite and not finished.
    Joining {
        /// The public part of the invite.
        invite: String,
    },
    /// It is a member's.
    Member {
        /// The cluster.
        cluster: String,
        /// The node.
        node: NodeId,
        /// Its name when it joined.
        name: String,
    },
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Keys or certificates.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The cluster's authority.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The invite code.
    #[error(transparent)]
    Invite(#[from] InviteError),
    /// The QUIC socket.
    #[error(transparent)]
    Transport(#[from] StartError),
    /// No member answered for a join: try other addresses.
    #[error("join: no member was reached")]
    Unreachable(#[source] JoinError),
    /// A member answered that it cannot be done now: try again.
    #[error("join: not now: {0}")]
    Later(String),
    /// The cluster refused.
    #[error("join: refused: {0}")]
    Refused(String),
    /// The folder is not what the start needs.
    #[error("{}: {text}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong and what would be right.
        text: String,
    },
    /// Raft does not start.
    #[error("raft: cannot start: {0}")]
    Raft(String),
}

/// The file that makes a folder a member's.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct MemberFile {
    #[n(0)]
    pub(crate) node: NodeId,
    #[n(1)]
    pub(crate) cluster: String,
    #[n(2)]
    pub(crate) name: String,
    #[cbor(n(3), with = "minicbor::bytes")]
    pub(crate) authority: Vec<u8>,
    /// What a join told; the state knows better once it has members.
    #[n(4)]
    pub(crate) known: Vec<KnownMember>,
    /// Whether this node made the cluster and must make its first entries.
    #[n(5)]
    pub(crate) founder: bool,
    #[n(6)]
    pub(crate) host: String,
}

/// A join under way: written before anything is dialled, so that a lost answer costs a repeat.
#[derive(Clone, Debug, Encode, Decode)]
struct JoiningFile {
    #[n(0)]
    invite: String,
    /// Another invite for which the same key was made and may have been taken: its end is open.
    #[n(1)]
    before: Option<String>,
}

const MEMBER: &str = "member";
const JOINING: &str = "joining";
/// Where [`NodeKey::save`] puts the key.
const KEY_FILE: &str = "node.key";

/// Says what a folder is; makes nothing.
///
/// # Errors
/// When it cannot be read, or is of a format that this program does not know.
pub fn inspect(data: &Path) -> Result<Folder, OpenError> {
    let formatted = check_format(data)?;
    if let Some(member) = read_file::<MemberFile>(&data.join(MEMBER))? {
        if !formatted {
            let text = "is a member's folder without its format file; restore it from a backup";
            return Err(OpenError::Folder { path: data.to_owned(), text: text.into() });
        }
        let MemberFile { node, cluster, name, .. } = member;
        return Ok(Folder::Member { cluster, node, name });
    }
    if let Some(joining) = read_file::<JoiningFile>(&data.join(JOINING))? {
        return Ok(Folder::Joining { invite: joining.invite });
    }
    if data.join("log").exists() || data.join("state").exists() {
        let text = "holds databases but no member file; restore it from a backup, or start with an \
                    empty folder";
        return Err(OpenError::Folder { path: data.to_owned(), text: text.into() });
    }
    Ok(Folder::Empty)
}

fn read_file<T: for<'b> Decode<'b, ()>>(path: &Path) -> Result<Option<T>, OpenError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io(path)(error).into()),
    };
    match unseal(&bytes) {
        Ok(value) => Ok(Some(value)),
        Err(text) => Err(StoreError::Damaged { path: path.to_owned(), text }.into()),
    }
}

/// Makes the folder ready for a start and returns who the node is in it.
///
/// # Errors
/// See [`OpenError`].
pub(crate) async fn prepare(
    config: &Config,
    start: Start,
) -> Result<(MemberFile, NodeIdentity), OpenError> {
    std::fs::create_dir_all(&config.data).map_err(StoreError::io(&config.data))?;
    let folder = inspect(&config.data)?;
    match (start, folder) {
        (Start::Found, Folder::Empty) => found(config),
        (Start::Join { code, seeds }, Folder::Empty | Folder::Joining { .. }) => {
            join(config, &code, &seeds).await
        }
        (_, Folder::Member { .. }) => {
            let member = read_file::<MemberFile>(&config.data.join(MEMBER))?;
            let member = member.ok_or_else(|| OpenError::Folder {
                path: config.data.clone(),
                text: "its member file has just vanished".into(),
            })?;
            Ok((member, NodeIdentity::load(&config.data)?))
        }
        (Start::Found | Start::Resume, Folder::Joining { .. }) => Err(OpenError::Folder {
            path: config.data.clone(),
            text: "a join was begun here and not finished; repeat `nexus up --join CODE`; or, to \
                   give it up: if that start moved a folder aside (its name is this one's with \
                   .before-join-TIME), move this one away and that one back, else delete the \
                   files joining and node.key here; then plain `nexus up` starts"
                .into(),
        }),
        (Start::Resume, Folder::Empty) => Err(OpenError::Folder {
            path: config.data.clone(),
            text: "is empty; there is nothing to go on from".into(),
        }),
    }
}

fn found(config: &Config) -> Result<(MemberFile, NodeIdentity), OpenError> {
    let wall = config.clock.wall_millis();
    let cluster =
        data_encoding::BASE32_NOPAD.encode(&nexus_rt::unique_bytes::<10>()).to_ascii_lowercase();
    let authority = Authority::generate(&cluster, wall)?;
    let key = NodeKey::generate()?;
    let node = nexus_domain::cluster::FIRST_NODE;
    let certificate = authority.issue(node, &cluster, &key.public_key(), wall)?;
    // The authority's certificate travels along: a joiner compares it with its invite code.
    let identity = NodeIdentity::new(key, vec![certificate, authority.certificate().clone()])?;
    authority.save(&config.data)?;
    identity.save(&config.data)?;
    let member = MemberFile {
        node,
        cluster,
        name: config.name.clone(),
        authority: authority.certificate().to_vec(),
        known: Vec::new(),
        founder: true,
        host: config.host.clone(),
    };
    save_member(&config.data, &member)?;
    Ok((member, identity))
}

fn save_member(data: &Path, member: &MemberFile) -> Result<(), OpenError> {
    write_format(data)?;
    let path = data.join(MEMBER);
    write_file(&path, &seal(member)).map_err(StoreError::io(&path))?;
    Ok(())
}

/// Joins; a join that certainly came to nothing leaves nothing behind.
async fn join(
    config: &Config,
    code: &InviteCode,
    seeds: &[SocketAddr],
) -> Result<(MemberFile, NodeIdentity), OpenError> {
    let earlier = read_file::<JoiningFile>(&config.data.join(JOINING))?;
    let was_open = earlier.is_some();
    let before = earlier.and_then(|file| match file.invite == code.id() {
        true => file.before,
        false => Some(file.invite),
    });
    let joined = ask_to_join(config, code, seeds, before.clone()).await;
    let is_refused = match &joined {
        Err(OpenError::Refused(_)) => true,
        // Nothing was sent now; an earlier try may have been.
        Err(OpenError::Unreachable(JoinError::WrongAuthority { .. })) => !was_open,
        Ok(_) | Err(_) => false,
    };
    if is_refused && let Err(error) = take_back(&config.data, before) {
        tracing::warn!(%error, "a join that was refused could not be taken back");
    }
    joined
}

/// Takes a refused join back: the file that says that it was begun, then the key made for it. The
/// key stays while an earlier invite may have made it a member's.
fn take_back(data: &Path, before: Option<String>) -> Result<(), StoreError> {
    let joining = data.join(JOINING);
    if let Some(invite) = before {
        let file = JoiningFile { invite, before: None };
        return write_file(&joining, &seal(&file)).map_err(StoreError::io(&joining));
    }
    std::fs::remove_file(&joining).map_err(StoreError::io(&joining))?;
    let key = data.join(KEY_FILE);
    std::fs::remove_file(&key).map_err(StoreError::io(&key))
}

async fn ask_to_join(
    config: &Config,
    code: &InviteCode,
    seeds: &[SocketAddr],
    before: Option<String>,
) -> Result<(MemberFile, NodeIdentity), OpenError> {
    let key = match NodeKey::load(&config.data) {
        Ok(key) => key,
        Err(IdentityError::File(error)) if error.is_missing() => NodeKey::generate()?,
        Err(error) => return Err(error.into()),
    };
    key.save(&config.data)?;
    let joining = config.data.join(JOINING);
    let file = JoiningFile { invite: code.id().to_owned(), before };
    write_file(&joining, &seal(&file)).map_err(StoreError::io(&joining))?;
    let proof_key = key.duplicate()?;
    let request = |binding| {
        encode(&JoinRequest {
            invite: code.id().to_owned(),
            secret: code.secret().to_vec(),
            public_key: proof_key.public_key(),
            // A proof that cannot be made is empty, and refused by the other side.
            proof: proof_key.prove_join(&binding).unwrap_or_default(),
            name: config.name.clone(),
            host: config.host.clone(),
            addresses: config.advertised(config.bind),
        })
    };
    let answered = quic::join(code, seeds, config.clock.clone(), request, JOIN_LIMIT).await;
    let bytes = answered.map_err(OpenError::Unreachable)?;
    let answer = decode::<JoinAnswer>(&bytes)
        .map_err(|text| OpenError::Later(format!("the answer cannot be read: {text}")))?;
    let (node, name, cluster, certificate, authority, known) = match answer {
        JoinAnswer::Welcome { node, name, cluster, certificate, authority, members } => {
            (node, name, cluster, certificate, authority, members)
        }
        JoinAnswer::Refused(text) => return Err(OpenError::Refused(text)),
        JoinAnswer::Later(text) => return Err(OpenError::Later(text)),
    };
    let chain = vec![CertificateDer::from(certificate), CertificateDer::from(authority.clone())];
    let identity = NodeIdentity::new(key, chain)?;
    identity.save(&config.data)?;
    let host = config.host.clone();
    let member = MemberFile { node, cluster, name, authority, known, founder: false, host };
    save_member(&config.data, &member)?;
    std::fs::remove_file(&joining).map_err(StoreError::io(&joining))?;
    Ok((member, identity))
}
