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
    /// Whether no member was told of it yet: it is written anew right before one is. Then nothing
    /// stays open when it is given up.
    #[n(2)]
    #[cbor(default)]
    untold: bool,
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
    let joining = begun(read_file(&config.data.join(JOINING))?, code.id());
    let before = joining.before.clone();
    let joined = ask_to_join(config, code, seeds, joining).await;
    let taken_back = match &joined {
        Err(OpenError::Refused(_)) => take_back(&config.data, before).map_err(OpenError::from),
        // Nothing was sent now; an earlier try may have been.
        Err(OpenError::Unreachable(JoinError::WrongAuthority { .. })) => {
            give_up_join(&config.data).map(drop)
        }
        Ok(_) | Err(_) => Ok(()),
    };
    if let Err(error) = taken_back {
        tracing::warn!(%error, "a join that was refused could not be taken back");
    }
    joined
}

/// Returns what is to be written of a join with this invite, beside what stands there of an earlier
/// one.
fn begun(earlier: Option<JoiningFile>, invite: &str) -> JoiningFile {
    let (before, untold) = match earlier {
        None => (None, true),
        Some(file) if file.invite == invite => (file.before, file.untold),
        // Nobody was told of the other one: it leaves nothing open.
        Some(file) if file.untold => (file.before, true),
        Some(file) => (Some(file.invite), true),
    };
    JoiningFile { invite: invite.to_owned(), before, untold }
}

/// Gives up a join of which no member was told, and returns whether the folder is empty now: one
/// that may have been done stays open, and goes on when it is repeated.
///
/// # Errors
/// When the folder cannot be read or written.
pub fn give_up_join(data: &Path) -> Result<bool, OpenError> {
    if let Some(file) = read_file::<JoiningFile>(&data.join(JOINING))?.filter(|it| it.untold) {
        take_back(data, file.before)?;
    }
    Ok(inspect(data)? == Folder::Empty)
}

/// Takes a refused join back: the file that says that it was begun, then the key made for it. The
/// key stays while an earlier invite may have made it a member's.
fn take_back(data: &Path, before: Option<String>) -> Result<(), StoreError> {
    let joining = data.join(JOINING);
    if let Some(invite) = before {
        let file = JoiningFile { invite, before: None, untold: false };
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
    file: JoiningFile,
) -> Result<(MemberFile, NodeIdentity), OpenError> {
    let key = match NodeKey::load(&config.data) {
        Ok(key) => key,
        Err(IdentityError::File(error)) if error.is_missing() => NodeKey::generate()?,
        Err(error) => return Err(error.into()),
    };
    key.save(&config.data)?;
    let joining = config.data.join(JOINING);
    write_file(&joining, &seal(&file)).map_err(StoreError::io(&joining))?;
    let proof_key = key.duplicate()?;
    let request = |binding| {
        let told = seal(&JoiningFile { untold: false, ..file });
        let noted = write_file(&joining, &told).inspect_err(|error| {
            tracing::warn!("{}: cannot be written: {error}", joining.display());
        });
        encode(&JoinRequest {
            invite: code.id().to_owned(),
            secret: code.secret().to_vec(),
            public_key: proof_key.public_key(),
            // A proof that cannot be made is empty, and refused by the other side; so is one that
            // would not be remembered.
            proof: match noted {
                Ok(()) => proof_key.prove_join(&binding).unwrap_or_default(),
                Err(_) => Vec::new(),
            },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn joining(data: &Path) -> Option<JoiningFile> {
        read_file(&data.join(JOINING)).unwrap()
    }

    fn write(data: &Path, file: &JoiningFile) {
        write_file(&data.join(JOINING), &seal(file)).unwrap();
        NodeKey::generate().unwrap().save(data).unwrap();
    }

    #[test]
    fn a_join_that_nobody_was_told_of_is_given_up_and_another_one_stays_open() {
        for (before, untold, is_empty) in
            [(None, true, true), (None, false, false), (Some("old"), true, false)]
        {
            let folder = tempfile::tempdir().unwrap();
            let data = folder.path();
            assert!(give_up_join(data).unwrap(), "an empty folder stays empty");
            let before = before.map(str::to_owned);
            write(data, &JoiningFile { invite: "new".into(), before: before.clone(), untold });
            assert_eq!(give_up_join(data).unwrap(), is_empty, "{before:?} {untold}");
            assert_eq!(data.join(KEY_FILE).exists(), !is_empty, "{before:?} {untold}");
            // The key may be a member's by the earlier invite.
            let left = joining(data).map(|file| (file.invite, file.untold));
            let expected = if is_empty { None } else { Some(before.unwrap_or("new".into())) };
            assert_eq!(left, expected.map(|invite| (invite, false)));
        }
    }

    #[test]
    fn a_second_invite_keeps_the_first_one_only_if_it_was_told() {
        let told = |untold| {
            let earlier = JoiningFile { invite: "one".into(), before: Some("none".into()), untold };
            let file = begun(Some(earlier), "two");
            (file.before.unwrap(), file.untold)
        };
        assert_eq!(told(false), ("one".into(), true));
        assert_eq!(told(true), ("none".into(), true));
        for untold in [true, false] {
            let earlier = JoiningFile { invite: "one".into(), before: None, untold };
            let file = begun(Some(earlier), "one");
            assert_eq!((file.invite.as_str(), file.before, file.untold), ("one", None, untold));
        }
    }

    #[test]
    fn a_file_of_before_counts_as_told() {
        #[derive(Encode)]
        struct Before {
            #[n(0)]
            invite: &'static str,
            #[n(1)]
            before: Option<String>,
        }
        let folder = tempfile::tempdir().unwrap();
        let bytes = seal(&Before { invite: "one", before: None });
        write_file(&folder.path().join(JOINING), &bytes).unwrap();
        assert!(!give_up_join(folder.path()).unwrap());
        assert!(!joining(folder.path()).unwrap().untold);
    }
}
