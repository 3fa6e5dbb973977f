//! Invites: made, listed, withdrawn; the first one opens the LAN.

use std::net::SocketAddr;
use std::time::Duration;

use nexus_contract::http::{
    Done, InviteList, InviteMade, InviteRequest, InviteState, InviteView, Role,
};
use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::cluster::{self, Invite};
use nexus_domain::{clock, command, limits};
use nexus_raft::Cluster;

use super::{errors, time};
use crate::app::lan::{Lan, LanError};
use crate::cli::chain;

/// How long a code is good unless the user says otherwise.
const TTL_SECONDS: u64 = 3_600;
/// What to do where it is not known whether an invite was changed: another try does no harm.
const LOOK: &str = "look at `nexus invite list`, and do it again";

/// Opens the LAN, tells the cluster where this node is, and makes a code.
pub(crate) async fn make(
    handle: &Cluster,
    lan: &Lan,
    request: &InviteRequest,
) -> Result<InviteMade, ApiError> {
    let seconds = request.ttl_seconds.unwrap_or(TTL_SECONDS);
    let most = limits::INVITE_TICKS_MAX / 1_000;
    if !(1..=most).contains(&seconds) {
        return Err(ApiError::invalid_arguments(
            "invite",
            format!("ttlSeconds: is {seconds}; give 1 to {most} (30 days)"),
        ));
    }
    lan.open().await.map_err(|error| refused(&error))?;
    let addresses = lan.describe().await.map_err(|error| errors::verb("invite", error, LOOK))?;
    let role = match request.role {
        Some(Role::Voter) => command::Role::Voter,
        Some(Role::Learner) => command::Role::Learner,
        None => command::Role::Auto,
    };
    let made = handle
        .invite(role, Duration::from_secs(seconds))
        .await
        .map_err(|error| errors::verb("invite", error, LOOK))?;
    let code = made.code.encode();
    let command = format!("nexus up --join {code}");
    let seeds: String = addresses.iter().map(|address| format!(" --seed {address}")).collect();
    Ok(InviteMade {
        id: made.id,
        role: request.role,
        expires_at: time::text(made.expires_at_millis),
        seed_command: format!("{command}{seeds}"),
        command,
        code,
        addresses: addresses.iter().map(SocketAddr::to_string).collect(),
    })
}

/// Lists the invites that have not been forgotten, newest first.
pub(crate) async fn list(handle: &Cluster) -> Result<InviteList, ApiError> {
    let fresh = handle
        .read(|view| {
            let invites = cluster::invites(view)?;
            Ok((invites, cluster::members(view)?, clock::clock(view)?))
        })
        .await
        .map_err(|error| errors::read(&error))?;
    let (mut invites, members, now) = fresh.value;
    invites.sort_by(|a, b| b.made_at.cmp(&a.made_at).then_with(|| a.id.cmp(&b.id)));
    let joined = |invite: &Invite| {
        let node = invite.burned_by?;
        let member = members.iter().find(|member| member.id == node);
        Some(member.map_or_else(|| format!("node {node} (removed)"), |member| member.name.clone()))
    };
    let shown = |invite: &Invite| InviteView {
        id: invite.id.clone(),
        role: match invite.role {
            command::Role::Voter => Some(Role::Voter),
            command::Role::Learner => Some(Role::Learner),
            command::Role::Auto => None,
        },
        state: state(invite, now),
        created_at: time::text(invite.made_at),
        expires_at: time::text(invite.expires_at),
        joined: joined(invite),
    };
    Ok(InviteList { invites: invites.iter().map(shown).collect() })
}

fn state(invite: &Invite, now: clock::Clock) -> InviteState {
    match invite.state {
        cluster::InviteState::Used => InviteState::Used,
        cluster::InviteState::Withdrawn => InviteState::Withdrawn,
        cluster::InviteState::Burned => InviteState::Burned,
        cluster::InviteState::Open
            if now.tick >= invite.expires_tick || now.at >= invite.expires_at =>
        {
            InviteState::Expired
        }
        cluster::InviteState::Open => InviteState::Open,
    }
}

/// Makes a code useless.
pub(crate) async fn withdraw(handle: &Cluster, id: &str) -> Result<Done, ApiError> {
    let withdrawn = handle.withdraw(id).await;
    withdrawn.map_err(|error| errors::verb("invite withdraw", error, LOOK))?;
    Ok(Done::new(format!("Invite {id} is withdrawn.")))
}

/// Listens on loopback only again.
pub(crate) async fn close_lan(handle: &Cluster, lan: &Lan) -> Result<Done, ApiError> {
    let members =
        handle.look(|view| cluster::members(view)).map_err(|error| errors::read(&error))?;
    lan.close(members.len()).await.map_err(|error| refused(&error))?;
    Ok(Done::new("The node listens on loopback only and is silent on the LAN."))
}

fn refused(error: &LanError) -> ApiError {
    let code = match error {
        LanError::Settings(_) => ErrorCode::Internal,
        LanError::Rebind { .. } | LanError::Given(_) | LanError::Shared { .. } => {
            ErrorCode::Conflict
        }
    };
    ApiError::new(code, chain(error))
}
