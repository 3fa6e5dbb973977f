//! Invites: single use, with an end. What is left of one stays until that end, so that a machine
//! that lost its answer gets the same one again, and for a day more, so that who lists invites sees
//! what became of it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::clock::Clock;
use crate::command::{DueKind, Role};
use crate::context::{Context, Stop};
use crate::due::{self, Due};
use crate::entry::NodeId;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{events, limits, tables};

/// How an invite stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum InviteState {
    /// It can be used.
    #[n(0)]
    Open,
    /// A machine came in with it.
    #[n(1)]
    Used,
    /// It was taken back.
    #[n(2)]
    Withdrawn,
    /// Too many wrong secrets came.
    #[n(3)]
    Burned,
}

/// An invite.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Invite {
    /// The public part of its code.
    #[n(0)]
    pub id: String,
    /// SHA-256 of its secret.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub secret_hash: Vec<u8>,
    /// What the machine shall be.
    #[n(2)]
    pub role: Role,
    /// When it was made, milliseconds since 1970.
    #[n(3)]
    pub made_at: u64,
    /// The tick at which it ends.
    #[n(4)]
    pub expires_tick: u64,
    /// The time at which it ends; it ends when either says so.
    #[n(5)]
    pub expires_at: u64,
    /// The node that made it.
    #[n(6)]
    pub by: NodeId,
    /// How it stands.
    #[n(7)]
    pub state: InviteState,
    /// The node that came in with it.
    #[n(8)]
    pub burned_by: Option<NodeId>,
}

impl Invite {
    /// Marks it as used by a node.
    pub(super) fn burn_for(&mut self, node: NodeId) {
        self.state = InviteState::Used;
        self.burned_by = Some(node);
    }

    /// Returns whether its time is over, by either clock.
    fn has_ended(&self, now: Clock) -> bool {
        now.tick >= self.expires_tick || now.at >= self.expires_at
    }

    /// Returns the timer of its end. It moves the clock of an idle cluster, too, so that a list
    /// shows that the invite has ended.
    fn ends(&self) -> Due {
        Due { due: self.expires_tick, kind: DueKind::Invite, id: self.id.clone(), generation: 1 }
    }

    /// Returns the timer that comes after that and has it forgotten.
    fn goes(&self) -> Due {
        let due = self.expires_tick.saturating_add(limits::INVITE_KEPT_TICKS);
        Due { due, kind: DueKind::Invite, id: self.id.clone(), generation: 2 }
    }
}

/// Returns the two timers of an invite, of which one stands; for the invariants.
pub(crate) fn timers(invite: &Invite) -> [Due; 2] {
    [invite.ends(), invite.goes()]
}

/// Returns all invites, used ones and those that ended within a day too, in the order of their ids.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn invites(state: &impl Read) -> Result<Vec<Invite>, Fault> {
    let rows = tables::INVITES.rows(state, tables::INVITES.all(), Direction::Forward);
    rows.map(|row| Ok(row?.1)).collect()
}

/// Returns an invite.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn invite(state: &impl Read, id: &str) -> Result<Option<Invite>, Fault> {
    tables::INVITES.get(state, id)
}

/// What a new invite shall be.
pub(super) struct Wanted<'a> {
    pub(super) id: &'a str,
    pub(super) secret_hash: &'a [u8],
    pub(super) role: Role,
    pub(super) ttl: u64,
}

pub(super) fn open(
    state: &mut impl Store,
    context: &Context<'_>,
    wanted: &Wanted<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Wanted { id, secret_hash, role, ttl } = *wanted;
    let short = (1..=limits::INVITE_ID_BYTES_MAX).contains(&id.len());
    if !short || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let rule = "must have 1 to 32 characters of A-Z a-z 0-9";
        return Err(Rejection::invalid("invite", rule).into());
    }
    if secret_hash.len() != 32 {
        return Err(Rejection::invalid("secretHash", "must have 32 bytes").into());
    }
    if !(1..=limits::INVITE_TICKS_MAX).contains(&ttl) {
        let rule = "must be from one millisecond to 30 days";
        return Err(Rejection::invalid("ttl", rule).into());
    }
    let others = invites(state)?;
    if others.iter().any(|other| other.id == id) {
        return Err(Rejection::conflict(format!("invite {id}: exists; draw another code")).into());
    }
    if others.len() >= limits::INVITES_MAX {
        // What has ended is kept for people to see, and makes room for what is wanted.
        let ended = others.iter().filter(|other| other.has_ended(context.now));
        let Some(oldest) = ended.min_by_key(|other| other.expires_tick) else {
            let what = "invites: 64 are kept; wait until old ones end";
            return Err(Rejection::full(what).into());
        };
        forget(state, oldest)?;
    }
    let invite = Invite {
        id: id.into(),
        secret_hash: secret_hash.into(),
        role,
        made_at: context.now.at,
        expires_tick: context.now.tick.saturating_add(ttl),
        expires_at: context.now.at.saturating_add(ttl),
        by: context.node,
        state: InviteState::Open,
        burned_by: None,
    };
    tables::INVITES.put(state, id, &invite)?;
    due::arm(state, &invite.ends(), told)?;
    events::record(state, context, "invite.open", Some(id.into()), None)?;
    told.push(Event::Members { node: 0 });
    Ok(Reply::Done)
}

