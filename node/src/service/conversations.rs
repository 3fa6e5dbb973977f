//! Conversations: who is there on all machines, and what one says of itself.

use std::collections::BTreeMap;

use nexus_contract::conversations::{
    ClientKind, ListenInput, ListenOutput, Peers, PeersInput, PeersOutput, Profile,
    SetProfileInput, SetProfileOutput, Status,
};
use nexus_contract::tool::Tool as _;
use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::command::presence::NodeState;
use nexus_domain::command::{self, Client, ConversationCommand};
use nexus_domain::conversations::{self, Conversation};
use nexus_domain::{Command, Fault, NodeId, Reply, clock, cluster, limits, mail};
use nexus_raft::{MemberState, MemberStatus, View};

use super::caller::Who;
use super::{After, Answer, Call, Service, errors, time, written};

/// For how long those that went offline are still listed, in milliseconds of the cluster's clock.
const OFFLINE_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// Bytes of texts that one list of conversations holds: an answer that clients still read, as for
/// tasks. The rest is left out, and the list says so.
const PEERS_BYTES_MAX: usize = 1024 * 1024;

/// The machines, as a conversation's profile needs them.
#[derive(Default)]
pub(super) struct Machines {
    names: BTreeMap<NodeId, String>,
    states: BTreeMap<NodeId, NodeState>,
}

impl Machines {
    /// Returns them as the state knows them: what the leader noted, and the same on every node.
    pub(super) fn of(view: &View<'_>) -> Result<Self, Fault> {
        let members = cluster::members(view)?.into_iter();
        let names = members.map(|member| (member.id, member.name)).collect();
        let noted = conversations::nodes(view)?.into_iter();
        Ok(Self { names, states: noted.map(|noted| (noted.node, noted.state)).collect() })
    }

