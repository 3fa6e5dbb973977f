//! The log of a seed.

mod meetings;
mod projects;
mod work;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{
    Category, Change, ChatCommand, Client, ClusterCommand, Command, ConversationCommand, DueKind,
    Role, Room, Status, SystemCommand, Timing,
};
use crate::entry::{Actor, Answered, Entry, NodeId, Proposal, RequestId, Stamp};
use crate::store::MemoryStore;
use crate::{FIRST_VERSION, apply, cluster, due};

/// How many old proposals a retry may choose from.
const PAST_MAX: usize = 300;

/// A small generator of numbers (`SplitMix64`), the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound; 0 when the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or_default()
    }

    /// Returns whether something with this chance in a hundred happens.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of several.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let length = u64::try_from(of.len()).unwrap_or_default();
        of.get(usize::try_from(self.below(length)).unwrap_or_default())
    }
}

/// What a node remembers of its own requests.
#[derive(Clone, Debug)]
struct Node {
    id: NodeId,
    boot: u64,
    nonce: u64,
    counter: u64,
    below: u64,
}

/// An endless log; it applies what it makes to a state of its own, to know what is due and who is
/// in.
#[derive(Clone, Debug)]
pub struct Sequence {
    random: Random,
    index: u64,
    tick: u64,
    at: u64,
    clients: u64,
    nodes: Vec<Node>,
    past: Vec<(NodeId, Proposal)>,
    state: MemoryStore,
}

impl Iterator for Sequence {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        self.pass();
        let (node, proposal) = self.proposal();
        let stamp = Stamp { tick: self.tick, at: self.at, node };
        let entry = Entry { index: self.index, stamp, proposal };
        let mut events = Vec::new();
        // A sequence whose own state fails ends, so that a test sees too few entries.
        let outcome = apply(&mut self.state, &entry, &mut events).ok()?;
        self.index = self.index.saturating_add(1);
        self.learn(&entry, outcome.is_ok());
        Some(entry)
    }
}

