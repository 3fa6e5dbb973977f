//! An upload that is open in the log.

use nexus_domain::Actor;
use nexus_domain::command::{Command, ProjectCommand};
use nexus_raft::Request;

use crate::service::Service;
use crate::service::caller::Who;

/// An upload that somebody brings: abandoned when this is dropped before it was used, as it is when
/// the caller hangs up, so that it takes neither a place nor room from others.
#[derive(Debug)]
pub(super) struct Open {
    number: u64,
    service: Service,
    owner: String,
    /// Whether it is used, or over.
    is_settled: bool,
}

impl Open {
    /// Makes it of the number of an upload that this caller has begun.
    pub(super) fn new(service: &Service, who: &Who, number: u64) -> Self {
        Self { number, service: service.clone(), owner: who.id.clone(), is_settled: false }
    }

    /// Returns its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Notes that there is nothing to abandon: it is used, or over.
    pub(super) fn settled(&mut self) {
        self.is_settled = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let (upload, actor) = (self.number, Actor::Conversation(self.owner.clone()));
        let cluster = self.service.cluster.clone();
        self.service.jobs.spawn("abandon upload", async move {
            let command = Command::Project(ProjectCommand::AbandonUpload { upload });
            let outcome = cluster.propose(Request { actor, id: None, command }).await;
            // It ends by itself, an hour after it began.
            if let Err(error) = outcome {
                tracing::debug!(upload, %error, "an upload that nobody brings stays open");
            }
        });
    }
}
