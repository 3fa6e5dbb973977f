//! Whole nodes on the in-process network, whose links can be cut.

use std::sync::Arc;

use nexus_domain::command::{Category, ChatCommand, Client, ClusterCommand};
use nexus_domain::command::{ConversationCommand, Room};
use nexus_domain::{Actor, Command, Entry, NodeId, Reply, codec};
use nexus_rt::{Jobs, SystemClock};
use openraft::RaftLogReader as _;
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use super::{config, wait_for};
use crate::cluster::spawn_jobs;
use crate::core::Core;
use crate::identity::{Fingerprint, InviteCode, InviteRole, NodeIdentity, NodeKey};
use crate::open::{MemberFile, prepare};
use crate::propose::{Committed, ProposeError, Request};
use crate::rpc::message::{JoinAnswer, JoinRequest};
use crate::rpc::server::Server;
use crate::start::{around, build, start_raft};
use crate::status::MemberRole;
use crate::transport::Transport as _;
use crate::transport::detour::Detours;
use crate::transport::memory::{MemoryNet, MemoryTransport};
use crate::types::Payload;
use crate::{Config, Role, Start};

/// A network, and the first node on it.
pub(super) struct World {
    pub(super) net: MemoryNet,
    pub(super) one: Node,
}

/// A node with its folder; it stops when this is dropped.
pub(super) struct Node {
    pub(super) core: Arc<Core>,
    pub(super) detours: Detours,
    pub(super) transport: MemoryTransport,
    jobs: Jobs,
    _folder: TempDir,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.jobs.token().cancel();
    }
}

async fn start(
    net: &MemoryNet,
    folder: TempDir,
    config: Config,
    member: MemberFile,
    identity: NodeIdentity,
) -> Node {
    let core = build(&config, &member, &identity).await.unwrap();
    let (book, jobs) = (core.book.clone(), config.jobs.clone());
    let key = identity.key().public_key();
    let transport = net.attach_with_key(core.node, book, jobs.clone(), key);
    let detours = around(&core, Arc::new(transport.clone()), &identity).unwrap();
    core.link.set(Arc::new(detours.clone()));
    start_raft(&core, &member).await.unwrap();
    transport.serve(detours.serve(Arc::new(Server { core: core.clone() })));
    spawn_jobs(&core, &config, &member, transport.local_address());
    Node { core, detours, transport, jobs, _folder: folder }
}

impl World {
    /// Founds a cluster and waits until it can write.
    pub(super) async fn found() -> Self {
        if let Some(filter) = std::env::var_os("NEXUS_LOG") {
            let filter = filter.to_string_lossy().into_owned();
            let _again = tracing_subscriber::fmt().with_env_filter(filter).try_init();
        }
        let net = MemoryNet::new(1);
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), "one", Arc::new(SystemClock));
        let (member, identity) = prepare(&config, Start::Found).await.unwrap();
        let one = start(&net, folder, config, member, identity).await;
        // An invite needs the authority in the state, which the first node writes at its start.
        let core = one.core.clone();
        let written = || core.state.view(|view| nexus_domain::cluster::info(view)).unwrap();
        wait_for("a founded cluster", written, Option::is_some).await;
        Self { net, one }
    }

    /// A cluster of three voters, of which the first leads.
    pub(super) async fn of_three() -> (Self, Node, Node) {
        let world = Self::found().await;
        let two = world.join("two", Role::Voter).await;
        let three = world.join("three", Role::Voter).await;
        for node in [&world.one, &two, &three] {
            node.sees_voters(3).await;
            node.writes_itself_down().await;
            let voters =
                || node.core.state.view(|view| nexus_domain::cluster::voters(view)).unwrap();
            wait_for("noted voters", voters, |voters| voters.len() == 3).await;
        }
        (world, two, three)
    }

    /// Admits a node and starts it.
    pub(super) async fn join(&self, name: &str, role: Role) -> Node {
        let admitted = self.admit(name, role).await;
        self.start(admitted).await
    }

    /// Returns the request of a machine that was invited.
    pub(super) async fn invited(&self, name: &str, role: Role, key: &NodeKey) -> JoinRequest {
        let core = &self.one.core;
        let fingerprint = Fingerprint::of_certificate(&core.book.myself().authority).unwrap();
        let code = InviteCode::generate(InviteRole::Auto, fingerprint).unwrap();
        let invite = ClusterCommand::Invite {
            id: code.id().to_owned(),
            secret_hash: code.secret_hash().0.to_vec(),
            role,
            ttl: 600_000,
        };
        let command = Command::Cluster(invite);
        core.propose(Request { actor: Actor::Node, id: None, command }).await.unwrap();
        JoinRequest {
            invite: code.id().to_owned(),
            secret: code.secret().to_vec(),
            public_key: key.public_key(),
            proof: Vec::new(),
            name: name.to_owned(),
            host: name.to_owned(),
            addresses: Vec::new(),
        }
    }

    /// Admits a node, which does not run yet.
    pub(super) async fn admit(&self, name: &str, role: Role) -> Admitted {
        let key = NodeKey::generate().unwrap();
        let request = self.invited(name, role, &key).await;
        let answer = self.one.core.join_machine(request).await;
        let JoinAnswer::Welcome { node, name, cluster, certificate, authority, members } = answer
        else {
            panic!("the join was answered {answer:?}");
        };
        let chain =
            vec![CertificateDer::from(certificate), CertificateDer::from(authority.clone())];
        let identity = NodeIdentity::new(key, chain).unwrap();
        let host = name.clone();
        let known = members;
        let founder = false;
        let member = MemberFile { node, cluster, name, authority, known, founder, host };
        Admitted { member, identity }
    }

    /// Starts an admitted node.
    pub(super) async fn start(&self, admitted: Admitted) -> Node {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), &admitted.member.name, Arc::new(SystemClock));
        start(&self.net, folder, config, admitted.member, admitted.identity).await
    }

    /// Waits until a node has applied all that the leader has in its log.
    pub(super) async fn settles(&self, node: &Node) {
        let both = || (self.one.core.log.last().map_or(0, |id| id.index), node.core.applied());
        wait_for("an equal log", both, |(last, applied)| last == applied).await;
    }

    /// Cuts a node off from another one, both ways.
    pub(super) fn cut(&self, one: &Node, other: &Node) {
        self.net.partition(&[one.id()], &[other.id()]);
    }
}