impl Sequence {
    /// Begins the log of a seed; its first entry has the index 2, behind the consensus side's own.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let first = Node { id: cluster::FIRST_NODE, boot: 1, nonce: 1, counter: 0, below: 0 };
        Self {
            random: Random::new(seed),
            index: 2,
            tick: 0,
            at: 1_700_000_000_000,
            clients: 0,
            nodes: vec![first],
            past: Vec::new(),
            state: MemoryStore::default(),
        }
    }

    /// Returns the state that the log has made so far; it is never sealed.
    #[must_use]
    pub fn state(&self) -> &MemoryStore {
        &self.state
    }

    /// Lets time pass: mostly little, sometimes a minute, seldom a day, a month or a year.
    fn pass(&mut self) {
        const HOUR: u64 = 60 * 60 * 1000;
        let passed = match self.random.below(200) {
            0 => match self.random.below(10) {
                0 => 400 * 24 * HOUR,
                1 => 31 * 24 * HOUR,
                2 => 8 * 24 * HOUR,
                _ => 25 * HOUR,
            },
            1..=3 => HOUR + 60 * 1000,
            4..=20 => 61 * 1000,
            _ => self.random.below(50),
        };
        self.tick = self.tick.saturating_add(passed);
        self.at = self.at.saturating_add(passed);
    }

    /// Takes note of a new member or boot, and of a proposal that may be retried.
    fn learn(&mut self, entry: &Entry, done: bool) {
        if done && let Command::Cluster(ClusterCommand::Admit { .. }) = entry.proposal.command {
            let members = cluster::members(&self.state).unwrap_or_default();
            if members.iter().any(|member| member.id == entry.index) {
                let id = entry.index;
                self.nodes.push(Node { id, boot: 1, nonce: id, counter: 0, below: 0 });
            }
        }
        if done && let Command::Cluster(ClusterCommand::Remove { node }) = entry.proposal.command {
            // Now and then a removed node goes on talking.
            let silent = self.random.chance(80);
            self.nodes.retain(|known| known.id != node || !silent);
        }
        self.past.push((entry.stamp.node, entry.proposal.clone()));
        if self.past.len() > PAST_MAX {
            self.past.remove(0);
        }
    }

    fn proposal(&mut self) -> (NodeId, Proposal) {
        if !matches!(cluster::info(&self.state), Ok(Some(_))) {
            return self.make(0, Actor::Node, found());
        }
        if self.is_due() && self.random.chance(20) {
            let member = self.some_member();
            let command = self.fire();
            return self.make(member, Actor::Node, command);
        }
        let going_on = match self.random.below(100) {
            // The same call again, with or without another content.
            0..=9 => return self.again(),
            10..=11 => {
                let (node, mut proposal) = self.again();
                proposal.command = self.chat();
                return (node, proposal);
            }
            12..=31 => {
                let node = self.some_node();
                let command = self.node_command(node);
                return self.make(node, Actor::Node, command);
            }
            32..=33 => return self.hostile(),
            34..=41 => self.upload_goes_on(),
            42..=48 => self.agreement(),
            _ => None,
        };
        match going_on {
            Some((id, command)) => self.speak(id, command),
            None => self.talk(),
        }
    }

    /// Makes what a conversation says.
    fn talk(&mut self) -> (NodeId, Proposal) {
        let (client, id) = self.speaker();
        let known = crate::conversations::conversation(&self.state, &id);
        let command = match known {
            Ok(None) if self.random.chance(80) => self.register(client),
            _ => self.conversation_command(client, &id),
        };
        self.speak(id, command)
    }

    /// Wraps what a conversation says, mostly as its home would.
    fn speak(&mut self, id: String, command: Command) -> (NodeId, Proposal) {
        let row = crate::conversations::conversation(&self.state, &id).ok().flatten();
        let home = row.and_then(|row| self.place(row.home));
        let node = match home {
            Some(home) if self.random.chance(95) => home,
            _ => self.some_node(),
        };
        self.make(node, Actor::Conversation(id), command)
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|known| known.id == node)
    }

    fn some_node(&mut self) -> usize {
        let length = u64::try_from(self.nodes.len()).unwrap_or_default();
        usize::try_from(self.random.below(length)).unwrap_or_default()
    }

    fn again(&mut self) -> (NodeId, Proposal) {
        match self.random.one(&self.past) {
            Some(old) => old.clone(),
            None => self.make(0, Actor::Node, found()),
        }
    }

    /// Wraps a command as the node at this place would.
    fn make(&mut self, place: usize, actor: Actor, command: Command) -> (NodeId, Proposal) {
        let by_client = self.random.chance(20);
        let lag = self.random.below(4);
        let mut id = cluster::FIRST_NODE;
        let mut answered = Answered { boot: 0, below: 0 };
        let mut request = RequestId::Client(String::new());
        if let Some(node) = self.nodes.get_mut(place) {
            if let Command::System(SystemCommand::Started { boot, nonce, .. }) = &command
                && *boot > node.boot
            {
                (node.boot, node.nonce) = (*boot, *nonce);
                (node.counter, node.below) = (0, 0);
            }
            node.counter = node.counter.saturating_add(1);
            node.below = node.below.max(node.counter.saturating_sub(lag));
            id = node.id;
            answered = Answered { boot: node.boot, below: node.below };
            request = RequestId::Node { node: id, boot: node.boot, counter: node.counter };
        }
        if by_client {
            self.clients = self.clients.saturating_add(1);
            request = RequestId::Client(format!("call-{}", self.clients));
        }
        let not_after =
            if self.random.chance(97) { u64::MAX } else { self.random.below(self.tick) };
        let version = FIRST_VERSION;
        (id, Proposal { version, request, actor, answered, not_after, command })
    }

    fn speaker(&mut self) -> (Client, String) {
        let number = self.random.below(6);
        match self.random.below(10) {
            0..=4 => (Client::Claude, format!("claude:{number}")),
            5..=7 => (Client::Codex, format!("codex:{number}")),
            _ => (Client::Instance, format!("mcp-{number}")),
        }
    }

    fn conversation_command(&mut self, client: Client, id: &str) -> Command {
        match self.random.below(100) {
            0..=7 => self.register(client),
            8..=13 => {
                let name = self.random.chance(60).then(|| format!("name{}", self.random.below(5)));
                let note = self.random.chance(50).then(|| "busy with ünïcode".to_string());
                let title = self.random.chance(30).then(|| "t".repeat(self.length(90)));
                Command::Conversation(ConversationCommand::SetProfile { name, note, title })
            }
            14..=29 => self.chat(),
            30..=51 => self.project_command(),
            52..=75 => self.meeting(),
            _ => self.work(id),
        }
    }

    fn register(&mut self, client: Client) -> Command {
        let cwd = format!("/home/user/project-{}", self.random.below(3));
        let incarnation = self.random.below(3);
        Command::Conversation(ConversationCommand::Register { client, cwd, incarnation })
    }

    fn length(&mut self, bound: u64) -> usize {
        usize::try_from(self.random.below(bound)).unwrap_or_default()
    }

    fn chat(&mut self) -> Command {
        let room = Room::Global;
        if self.random.chance(70) {
            let text = "message ".repeat(self.length(40));
            let categories = [Category::None, Category::Proposal, Category::Update];
            let category = self.random.one(&categories).copied().unwrap_or(Category::Chat);
            Command::Chat(ChatCommand::Send { room, text, category })
        } else {
            let limit = u32::try_from(self.random.below(8)).unwrap_or_default();
            Command::Chat(ChatCommand::Take { room, limit })
        }
    }

    fn node_command(&mut self, place: usize) -> Command {
        match self.random.below(100) {
            0..=19 => self.fire(),
            20..=27 => self.started(place),
            28..=33 => self.transition(),
            34..=40 => self.report(),
            41..=43 => self.node_states(),
            44..=47 => {
                let at = self.at.saturating_add(self.random.below(100_000));
                Command::System(SystemCommand::ClockStep { at })
            }
            48..=50 => {
                let to = u32::try_from(self.random.below(3)).unwrap_or_default();
                Command::System(SystemCommand::Upgrade { to })
            }
            51..=52 => self.quota(),
            53..=58 => self.told(),
            _ => Command::Cluster(self.cluster()),
        }
    }

    fn fire(&mut self) -> Command {
        let stale = self.random.chance(10);
        let first = match self.random.chance(80) {
            true => due::first(&self.state).ok().flatten(),
            false => self.any_timer(),
        };
        let first = first.unwrap_or(due::Due {
            due: 0,
            kind: DueKind::Invite,
            id: "none".into(),
            generation: 0,
        });
        let generation = first.generation.saturating_add(u64::from(stale));
        let (due, kind, id) = (first.due, first.kind, first.id);
        Command::System(SystemCommand::Fire { due, kind, id, generation })
    }

    /// Makes a start: mostly the next boot, sometimes the same or an older one.
    fn started(&mut self, place: usize) -> Command {
        let known = self.nodes.get(place).map_or((0, 0), |node| (node.boot, node.nonce));
        let (boot, nonce) = match self.random.below(10) {
            0 => (known.0.saturating_sub(1), known.1),
            1 => (known.0, known.1.saturating_add(1)),
            2..=3 => known,
            _ => (known.0.saturating_add(1), self.random.number()),
        };
        let supports = if self.random.chance(90) { crate::SUPPORTED } else { 0 };
        Command::System(SystemCommand::Started { boot, nonce, supports, software: "0.1.0".into() })
    }

    fn transition(&mut self) -> Command {
        let statuses = [Status::Working, Status::Idle, Status::Listening, Status::Offline];
        let mut changes = Vec::new();
        for _ in 0..self.random.below(5) {
            let (_, id) = self.speaker();
            let status = self.random.one(&statuses).copied().unwrap_or(Status::Idle);
            changes.push(Change { id, status, title: "title".repeat(self.length(20)) });
        }
        Command::Conversation(ConversationCommand::Transition { changes })
    }

    fn cluster(&mut self) -> ClusterCommand {
        let id = format!("code{}", self.random.below(5));
        let name = format!("host{}", self.random.below(4));
        let host = format!("machine-{}", self.random.below(3));
        match self.random.below(100) {
            0..=34 => {
                let role = *self.random.one(&[Role::Auto, Role::Voter]).unwrap_or(&Role::Learner);
                let secret_hash = vec![7; self.length(2).saturating_add(31)];
                let ttl = self.random.below(30 * 60 * 60 * 1000);
                ClusterCommand::Invite { id, secret_hash, role, ttl }
            }
            35..=59 => {
                let key = u8::try_from(self.random.below(12)).unwrap_or_default();
                ClusterCommand::Admit { invite: id, public_key: vec![key; 44], name, host }
            }
            60..=66 => ClusterCommand::Withdraw { id },
            67..=75 => ClusterCommand::Burn { id },
            76..=85 => {
                let addresses = vec!["192.0.2.1:5689".into(); self.length(18)];
                ClusterCommand::Describe { name, host, addresses }
            }
            86..=88 => {
                let ids = self.nodes.iter().map(|node| node.id);
                let mut voters: Vec<_> =
                    ids.take(usize::from(self.random.chance(80)).saturating_add(1)).collect();
                voters.sort_unstable();
                ClusterCommand::Voters { voters }
            }
            89..=93 => {
                let place = self.some_node();
                let node = self.nodes.get(place).map_or(0, |node| node.id);
                ClusterCommand::Remove { node }
            }
            _ => {
                let all = [Timing::Wifi, Timing::Wired, Timing::Relaxed];
                let timing = self.random.one(&all).copied().unwrap_or(Timing::Wired);
                ClusterCommand::SetTiming { timing }
            }
        }
    }

    /// Makes what no honest node sends.
    fn hostile(&mut self) -> (NodeId, Proposal) {
        let place = self.some_node();
        let command = self.chat();
        let long = "\0ü".repeat(self.length(300));
        let (node, mut proposal) = self.make(place, Actor::Conversation(long.clone()), command);
        match self.random.below(7) {
            0 => proposal.version = u32::MAX,
            1 => proposal.request = RequestId::Client(long),
            2 => proposal.request = RequestId::Node { node: u64::MAX, boot: 1, counter: 1 },
            3 => {
                let counter = u64::MAX;
                proposal.request = RequestId::Node { node, boot: u64::MAX, counter };
            }
            4 => proposal.answered = Answered { boot: u64::MAX, below: u64::MAX },
            5 => proposal.actor = Actor::Node,
            _ => return (u64::MAX, proposal),
        }
        (node, proposal)
    }
}

fn found() -> Command {
    Command::Cluster(ClusterCommand::Found {
        cluster: "c0ffee".into(),
        authority: vec![1; 400],
        public_key: vec![255; 44],
        name: "host0".into(),
        host: "machine-0".into(),
    })
}
