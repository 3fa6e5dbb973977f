//! The tools: input → command for the log, or query of the state → output.
//!
//! One file a family. A write goes to the log under the caller's request id and is answered when it
//! is committed; a read is linearizable, or says that it is stale. Nothing here keeps anything of
//! value: what is in memory only saves work or explains an answer.

pub(crate) mod assets;
pub(crate) mod caller;
mod chat;
pub(crate) mod cluster;
mod conversations;
mod documents;
mod errors;
mod events;
pub(crate) mod invites;
mod mail;
mod maintenance;
mod meetings;
mod memory;
mod projects;
pub(crate) mod receipts;
mod tasks;
pub(crate) mod time;
pub(crate) mod uploads;

use std::sync::Arc;

use nexus_contract::documents as document_tools;
use nexus_contract::http::ToolCall;
use nexus_contract::mail as mail_tools;
use nexus_contract::maintenance as maintenance_tools;
use nexus_contract::meetings as meeting_tools;
use nexus_contract::projects as project_tools;
use nexus_contract::tasks as task_tools;
use nexus_contract::tool::Tool as _;
use nexus_contract::{ApiError, ErrorCode, ReadMarks, chat as chat_tools, ids, validate};
use nexus_contract::{conversations as conversation_tools, events as event_tools};
use nexus_domain::command::ConversationCommand;
use nexus_domain::conversations::conversation;
use nexus_domain::{Actor, Command, Fault, Rejection};
use nexus_raft::{Cluster, Committed, Fresh, ProposeError, Request, View};
use nexus_rt::Jobs;
use serde_json::{Map, Value};

use caller::Who;
use memory::Memory;

/// What serves the tools; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    cluster: Cluster,
    memory: Arc<Memory>,
    /// What a call leaves to be done when it has ended.
    jobs: Jobs,
    /// For how many minutes a meeting must be quiet before approvers of a draft that is published
    /// here are reminded; 0: for ever.
    reminder_minutes: u32,
}

/// One call: who, and under which request id.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    tool: &'static str,
    who: Option<Who>,
    request_id: Option<&'a str>,
}

impl Call<'_> {
    /// Returns the caller, who must be known.
    fn who(&self) -> Result<&Who, ApiError> {
        self.who.as_ref().ok_or_else(|| {
            ApiError::new(
                ErrorCode::Unidentified,
                format!(
                    "{} needs to know who calls: give instanceId in the call's body; an \
                     instance signs what it does, and has its own place in the messages",
                    self.tool
                ),
            )
        })
    }
}

type Answer = Result<Map<String, Value>, ApiError>;

impl Service {
    /// Makes the service on a cluster.
    pub(crate) fn new(cluster: Cluster, jobs: Jobs, reminder_minutes: u32) -> Self {
        Self { cluster, memory: Arc::default(), jobs, reminder_minutes }
    }

    /// Serves one call.
    ///
    /// # Errors
    /// Every refusal of the contract; nothing was changed then, except under `unknown_outcome`.
    pub(crate) async fn call(&self, call: ToolCall) -> Answer {
        let Some(spec) = nexus_contract::catalog::find(&call.tool) else {
            return Err(ApiError::unknown_tool(&call.tool));
        };
        let invalid = |what| ApiError::invalid_arguments(spec.name, what);
        if let Some(id) = &call.request_id {
            ids::request("requestId", id).map_err(invalid)?;
        }
        let who = caller::who(&call, self.cluster.node()).map_err(invalid)?;
        let request_id = call.request_id.as_deref();
        let about = Call { tool: spec.name, who, request_id };
        self.talk(&about, call.args).await
    }

