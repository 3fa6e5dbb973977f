//! Conversations: who is there on all machines, and what one says of itself.

use std::collections::BTreeMap;

use nexus_contract::conversations::{
    ClientKind, Peers, PeersInput, PeersOutput, Profile, SetProfileInput, SetProfileOutput, Status,
};
use nexus_contract::tool::Tool as _;
use nexus_contract::{ApiError, ErrorCode, ReadMarks};
use nexus_domain::command::{self, Client, ConversationCommand};
use nexus_domain::conversations::{self, Conversation};
use nexus_domain::{Command, NodeId, clock, cluster};
use nexus_raft::MemberState;

use super::caller::Who;
use super::{Answer, Call, Service, errors, time, written};

/// For how long those that went offline are still listed, in milliseconds of the cluster's clock.
const OFFLINE_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The machines, as a conversation's profile needs them.
struct Machines {
    names: BTreeMap<NodeId, String>,
    states: BTreeMap<NodeId, MemberState>,
}

/// `peers`: a read.
pub(super) async fn peers(service: &Service, about: &Call<'_>, input: &PeersInput) -> Answer {
    let who = conversation(about)?;
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
    let about = Call { tool: Peers::NAME, who: None, request_id: None, repeat: None };
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
            let all = conversations::list(view, usize::MAX)?;
            let own = match own {
                Some(id) => conversations::conversation(view, id)?,
                None => None,
            };
            Ok((all, own, names(&cluster::members(view)?), clock::clock(view)?.at))
        })
        .await?;
    let (all, row, names, now) = &fresh.value;
    let states = service.cluster.status().await.members;
    let machines = Machines {
        names: names.clone(),
        states: states.into_iter().map(|member| (member.id, member.state)).collect(),
    };
    let since = now.saturating_sub(OFFLINE_MILLIS);
    let mut peers = Vec::new();
    for row in all.iter().filter(|row| Some(row.id.as_str()) != own) {
        let Some(profile) = profile(row, &machines) else { continue };
        let is_recent = input.include_offline && row.last_active_at >= since;
        if profile.status != Status::Offline || is_recent {
            peers.push(profile);
        }
    }
    let own = row.as_ref().and_then(|row| profile(row, &machines));
    service.marks(about, &fresh).stamp(&PeersOutput { own, peers })
}

/// `set_profile`.
pub(super) async fn set_profile(
    service: &Service,
    about: &Call<'_>,
    input: SetProfileInput,
) -> Answer {
    let who = conversation(about)?;
    let SetProfileInput { name, note, title } = input;
    let command = ConversationCommand::SetProfile { name, note, title };
    let committed = service.propose(about, Command::Conversation(command)).await?;
    let look = service.cluster.look(|view| {
        let row = conversations::conversation(view, &who.id)?;
        Ok((row, names(&cluster::members(view)?)))
    });
    let (row, names) = look.map_err(|error| errors::read(&error))?;
    let machines = Machines { names, states: BTreeMap::new() };
    let profile = row.as_ref().and_then(|row| profile(row, &machines));
    let profile = profile.ok_or_else(|| errors::behind(about.request_id))?;
    let marks: ReadMarks = written(&committed);
    marks.stamp(&SetProfileOutput { profile })
}

fn names(members: &[cluster::Member]) -> BTreeMap<NodeId, String> {
    members.iter().map(|member| (member.id, member.name.clone())).collect()
}

/// Returns the conversation that calls; an instance is refused.
fn conversation<'a>(about: &'a Call<'_>) -> Result<&'a Who, ApiError> {
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
    let own = match row.status {
        command::Status::Working => Status::Working,
        command::Status::Idle => Status::Idle,
        command::Status::Listening => Status::Listening,
        command::Status::Offline => Status::Offline,
    };
    // A machine that is away takes its conversations with it, without an entry for each.
    let status = match machines.states.get(&row.home) {
        Some(MemberState::Asleep) if own != Status::Offline => Status::Asleep,
        Some(MemberState::Down) => Status::Offline,
        Some(_) | None => own,
    };
    let unknown = || format!("node {}", row.home);
    Some(Profile {
        id: row.id.clone(),
        name: row.name.clone(),
        title: row.shown_title().to_owned(),
        client,
        node: machines.names.get(&row.home).cloned().unwrap_or_else(unknown),
        cwd: row.cwd.clone(),
        note: row.note.clone(),
        status,
        last_active_at: time::text(row.last_active_at),
        unread: None,
        listening: None,
    })
}
