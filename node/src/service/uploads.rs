//! What is longer than an entry of the log: brought chunk by chunk, and then named by one command
//! (traps.md 21).
//!
//! One chunk is under way at a time. The next one is proposed when this one is committed, so that a
//! majority has it, and when the slowest member that is up lacks less than 1 MiB of the log. Writes
//! of others go between two chunks, and no member is buried.
//!
//! An upload is open only while somebody here brings it: whoever gives up, or whose caller hangs
//! up, abandons it. A node that dies leaves it to its hour's end, or to the same call's next try.
//!
//! Under a request id all of it has one effect, see [`Ids`].

mod ids;
mod open;
mod source;

use std::time::Duration;

use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::command::projects::{Content, UploadTarget};
use nexus_domain::command::{Command, ProjectCommand};
use nexus_domain::{Rejection, Reply, bodies, clock, limits};
use nexus_raft::{Committed, ProposeError};
use tokio::time::Instant;

use super::assets::hex;
use super::{Call, Service, errors};
use ids::Ids;
use open::Open;
pub(crate) use source::Source;
pub(super) use source::{Coming, digest};

/// Bytes of the log that the slowest member that is up may lack while more is brought (traps.md
/// 21): on a link of 20 Mbit/s it has them in half a second, and only then others' writes.
const AHEAD_BYTES_MAX: u64 = 1024 * 1024;
/// How often it is looked at again.
const PACE_PAUSE: Duration = Duration::from_millis(20);
/// How often it is looked whether one of the cluster's two places is free.
const PLACE_PAUSE: Duration = Duration::from_millis(100);
/// After how long the log itself is asked for a place: its time passes only with its entries, so a
/// place that nobody uses any more is seen by the next one who asks.
const PLACE_LIMIT: Duration = Duration::from_secs(3);
/// Uploads that one request id may begin: a new one when the one before was given up.
const ATTEMPTS_MAX: u32 = 8;
/// The pause before a command is proposed again that found no leader.
const AGAIN_PAUSE: Duration = Duration::from_millis(250);
/// How long the last word may take once the time is over: a proposal ends within ten seconds.
const LAST_WORD: Duration = Duration::from_secs(2);
/// When a call is right that found no place.
const BUSY_SECONDS: u64 = 5;

/// How long an upload waits for others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// In all.
    whole: Duration,
    /// For a place, and for a slow member.
    step: Duration,
    /// For a leader, once it has begun, beyond what every write waits for one.
    leader: Duration,
}

impl Patience {
    /// Of a tool's call, which clients give up after fifteen seconds.
    pub(super) const OF_A_CALL: Self = Self {
        whole: Duration::from_secs(10),
        step: Duration::from_secs(10),
        leader: Duration::ZERO,
    };
    /// Of a file that is sent: as long as the log lets an upload last, and one that does not move
    /// for a minute loses its place there.
    pub(super) const OF_A_FILE: Self = Self {
        whole: Duration::from_secs(60 * 60),
        step: Duration::from_secs(60),
        leader: Duration::from_secs(60),
    };
}

/// Puts a text into the log with the command that is made with it: with the command itself when it
/// is short enough for that. `field` is what callers call the text.
///
/// # Errors
/// As [`bring`].
pub(super) async fn text(
    service: &Service,
    about: &Call<'_>,
    (field, text): (&'static str, String),
    command: &(impl Fn(Content) -> Command + Sync),
) -> Result<Committed, ApiError> {
    if super::count(text.len()) <= limits::CHUNK_BYTES {
        return service.propose(about, command(Content::Inline(text))).await;
    }
    let made = made_id(about);
    let about = Call { request_id: about.request_id.or(made.as_deref()), ..about.clone() };
    let last = |upload| command(Content::Uploaded(upload));
    bring(service, &about, Coming::text(field, text), Patience::OF_A_CALL, &last).await
}

/// Makes a request id for a call that came without one, of the kind that callers give: so it too
/// can be repeated when its end is not known.
pub(super) fn made_id(about: &Call<'_>) -> Option<String> {
    let made = || format!("upload-{}", hex(&nexus_rt::unique_bytes::<16>()));
    about.request_id.is_none().then(made)
}

/// Brings bytes into the log, and then proposes the command that names them.
///
/// # Errors
/// Every refusal of the log; `busy` when others are in the way for too long. Nothing is stored
/// then, except under `unknown_outcome`.
pub(super) async fn bring(
    service: &Service,
    about: &Call<'_>,
    coming: Coming,
    patience: Patience,
    last: &(impl Fn(u64) -> Command + Sync),
) -> Result<Committed, ApiError> {
    let steps = Call { request_id: None, ..about.clone() };
    let until = Instant::now() + patience.whole;
    let mut bringer = Bringer { service, about, steps, coming, patience, until };
    let whole = patience.whole + LAST_WORD;
    match tokio::time::timeout(whole, bringer.run(last)).await {
        Ok(outcome) => outcome,
        Err(_late) => Err(unknown(about, None)),
    }
}

/// What to do where it is not known whether something was stored.
const AGAIN: &str = "call again, which stores the same once more";

/// One call's upload.
struct Bringer<'a> {
    service: &'a Service,
    about: &'a Call<'a>,
    /// The call without its request id: that stands for the whole.
    steps: Call<'a>,
    coming: Coming,
    patience: Patience,
    until: Instant,
}

