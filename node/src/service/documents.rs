//! Documents of the whole cluster, and the strategy: the one that everybody shares.

use nexus_contract::ApiError;
use nexus_contract::documents::{
    DocumentEntry, GetGlobalDocInput, GetGlobalDocOutput, GetGlobalStrategyOutput,
    ListGlobalDocsInput, ListGlobalDocsOutput, SyncGlobalDocInput, SyncGlobalDocOutput,
    UpdateGlobalStrategyInput, UpdateGlobalStrategyOutput,
};
use nexus_domain::documents::{self, Document};
use nexus_domain::{Command, DocumentCommand, Reply, limits};
use nexus_raft::Committed;

use super::{Answer, Call, Service, errors, time, uploads, written};

/// What to do about the id of a document that does not exist.
const REMEDY: &str = "list_global_docs shows those there are";

/// `sync_global_doc`.
pub(super) async fn sync_global_doc(
    service: &Service,
    about: &Call<'_>,
    input: SyncGlobalDocInput,
) -> Answer {
    let SyncGlobalDocInput { doc_id, title, content } = input;
    let sync = |content| {
        let (id, title) = (doc_id.clone(), title.clone());
        Command::Document(DocumentCommand::Sync { id, title, content })
    };
    let committed = uploads::text(service, about, ("content", content), &sync).await?;
    done(about, &committed)?;
    written(&committed).stamp(&SyncGlobalDocOutput { ok: true, doc_id })
}

/// `update_global_strategy`.
pub(super) async fn update_global_strategy(
    service: &Service,
    about: &Call<'_>,
    input: UpdateGlobalStrategyInput,
) -> Answer {
    let set = |content| Command::Document(DocumentCommand::SetStrategy { content });
    let committed = uploads::text(service, about, ("content", input.content), &set).await?;
    done(about, &committed)?;
    written(&committed).stamp(&UpdateGlobalStrategyOutput { ok: true })
}

/// `get_global_doc`: a read.
pub(super) async fn get_global_doc(
    service: &Service,
    about: &Call<'_>,
    input: &GetGlobalDocInput,
) -> Answer {
    let fresh = service
        .read(|view| {
            // The text is read with its name from one state: it goes when the name does.
            let Some(found) = documents::document(view, &input.doc_id)? else { return Ok(None) };
            let content = documents::content(view, found.body)?;
            Ok(Some(GetGlobalDocOutput { entry: entry(&found), content }))
        })
        .await?;
    let is_stale = fresh.stale.is_some();
    let absent = || absent(is_stale, "docId", &input.doc_id);
    let found = fresh.value.as_ref().ok_or_else(absent)?;
    service.marks(about, &fresh).stamp(found)
}

/// `get_global_strategy`: a read.
pub(super) async fn get_global_strategy(service: &Service, about: &Call<'_>) -> Answer {
    let fresh = service
        .read(|view| {
            let Some(found) = documents::strategy(view)? else { return Ok(None) };
            let content = documents::content(view, found.body)?;
            Ok(Some(GetGlobalStrategyOutput {
                content,
                last_updated: Some(time::text(found.updated_at)),
                updated_by: Some(found.updated_by),
            }))
        })
        .await?;
    let nothing =
        GetGlobalStrategyOutput { content: String::new(), last_updated: None, updated_by: None };
    service.marks(about, &fresh).stamp(fresh.value.as_ref().unwrap_or(&nothing))
}

/// `list_global_docs`: a read.
pub(super) async fn list_global_docs(
    service: &Service,
    about: &Call<'_>,
    input: &ListGlobalDocsInput,
) -> Answer {
    let fresh = service
        .read(|view| {
            let before = match &input.before {
                None => None,
                Some(id) => match documents::document(view, id)? {
                    Some(last) => Some(last.order),
                    None => return Ok(None),
                },
            };
            let page = documents::list(view, before, limits::DOCUMENTS_LIST_MAX)?;
            let last = page.last().map_or(0, |last| last.order);
            let more = !documents::list(view, Some(last), 1)?.is_empty();
            Ok(Some((page, more)))
        })
        .await?;
    let is_stale = fresh.stale.is_some();
    let absent = || absent(is_stale, "before", input.before.as_deref().unwrap_or_default());
    let (page, more) = fresh.value.as_ref().ok_or_else(absent)?;
    let docs: Vec<DocumentEntry> = page.iter().map(entry).collect();
    let count = u32::try_from(docs.len()).unwrap_or(u32::MAX);
    service.marks(about, &fresh).stamp(&ListGlobalDocsOutput { count, docs, more: *more })
}

fn entry(document: &Document) -> DocumentEntry {
    DocumentEntry {
        doc_id: document.id.clone(),
        title: document.title.clone(),
        last_updated: time::text(document.updated_at),
        updated_by: document.updated_by.clone(),
    }
}

fn absent(is_stale: bool, field: &str, id: &str) -> ApiError {
    errors::absent(is_stale, field, &format!("document {id}"), REMEDY)
}

fn done(about: &Call<'_>, committed: &Committed) -> Result<(), ApiError> {
    if committed.reply == Reply::Done { Ok(()) } else { Err(errors::odd_reply(about.tool)) }
}
