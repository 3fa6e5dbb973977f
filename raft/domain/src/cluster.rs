//! Nodes and invites: who belongs to the cluster, and how one comes in (traps.md 16).
//!
//! A node's id is the index of the entry that admitted it, so it is never given twice; the first
//! node is 1. The secret of an invite is never in the log, only its hash: the leader checks the
//! secret before it proposes the admission.

mod invites;
mod removal;
mod voters;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

pub use crate::cluster::invites::{Invite, InviteState, invite, invites};
pub(crate) use crate::cluster::invites::{invite_ends, timers};
pub(crate) use crate::cluster::removal::{removal_goes_on, removed_node};
pub(crate) use crate::cluster::voters::Voters;
pub use crate::cluster::voters::voters;
use crate::command::{ClusterCommand, Role, Timing};
use crate::context::{Context, Stop};
use crate::entry::NodeId;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{events, limits, names, requests, system, tables};

/// The node that makes the cluster; every other id is the index of an entry behind that one.
pub const FIRST_NODE: NodeId = 1;

/// The cluster as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ClusterRow {
    /// The cluster's id.
    #[n(0)]
    pub(crate) cluster: String,
    /// The CA certificate (DER).
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) authority: Vec<u8>,
    /// The timing profile.
    #[n(2)]
    pub(crate) timing: Timing,
    /// When it was made.
    #[n(3)]
    pub(crate) founded_at: u64,
}

/// What is known of the cluster as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterInfo {
    /// The cluster's id.
    pub cluster: String,
    /// The CA certificate (DER).
    pub authority: Vec<u8>,
    /// The timing profile.
    pub timing: Timing,
    /// The state version.
    pub state_version: u32,
    /// When it was made, milliseconds since 1970.
    pub founded_at: u64,
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Member {
    /// Its id.
    #[n(0)]
    pub id: NodeId,
    /// Its name, unique among members.
    #[n(1)]
    pub name: String,
    /// Its public key (SPKI, DER).
    #[cbor(n(2), with = "minicbor::bytes")]
    pub public_key: Vec<u8>,
    /// What tells its machine from others.
    #[n(3)]
    pub host: String,
    /// Where it can be reached, best first.
    #[n(4)]
    pub addresses: Vec<String>,
    /// The role that it was invited to.
    #[n(5)]
    pub role: Role,
    /// The newest state version that its program supports; 0 until it has started once.
    #[n(6)]
    pub supports: u32,
    /// Its program's version, for people.
    #[n(7)]
    pub software: String,
    /// Its newest boot; 0 until it has started once.
    #[n(8)]
    pub boot: u64,
    /// The number drawn at that boot.
    #[n(9)]
    pub nonce: u64,
    /// When it was admitted, milliseconds since 1970.
    #[n(10)]
    pub joined_at: u64,
    /// The tick at which it was admitted.
    #[n(11)]
    pub joined_tick: u64,
    /// The node that invited it; none for the first.
    #[n(12)]
    pub invited_by: Option<NodeId>,
}

/// Returns what is known of the cluster as a whole; `None` before it is made.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn info(state: &impl Read) -> Result<Option<ClusterInfo>, Fault> {
    let Some(row) = tables::CLUSTER.get(state, ())? else { return Ok(None) };
    Ok(Some(ClusterInfo {
        cluster: row.cluster,
        authority: row.authority,
        timing: row.timing,
        state_version: system::state_version(state)?,
        founded_at: row.founded_at,
    }))
}

/// Returns all members, in the order of their ids.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn members(state: &impl Read) -> Result<Vec<Member>, Fault> {
    let rows = tables::MEMBERS.rows(state, tables::MEMBERS.all(), Direction::Forward);
    rows.map(|row| Ok(row?.1)).collect()
}

/// Returns a member.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn member(state: &impl Read, node: NodeId) -> Result<Option<Member>, Fault> {
    tables::MEMBERS.get(state, node)
}

/// Returns a member that must be there.
pub(crate) fn present(state: &impl Read, node: NodeId) -> Result<Member, Stop> {
    match member(state, node)? {
        Some(member) => Ok(member),
        None => Err(Rejection::not_found(format!("node {node}")).into()),
    }
}