impl Bringer<'_> {
    async fn run(
        &mut self,
        last: &(impl Fn(u64) -> Command + Sync),
    ) -> Result<Committed, ApiError> {
        for attempt in 0..ATTEMPTS_MAX {
            let ids = Ids::of(self.about.request_id, attempt);
            let mut open = self.begin(&ids).await?;
            self.send(&mut open).await?;
            let command = last(open.number());
            match self.propose(ids.end, &command, self.patience.leader).await? {
                Ok(committed) => {
                    open.settled();
                    return Ok(committed);
                }
                // It is over: given up by whoever brought it, or with what it was for.
                Err(ProposeError::Rejected(Rejection::NotFound { .. })) => {}
                Err(ProposeError::Unknown { missing, .. }) => {
                    return Err(unknown(self.about, missing));
                }
                Err(error) => return Err(self.not_stored(error)),
            }
        }
        let text = "requestId: what this call brought was given up each time, and nothing was \
                    stored: call again with a new request id";
        Err(ApiError::new(ErrorCode::RequestExpired, text))
    }

    /// Begins an upload, or finds the one that this id has begun.
    async fn begin(&self, ids: &Ids) -> Result<Open, ApiError> {
        let command = Command::Project(ProjectCommand::BeginUpload {
            target: self.coming.target.clone(),
            size: self.coming.size,
            sha256: self.coming.sha256.to_vec(),
        });
        loop {
            self.wait_for_place().await?;
            match self.propose(ids.begin.clone(), &command, Duration::ZERO).await? {
                Ok(Committed { reply: Reply::Uploading { upload, .. }, .. }) => {
                    return Ok(Open::new(self.service, self.about.who()?, upload));
                }
                Ok(_) => return Err(errors::odd_reply(self.about.tool)),
                Err(ProposeError::Rejected(Rejection::Busy { .. })) if self.has_time() => {
                    tokio::time::sleep(PLACE_PAUSE).await;
                }
                Err(error) => return Err(self.not_stored(error)),
            }
        }
    }

    /// Sends the chunks that are missing; none when the upload is over.
    async fn send(&mut self, open: &mut Open) -> Result<(), ApiError> {
        let chunks = self.coming.chunks();
        let mut moved = Instant::now();
        let mut next = self.next(open).await?;
        while let Some(place) = next.filter(|place| *place < chunks) {
            self.keep_pace().await?;
            let bytes = self.coming.chunk(place).await?;
            let upload = open.number();
            let command = Command::Project(ProjectCommand::UploadChunk { upload, place, bytes });
            match self.propose(None, &command, self.patience.leader).await? {
                Ok(Committed { reply: Reply::Uploading { next: then, .. }, .. }) => {
                    moved = Instant::now();
                    next = Some(then);
                }
                Ok(_) => return Err(errors::odd_reply(self.about.tool)),
                // The same call is here twice, and the other one was quicker with this chunk; or
                // the upload is over.
                Err(ProposeError::Rejected(
                    Rejection::Conflict { .. } | Rejection::NotFound { .. },
                )) => next = self.next(open).await?,
                // It did not move for a minute, and others took its place.
                Err(ProposeError::Rejected(Rejection::Busy { .. })) => {
                    tokio::time::sleep(PLACE_PAUSE).await;
                    self.wait_for_place().await?;
                }
                Err(error) => return Err(self.not_stored(error)),
            }
            if moved.elapsed() >= self.patience.step || !self.has_time() {
                return Err(no_place());
            }
        }
        Ok(())
    }

    /// Returns for which chunk an upload waits; `None` when it is over.
    async fn next(&self, open: &mut Open) -> Result<Option<u64>, ApiError> {
        let number = open.number();
        let fresh = self.service.read(|view| bodies::upload(view, number)).await?;
        if fresh.value.is_none() && fresh.stale.is_none() {
            open.settled();
        }
        Ok(fresh.value.map(|upload| upload.next()))
    }

    /// Waits until the slowest member that is up has nearly all of the log.
    async fn keep_pace(&self) -> Result<(), ApiError> {
        let since = Instant::now();
        while let Some(slowest) = self.service.cluster.slowest().await {
            if slowest.bytes < AHEAD_BYTES_MAX {
                break;
            }
            if since.elapsed() >= self.patience.step || !self.has_time() {
                let text = format!(
                    "{} is up and lacks {} bytes of the log, so nothing long is added to it: call \
                     again when it has caught up (nexus status, LAG)",
                    slowest.name, slowest.bytes
                );
                return Err(ApiError::new(ErrorCode::Busy, text).with_retry_after(BUSY_SECONDS));
            }
            tokio::time::sleep(PACE_PAUSE).await;
        }
        Ok(())
    }

    /// Waits, for a while, until fewer than two uploads of assets move in the cluster.
    async fn wait_for_place(&self) -> Result<(), ApiError> {
        let since = Instant::now();
        while matches!(self.coming.target, UploadTarget::Asset { .. })
            && self.is_crowded()?
            && since.elapsed() < PLACE_LIMIT
        {
            if !self.has_time() {
                return Err(no_place());
            }
            tokio::time::sleep(PLACE_PAUSE).await;
        }
        Ok(())
    }

    fn has_time(&self) -> bool {
        Instant::now() < self.until
    }

    fn is_crowded(&self) -> Result<bool, ApiError> {
        let moving = self.service.cluster.look(|view| {
            let now = clock::clock(view)?;
            let open = bodies::uploads(view)?;
            Ok(open.iter().filter(|(_, upload)| upload.is_moving(now)).count())
        });
        let moving = moving.map_err(|error| errors::read(&error))?;
        Ok(moving >= limits::UPLOADS_MOVING_MAX)
    }

    /// Puts a command into the log, and asks again while there is no leader, for so long, or while
    /// its outcome is not known and time remains.
    async fn propose(
        &self,
        mut id: Option<String>,
        command: &Command,
        patience: Duration,
    ) -> Result<Result<Committed, ProposeError>, ApiError> {
        let since = Instant::now();
        loop {
            let outcome = self.service.offer(&self.steps, id.clone(), command).await;
            let error = match outcome.map_err(|refusal| self.to_be_repeated(refusal))? {
                Ok(committed) => return Ok(Ok(committed)),
                Err(error) => error,
            };
            let is_patient = since.elapsed() < patience;
            match &error {
                // The same command under the same id has one effect.
                ProposeError::Unknown { request, .. } if self.has_time() => {
                    id = Some(request.clone());
                }
                ProposeError::NoQuorum { .. } | ProposeError::Busy { .. } if is_patient => {
                    tokio::time::sleep(AGAIN_PAUSE).await;
                }
                // Its caller is on another node at the same time, and moves there and back with
                // each step of both.
                ProposeError::Rejected(Rejection::NotHere { .. }) if self.has_time() => {
                    tokio::time::sleep(AGAIN_PAUSE).await;
                }
                ProposeError::Unknown { .. }
                | ProposeError::NoQuorum { .. }
                | ProposeError::Busy { .. }
                | ProposeError::Rejected(_)
                | ProposeError::TooLarge { .. }
                | ProposeError::Stopping
                | ProposeError::DiskFull { .. }
                | ProposeError::Fatal(_) => return Ok(Err(error)),
            }
        }
    }

    /// Turns the end of a step before the last one into a refusal: nothing is stored.
    fn not_stored(&self, error: ProposeError) -> ApiError {
        let mut refusal = if let ProposeError::Unknown { missing, .. } = error {
            let missing = missing.map(|text| format!("; but now {text}")).unwrap_or_default();
            let text = format!(
                "no answer came in time while bytes were on their way; nothing was stored{missing}"
            );
            ApiError::new(ErrorCode::NoQuorum, text).with_retry_after(1)
        } else {
            self.refused(error)
        };
        // The caller knows the bytes by their field, not as something that has a size.
        if let Some(what) = refusal.message.strip_prefix("size: ") {
            refusal.message = format!("{}: {what}", self.coming.field);
        }
        self.to_be_repeated(refusal)
    }

    /// Names the id to repeat the call with, in a refusal that may pass.
    fn to_be_repeated(&self, mut refusal: ApiError) -> ApiError {
        match self.about.request_id {
            Some(id) if refusal.code.may_pass() => {
                refusal.message.push_str(&format!("; call again with request id {id}"));
                refusal.with_request_id(id)
            }
            Some(_) | None => refusal,
        }
    }

    fn refused(&self, error: ProposeError) -> ApiError {
        errors::write(self.about.tool, errors::repeated_with(error, self.about.request_id))
    }
}

/// Whether it was stored is not known.
fn unknown(about: &Call<'_>, missing: Option<String>) -> ApiError {
    let request = about.request_id.unwrap_or_default().to_owned();
    let error = ProposeError::Unknown { request, missing };
    match about.request_id {
        Some(_) => errors::write(about.tool, error),
        None => errors::verb(about.tool, error, AGAIN),
    }
}

fn no_place() -> ApiError {
    let text = "two uploads of files are under way in the cluster: call again when one has ended; \
                nothing was stored";
    ApiError::new(ErrorCode::Busy, text).with_retry_after(BUSY_SECONDS)
}
