//! `nexus invite`: makes a code that lets one machine join; lists codes and withdraws them.

use nexus_contract::http::{
    ClusterView, Done, InviteList, InviteMade, InviteRequest, InviteState, InviteView,
    PATH_CLUSTER, PATH_INVITES, Role,
};
use nexus_domain::cluster::FIRST_NODE;
use nexus_domain::limits;

use super::out::{Out, local_text};
use super::{Exit, Failure, Local};

const AFTER_HELP: &str = "\
The first invite opens this machine to the LAN: the node then listens on UDP port 5689 and
announces itself by multicast DNS. `nexus lan off` takes that back while no other machine joined.

Examples:
  nexus invite --voter          the machine becomes a voter as soon as it has caught up
  nexus invite --ttl 15m        a code for a quarter of an hour
  nexus invite list
  nexus invite withdraw k3f9qa";

/// Arguments of `nexus invite`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct InviteArgs {
    #[command(subcommand)]
    verb: Option<InviteVerb>,
    /// The machine becomes a voter as soon as it has caught up
    #[arg(long, conflicts_with = "learner")]
    voter: bool,
    /// The machine holds a copy and never votes
    #[arg(long)]
    learner: bool,
    /// How long the code is good: a number with s, m, h or d
    #[arg(long, default_value = "1h", value_parser = seconds, allow_negative_numbers = true)]
    ttl: u64,
    #[command(flatten)]
    local: Local,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum InviteVerb {
    /// List the codes' ids, how they stand, and who joined with them
    List(Local),
    /// Make a code useless
    Withdraw(WithdrawArgs),
}

#[derive(Debug, clap::Args)]
struct WithdrawArgs {
    /// The id, as `nexus invite list` shows it
    id: String,
    #[command(flatten)]
    local: Local,
}

/// Makes, lists or withdraws.
pub(crate) async fn run(args: InviteArgs, out: &mut Out) -> Result<Exit, Failure> {
    match args.verb {
        None => make(&args, out).await,
        Some(InviteVerb::List(local)) => list(&local, out).await,
        Some(InviteVerb::Withdraw(args)) => withdraw(&args, out).await,
    }
}

async fn make(args: &InviteArgs, out: &mut Out) -> Result<Exit, Failure> {
    let role = match (args.voter, args.learner) {
        (true, _) => Some(Role::Voter),
        (_, true) => Some(Role::Learner),
        (false, false) => None,
    };
    let request = InviteRequest { role, ttl_seconds: Some(args.ttl) };
    let node = args.local.node()?;
    let made: InviteMade = node.post(PATH_INVITES, &request).await?;
    // The code is made; a view that fails takes nothing from it.
    if let Ok(view) = node.get::<ClusterView>(PATH_CLUSTER).await
        && !view.members.is_empty()
        && view.members.iter().all(|member| member.id != FIRST_NODE)
    {
        out.warning(
            "no member is known that can sign for the machine: the first node, which held \
             authority.key, was removed; put the copies of authority.key and authority.crt into \
             the data folder of a member and start that one again, if that is not done yet",
        );
    }
    if out.is_json() {
        out.value(&made);
        return Ok(Exit::Done);
    }
    let reached = made.addresses.join(", ");
    out.note(&format!(
        "This node can be reached at {reached}. The code is good for one machine, which becomes \
         {}, until {}.",
        role_text(made.role),
        local_text(&made.expires_at)
    ));
    out.note("\nOn the other machine:\n");
    out.line(&format!("  {}", made.command));
    out.note("\nIf it does not find this node there (a LAN without multicast):\n");
    out.line(&format!("  {}", made.seed_command));
    out.note(
        "\nFrom a source folder, `ops/up` takes the place of `nexus up`. If a node runs there \
         already\n(`ops/up` or `nexus up` was tried), stop it with `nexus down` or Ctrl-C, then \
         type the same command;\na node that was alone and holds no messages is set aside by \
         itself, else add --discard.",
    );
    out.hint(&format!(
        "who joined: nexus invite list; take it back: nexus invite withdraw {}",
        made.id
    ));
    Ok(Exit::Done)
}

async fn list(local: &Local, out: &mut Out) -> Result<Exit, Failure> {
    let list: InviteList = local.node()?.get(PATH_INVITES).await?;
    if out.is_json() {
        out.value(&list);
        return Ok(Exit::Done);
    }
    if list.invites.is_empty() {
        out.line("no invites");
        out.hint("make one: nexus invite --voter");
        return Ok(Exit::Done);
    }
    let rows = list.invites.iter().map(row).collect();
    out.table(&["ID", "STATE", "ROLE", "MADE", "ENDS", "JOINED"], rows);
    Ok(Exit::Done)
}

fn row(invite: &InviteView) -> Vec<String> {
    let state = match invite.state {
        InviteState::Open => "open",
        InviteState::Used => "used",
        InviteState::Expired => "expired",
        InviteState::Withdrawn => "withdrawn",
        InviteState::Burned => "closed: wrong secrets",
    };
    let role = match invite.role {
        Some(Role::Voter) => "voter",
        Some(Role::Learner) => "learner",
        None => "auto",
    };
    vec![
        invite.id.clone(),
        state.to_owned(),
        role.to_owned(),
        local_text(&invite.created_at),
        local_text(&invite.expires_at),
        invite.joined.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

async fn withdraw(args: &WithdrawArgs, out: &mut Out) -> Result<Exit, Failure> {
    let is_id = |letter: char| letter.is_ascii_alphanumeric();
    if args.id.is_empty() || !args.id.chars().all(is_id) {
        return Err(Failure::Usage(
            "invite id has other characters than letters and digits: copy it from `nexus invite \
             list`"
                .to_owned(),
        ));
    }
    let done: Done = args.local.node()?.delete(&format!("{PATH_INVITES}/{}", args.id)).await?;
    if out.is_json() {
        out.value(&done);
    } else {
        out.line(&done.message);
    }
    Ok(Exit::Done)
}

fn role_text(role: Option<Role>) -> &'static str {
    match role {
        Some(Role::Voter) => "a voter",
        Some(Role::Learner) => "a learner",
        None => "a learner, and a voter once it has been steady",
    }
}

/// Reads a length of time such as `90s`, `15m`, `1h` or `7d`.
fn seconds(text: &str) -> Result<u64, String> {
    const RIGHT: &str = "give a number with s, m, h or d behind it, such as 1h";
    let unit = text.chars().last().ok_or(RIGHT)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(RIGHT.to_owned()),
    };
    let number = text.strip_suffix(unit).and_then(|number| number.parse::<u64>().ok());
    match number.and_then(|number| number.checked_mul(factor)).filter(|seconds| *seconds > 0) {
        Some(seconds) if seconds > limits::INVITE_TICKS_MAX / 1_000 => {
            Err("give 30d or less".to_owned())
        }
        Some(seconds) => Ok(seconds),
        None => Err(RIGHT.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_or_refused() {
        for (text, right) in [("90s", 90), ("15m", 900), ("1h", 3_600), ("7d", 604_800)] {
            assert_eq!(seconds(text), Ok(right));
        }
        for text in ["", "1", "h", "0h", "-1h", "1.5h", "1w", "99999999999999999999d", "1é"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(seconds("30d"), Ok(limits::INVITE_TICKS_MAX / 1_000));
        for text in ["31d", "1000000d", "2592001s"] {
            assert_eq!(seconds(text).unwrap_err(), "give 30d or less", "{text}");
        }
    }
}