/// Returns what people call a node.
pub(crate) fn shown(state: &impl Read, node: NodeId) -> Result<String, Fault> {
    Ok(member(state, node)?.map_or_else(|| format!("node {node}"), |member| member.name))
}

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &ClusterCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        ClusterCommand::Found { cluster, authority, public_key, name, host } => {
            let machine = Machine { public_key, name, host };
            found(state, context, (cluster, authority), &machine, told)
        }
        ClusterCommand::Invite { id, secret_hash, role, ttl } => {
            let wanted = invites::Wanted { id, secret_hash, role: *role, ttl: *ttl };
            invites::open(state, context, &wanted, told)
        }
        ClusterCommand::Withdraw { id } => invites::withdraw(state, context, id, told),
        ClusterCommand::Burn { id } => invites::burn(state, context, id, told),
        ClusterCommand::Admit { invite, public_key, name, host } => {
            let machine = Machine { public_key, name, host };
            admit(state, context, invite, &machine, told)
        }
        ClusterCommand::Describe { name, host, addresses } => {
            describe(state, context, (name, host), addresses, told)
        }
        ClusterCommand::Voters { voters } => voters::note(state, context, voters, told),
        ClusterCommand::Remove { node } => removal::remove(state, context, *node, told),
        ClusterCommand::SetTiming { timing } => set_timing(state, context, *timing, told),
    }
}

/// What a machine says of itself when it comes in.
struct Machine<'a> {
    public_key: &'a [u8],
    name: &'a str,
    host: &'a str,
}

impl Machine<'_> {
    fn check(&self) -> Result<(), Rejection> {
        if !(1..=limits::PUBLIC_KEY_BYTES_MAX).contains(&self.public_key.len()) {
            return Err(Rejection::invalid("publicKey", "must have 1 to 1,100 bytes"));
        }
        names::check("name", self.name, limits::MEMBER_NAME_CHARS_MAX)?;
        check_host(self.host)
    }

    fn member(&self, id: NodeId, name: String, role: Role, context: &Context<'_>) -> Member {
        Member {
            id,
            name,
            public_key: self.public_key.into(),
            host: self.host.into(),
            addresses: Vec::new(),
            role,
            supports: 0,
            software: String::new(),
            boot: 0,
            nonce: 0,
            joined_at: context.now.at,
            joined_tick: context.now.tick,
            invited_by: None,
        }
    }
}

fn check_host(host: &str) -> Result<(), Rejection> {
    if host.len() > limits::HOST_BYTES_MAX {
        return Err(Rejection::invalid("host", "must have at most 200 bytes"));
    }
    Ok(())
}

fn found(
    state: &mut impl Store,
    context: &Context<'_>,
    (cluster, authority): (&str, &[u8]),
    machine: &Machine<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if tables::CLUSTER.has(state, ())? {
        return Err(Rejection::conflict("cluster: is made already").into());
    }
    if context.node != FIRST_NODE {
        return Err(Rejection::forbidden("cluster: only node 1 makes it").into());
    }
    names::check("cluster", cluster, limits::MEMBER_NAME_CHARS_MAX)?;
    if !(1..=limits::AUTHORITY_BYTES_MAX).contains(&authority.len()) {
        return Err(Rejection::invalid("authority", "must have 1 to 8,192 bytes").into());
    }
    machine.check()?;
    let row = ClusterRow {
        cluster: cluster.into(),
        authority: authority.into(),
        timing: Timing::Wired,
        founded_at: context.now.at,
    };
    tables::CLUSTER.put(state, (), &row)?;
    let member = machine.member(FIRST_NODE, machine.name.into(), Role::Voter, context);
    tables::MEMBERS.put(state, FIRST_NODE, &member)?;
    requests::admit(state, FIRST_NODE)?;
    events::record(state, context, "cluster.found", Some(cluster.into()), None)?;
    told.push(Event::Members { node: FIRST_NODE });
    told.push(Event::Timing);
    Ok(Reply::Done)
}

