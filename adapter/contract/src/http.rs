//! The bodies of the HTTP interface, shared by the node that serves them, the MCP server and the
//! command line that ask for them.
//!
//! A success of a tool is `{"ok":true,"result":{…}}`; every failure, of any path, is the one form
//! of [`crate::ApiError`]. The other paths answer with their type as it stands here. Times are
//! RFC 3339 strings in UTC with milliseconds. Readers ignore fields that they do not know.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mail::Receipt;
use crate::marks::is_false;
use crate::validate::Reading;
use crate::{catalog, limits, schema, validate};

/// `POST` a [`ToolCall`], get a [`ToolAnswer`].
pub const PATH_CALL: &str = "/api/tools/call";
/// `POST` one message of MCP, get its answer: Streamable HTTP without sessions.
pub const PATH_MCP: &str = "/mcp";
/// `GET` the [`ToolList`].
pub const PATH_TOOLS: &str = "/api/tools";
/// `GET` the conversations as people see them, `?includeOffline=true` those too that went offline
/// lately: a [`crate::conversations::PeersOutput`] without `self`.
pub const PATH_PEERS: &str = "/api/peers";
/// `GET` what became of a conversation's direct messages, newest first: a [`ReceiptList`].
/// `?of=SESSION` names it; `message=ID` asks for one, `before=ID` for older ones, `limit=N` for at
/// most so many (1 to 200, 20 unless given).
pub const PATH_RECEIPTS: &str = "/api/receipts";
/// `GET` the [`Health`]; needs no token.
pub const PATH_HEALTH: &str = "/health";
/// `GET`: 200 when a linearizable read has succeeded since the start and a leader with a quorum is
/// at work, as far as the node knows; else 503 with why, and what to do.
pub const PATH_READY: &str = "/ready";
/// `GET` the [`ClusterView`].
pub const PATH_CLUSTER: &str = "/api/cluster";
/// `GET` the [`DigestView`]; `?wait=INDEX` answers once that index is applied.
pub const PATH_DIGEST: &str = "/api/digest";
/// `POST` an [`InviteRequest`], get an [`InviteMade`]; `GET` the [`InviteList`]; `DELETE` one at
/// `/api/invites/{id}`, get a [`Done`].
pub const PATH_INVITES: &str = "/api/invites";
/// `POST` (no body), get a [`Done`]; the node then stops.
pub const PATH_STOP: &str = "/api/node/stop";
/// `DELETE /api/members/{name}`, get a [`Done`]; the first node only with `?force=true`.
pub const PATH_MEMBERS: &str = "/api/members";
/// An asset of a project at `/api/projects/{id}/assets/{name}`: `PUT` its bytes, get an
/// [`AssetStored`]; `GET` them back; `DELETE` it, get a [`Done`]. Who changes something says who it
/// is in the query: `?instanceId=ID`, and `&requestId=ID` where the same call may be sent again.
pub const PATH_PROJECTS: &str = "/api/projects";
/// What is said to somebody who sends a longer file than a call takes.
pub const STREAM_A_FILE: &str = "a longer file is sent by PUT /api/projects/{id}/assets/{name}";
/// The header of an answer that no majority has confirmed, where the body is not JSON: `true`.
pub const HEADER_STALE: &str = "nexus-stale";
/// The header that says when such an answer was true: see [`crate::ReadMarks::as_of`].
pub const HEADER_AS_OF: &str = "nexus-as-of";
/// `GET` the metrics in Prometheus' text form.
pub const PATH_METRICS: &str = "/metrics";

/// Which conversation of which client a call comes from: a claim, accepted only with what the node
/// knows about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "client", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Caller {
    /// Claude Code names the use of the tool; a hook binds that to its conversation.
    Claude {
        /// The use of the tool.
        tool_use_id: String,
    },
    /// Codex names its conversation.
    Codex {
        /// The conversation.
        session_id: String,
    },
}

/// One call of one tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// Its arguments; none is the same as an empty object.
    #[serde(default)]
    pub args: Value,
    /// The MCP client in its working directory, or `cli-<user>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Whether the instance id was chosen by its user: then the node takes it as it is; else it
    /// adds its own id, since two machines may share a host name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub instance_given: bool,
    /// The conversation, where the client names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// The id under which the call has one effect however often it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// A random id of the calling process: a new process of the same caller is offered again what
    /// the old one fetched and may never have shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The caller's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The MCP client's name for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
}