    /// Serves the tools with which conversations talk.
    async fn talk(&self, about: &Call<'_>, args: Value) -> Answer {
        match about.tool {
            conversation_tools::Peers::NAME => {
                let input = validate::input::<conversation_tools::Peers>(args)?;
                conversations::peers(self, about, &input).await
            }
            conversation_tools::SetProfile::NAME => {
                let input = validate::input::<conversation_tools::SetProfile>(args)?;
                conversations::set_profile(self, about, input).await
            }
            conversation_tools::Listen::NAME => {
                let input = validate::input::<conversation_tools::Listen>(args)?;
                conversations::listen(self, about, &input).await
            }
            mail_tools::Send::NAME => {
                let input = validate::input::<mail_tools::Send>(args)?;
                mail::send(self, about, input).await
            }
            mail_tools::Read::NAME => {
                let input = validate::input::<mail_tools::Read>(args)?;
                mail::read(self, about, &input).await
            }
            mail_tools::Reply::NAME => {
                let input = validate::input::<mail_tools::Reply>(args)?;
                mail::reply(self, about, input).await
            }
            chat_tools::SendMessage::NAME => {
                let input = validate::input::<chat_tools::SendMessage>(args)?;
                chat::send_message(self, about, input).await
            }
            chat_tools::ReadMessages::NAME => {
                let input = validate::input::<chat_tools::ReadMessages>(args)?;
                chat::read_messages(self, about, &input).await
            }
            _ => self.meet(about, args).await,
        }
    }

    /// Serves the tools of meetings.
    async fn meet(&self, about: &Call<'_>, args: Value) -> Answer {
        match about.tool {
            meeting_tools::ListMeetings::NAME => {
                let input = validate::input::<meeting_tools::ListMeetings>(args)?;
                meetings::list_meetings(self, about, &input).await
            }
            meeting_tools::StartMeeting::NAME => {
                let input = validate::input::<meeting_tools::StartMeeting>(args)?;
                meetings::start_meeting(self, about, input).await
            }
            meeting_tools::EndMeeting::NAME => {
                let input = validate::input::<meeting_tools::EndMeeting>(args)?;
                meetings::end_meeting(self, about, input).await
            }
            meeting_tools::ArchiveMeeting::NAME => {
                let input = validate::input::<meeting_tools::ArchiveMeeting>(args)?;
                meetings::archive_meeting(self, about, input).await
            }
            meeting_tools::ReopenMeeting::NAME => {
                let input = validate::input::<meeting_tools::ReopenMeeting>(args)?;
                meetings::reopen_meeting(self, about, input).await
            }
            meeting_tools::JoinMeeting::NAME => {
                let input = validate::input::<meeting_tools::JoinMeeting>(args)?;
                meetings::join_meeting(self, about, input).await
            }
            meeting_tools::LeaveMeeting::NAME => {
                let input = validate::input::<meeting_tools::LeaveMeeting>(args)?;
                meetings::leave_meeting(self, about, input).await
            }
            meeting_tools::Stance::NAME => {
                let input = validate::input::<meeting_tools::Stance>(args)?;
                meetings::stances::stance(self, about, input).await
            }
            _ => self.work(about, args).await,
        }
    }

    /// Serves the tools of what conversations share and leave behind.
    async fn work(&self, about: &Call<'_>, args: Value) -> Answer {
        match about.tool {
            task_tools::CreateTask::NAME => {
                let input = validate::input::<task_tools::CreateTask>(args)?;
                tasks::create_task(self, about, input).await
            }
            task_tools::GetTask::NAME => {
                let input = validate::input::<task_tools::GetTask>(args)?;
                tasks::get_task(self, about, &input).await
            }
            task_tools::ListTasks::NAME => {
                let input = validate::input::<task_tools::ListTasks>(args)?;
                tasks::list_tasks(self, about, &input).await
            }
            task_tools::UpdateTask::NAME => {
                let input = validate::input::<task_tools::UpdateTask>(args)?;
                tasks::update_task(self, about, input).await
            }
            task_tools::CancelTask::NAME => {
                let input = validate::input::<task_tools::CancelTask>(args)?;
                tasks::cancel_task(self, about, &input).await
            }
            document_tools::UpdateGlobalStrategy::NAME => {
                let input = validate::input::<document_tools::UpdateGlobalStrategy>(args)?;
                documents::update_global_strategy(self, about, input).await
            }
            document_tools::GetGlobalStrategy::NAME => {
                validate::input::<document_tools::GetGlobalStrategy>(args)?;
                documents::get_global_strategy(self, about).await
            }
            document_tools::ListGlobalDocs::NAME => {
                let input = validate::input::<document_tools::ListGlobalDocs>(args)?;
                documents::list_global_docs(self, about, &input).await
            }
            document_tools::GetGlobalDoc::NAME => {
                let input = validate::input::<document_tools::GetGlobalDoc>(args)?;
                documents::get_global_doc(self, about, &input).await
            }
            document_tools::SyncGlobalDoc::NAME => {
                let input = validate::input::<document_tools::SyncGlobalDoc>(args)?;
                documents::sync_global_doc(self, about, input).await
            }
            event_tools::ListEvents::NAME => {
                let input = validate::input::<event_tools::ListEvents>(args)?;
                events::list_events(self, about, &input).await
            }
            maintenance_tools::HostMaintenance::NAME => {
                let input = validate::input::<maintenance_tools::HostMaintenance>(args)?;
                maintenance::host_maintenance(self, about, &input).await
            }
            _ => self.build(about, args).await,
        }
    }

