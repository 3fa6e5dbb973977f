//! Meetings: talk with an end, drafts, and who agreed.
//!
//! What is said in a meeting is sent and read by the tools of the chat; here is who takes part, and
//! how a meeting begins and ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chat::Identity;
use crate::conversations::Status;
use crate::limits;
use crate::marks::is_false;
use crate::schema::{KnownId, brief, silent};
use crate::text;
use crate::tool::{Hints, Tool, ToolSpec};
use crate::validate::Violation;

/// The tools of this family.
pub(crate) const TOOLS: &[fn() -> ToolSpec] = &[
    ToolSpec::of::<ListMeetings>,
    ToolSpec::of::<StartMeeting>,
    ToolSpec::of::<EndMeeting>,
    ToolSpec::of::<ArchiveMeeting>,
    ToolSpec::of::<ReopenMeeting>,
    ToolSpec::of::<JoinMeeting>,
    ToolSpec::of::<LeaveMeeting>,
    ToolSpec::of::<Stance>,
];

/// Where a meeting stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeetingStatus {
    /// People talk.
    Active,
    /// It ended.
    Closed,
    /// It ended and was put away.
    Archived,
}

/// How a member takes part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Others' messages wake it or hold its turn.
    #[default]
    Active,
    /// It sees them at its next prompt or tool call.
    Async,
}

/// Whether a draft needs a member's endorsement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approver {
    /// No consensus without it.
    Required,
    /// It may say what it thinks.
    Optional,
}

/// How a meeting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndReason {
    /// All required approvers endorsed its draft.
    Consensus,
    /// Somebody ended it.
    Manual,
}

/// What somebody said of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    /// Who: a session id or instance id.
    pub id: String,
    /// What.
    pub note: String,
}

/// How a proposal stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approvals {
    /// Whose endorsement it needs.
    pub required: Vec<String>,
    /// Those of them who endorsed it.
    pub endorsed: Vec<String>,
    /// Those of them who said nothing.
    pub waiting: Vec<String>,
    /// Who is against it, anybody's, and why.
    pub objections: Vec<Remark>,
    /// What those who endorsed it have against it nevertheless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<Remark>,
}

/// A meeting's current draft, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// Its message's number.
    pub message_id: u64,
    /// Who published it.
    pub author: String,
    /// The version of the list of required approvers, from 1.
    pub approvers_version: u64,
    /// How it stands.
    #[serde(flatten)]
    pub approvals: Approvals,
}

/// Who joined a meeting and did not leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeetingMember {
    /// The session id or instance id.
    pub id: String,
    /// The conversation's name; null for an instance.
    pub name: Option<String>,
    /// The conversation's title; null for an instance.
    pub title: Option<String>,
    /// How it takes part.
    pub mode: Mode,
    /// Whether drafts need its endorsement.
    pub approver: Approver,
    /// What the conversation is doing; null for an instance.
    pub status: Option<Status>,
    /// When it joined (RFC 3339, UTC, milliseconds).
    pub joined_at: String,
    /// How often the meeting woke it or held its turn.
    pub wakes: u64,
    /// When that was last; null when it never was.
    pub last_woken_at: Option<String>,
}

/// A meeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meeting {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub topic: String,
    /// Where it stands.
    pub status: MeetingStatus,
    /// Who started it.
    pub initiator: String,
    /// When it was started (RFC 3339, UTC, milliseconds).
    pub start_time: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
    /// Who spoke in it.
    pub participants: Vec<String>,
    /// Who joined and did not leave.
    pub members: Vec<MeetingMember>,
    /// How many messages it has.
    pub message_count: u64,
    /// How many of them are decisions.
    pub decision_count: u64,
    /// How many wakes and held turns it caused.
    pub wakes: u64,
    /// What came of it, in the words of who ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// How it ended; null while it did not.
    pub end_reason: Option<EndReason>,
    /// Its current draft; null when there is none.
    pub proposal: Option<Proposal>,
}

/// Arguments of `list_meetings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMeetingsInput {
    /// Only those.
    #[schemars(transform = silent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<MeetingStatus>,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(transform = silent, range(min = 1, max = limits::MEETINGS_MAX))]
    pub limit: u32,
    /// Older than this one.
    #[schemars(with = "Option<KnownId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl Default for ListMeetingsInput {
    fn default() -> Self {
        Self { status: None, limit: limit_default(), before: None }
    }
}