pub(super) fn withdraw(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    close(state, context, id, InviteState::Withdrawn, told)
}

pub(super) fn burn(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    close(state, context, id, InviteState::Burned, told)
}

/// Ends an open invite before its time; it stays until then, so that its holder learns why.
fn close(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    to: InviteState,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let mut invite = present(state, id)?;
    if invite.state != InviteState::Open {
        return Err(not_open(&invite));
    }
    if invite.has_ended(context.now) {
        return Err(ended(&invite));
    }
    invite.state = to;
    tables::INVITES.put(state, id, &invite)?;
    let action = if to == InviteState::Burned { "invite.burn" } else { "invite.withdraw" };
    events::record(state, context, action, Some(id.into()), None)?;
    told.push(Event::Members { node: 0 });
    Ok(Reply::Done)
}

/// Takes back the open invites of a node that is removed: it must not come in by its own word.
pub(super) fn withdraw_all(state: &mut impl Store, node: NodeId) -> Result<(), Fault> {
    for mut invite in invites(state)? {
        if invite.by == node && invite.state == InviteState::Open {
            invite.state = InviteState::Withdrawn;
            tables::INVITES.put(state, &invite.id, &invite)?;
        }
    }
    Ok(())
}

/// Returns an invite that a machine may come in with: open, or used and not ended.
pub(super) fn usable(state: &impl Read, context: &Context<'_>, id: &str) -> Result<Invite, Stop> {
    let invite = present(state, id)?;
    if invite.has_ended(context.now) {
        return Err(ended(&invite));
    }
    match invite.state {
        InviteState::Open | InviteState::Used => Ok(invite),
        InviteState::Withdrawn | InviteState::Burned => Err(not_open(&invite)),
    }
}

fn present(state: &impl Read, id: &str) -> Result<Invite, Stop> {
    match invite(state, id)? {
        Some(invite) => Ok(invite),
        None => Err(Rejection::not_found(format!("invite {id}")).into()),
    }
}

/// Makes the refusal of a used invite.
pub(super) fn used(invite: &Invite) -> Stop {
    not_open(invite)
}

fn ended(invite: &Invite) -> Stop {
    Rejection::conflict(format!("invite {}: has expired; ask for a new one", invite.id)).into()
}

fn not_open(invite: &Invite) -> Stop {
    let why = match invite.state {
        InviteState::Open => "is open",
        InviteState::Used => "was used",
        InviteState::Withdrawn => "was withdrawn",
        InviteState::Burned => "was burned after too many wrong secrets",
    };
    Rejection::conflict(format!("invite {}: {why}; ask for a new one", invite.id)).into()
}

/// Forgets an invite, whichever of its timers stands.
fn forget(state: &mut impl Store, invite: &Invite) -> Result<(), Fault> {
    for timer in timers(invite) {
        due::disarm(state, &timer)?;
    }
    tables::INVITES.delete(state, &invite.id)
}

/// The end of an invite, and a day later its being forgotten.
pub(crate) fn invite_ends(
    state: &mut impl Store,
    fired: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Some(invite) = invite(state, &fired.id)? else {
        return Ok(Reply::Fired { changed: 0 });
    };
    if *fired == invite.ends() {
        due::arm(state, &invite.goes(), told)?;
    } else {
        forget(state, &invite)?;
    }
    told.push(Event::Members { node: 0 });
    Ok(Reply::Fired { changed: 1 })
}