    /// Puts on them what this node sees by itself: without a majority nobody notes anything.
    pub(super) fn seen(&mut self, members: &[MemberStatus]) {
        for member in members.iter().filter(|member| member.state == MemberState::Down) {
            let state = self.states.entry(member.id).or_default();
            if *state == NodeState::Up {
                *state = NodeState::Down;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn noted<const N: usize>(states: [(NodeId, NodeState); N]) -> Self {
        Self { names: BTreeMap::new(), states: states.into() }
    }

    fn name(&self, node: NodeId) -> String {
        self.names.get(&node).cloned().unwrap_or_else(|| format!("node {node}"))
    }

    /// Returns what a conversation is doing: a machine that is away takes its conversations with
    /// it, without an entry for each.
    pub(super) fn status(&self, row: &Conversation) -> Status {
        self.status_of(row.status, row.home)
    }

    /// Returns the same by what a conversation says of itself, and its machine.
    pub(super) fn status_of(&self, own: command::Status, home: NodeId) -> Status {
        let own = match own {
            command::Status::Working => Status::Working,
            command::Status::Idle => Status::Idle,
            command::Status::Listening => Status::Listening,
            command::Status::Offline => Status::Offline,
        };
        match self.states.get(&home) {
            Some(NodeState::Asleep) if own != Status::Offline => Status::Asleep,
            Some(NodeState::Down) => Status::Offline,
            Some(NodeState::Up | NodeState::Asleep) | None => own,
        }
    }
}

/// `peers`: a read.
pub(super) async fn peers(service: &Service, about: &Call<'_>, input: &PeersInput) -> Answer {
    let who = identified(about)?;
    // A conversation that only looks is there too, and others should see it; without a quorum it
    // still gets its answer.
    match service.make_known(about, who).await {
        Ok(()) => {}
        Err(error) if error.code == ErrorCode::NoQuorum => {}
        Err(error) => return Err(error),
    }
    listed(service, about, Some(&who.id), input).await
}

/// The same as people see it on the command line, which is no conversation.
pub(super) async fn shown_to_people(service: &Service, input: &PeersInput) -> Answer {
    let about = Call { tool: Peers::NAME, who: None, request_id: None };
    listed(service, &about, None, input).await
}

async fn listed(
    service: &Service,
    about: &Call<'_>,
    own: Option<&str>,
    input: &PeersInput,
) -> Answer {
    let fresh = service
        .read(|view| {
            let since = clock::clock(view)?.at.saturating_sub(OFFLINE_MILLIS);
            let since = input.include_offline.then_some(since);
            let all = conversations::peers(view, since, usize::MAX)?;
            let own = own.map(|id| Own::of(view, id)).transpose()?;
            Ok((all, own.flatten(), Machines::of(view)?, since))
        })
        .await?;
    let marks = service.marks(about, &fresh);
    let is_stale = fresh.stale.is_some();
    let (all, own_row, mut machines, since) = fresh.value;
    if is_stale {
        machines.seen(&service.cluster.local_status().members);
    }
    let mut list = List::new(all.len());
    for row in all.iter().filter(|row| Some(row.id.as_str()) != own) {
        let Some(profile) = profile(row, &machines) else { continue };
        // One that is offline with its machine only is listed like any other that is.
        let is_recent = since.is_some_and(|since| row.last_active_at >= since);
        if (profile.status != Status::Offline || is_recent) && !list.add(profile) {
            break;
        }
    }
    let own = own_row.and_then(|own| own.profile(&machines));
    marks.stamp(&PeersOutput { own, peers: list.peers, more: list.more })
}

/// A list of conversations that ends before it is too long.
struct List {
    peers: Vec<Profile>,
    bytes: usize,
    more: bool,
}

impl List {
    /// Begins one of so many rows; the state gives no more than a thousand.
    fn new(rows: usize) -> Self {
        let more = rows >= limits::CONVERSATIONS_LIST_MAX;
        Self { peers: Vec::new(), bytes: 0, more }
    }

    /// Adds a conversation; returns whether the list may go on.
    fn add(&mut self, profile: Profile) -> bool {
        let texts = [
            &profile.id,
            &profile.name,
            &profile.title,
            &profile.node,
            &profile.cwd,
            &profile.note,
            &profile.last_active_at,
        ];
        let bytes = texts.iter().map(|text| text.len()).fold(self.bytes, usize::saturating_add);
        if bytes > PEERS_BYTES_MAX {
            self.more = true;
            return false;
        }
        self.bytes = bytes;
        self.peers.push(profile);
        true
    }
}

/// A conversation as it sees itself.
struct Own {
    row: Conversation,
    unread: u64,
}

impl Own {
    fn of(view: &View<'_>, id: &str) -> Result<Option<Self>, Fault> {
        let Some(row) = conversations::conversation(view, id)? else { return Ok(None) };
        Ok(Some(Self { row, unread: mail::unread(view, id)? }))
    }

    fn profile(&self, machines: &Machines) -> Option<Profile> {
        let mut profile = profile(&self.row, machines)?;
        profile.unread = Some(self.unread);
        profile.listening = Some(self.row.listens == Some(true));
        Some(profile)
    }
}

/// `set_profile`.
pub(super) async fn set_profile(
    service: &Service,
    about: &Call<'_>,
    input: SetProfileInput,
) -> Answer {
    let who = identified(about)?;
    let SetProfileInput { name, note, title } = input;
    let change = ConversationCommand::SetProfile { name, note, title };
    let committed = service.propose(about, Command::Conversation(change.clone())).await?;
    let Reply::Named { name } = &committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let look = |view: &View<'_>| Ok((Own::of(view, &who.id)?, Machines::of(view)?));
    let After { value: (own, machines), has_it, marks } =
        service.after(about, &committed, look).await?;
    let mut own = own.ok_or_else(|| {
        let text = format!(
            "the profile is set, and the name is {name}; this node is too far behind to show the \
             rest: call again with the same request id, or ask peers later"
        );
        errors::done_and_not_shown(&text, about.request_id)
    })?;
    if !has_it {
        put(&mut own.row, name, &change);
    }
    let profile = own.profile(&machines).ok_or_else(|| errors::odd_reply(about.tool))?;
    marks.stamp(&SetProfileOutput { profile })
}

/// Puts a change of a profile on a conversation as it was known before.
fn put(row: &mut Conversation, named: &str, change: &ConversationCommand) {
    let ConversationCommand::SetProfile { note, title, .. } = change else { return };
    named.clone_into(&mut row.name);
    if let Some(note) = note {
        row.note.clone_from(note);
    }
    if let Some(title) = title {
        row.own_title = Some(title.clone()).filter(|title| !title.is_empty());
    }
    if row.status == command::Status::Offline {
        row.status = command::Status::Working;
    }
}

/// `listen`: the flag; hooks act on it.
pub(super) async fn listen(service: &Service, about: &Call<'_>, input: &ListenInput) -> Answer {
    identified(about)?;
    let command = ConversationCommand::Listen { on: input.on };
    let committed = service.propose(about, Command::Conversation(command)).await?;
    written(&committed).stamp(&ListenOutput { listening: input.on })
}

/// Returns the conversation that calls; an instance is refused.
pub(super) fn identified<'a>(about: &'a Call<'_>) -> Result<&'a Who, ApiError> {
    match &about.who {
        Some(who) if who.client != Client::Instance => Ok(who),
        Some(_) | None => Err(ApiError::new(
            ErrorCode::Unidentified,
            format!(
                "This call carries no agent session, and {} needs one: Codex names its \
                 conversation by itself when the MCP server is `nexus mcp`; Claude Code and other \
                 clients are not identified in this version and can use send_message and \
                 read_messages; people see who is there with `nexus peers`",
                about.tool
            ),
        )),
    }
}

/// Shows a conversation; `None` for an instance, which is none.
fn profile(row: &Conversation, machines: &Machines) -> Option<Profile> {
    let client = match row.client {
        Client::Claude => ClientKind::Claude,
        Client::Codex => ClientKind::Codex,
        Client::Instance => return None,
    };
    Some(Profile {
        id: row.id.clone(),
        name: row.name.clone(),
        title: row.shown_title().to_owned(),
        client,
        node: machines.name(row.home),
        cwd: row.cwd.clone(),
        note: row.note.clone(),
        status: machines.status(row),
        last_active_at: time::text(row.last_active_at),
        unread: None,
        listening: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Conversation {
        Conversation {
            id: "codex:a".into(),
            client: Client::Codex,
            name: "codex@app".into(),
            title: "from the client".into(),
            own_title: Some("own".into()),
            note: "before".into(),
            cwd: "/app".into(),
            status: command::Status::Offline,
            home: 2,
            incarnation: 1,
            registered_at: 0,
            last_active_at: 1_000,
            last_active_tick: 0,
            listens: Some(true),
        }
    }

    fn change(note: Option<&str>, title: Option<&str>) -> ConversationCommand {
        let (note, title) = (note.map(str::to_owned), title.map(str::to_owned));
        ConversationCommand::SetProfile { name: None, note, title }
    }

    #[test]
    fn a_profile_that_is_not_here_yet_is_put_on_what_is_known() {
        let states = BTreeMap::from([(2, NodeState::Up)]);
        let machines = Machines { names: BTreeMap::from([(2, "desk".into())]), states };
        let mut own = Own { row: known(), unread: 3 };
        put(&mut own.row, "codex@app#2", &change(Some("after"), Some("")));
        let shown = serde_json::to_value(own.profile(&machines).unwrap()).unwrap();
        let expected = serde_json::json!({
            "id": "codex:a", "name": "codex@app#2", "title": "from the client", "client": "codex",
            "node": "desk", "cwd": "/app", "note": "after", "status": "working",
            "lastActiveAt": "1970-01-01T00:00:01.000Z", "unread": 3, "listening": true,
        });
        assert_eq!(shown, expected);
        put(&mut own.row, "codex@app#2", &change(None, Some("new")));
        assert_eq!((own.row.shown_title(), own.row.note.as_str()), ("new", "after"));
    }

    #[test]
    fn a_machine_that_is_away_takes_its_conversations_along() {
        use command::Status as Own;
        for (own, state, shown) in [
            (Own::Working, NodeState::Up, Status::Working),
            (Own::Listening, NodeState::Up, Status::Listening),
            (Own::Idle, NodeState::Asleep, Status::Asleep),
            (Own::Offline, NodeState::Asleep, Status::Offline),
            (Own::Working, NodeState::Down, Status::Offline),
            (Own::Offline, NodeState::Up, Status::Offline),
        ] {
            let states = BTreeMap::from([(2, state)]);
            let machines = Machines { names: BTreeMap::new(), states };
            let row = Conversation { status: own, ..known() };
            assert_eq!(machines.status(&row), shown, "{own:?} on one that is {state:?}");
            assert_eq!(machines.name(2), "node 2");
        }
    }

    #[test]
    fn a_list_ends_before_it_is_too_long_and_says_so() {
        let machines = Machines { names: BTreeMap::new(), states: BTreeMap::new() };
        let row = Conversation { cwd: "x".repeat(4_000), ..known() };
        let mut list = List::new(5);
        let mut added = 0;
        while list.add(profile(&row, &machines).unwrap()) {
            added += 1;
            assert!(added < 1_000 && !list.more);
        }
        assert!(list.more && list.peers.len() == added);
        let whole = serde_json::to_vec(&list.peers).unwrap().len();
        assert!((900_000..1_200_000).contains(&whole), "{whole}");
        assert!(List::new(limits::CONVERSATIONS_LIST_MAX).more);
    }
}