fn limit_default() -> u32 {
    limits::MEETINGS_DEFAULT
}

/// Result of `list_meetings`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMeetingsOutput {
    /// How many are listed.
    pub count: u32,
    /// The default meeting; null when none is active.
    pub active_meeting_id: Option<String>,
    /// The meetings, newest first.
    pub meetings: Vec<Meeting>,
    /// True when there are older ones: `before` the last one's id.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
}

/// The tool `list_meetings`.
#[derive(Debug)]
pub struct ListMeetings;

impl Tool for ListMeetings {
    const NAME: &'static str = "list_meetings";
    const TITLE: &'static str = "List Meetings";
    const DESCRIPTION: &'static str = "Lists meetings, newest first, with members and draft.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = ListMeetingsInput;
    type Output = ListMeetingsOutput;
}

/// Arguments of `start_meeting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartMeetingInput {
    /// What it is about, on one line.
    #[schemars(
        transform = silent,
        transform = brief,
        length(min = 1, max = limits::TOPIC_CHARS_MAX)
    )]
    pub topic: String,
}

/// Result of `start_meeting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartMeetingOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// The new meeting's id.
    pub meeting_id: String,
    /// What it is about.
    pub topic: String,
    /// Active.
    pub status: MeetingStatus,
}

/// The tool `start_meeting`.
#[derive(Debug)]
pub struct StartMeeting;

impl Tool for StartMeeting {
    const NAME: &'static str = "start_meeting";
    const TITLE: &'static str = "Start Meeting";
    const DESCRIPTION: &'static str =
        "Starts a meeting and joins it; it is everyone's default until it ends.";
    const HINTS: Hints = Hints::ADDS;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = StartMeetingInput;
    type Output = StartMeetingOutput;

    fn check(input: &StartMeetingInput) -> Result<(), Violation> {
        text::line("topic", &input.topic)
    }
}

/// Arguments of `end_meeting`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndMeetingInput {
    /// None: the default meeting.
    #[schemars(with = "Option<KnownId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meeting_id: Option<String>,
    /// What came of it.
    #[schemars(transform = silent, length(max = limits::SUMMARY_CHARS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Result of `end_meeting`, `archive_meeting` and `reopen_meeting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeetingChangedOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Which meeting.
    pub meeting_id: String,
    /// Where it stands now.
    pub status: MeetingStatus,
    /// What came of it, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The tool `end_meeting`.
#[derive(Debug)]
pub struct EndMeeting;

impl Tool for EndMeeting {
    const NAME: &'static str = "end_meeting";
    const TITLE: &'static str = "End Meeting";
    const DESCRIPTION: &'static str =
        "Ends a meeting without consensus and tells its members the summary.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = EndMeetingInput;
    type Output = MeetingChangedOutput;
}

/// Arguments of the tools that name a meeting and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeetingInput {
    /// Which meeting.
    #[schemars(transform = silent, with = "KnownId")]
    pub meeting_id: String,
}

/// The tool `archive_meeting`.
#[derive(Debug)]
pub struct ArchiveMeeting;

impl Tool for ArchiveMeeting {
    const NAME: &'static str = "archive_meeting";
    const TITLE: &'static str = "Archive Meeting";
    const DESCRIPTION: &'static str = "Puts a meeting that has ended away; it stays readable.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = MeetingInput;
    type Output = MeetingChangedOutput;
}

/// The tool `reopen_meeting`.
#[derive(Debug)]
pub struct ReopenMeeting;

impl Tool for ReopenMeeting {
    const NAME: &'static str = "reopen_meeting";
    const TITLE: &'static str = "Reopen Meeting";
    const DESCRIPTION: &'static str =
        "Makes a closed or archived meeting active again; its draft is dropped.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = MeetingInput;
    type Output = MeetingChangedOutput;
}

/// A place in a meeting, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Before its first message.
    Beginning,
    /// Behind its newest message.
    Latest,
}

/// From where on a member reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Since {
    /// Behind the message of this number; 0 is the beginning.
    After(u64),
    /// From a place on.
    Place(Place),
}

