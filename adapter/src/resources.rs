//! Resources: what the team keeps, as clients attach it to a conversation.
//!
//! Each is read by the tool that reads it anyway, so that a resource says what the tool says, in
//! any place and over both ways to the node. What the tool's result holds besides the text (who
//! wrote it, whether it is stale) is in the `_meta` of the contents.

use nexus_contract::catalog;
use nexus_contract::documents::{GetGlobalDoc, GetGlobalStrategy, ListGlobalDocs};
use nexus_contract::documents::{ListGlobalDocsInput, ListGlobalDocsOutput};
use nexus_contract::projects::{GetGlobalTopology, GetGlobalTopologyOutput, GetProject};
use nexus_contract::tool::Tool;
use nexus_contract::{ApiError, ErrorCode};
use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, MetaObject, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const MARKDOWN: &str = "text/markdown";
const JSON: &str = "application/json";
const STRATEGY: &str = "nexus://strategy";
const DOCUMENTS: &str = "nexus://documents/";
const PROJECTS: &str = "nexus://projects/";

/// The part of a list that follows the documents.
const CURSOR_PROJECTS: &str = "projects";
/// What begins the cursor of more documents; the id of the last one follows.
const CURSOR_DOCUMENTS: &str = "documents/";

/// A call of a tool, for a resource.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    /// The tool.
    pub(crate) tool: &'static str,
    /// Its arguments.
    pub(crate) arguments: Map<String, Value>,
}

impl Asked {
    fn new<T: Tool>(arguments: Value) -> Self {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        Self { tool: T::NAME, arguments }
    }
}

/// A part of the list of resources.
#[derive(Debug, PartialEq)]
pub(crate) enum Page {
    /// Documents, after the one of that id.
    Documents(Option<String>),
    /// The projects.
    Projects,
}

impl Page {
    /// Reads a cursor; none begins.
    ///
    /// # Errors
    /// When the cursor is none of ours.
    pub(crate) fn at(cursor: Option<&str>) -> Result<Self, ErrorData> {
        match cursor {
            None => Ok(Self::Documents(None)),
            Some(CURSOR_PROJECTS) if serves::<GetGlobalTopology>() => Ok(Self::Projects),
            Some(cursor) => match cursor.strip_prefix(CURSOR_DOCUMENTS) {
                Some(id) => Ok(Self::Documents(Some(id.to_owned()))),
                None => {
                    let text = "params.cursor is none of this list: leave it out to begin anew";
                    Err(ErrorData::invalid_params(text, None))
                }
            },
        }
    }

    /// Returns the call that finds what is listed.
    pub(crate) fn asked(&self) -> Asked {
        match self {
            Self::Documents(before) => {
                let input = ListGlobalDocsInput { before: before.clone() };
                Asked::new::<ListGlobalDocs>(json!(input))
            }
            Self::Projects => Asked::new::<GetGlobalTopology>(json!({})),
        }
    }

    /// Makes the list of the call's result.
    ///
    /// # Errors
    /// When the result is not the tool's.
    pub(crate) fn listed(
        &self,
        result: Map<String, Value>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (resources, next) = match self {
            Self::Documents(before) => {
                let found: ListGlobalDocsOutput = typed(result)?;
                let last = found.docs.last().map(|doc| doc.doc_id.clone());
                let documents = found.docs.into_iter().map(|doc| {
                    let about = format!("written by {} at {}", doc.updated_by, doc.last_updated);
                    Resource::new(format!("{DOCUMENTS}{}", doc.doc_id), doc.doc_id)
                        .with_title(doc.title)
                        .with_description(about)
                        .with_mime_type(MARKDOWN)
                });
                let first = before.is_none().then(strategy);
                let more = last.filter(|_| found.more);
                let next = match more {
                    Some(last) => Some(format!("{CURSOR_DOCUMENTS}{last}")),
                    None => serves::<GetGlobalTopology>().then(|| CURSOR_PROJECTS.to_owned()),
                };
                (first.into_iter().chain(documents).collect(), next)
            }
            Self::Projects => {
                let found: GetGlobalTopologyOutput = typed(result)?;
                let projects = found.projects.unwrap_or_default().into_values();
                let projects = projects.map(|project| {
                    Resource::new(format!("{PROJECTS}{}", project.id), project.id)
                        .with_title(project.name)
                        .with_description(project.summary)
                        .with_mime_type(JSON)
                });
                (projects.collect(), None)
            }
        };
        let mut listed = ListResourcesResult::with_all_items(resources);
        listed.next_cursor = next;
        Ok(listed)
    }
}