    /// Serves the tools of projects.
    async fn build(&self, about: &Call<'_>, args: Value) -> Answer {
        match about.tool {
            project_tools::SyncProjectAssets::NAME => {
                let input = validate::input::<project_tools::SyncProjectAssets>(args)?;
                projects::sync_project_assets(self, about, input).await
            }
            project_tools::UploadProjectAsset::NAME => {
                let input = validate::input::<project_tools::UploadProjectAsset>(args)?;
                assets::upload_project_asset(self, about, input).await
            }
            project_tools::UpdateProject::NAME => {
                let input = validate::input::<project_tools::UpdateProject>(args)?;
                projects::update_project(self, about, input).await
            }
            project_tools::RenameProject::NAME => {
                let input = validate::input::<project_tools::RenameProject>(args)?;
                projects::rename_project(self, about, input).await
            }
            project_tools::SearchProjects::NAME => {
                let input = validate::input::<project_tools::SearchProjects>(args)?;
                projects::search_projects(self, about, input).await
            }
            project_tools::GetGlobalTopology::NAME => {
                let input = validate::input::<project_tools::GetGlobalTopology>(args)?;
                projects::get_global_topology(self, about, &input).await
            }
            project_tools::GetProject::NAME => {
                let input = validate::input::<project_tools::GetProject>(args)?;
                projects::get_project(self, about, &input).await
            }
            project_tools::HostDeleteProject::NAME => {
                let input = validate::input::<project_tools::HostDeleteProject>(args)?;
                projects::host_delete_project(self, about, input).await
            }
            other => Err(ApiError::internal(format!("tool {other} is listed and not served"))),
        }
    }

    /// Returns the conversations as people see them.
    ///
    /// # Errors
    /// When the local state cannot be read.
    pub(crate) async fn peers(&self, include_offline: bool) -> Answer {
        let input = conversation_tools::PeersInput { include_offline };
        conversations::shown_to_people(self, &input).await
    }

    /// Puts a command of the caller into the log; makes the caller known here first.
    async fn propose(&self, about: &Call<'_>, command: Command) -> Result<Committed, ApiError> {
        let id = about.request_id.map(str::to_owned);
        let outcome = self.offer(about, id, &command).await?;
        outcome.map_err(|error| errors::write(about.tool, error))
    }

    /// As [`Self::propose`], under any request id and with the log's own word of how it ended.
    async fn offer(
        &self,
        about: &Call<'_>,
        id: Option<String>,
        command: &Command,
    ) -> Result<Result<Committed, ProposeError>, ApiError> {
        let who = about.who()?;
        self.make_known(about, who).await?;
        let ask = || {
            let actor = Actor::Conversation(who.id.clone());
            self.cluster.propose(Request { actor, id: id.clone(), command: command.clone() })
        };
        let outcome = match ask().await {
            // It moved away between the look and the entry: bring it back, in the same call.
            Err(ProposeError::Rejected(Rejection::NotHere { .. })) => {
                self.register(about, who).await?;
                ask().await
            }
            other => other,
        };
        if let Ok(committed) = &outcome {
            self.memory.acknowledged(&who.id, committed.index);
        }
        Ok(outcome)
    }

