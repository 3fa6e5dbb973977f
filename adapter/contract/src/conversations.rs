//! Conversations: who is there, and what each one says of itself.
//!
//! These tools need an identified conversation; an instance is refused with `unidentified`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::marks::is_false;
use crate::schema::silent;
use crate::text;
use crate::tool::{Hints, Tool, ToolSpec};
use crate::validate::Violation;

/// The tools of this family that need no direct messages; [`Listen`] is listed with those.
pub(crate) const TOOLS: &[fn() -> ToolSpec] = &[ToolSpec::of::<Peers>, ToolSpec::of::<SetProfile>];

/// The program that a conversation runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

/// What a conversation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its user sent a prompt, or a tool runs.
    Working,
    /// Its turn ended and nothing waits.
    Idle,
    /// It waits and reacts at once.
    Listening,
    /// Its machine sleeps; its mail waits.
    Asleep,
    /// It ended, was silent for long, or its node is down.
    Offline,
}

/// One conversation, as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// The session id, `claude:…` or `codex:…`: an address for ever.
    pub id: String,
    /// The name, unique among conversations that are not offline.
    pub name: String,
    /// What the client shows, or what the conversation set; empty when unknown.
    pub title: String,
    /// The program it runs in.
    pub client: ClientKind,
    /// The machine it is at home on.
    pub node: String,
    /// The working directory there.
    pub cwd: String,
    /// What the conversation says of itself; empty when it said nothing.
    pub note: String,
    /// What it is doing.
    pub status: Status,
    /// When it was last active (RFC 3339, UTC, milliseconds).
    pub last_active_at: String,
    /// How many direct messages wait for it; only its own profile says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<u64>,
    /// Whether the ends of its turns wait for messages; only its own profile says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<bool>,
}

/// Arguments of `peers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeersInput {
    /// Also those that went offline in the last 24 hours.
    #[serde(default)]
    pub include_offline: bool,
}

/// Result of `peers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeersOutput {
    /// The caller; null where people ask, and while the caller is not known here yet.
    #[serde(rename = "self")]
    pub own: Option<Profile>,
    /// The others, most recently active first.
    pub peers: Vec<Profile>,
    /// True: there are more, active less recently, than one answer holds.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
}

/// The tool `peers`.
#[derive(Debug)]
pub struct Peers;

impl Tool for Peers {
    const NAME: &'static str = "peers";
    const TITLE: &'static str = "List Peers";
    const DESCRIPTION: &'static str =
        "Lists the AI conversations on every machine of the team, this one too.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = PeersInput;
    type Output = PeersOutput;
}

/// Arguments of `set_profile`: at least one of the three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetProfileInput {
    /// Unique among those not offline.
    #[schemars(
        length(min = 1, max = crate::limits::NAME_CHARS_MAX),
        regex(pattern = crate::limits::NAME_PATTERN)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What you work on.
    #[schemars(length(max = crate::limits::NOTE_CHARS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Shown beside the name; "" returns to the client's.
    #[schemars(length(max = crate::limits::TITLE_CHARS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Result of `set_profile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetProfileOutput {
    /// The profile after the change.
    pub profile: Profile,
}

/// The tool `set_profile`.
#[derive(Debug)]
pub struct SetProfile;

impl Tool for SetProfile {
    const NAME: &'static str = "set_profile";
    const TITLE: &'static str = "Set Profile";
    const DESCRIPTION: &'static str =
        "Sets the name, note or title that others see for this conversation.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = SetProfileInput;
    type Output = SetProfileOutput;

    fn check(input: &SetProfileInput) -> Result<(), Violation> {
        if input.name.is_none() && input.note.is_none() && input.title.is_none() {
            return Err(Violation::new(
                "name, note, title",
                "none is given; give at least one of them",
            ));
        }
        // Each is a part of one line of a list.
        for (field, given) in [("note", &input.note), ("title", &input.title)] {
            given.as_deref().map_or(Ok(()), |given| text::line(field, given))?;
        }
        Ok(())
    }
}

/// Arguments of `listen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListenInput {
    /// True to wait, false to end turns at once.
    #[schemars(transform = silent)]
    pub on: bool,
}

/// Result of `listen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListenOutput {
    /// Whether it waits now.
    pub listening: bool,
}

/// The tool `listen`.
#[derive(Debug)]
pub struct Listen;

impl Tool for Listen {
    const NAME: &'static str = "listen";
    const TITLE: &'static str = "Listen";
    const DESCRIPTION: &'static str =
        "Sets whether the end of each turn waits for messages and goes on with them.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = ListenInput;
    type Output = ListenOutput;
}