/// Returns the forms of the resources' URIs.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let documents = ResourceTemplate::new(format!("{DOCUMENTS}{{docId}}"), "document")
        .with_title("Document")
        .with_description("A document of the whole team, by its id.")
        .with_mime_type(MARKDOWN);
    let mut all = vec![documents];
    if serves::<GetProject>() {
        all.push(
            ResourceTemplate::new(format!("{PROJECTS}{{projectId}}"), "project")
                .with_title("Project")
                .with_description("A project's manifest, notes and list of assets, by its id.")
                .with_mime_type(JSON),
        );
    }
    ListResourceTemplatesResult::with_all_items(all)
}

/// Returns the call that reads a resource.
///
/// # Errors
/// When no resource has such a URI.
pub(crate) fn read(uri: &str) -> Result<Asked, ErrorData> {
    if uri == STRATEGY {
        return Ok(Asked::new::<GetGlobalStrategy>(json!({})));
    }
    let id = |prefix: &str| uri.strip_prefix(prefix).filter(|id| !id.is_empty());
    if let Some(id) = id(DOCUMENTS) {
        return Ok(Asked::new::<GetGlobalDoc>(json!({"docId": id})));
    }
    if let Some(id) = id(PROJECTS).filter(|_| serves::<GetProject>()) {
        return Ok(Asked::new::<GetProject>(json!({"projectId": id})));
    }
    let shown: String = uri.chars().take(128).collect();
    let text = format!(
        "no resource {shown:?}: resources/list and resources/templates/list say which there are"
    );
    Err(ErrorData::resource_not_found(text, Some(json!({"uri": uri}))))
}

/// Makes the contents out of the result of the call that [`read`] returned.
pub(crate) fn contents(uri: &str, mut result: Map<String, Value>) -> ReadResourceResult {
    let contents = if uri.starts_with(PROJECTS) {
        let text = Value::Object(result).to_string();
        ResourceContents::text(text, uri).with_mime_type(JSON)
    } else {
        let text = result.remove("content");
        let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
        let about = result.into_iter().map(|(key, value)| (format!("nexus/{key}"), value));
        let meta = MetaObject(about.collect());
        ResourceContents::text(text, uri).with_mime_type(MARKDOWN).with_meta(meta)
    };
    ReadResourceResult::new(vec![contents])
}

/// Makes the error of a call that a resource needed.
pub(crate) fn refused(uri: Option<&str>, error: &ApiError) -> ErrorData {
    let data = match error.retry_after {
        Some(seconds) => json!({"code": error.code, "retryAfter": seconds}),
        None => json!({"code": error.code}),
    };
    match uri {
        Some(uri) if error.code == ErrorCode::NotFound => {
            ErrorData::resource_not_found(error.message.clone(), Some(json!({"uri": uri})))
        }
        _ if error.code == ErrorCode::InvalidArguments => {
            ErrorData::invalid_params(error.coded(), Some(data))
        }
        _ => ErrorData::internal_error(error.coded(), Some(data)),
    }
}

fn strategy() -> Resource {
    Resource::new(STRATEGY, "strategy")
        .with_title("Strategy")
        .with_description("What the whole team is working towards.")
        .with_mime_type(MARKDOWN)
}

/// Returns whether nodes serve a tool: nobody is shown what does not work.
fn serves<T: Tool>() -> bool {
    catalog::find(T::NAME).is_some()
}

fn typed<T: DeserializeOwned>(result: Map<String, Value>) -> Result<T, ErrorData> {
    serde_json::from_value(Value::Object(result)).map_err(|error| {
        let text = format!("the node's answer is of another version: {error}");
        ErrorData::internal_error(text, None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_listed_by_their_ids() {
        let node = json!({
            "id": "web", "name": "Web", "summary": "what people see",
            "lastActive": "2026-01-01T00:00:00.000Z",
        });
        let result = json!({"mode": "list", "projects": {"web": node}});
        let Value::Object(result) = result else { panic!("it is an object") };
        let listed = Page::Projects.listed(result).unwrap();
        let [project] = listed.resources.as_slice() else { panic!("{listed:?}") };
        assert_eq!((project.uri.as_str(), project.name.as_str()), ("nexus://projects/web", "web"));
        assert_eq!(project.mime_type.as_deref(), Some(JSON));
        assert_eq!(listed.next_cursor, None);
    }

    #[test]
    fn a_project_is_read_whole() {
        let Value::Object(result) = json!({"manifest": {"id": "web"}, "assets": []}) else {
            panic!("it is an object")
        };
        let read = contents("nexus://projects/web", result.clone());
        let [ResourceContents::TextResourceContents { text, .. }] = read.contents.as_slice() else {
            panic!("{read:?}")
        };
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), Value::Object(result));
    }

    #[test]
    fn an_answer_of_another_version_is_told_as_that() {
        let error = Page::Documents(None).listed(Map::new()).unwrap_err();
        assert!(error.message.contains("of another version"), "{error:?}");
    }
}