/// Arguments of `join_meeting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinMeetingInput {
    /// Which meeting.
    #[schemars(transform = silent, with = "KnownId")]
    pub meeting_id: String,
    /// Async: new messages never wake you or hold your turn.
    #[serde(default)]
    pub mode: Mode,
    /// None: required when active, else optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<Approver>,
    /// A message number to read on behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
}

impl JoinMeetingInput {
    /// Returns whether drafts need the caller's endorsement.
    pub fn approver(&self) -> Approver {
        self.approver.unwrap_or(match self.mode {
            Mode::Active => Approver::Required,
            Mode::Async => Approver::Optional,
        })
    }
}

/// How a meeting's news reach a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// They wake it or hold its turn.
    Wake,
    /// They come with its next prompt or tool call.
    NextHook,
    /// Nothing can announce them to it: it must read.
    Unavailable,
}

/// Result of `join_meeting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinMeetingOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Which meeting.
    pub meeting_id: String,
    /// How the caller takes part.
    pub mode: Mode,
    /// Whether drafts need its endorsement.
    pub approver: Approver,
    /// As what the caller was recognised.
    pub identity: Identity,
    /// How news reach it.
    pub delivery: Delivery,
}

/// The tool `join_meeting`.
#[derive(Debug)]
pub struct JoinMeeting;

impl Tool for JoinMeeting {
    const NAME: &'static str = "join_meeting";
    const TITLE: &'static str = "Join Meeting";
    const DESCRIPTION: &'static str =
        "Joins a meeting so that its messages are announced to you, or changes your part.";
    const HINTS: Hints = Hints::ADDS_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = JoinMeetingInput;
    type Output = JoinMeetingOutput;
}

/// Result of `leave_meeting`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaveMeetingOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Which meeting.
    pub meeting_id: String,
}

/// The tool `leave_meeting`.
#[derive(Debug)]
pub struct LeaveMeeting;

impl Tool for LeaveMeeting {
    const NAME: &'static str = "leave_meeting";
    const TITLE: &'static str = "Leave Meeting";
    const DESCRIPTION: &'static str = "Leaves a meeting; drafts no longer wait for you.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = MeetingInput;
    type Output = LeaveMeetingOutput;
}

/// What one thinks of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Opinion {
    /// It is for it; a note is a reservation.
    Endorse,
    /// It is against it; the note says why.
    Object,
    /// It takes back what it said.
    Withdraw,
}

/// Arguments of `stance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StanceInput {
    /// Which meeting.
    #[schemars(transform = silent, with = "KnownId")]
    pub meeting_id: String,
    /// The proposal's number.
    #[schemars(range(min = 1))]
    pub message_id: u64,
    /// What one thinks of it.
    #[schemars(transform = silent)]
    pub stance: Opinion,
    /// Why; needed to object.
    #[schemars(length(max = limits::STANCE_NOTE_CHARS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Result of `stance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StanceOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Which meeting.
    pub meeting_id: String,
    /// The proposal's number.
    pub message_id: u64,
    /// The stance that was taken.
    pub stance: Opinion,
    /// The current draft's number; null when there is none.
    pub current_proposal_id: Option<u64>,
    /// Whether it can count for consensus: those of instances never do.
    pub counted: bool,
    /// How the proposal stands now.
    pub approvals: Approvals,
    /// Whether this stance was the last that was missing: the meeting is closed.
    pub decided: bool,
    /// With `decided`: the number of the message that says what was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<u64>,
}

/// The tool `stance`.
#[derive(Debug)]
pub struct Stance;

impl Tool for Stance {
    const NAME: &'static str = "stance";
    const TITLE: &'static str = "Take Stance";
    const DESCRIPTION: &'static str = "Endorses or objects to a proposal; a draft is decided once \
        all required approvers, its author too, endorse it.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = StanceInput;
    type Output = StanceOutput;

    fn check(input: &StanceInput) -> Result<(), Violation> {
        let note = input.note.as_deref().unwrap_or_default();
        if input.stance == Opinion::Object && note.is_empty() {
            let is = if input.note.is_none() { "is missing" } else { "is empty" };
            let what = format!("{is}; give the reason when the stance is object");
            return Err(Violation::new("note", what));
        }
        Ok(())
    }
}