fn admit(
    state: &mut impl Store,
    context: &Context<'_>,
    invite: &str,
    machine: &Machine<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    machine.check()?;
    let mut invite = invites::usable(state, context, invite)?;
    let members = members(state)?;
    if let Some(node) = invite.burned_by {
        let same = members
            .iter()
            .find(|member| member.id == node && member.public_key == machine.public_key);
        return match same {
            Some(member) => Ok(Reply::Admitted { node, name: member.name.clone() }),
            None => Err(invites::used(&invite)),
        };
    }
    let known = members.iter().find(|member| member.public_key == machine.public_key);
    if let Some(member) = known {
        // The machine lost its answer and came with another code: it is in already.
        invite.burn_for(member.id);
        tables::INVITES.put(state, &invite.id, &invite)?;
        told.push(Event::Members { node: member.id });
        return Ok(Reply::Admitted { node: member.id, name: member.name.clone() });
    }
    if members.len() >= limits::MEMBERS_MAX {
        return Err(Rejection::full("cluster: has 128 members, remove one first").into());
    }
    if context.index <= FIRST_NODE {
        let what = format!("an admission at index {}", context.index);
        return Err(Rejection::Impossible { what }.into());
    }
    let name = free_name(&members, machine.name, None)?;
    let mut member = machine.member(context.index, name.clone(), invite.role, context);
    member.invited_by = Some(invite.by);
    invite.burn_for(member.id);
    tables::INVITES.put(state, &invite.id, &invite)?;
    tables::MEMBERS.put(state, member.id, &member)?;
    requests::admit(state, member.id)?;
    let detail = format!("node {}, invite {}", member.id, invite.id);
    events::record(state, context, "node.join", Some(name.clone()), Some(detail))?;
    told.push(Event::Members { node: member.id });
    Ok(Reply::Admitted { node: member.id, name })
}

/// Returns a name that no member but `own` has: the wanted one, or `-2`, `-3`, … behind it.
fn free_name(members: &[Member], wanted: &str, own: Option<NodeId>) -> Result<String, Stop> {
    let free = names::free(wanted, wanted, '-', limits::MEMBER_NAME_CHARS_MAX, |name| {
        Ok(members.iter().any(|member| member.name == name && Some(member.id) != own))
    })?;
    Ok(free.ok_or_else(|| Rejection::conflict("name: is taken, choose another"))?)
}

fn describe(
    state: &mut impl Store,
    context: &Context<'_>,
    (name, host): (&str, &str),
    addresses: &[String],
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if !name.is_empty() {
        names::check("name", name, limits::MEMBER_NAME_CHARS_MAX)?;
    }
    check_host(host)?;
    if addresses.len() > limits::ADDRESSES_MAX {
        return Err(Rejection::invalid("addresses", "must be at most 16").into());
    }
    let fits = |address: &String| (1..=limits::ADDRESS_BYTES_MAX).contains(&address.len());
    if !addresses.iter().all(fits) {
        return Err(Rejection::invalid("addresses", "must have 1 to 262 bytes each").into());
    }
    let before = present(state, context.node)?;
    let mut member = before.clone();
    if !name.is_empty() {
        member.name = free_name(&members(state)?, name, Some(context.node))?;
    }
    member.host = host.into();
    member.addresses = addresses.to_vec();
    if member != before {
        tables::MEMBERS.put(state, context.node, &member)?;
        told.push(Event::Members { node: context.node });
    }
    Ok(Reply::Named { name: member.name })
}

fn set_timing(
    state: &mut impl Store,
    context: &Context<'_>,
    timing: Timing,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Some(mut row) = tables::CLUSTER.get(state, ())? else {
        return Err(Rejection::not_found("cluster").into());
    };
    if row.timing != timing {
        row.timing = timing;
        tables::CLUSTER.put(state, (), &row)?;
        let word = match timing {
            Timing::Wifi => "wifi",
            Timing::Wired => "wired",
            Timing::Relaxed => "relaxed",
        };
        events::record(state, context, "cluster.timing", None, Some(word.into()))?;
        told.push(Event::Timing);
    }
    Ok(Reply::Done)
}
