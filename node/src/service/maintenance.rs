//! Maintenance of the global chat. Messages are gone for every reader with the entry; numbers go
//! on, so nobody's place moves.

use nexus_contract::maintenance::{HostMaintenanceInput, HostMaintenanceOutput, MaintenanceAction};
use nexus_domain::command::ChatCommand;
use nexus_domain::{Command, Reply};

use super::{Answer, Call, Service, errors, written};

/// `host_maintenance`.
pub(super) async fn host_maintenance(
    service: &Service,
    about: &Call<'_>,
    input: &HostMaintenanceInput,
) -> Answer {
    let command = match input.action {
        // The contract has made sure of a count.
        MaintenanceAction::Prune => ChatCommand::Prune { count: input.count.unwrap_or_default() },
        MaintenanceAction::Clear => ChatCommand::Clear,
    };
    let committed = service.propose(about, Command::Chat(command)).await?;
    let Reply::Pruned { removed, remaining } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    written(&committed).stamp(&HostMaintenanceOutput { ok: true, removed, remaining })
}