/// A body that a caller sends: read against its own schema, so that what is wrong with it is said
/// by field and in JSON's words.
pub trait Body: DeserializeOwned + JsonSchema + 'static {
    /// What a right one looks like.
    const EXAMPLE: &'static str;
    /// How many bytes it may have.
    const BYTES_MAX: usize = limits::BODY_BYTES_MAX;
    /// What is said, besides that, when it has more.
    const BEYOND: Option<&'static str> = None;

    /// Returns the schema, made once.
    fn schema() -> &'static Map<String, Value>;

    /// Reads a body; fields that are not known are left out.
    ///
    /// # Errors
    /// Every field that is wrong, with what would be right.
    fn read(mut body: Value) -> Result<Self, String> {
        let misfit = |what: String| format!("body does not fit: {what}; such as {}", Self::EXAMPLE);
        validate::fit(Reading::Body, Self::schema(), &mut body, "body").map_err(misfit)?;
        // The schema comes from the same type, so this fails only where the two disagree.
        serde_json::from_value(body).map_err(|_words_about_types| misfit("in some field".into()))
    }
}

impl Body for ToolCall {
    const EXAMPLE: &'static str = "{\"tool\": NAME, \"args\": {…}}";
    const BYTES_MAX: usize = limits::CALL_BYTES_MAX;
    const BEYOND: Option<&'static str> = Some(STREAM_A_FILE);

    fn schema() -> &'static Map<String, Value> {
        static SCHEMA: LazyLock<Map<String, Value>> = LazyLock::new(schema::input::<ToolCall>);
        &SCHEMA
    }
}

impl Body for InviteRequest {
    const EXAMPLE: &'static str = "{\"role\": \"voter\", \"ttlSeconds\": 3600}";

    fn schema() -> &'static Map<String, Value> {
        static SCHEMA: LazyLock<Map<String, Value>> = LazyLock::new(schema::input::<InviteRequest>);
        &SCHEMA
    }
}

/// The answer to a call that was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnswer {
    /// True.
    pub ok: bool,
    /// The tool's result.
    pub result: Map<String, Value>,
}

impl ToolAnswer {
    /// Makes the answer.
    pub fn new(result: Map<String, Value>) -> Self {
        Self { ok: true, result }
    }
}

/// The list of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolList {
    /// See [`crate::CONTRACT_VERSION`].
    pub contract_version: u32,
    /// The tools as MCP lists them.
    pub tools: Vec<Value>,
}

impl ToolList {
    /// Returns the list of this program.
    pub fn own() -> Self {
        Self { contract_version: crate::CONTRACT_VERSION, tools: catalog::listed() }
    }
}

/// What became of a direct message, as its sender may know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptView {
    /// The message's id.
    pub message_id: String,
    /// The conversation that it is for.
    pub to: String,
    /// When it was sent.
    pub created_at: String,
    /// How far it has come.
    pub state: Receipt,
    /// True: it lay unread for a day in which its reader's machine was awake; it still lies there.
    pub unread: bool,
    /// The message that it answers, if it answers one.
    pub reply_to: Option<String>,
    /// The first message that answers it, if there is one.
    pub answered_by: Option<String>,
}

/// What became of a conversation's direct messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptList {
    /// The receipts, newest first.
    pub receipts: Vec<ReceiptView>,
}

/// Whether the node lives, answered without asking anybody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// True: it answers and its local state is readable.
    pub ok: bool,
    /// `nexus`.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// See [`crate::CONTRACT_VERSION`].
    pub contract_version: u32,
    /// The node's name.
    pub node: String,
    /// The cluster's id.
    pub cluster: String,
    /// Whether [`PATH_READY`] answers 200.
    pub ready: bool,
}

/// What a member does in Raft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It votes.
    Voter,
    /// It holds a copy and does not vote.
    Learner,
}

/// How a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// It answers.
    Up,
    /// Its machine said that it sleeps.
    Asleep,
    /// It does not answer.
    Down,
    /// It is admitted and not yet caught up.
    Joining,
}

