//! Documents of the whole team, and the strategy: the one that everybody shares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::marks::is_false;
use crate::schema::{ProjectId, brief, silent};
use crate::tool::{Hints, Tool, ToolSpec};
use crate::validate::Violation;
use crate::{ids, limits, text};

/// The tools of this family.
pub(crate) const TOOLS: &[fn() -> ToolSpec] = &[
    ToolSpec::of::<UpdateGlobalStrategy>,
    ToolSpec::of::<GetGlobalStrategy>,
    ToolSpec::of::<ListGlobalDocs>,
    ToolSpec::of::<GetGlobalDoc>,
    ToolSpec::of::<SyncGlobalDoc>,
];

/// Arguments of `update_global_strategy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateGlobalStrategyInput {
    /// Markdown.
    #[schemars(length(max = limits::DOCUMENT_BYTES_MAX), transform = brief)]
    pub content: String,
}

/// Result of `update_global_strategy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateGlobalStrategyOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
}

/// The tool `update_global_strategy`.
#[derive(Debug)]
pub struct UpdateGlobalStrategy;

impl Tool for UpdateGlobalStrategy {
    const NAME: &'static str = "update_global_strategy";
    const TITLE: &'static str = "Update Strategy";
    const DESCRIPTION: &'static str = "Replaces the strategy that the whole team shares.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = UpdateGlobalStrategyInput;
    type Output = UpdateGlobalStrategyOutput;

    fn check(input: &UpdateGlobalStrategyInput) -> Result<(), Violation> {
        text::bytes("content", &input.content, limits::DOCUMENT_BYTES_MAX)
    }
}

/// Arguments of `get_global_strategy`: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetGlobalStrategyInput {}

/// Result of `get_global_strategy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetGlobalStrategyOutput {
    /// The strategy (Markdown); empty while nobody wrote one.
    pub content: String,
    /// When it was written last (RFC 3339, UTC, milliseconds).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// Who wrote it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// The tool `get_global_strategy`.
#[derive(Debug)]
pub struct GetGlobalStrategy;

impl Tool for GetGlobalStrategy {
    const NAME: &'static str = "get_global_strategy";
    const TITLE: &'static str = "Get Strategy";
    const DESCRIPTION: &'static str = "Returns the strategy that the whole team shares.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = GetGlobalStrategyInput;
    type Output = GetGlobalStrategyOutput;
}

/// A document without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentEntry {
    /// Its id.
    pub doc_id: String,
    /// Its title.
    pub title: String,
    /// When it was written last (RFC 3339, UTC, milliseconds).
    pub last_updated: String,
    /// Who wrote it last.
    pub updated_by: String,
}

/// Arguments of `list_global_docs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListGlobalDocsInput {
    /// Older than this one.
    #[schemars(with = "Option<ProjectId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Result of `list_global_docs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListGlobalDocsOutput {
    /// How many are listed.
    pub count: u32,
    /// The documents, those written last first.
    pub docs: Vec<DocumentEntry>,
    /// True when there are older ones: `before` the last one's id.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
}

/// The tool `list_global_docs`.
#[derive(Debug)]
pub struct ListGlobalDocs;

impl Tool for ListGlobalDocs {
    const NAME: &'static str = "list_global_docs";
    const TITLE: &'static str = "List Documents";
    const DESCRIPTION: &'static str = "Lists the team's documents, those written last first.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = ListGlobalDocsInput;
    type Output = ListGlobalDocsOutput;
}

/// Arguments of `get_global_doc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetGlobalDocInput {
    /// Which document.
    #[schemars(transform = silent, with = "ProjectId")]
    pub doc_id: String,
}

/// Result of `get_global_doc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetGlobalDocOutput {
    /// The document without its text.
    #[serde(flatten)]
    pub entry: DocumentEntry,
    /// Its text (Markdown).
    pub content: String,
}

/// The tool `get_global_doc`.
#[derive(Debug)]
pub struct GetGlobalDoc;

impl Tool for GetGlobalDoc {
    const NAME: &'static str = "get_global_doc";
    const TITLE: &'static str = "Get Document";
    const DESCRIPTION: &'static str = "Returns a document of the team.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = GetGlobalDocInput;
    type Output = GetGlobalDocOutput;
}

/// Arguments of `sync_global_doc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncGlobalDocInput {
    /// Stays; of A-Z a-z 0-9 . _ -
    #[schemars(with = "ProjectId")]
    pub doc_id: String,
    /// Its title, on one line.
    #[schemars(
        transform = silent,
        transform = brief,
        length(min = 1, max = limits::DOCUMENT_TITLE_CHARS_MAX)
    )]
    pub title: String,
    /// Markdown.
    #[schemars(length(max = limits::DOCUMENT_BYTES_MAX), transform = brief)]
    pub content: String,
}

/// Result of `sync_global_doc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncGlobalDocOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Which document.
    pub doc_id: String,
}

/// The tool `sync_global_doc`.
#[derive(Debug)]
pub struct SyncGlobalDoc;

impl Tool for SyncGlobalDoc {
    const NAME: &'static str = "sync_global_doc";
    const TITLE: &'static str = "Sync Document";
    const DESCRIPTION: &'static str = "Makes or replaces a document that the whole team can read.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = SyncGlobalDocInput;
    type Output = SyncGlobalDocOutput;

    fn check(input: &SyncGlobalDocInput) -> Result<(), Violation> {
        ids::project("docId", &input.doc_id)?;
        text::line("title", &input.title)?;
        text::bytes("content", &input.content, limits::DOCUMENT_BYTES_MAX)
    }
}
