//! Long texts on their way into the log: first in chunks, then by the command that names them.
//!
//! A text of one chunk goes within its command. A longer one is an upload (decision 41): an entry
//! that begins it, one a chunk, each proposed when the one before is applied here, and the command.
//! Messages of others pass between them, and no member is more than this text behind for it: it has
//! at most 1 MiB, the bound that traps.md 21 sets.
//!
//! The call's request id goes with the entry that begins, whose answer is the upload's number; the
//! last entry has an id made of it (decision 50). So whoever repeats the call, on whatever node,
//! finds the same upload, goes on where it stopped, and ends with the same command: one effect, one
//! answer. The text's hash stands in the first entry, so another text under the same id is refused
//! there. Chunks have ids that the node makes. A call that comes without an id gets one of the kind
//! that callers give, so that it too can be repeated when its end is not known.

use data_encoding::HEXLOWER;
use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::command::ProjectCommand;
use nexus_domain::command::projects::{Content, UploadTarget};
use nexus_domain::{Command, Reply, bodies, limits};
use nexus_raft::Committed;
use sha2::{Digest as _, Sha256};

use super::{Call, Service, errors};

/// Proposes a command with a text in it; `field` is what callers call the text.
///
/// # Errors
/// As [`Service::propose`]. Where the command itself was not begun, the refusal says so, and under
/// which request id the call goes on.
pub(super) async fn propose(
    service: &Service,
    about: &Call<'_>,
    (field, text): (&str, String),
    command: impl FnOnce(Content) -> Command + Send,
) -> Result<Committed, ApiError> {
    if bytes(&text) <= limits::CHUNK_BYTES {
        return service.propose(about, command(Content::Inline(text))).await;
    }
    let made = about.request_id.is_none().then(made_id);
    let id = about.request_id.or(made.as_deref()).unwrap_or_default();
    let upload = Upload { service, about, id };
    let number = upload.begin(field, &text).await?;
    let is_there = upload.send(number, text.as_bytes()).await?;
    let last = last_id(id);
    let call = Call { request_id: Some(&last), repeat: Some(id), ..about.clone() };
    let outcome = service.propose(&call, command(Content::Uploaded(number))).await;
    let Err(error) = outcome else { return outcome };
    if error.code == ErrorCode::NotFound && !is_there {
        return Err(ended(field));
    }
    if !error.code.may_pass() {
        // Nothing will name it any more. If this fails, it ends by itself.
        let _given_up = upload.step(ProjectCommand::AbandonUpload { upload: number }).await;
    }
    Err(error)
}

/// An upload of one text.
struct Upload<'a> {
    service: &'a Service,
    about: &'a Call<'a>,
    /// The id under which the whole call has one effect.
    id: &'a str,
}

impl Upload<'_> {
    /// Begins it, or finds it again; returns its number.
    async fn begin(&self, field: &str, text: &str) -> Result<u64, ApiError> {
        let command = ProjectCommand::BeginUpload {
            target: UploadTarget::Text,
            size: bytes(text),
            sha256: Sha256::digest(text.as_bytes()).to_vec(),
        };
        let call = Call { request_id: Some(self.id), ..self.about.clone() };
        let begun = self.service.propose(&call, Command::Project(command)).await;
        let begun = begun.map_err(|mut error| {
            // The caller knows the text by its field, not as something that has a size.
            if let Some(what) = error.message.strip_prefix("size: ") {
                error.message = format!("{field}: {what}");
            }
            self.not_done(error)
        })?;
        let Reply::Uploading { upload, .. } = begun.reply else {
            return Err(errors::odd_reply(self.about.tool));
        };
        Ok(upload)
    }

    /// Sends the chunks that are missing. Returns whether the upload is there: another try of the
    /// same call may have been faster, or it lasted too long.
    async fn send(&self, number: u64, text: &[u8]) -> Result<bool, ApiError> {
        let length = usize::try_from(limits::CHUNK_BYTES).unwrap_or(usize::MAX);
        let mut next = self.waits_for(number).await?;
        while let Some(place) = next {
            let at = usize::try_from(place).unwrap_or(usize::MAX);
            let Some(chunk) = text.chunks(length).nth(at) else { return Ok(true) };
            let bytes = chunk.to_vec();
            let command = ProjectCommand::UploadChunk { upload: number, place, bytes };
            next = match self.step(command).await {
                Ok(Reply::Uploading { next, .. }) => Some(next),
                Ok(_) => return Err(errors::odd_reply(self.about.tool)),
                Err(error) if matches!(error.code, ErrorCode::Conflict | ErrorCode::NotFound) => {
                    let now = self.waits_for(number).await?;
                    // It has moved on, or the refusal had another reason.
                    if now.is_some_and(|now| now <= place) {
                        return Err(error);
                    }
                    now
                }
                Err(error) => return Err(self.not_done(error)),
            };
        }
        Ok(false)
    }

    /// Returns the place of the chunk that it waits for; `None` when it is not there any more.
    async fn waits_for(&self, number: u64) -> Result<Option<u64>, ApiError> {
        let fresh = self.service.read(|view| bodies::upload(view, number)).await?;
        match &fresh.value {
            Some(upload) => Ok(Some(upload.next())),
            None if fresh.stale.is_none() => Ok(None),
            // Perhaps it has not come to this node yet.
            None => Err(self.not_done(errors::no_answer())),
        }
    }

    /// Proposes one of its entries under an id of this node.
    async fn step(&self, command: ProjectCommand) -> Result<Reply, ApiError> {
        let call = Call { request_id: None, ..self.about.clone() };
        Ok(self.service.propose(&call, Command::Project(command)).await?.reply)
    }

    /// Says of a failure on the way that the call itself was not done, and how it goes on.
    fn not_done(&self, error: ApiError) -> ApiError {
        if error.code == ErrorCode::UnknownOutcome {
            return self.not_done(errors::no_answer());
        }
        if !error.code.may_pass() {
            return error;
        }
        let message = format!(
            "{}; call again with request id {}: it goes on where it stopped",
            error.message, self.id
        );
        ApiError { message, ..error }.with_request_id(self.id)
    }
}

/// The upload has ended, and nothing that the call asked for was done.
fn ended(field: &str) -> ApiError {
    let text = format!(
        "{field}: what had come of it is gone, since the call was not finished within an hour; \
         nothing was done: call again with a new request id"
    );
    ApiError::new(ErrorCode::RequestExpired, text)
}

/// Makes a request id for a call that came without one.
fn made_id() -> String {
    format!("text-{}", HEXLOWER.encode(&nexus_rt::unique_bytes::<16>()))
}

/// Returns the id of the last entry of a call; the same for the same call on every node.
fn last_id(id: &str) -> String {
    format!("text-{}", HEXLOWER.encode(&Sha256::digest(id.as_bytes())))
}

fn bytes(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_and_are_the_same_everywhere() {
        let long = "ü".repeat(100);
        assert_eq!(last_id(&long), last_id(&long));
        assert_ne!(last_id(&long), last_id("r-1"));
        assert_ne!(made_id(), made_id());
        for id in [last_id(&long), made_id()] {
            assert!(id.len() <= limits::CLIENT_ID_BYTES_MAX, "{id}");
        }
        // Written down, because nodes of all versions must make the same.
        let known = "text-a5fa777a3dc67268caea6eea038ba14177e360dba84e1db44e738dbae137e7ef";
        assert_eq!(last_id("r-1"), known);
    }
}