    /// Registers the caller if the local state does not have it here, or a new process speaks.
    async fn make_known(&self, about: &Call<'_>, who: &Who) -> Result<(), ApiError> {
        let known = self
            .cluster
            .look(|view| conversation(view, &who.id))
            .map_err(|error| errors::read(&error))?;
        let is_here = known.is_some_and(|known| {
            let same_process = match who.incarnation {
                // Clients of one folder share an instance id: each of their processes registers
                // once, not with every turn they take.
                Some(incarnation) => {
                    known.incarnation == incarnation || self.memory.spoke(&who.id, incarnation)
                }
                None => true,
            };
            known.home == self.cluster.node() && same_process
        });
        if is_here { Ok(()) } else { self.register(about, who).await }
    }

    async fn register(&self, about: &Call<'_>, who: &Who) -> Result<(), ApiError> {
        let incarnation = who.incarnation.unwrap_or(0);
        let command = Command::Conversation(ConversationCommand::Register {
            client: who.client,
            cwd: who.cwd.clone(),
            incarnation,
        });
        let actor = Actor::Conversation(who.id.clone());
        let outcome = self.cluster.propose(Request { actor, id: None, command }).await;
        outcome.map_err(|error| errors::not_begun(about.tool, about.request_id, error))?;
        self.memory.speaks(&who.id, incarnation);
        Ok(())
    }

    /// Reads, linearizably where a quorum answers.
    async fn read<T: Send>(
        &self,
        query: impl FnOnce(&View<'_>) -> Result<T, Fault> + Send,
    ) -> Result<Fresh<T>, ApiError> {
        self.cluster.read(query).await.map_err(|error| errors::read(&error))
    }

    /// Looks at a state with a write in it, so that a writer is never shown its own write undone;
    /// where this node does not get there in time, at the state that it has.
    async fn after<T: Send>(
        &self,
        about: &Call<'_>,
        committed: &Committed,
        query: impl FnOnce(&View<'_>) -> Result<T, Fault> + Send,
    ) -> Result<After<T>, ApiError> {
        if committed.applied_here {
            let value = self.cluster.look(query).map_err(|error| errors::read(&error))?;
            return Ok(After { value, has_it: true, marks: ReadMarks::default() });
        }
        let fresh = self.read(query).await?;
        if fresh.applied >= committed.index {
            return Ok(After { value: fresh.value, has_it: true, marks: ReadMarks::default() });
        }
        let mut marks = self.marks(about, &fresh);
        // The answer says what was done; the rest of it is as old as it says.
        marks.missing_your_write = None;
        marks.applied_here = Some(false);
        Ok(After { value: fresh.value, has_it: false, marks })
    }

    /// Returns what a reader must know of an answer's age.
    fn marks<T>(&self, about: &Call<'_>, fresh: &Fresh<T>) -> ReadMarks {
        let Some(stale) = &fresh.stale else { return ReadMarks::default() };
        let as_of = as_of(&self.cluster, stale.as_of);
        let own = about.who.as_ref().and_then(|who| self.memory.last(&who.id));
        let missing = own.is_some_and(|index| fresh.applied < index);
        ReadMarks {
            stale: Some(true),
            as_of: Some(as_of),
            missing_your_write: missing.then_some(true),
            ..ReadMarks::default()
        }
    }
}

/// What a look after a write saw.
struct After<T> {
    value: T,
    /// Whether the state has the write.
    has_it: bool,
    /// What the writer must know of its age.
    marks: ReadMarks,
}

/// Returns what a writer must know of where its write shows.
fn written(committed: &Committed) -> ReadMarks {
    ReadMarks { applied_here: (!committed.applied_here).then_some(false), ..ReadMarks::default() }
}

/// Says until when a stale answer is known to have been true, or why no time is known.
fn as_of(cluster: &Cluster, known: Option<u64>) -> String {
    let last = || cluster.look(|view| nexus_domain::clock::clock(view)).ok();
    let last_entry = known.is_none().then(last).flatten().map(|clock| clock.at);
    time::as_of(known, last_entry)
}

/// Writes a time as part of a file's name: UTC, without what file systems dislike.
pub(crate) fn file_stamp(millis: u64) -> String {
    time::text(millis).chars().filter(|letter| !matches!(letter, ':' | '.' | '-')).collect()
}

/// Returns a number of things as the JSON and the metrics count them.
pub(crate) fn count(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
