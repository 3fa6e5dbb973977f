//! Chat: what a conversation says to all, or to a meeting, and what each reads once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::marks::is_false;
use crate::schema::{KnownId, silent};
use crate::tool::{Hints, Tool, ToolSpec};
use crate::validate::Violation;

/// The tools of this family.
pub(crate) const TOOLS: &[fn() -> ToolSpec] =
    &[ToolSpec::of::<SendMessage>, ToolSpec::of::<ReadMessages>];

/// What kind of message it is, in its author's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Category {
    /// Something to decide on.
    Proposal,
    /// Something decided.
    Decision,
    /// Something done.
    Update,
    /// Anything else.
    Chat,
    /// Reserved: nexus itself never writes it.
    MeetingStart,
}

/// Where a message went or came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Room {
    /// The chat of everyone.
    Global,
    /// One meeting.
    Meeting,
}

/// As what the caller was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// As a conversation.
    Session,
    /// As an MCP client in a working directory.
    Instance,
}

/// Arguments of `send_message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendMessageInput {
    /// The text.
    #[schemars(transform = silent, length(min = 1, max = limits::MESSAGE_CHARS_MAX))]
    pub message: String,
    /// Its kind.
    #[schemars(transform = silent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// An active meeting; none: the default meeting, else the global chat.
    #[schemars(with = "Option<KnownId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meeting_id: Option<String>,
    /// In a meeting: a proposal for all to endorse (stance).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
}

/// Result of `send_message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendMessageOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Where it went.
    pub sent_to: Room,
    /// The meeting it went to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meeting_id: Option<String>,
    /// Its number, which works as `afterId`.
    pub message_id: u64,
    /// As what the caller was recognised.
    pub identity: Identity,
    /// With `draft`: the number of the meeting's current draft, this message's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_proposal_id: Option<u64>,
    /// The same in words.
    pub message: String,
}

/// The tool `send_message`.
#[derive(Debug)]
pub struct SendMessage;

impl Tool for SendMessage {
    const NAME: &'static str = "send_message";
    const TITLE: &'static str = "Post Message";
    const DESCRIPTION: &'static str =
        "Posts a message to a meeting, or to all conversations on all machines.";
    const HINTS: Hints = Hints::ADDS;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = SendMessageInput;
    type Output = SendMessageOutput;

    fn check(input: &SendMessageInput) -> Result<(), Violation> {
        let is_proposal = matches!(input.category, None | Some(Category::Proposal));
        if input.draft == Some(true) && !is_proposal {
            let what = "is not PROPOSAL; a draft is one: give PROPOSAL or leave it out";
            return Err(Violation::new("category", what));
        }
        Ok(())
    }
}

/// Which of the two ways of reading a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadMode {
    /// What others wrote and this reader has not yet been given; moves the reader's place.
    Unread,
    /// What was written, own messages too; moves nothing.
    History,
}

/// Arguments of `read_messages`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadMessagesInput {
    /// How many at most.
    #[serde(default = "count_default")]
    #[schemars(transform = silent, range(min = 1, max = limits::MESSAGES_MAX))]
    pub count: u32,
    /// A meeting; none: the global chat.
    #[schemars(with = "Option<KnownId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meeting_id: Option<String>,
    /// History: the newest ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
    /// History: those after this id. Not with latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_id: Option<u64>,
}

impl Default for ReadMessagesInput {
    fn default() -> Self {
        Self { count: count_default(), meeting_id: None, latest: None, after_id: None }
    }
}

impl ReadMessagesInput {
    /// Returns whether the call reads what is unread or looks into the history.
    pub fn mode(&self) -> ReadMode {
        if self.latest == Some(true) || self.after_id.is_some() {
            ReadMode::History
        } else {
            ReadMode::Unread
        }
    }
}

fn count_default() -> u32 {
    limits::MESSAGES_DEFAULT
}

/// One message, as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its number.
    pub id: u64,
    /// The session id or instance id of its author.
    pub from: String,
    /// The author's name now, null for an instance.
    pub sender_name: Option<String>,
    /// The text.
    pub text: String,
    /// Its kind, null when none was given.
    pub category: Option<Category>,
    /// When it was posted (RFC 3339, UTC, milliseconds).
    pub timestamp: String,
    /// True when this reader was given it before and may have lost it: fetching is not seeing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
}

/// Result of `read_messages`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadMessagesOutput {
    /// Where they come from.
    pub source: Room,
    /// Which way they were read.
    pub mode: ReadMode,
    /// As what the reader was recognised; not in history, which needs no reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The meeting they come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meeting_id: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// How many there are.
    pub count: u32,
    /// What the reader should know, such as where older ones are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The tool `read_messages`.
#[derive(Debug)]
pub struct ReadMessages;

impl Tool for ReadMessages {
    const NAME: &'static str = "read_messages";
    const TITLE: &'static str = "Read Messages";
    const DESCRIPTION: &'static str = "Reads messages of others not yet read here, oldest first; \
        with latest or afterId the history, which marks nothing read.";
    const HINTS: Hints = Hints::ADDS;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = ReadMessagesInput;
    type Output = ReadMessagesOutput;

    fn check(input: &ReadMessagesInput) -> Result<(), Violation> {
        if input.latest == Some(true) && input.after_id.is_some() {
            return Err(Violation::new(
                "latest, afterId",
                "both are given; give one: latest for the newest messages, afterId for those \
                 after an id",
            ));
        }
        Ok(())
    }
}