/// One member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberView {
    /// Its node id, never reused.
    pub id: u64,
    /// Its name, unique among members.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its state, in the leader's view.
    pub state: MemberState,
    /// Where it can be reached, `host:port`.
    pub addresses: Vec<String>,
    /// Its program's version; empty until it said so.
    pub version: String,
    /// Entries it is behind; none when nobody knows.
    pub lag: Option<u64>,
    /// Since when it is in that state; none when nobody knows.
    pub since: Option<String>,
}

/// The cluster: the leader's view, fetched from it; this node's own with `stale` when no leader
/// answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// The cluster's id.
    pub cluster: String,
    /// The name of the node that was asked.
    pub node: String,
    /// The name of the leader, if one is known.
    pub leader: Option<String>,
    /// The Raft term.
    pub term: u64,
    /// The index up to which the log is applied.
    pub applied: u64,
    /// How many voters must answer for a write.
    pub quorum: u32,
    /// How many more voters may fail now before writes stop.
    pub tolerance: u32,
    /// The members, by id.
    pub members: Vec<MemberView>,
    /// True when it is this node's own view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// The time at which a stale view was known to be true, or in words why none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// Whose state differs; none when all that were compared have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<DifferenceView>,
    /// What the user should know, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// That the members' states differ where they must be equal, as the leader found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DifferenceView {
    /// The index at which digests were compared.
    pub index: u64,
    /// Whether most of those that were compared have one state: then the others stop.
    pub majority: bool,
    /// The members that have another state than most; without a majority all that were compared.
    pub members: Vec<String>,
}

/// The state's digest at one index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DigestPoint {
    /// The applied index.
    pub index: u64,
    /// What the families hold, in hex.
    pub content: String,
    /// Ticks, request records and due index, in hex.
    pub books: String,
}

/// The state's digest now and at the last multiples of 64, so that nodes can be compared at an
/// index that both have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DigestView {
    /// The name of the node that was asked.
    pub node: String,
    /// The digest at what is applied.
    pub now: DigestPoint,
    /// The kept ones, oldest first.
    pub kept: Vec<DigestPoint>,
}

/// Asks for an invite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteRequest {
    /// What the joiner becomes; none: a learner that is promoted once it has been steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How long the code holds; none: an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
}

/// An invite just made: the only time at which its code is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InviteMade {
    /// The code, good for one machine.
    pub code: String,
    /// The invite's id, for listing and withdrawing.
    pub id: String,
    /// What the joiner becomes; none as in [`InviteRequest`].
    pub role: Option<Role>,
    /// When the code ends.
    pub expires_at: String,
    /// What to type on the other machine.
    pub command: String,
    /// The same with this machine's addresses, for a LAN without multicast.
    pub seed_command: String,
    /// Where this node can be reached, `host:port`.
    pub addresses: Vec<String>,
}

/// How an invite stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InviteState {
    /// Its code can be used.
    Open,
    /// A machine joined with it.
    Used,
    /// Its time is over.
    Expired,
    /// It was withdrawn.
    Withdrawn,
    /// It was closed, because too many wrong secrets were tried with it.
    Burned,
}

/// One invite, without its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InviteView {
    /// Its id.
    pub id: String,
    /// What the joiner becomes; none as in [`InviteRequest`].
    pub role: Option<Role>,
    /// How it stands.
    pub state: InviteState,
    /// When it was made.
    pub created_at: String,
    /// When the code ends.
    pub expires_at: String,
    /// The name of the machine that joined with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<String>,
}

/// The invites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InviteList {
    /// The invites, newest first.
    pub invites: Vec<InviteView>,
}

/// The answer to an asset that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssetStored {
    /// True.
    pub ok: bool,
    /// With which project.
    pub project_id: String,
    /// The name that it is stored under: characters that are unsafe in a path are replaced.
    pub file_name: String,
    /// Its bytes.
    pub size: u64,
    /// Their SHA-256 in hex.
    pub sha256: String,
}

/// An acknowledgement in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// True.
    pub ok: bool,
    /// What was done.
    pub message: String,
}

impl Done {
    /// Makes the acknowledgement.
    pub fn new(message: impl Into<String>) -> Self {
        Self { ok: true, message: message.into() }
    }
}

/// The file `endpoint.json` in the data folder: how the programs of this machine find the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointFile {
    /// `http://ADDRESS:PORT`.
    pub address: String,
    /// The node's process.
    pub pid: u32,
    /// When it started, in milliseconds since 1970.
    pub started_at: u64,
}