/// A member that has not been started.
pub(super) struct Admitted {
    pub(super) member: MemberFile,
    identity: NodeIdentity,
}

impl Node {
    pub(super) fn id(&self) -> NodeId {
        self.core.node
    }

    async fn sees_voters(&self, count: usize) {
        let voters = || {
            let members = self.core.local_status().members;
            members.iter().filter(|member| member.role == MemberRole::Voter).count()
        };
        wait_for("voters", voters, |voters| *voters == count).await;
    }

    /// Waits until what a node says of itself at its start is in its own state.
    async fn writes_itself_down(&self) {
        let addresses = || {
            let row = self.core.state.view(|view| nexus_domain::cluster::member(view, self.id()));
            row.unwrap().map(|row| row.addresses).unwrap_or_default()
        };
        wait_for("a node that has described itself", addresses, |it| !it.is_empty()).await;
    }

    /// Proposes as a conversation.
    pub(super) async fn propose(
        &self,
        who: &str,
        command: Command,
    ) -> Result<Committed, ProposeError> {
        let actor = Actor::Conversation(who.to_owned());
        self.core.propose(Request { actor, id: None, command }).await
    }

    /// Registers a conversation here.
    pub(super) async fn register(&self, who: &str) -> Result<Committed, ProposeError> {
        let register = ConversationCommand::Register {
            client: Client::Instance,
            cwd: String::new(),
            incarnation: 1,
        };
        self.propose(who, Command::Conversation(register)).await
    }

    /// Posts a message.
    pub(super) async fn post(&self, who: &str, text: &str) -> Result<Committed, ProposeError> {
        self.propose(who, posting(text)).await
    }

    /// Reads the number of the last message.
    pub(super) async fn last_message(&self) -> crate::Fresh<u64> {
        self.core.read(|view| nexus_domain::chat::last_id(view, &Room::Global)).await.unwrap()
    }

    /// Returns the entries in this node's log that post a message.
    pub(super) async fn posts(&self, text: &str) -> Vec<Entry> {
        let entries = self.core.log.clone().try_get_log_entries(1..u64::MAX).await.unwrap();
        let entries = entries.into_iter().filter_map(|entry| match entry.payload {
            Payload::Normal(data) => {
                Some(codec::decode_entry(entry.log_id.index, &data.0).unwrap())
            }
            Payload::Blank | Payload::Membership(_) => None,
        });
        entries.filter(|entry| entry.proposal.command == posting(text)).collect()
    }
}

pub(super) fn posting(text: &str) -> Command {
    Command::Chat(ChatCommand::Send {
        room: Room::Global,
        text: text.to_owned(),
        category: Category::None,
    })
}

/// Returns the number that a post was given.
pub(super) fn number(posted: &Committed) -> u64 {
    let Reply::Posted { id } = posted.reply else { panic!("a post was answered {posted:?}") };
    id
}
