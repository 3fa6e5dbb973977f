//! Direct messages: from one conversation to another, read once, answered or not.
//!
//! These tools need an identified conversation; an instance is refused with `unidentified`. A
//! result says how far a message has come and never more than is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversations::{Listen, Status};
use crate::limits;
use crate::marks::is_false;
use crate::schema::{KnownId, silent};
use crate::tool::{Hints, Tool, ToolSpec};

/// The tools of this family, and the one that waits for what they bring.
pub(crate) const TOOLS: &[fn() -> ToolSpec] =
    &[ToolSpec::of::<Send>, ToolSpec::of::<Read>, ToolSpec::of::<Reply>, ToolSpec::of::<Listen>];

/// Arguments of `send`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SendInput {
    /// A session id, or the name of one not offline.
    #[schemars(with = "KnownId")]
    pub to: String,
    /// The text.
    #[schemars(transform = silent, length(min = 1, max = limits::MESSAGE_CHARS_MAX))]
    pub text: String,
    /// Tell me once when its turn ends.
    #[serde(default)]
    pub notify_when_idle: bool,
    /// Whether an answer is wanted.
    #[schemars(transform = silent)]
    #[serde(default = "yes")]
    pub expects_reply: bool,
    /// False: seen at its next prompt or tool call.
    #[serde(default = "yes")]
    pub wake: bool,
}

/// Arguments of `reply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplyInput {
    /// The message that is answered.
    #[schemars(transform = silent, with = "KnownId")]
    pub message_id: String,
    /// The text.
    #[schemars(transform = silent, length(min = 1, max = limits::MESSAGE_CHARS_MAX))]
    pub text: String,
    /// Whether an answer is wanted.
    #[schemars(transform = silent)]
    #[serde(default = "yes")]
    pub expects_reply: bool,
    /// As in `send`.
    #[schemars(transform = silent)]
    #[serde(default = "yes")]
    pub wake: bool,
}

fn yes() -> bool {
    true
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Receipt {
    /// It lies in the inbox, on a majority of the cluster.
    Accepted,
    /// Its first line was shown to the reader.
    Announced,
    /// It was handed to the reader's client.
    Taken,
    /// The reader was heard of again afterwards.
    Seen,
    /// The reader answered.
    Answered,
}

/// To whom a message went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recipient {
    /// The session id.
    pub id: String,
    /// The name.
    pub name: String,
    /// What it is doing: one that is idle, asleep or offline sees the message later.
    pub status: Status,
}

/// Result of `send` and of `reply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentOutput {
    /// The message's id.
    pub message_id: String,
    /// To whom it went.
    pub to: Recipient,
    /// How far it has come.
    pub state: Receipt,
}

/// The tool `send`.
#[derive(Debug)]
pub struct Send;

impl Tool for Send {
    const NAME: &'static str = "send";
    const TITLE: &'static str = "Send Direct Message";
    const DESCRIPTION: &'static str =
        "Sends a message to one conversation; one that is away gets it later.";
    const HINTS: Hints = Hints::ADDS;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = SendInput;
    type Output = SentOutput;
}

/// Arguments of `read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadInput {
    /// How many at most.
    #[serde(default = "count_default")]
    #[schemars(transform = silent, range(min = 1, max = limits::MAIL_MAX))]
    pub count: u32,
}

impl Default for ReadInput {
    fn default() -> Self {
        Self { count: count_default() }
    }
}

fn count_default() -> u32 {
    limits::MAIL_DEFAULT
}

/// From whom a message is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// The session id.
    pub id: String,
    /// The name that it had then.
    pub name: String,
}

/// A direct message, as its reader sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Letter {
    /// Its id, for `reply`.
    pub message_id: String,
    /// From whom it is.
    pub from: Sender,
    /// The message of the reader's that it answers; null when it answers none.
    pub reply_to: Option<String>,
    /// The text.
    pub text: String,
    /// When it was sent (RFC 3339, UTC, milliseconds).
    pub created_at: String,
    /// Whether an answer is wanted.
    pub expects_reply: bool,
    /// True when this reader was given it before and may have lost it: fetching is not seeing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
    /// True when it was written to an earlier process of this conversation: it is history, and
    /// what it asks for may be done with.
    #[serde(default, skip_serializing_if = "is_false")]
    pub earlier: bool,
}

/// Result of `read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadOutput {
    /// The messages, oldest first; reading marks them read.
    pub messages: Vec<Letter>,
    /// How many more are unread.
    pub remaining: u64,
}

/// The tool `read`.
#[derive(Debug)]
pub struct Read;

impl Tool for Read {
    const NAME: &'static str = "read";
    const TITLE: &'static str = "Read Direct Messages";
    const DESCRIPTION: &'static str = "Reads this conversation's unread direct messages.";
    const HINTS: Hints = Hints::ADDS;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = ReadInput;
    type Output = ReadOutput;
}

/// The tool `reply`.
#[derive(Debug)]
pub struct Reply;

impl Tool for Reply {
    const NAME: &'static str = "reply";
    const TITLE: &'static str = "Reply";
    const DESCRIPTION: &'static str =
        "Answers a direct message that was sent to this conversation.";
    const HINTS: Hints = Hints::ADDS;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = ReplyInput;
    type Output = SentOutput;
}
