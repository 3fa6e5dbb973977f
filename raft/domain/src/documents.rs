//! Documents of the whole cluster, and the strategy: the one that everybody shares (n2n-nexus
//! §8.2).
//!
//! Texts lie in bodies; the row of a document says which. The list is an index by the log position
//! of the last writing, so the newest come first at the cost of those that are shown.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::bodies::{self, Body};
use crate::command::DocumentCommand;
use crate::command::projects::Content;
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::projects::check_id;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{conversations, events, limits, tables, texts};

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Document {
    /// Its id.
    #[n(0)]
    pub id: String,
    /// Its title.
    #[n(1)]
    pub title: String,
    /// Its text; [`content`] gives it.
    #[n(2)]
    pub body: Body,
    /// When it was written last, milliseconds since 1970.
    #[n(3)]
    pub updated_at: u64,
    /// Who wrote it last.
    #[n(4)]
    pub updated_by: String,
    /// The index of the entry that wrote it last; lists go on below it.
    #[n(5)]
    pub order: u64,
    /// When it was made.
    #[n(6)]
    pub created_at: u64,
}

/// The strategy.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Strategy {
    /// Its text; [`content`] gives it.
    #[n(0)]
    pub body: Body,
    /// When it was written last, milliseconds since 1970.
    #[n(1)]
    pub updated_at: u64,
    /// Who wrote it last.
    #[n(2)]
    pub updated_by: String,
}

/// Returns a document without its text.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn document(state: &impl Read, id: &str) -> Result<Option<Document>, Fault> {
    tables::DOCUMENTS.get(state, id)
}

/// Returns the strategy without its text; `None` when nobody has written one.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn strategy(state: &impl Read) -> Result<Option<Strategy>, Fault> {
    tables::STRATEGY.get(state, ())
}

/// Returns the text of a document or of the strategy that was read from this very state.
///
/// # Errors
/// A fault when the state cannot be read, or the text is not there.
pub fn content(state: &impl Read, body: Body) -> Result<String, Fault> {
    bodies::text(state, body)
}

/// Returns documents without their texts, those written last first: at most `limit` and 1,000,
/// written by entries below `before` when that is given.
///
/// # Errors
/// A fault when the state cannot be read, or an index names nothing.
pub fn list(state: &impl Read, before: Option<u64>, limit: usize) -> Result<Vec<Document>, Fault> {
    let mut range = tables::DOCUMENT_ORDER.all();
    if let Some(before) = before {
        range.end = Some(tables::DOCUMENT_ORDER.key((before, "")));
    }
    let keys = tables::DOCUMENT_ORDER.keys(state, range, Direction::Reverse);
    let mut found = Vec::new();
    for key in keys.take(limit.min(limits::DOCUMENTS_LIST_MAX)) {
        let (_, id) = key?;
        found.push(tables::DOCUMENTS.must(state, &id)?);
    }
    Ok(found)
}

/// Returns how many documents there are.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn count(state: &impl Read) -> Result<u64, Fault> {
    Ok(tables::DOCUMENT_TOTALS.get(state, ())?.unwrap_or_default())
}

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &DocumentCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        DocumentCommand::Sync { id, title, content } => {
            sync(state, context, (id, title), content, told)
        }
        DocumentCommand::Delete { id } => delete(state, context, id, told),
        DocumentCommand::SetStrategy { content } => set_strategy(state, context, content, told),
    }
}

fn sync(
    state: &mut impl Store,
    context: &Context<'_>,
    (id, title): (&str, &str),
    content: &Content,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    check_id("docId", id)?;
    texts::check_line("title", title, limits::DOCUMENT_TITLE_CHARS_MAX)?;
    let before = document(state, id)?;
    let replaced = before.as_ref().map(|before| before.body);
    let text = bodies::check_text(state, context, "content", content, replaced)?;
    let count = count(state)?;
    if before.is_none() && count >= limits::DOCUMENTS_MAX {
        let what = "docId: the cluster keeps 5,000 documents, no new one fits; delete some first";
        return Err(Rejection::full(what).into());
    }
    let by = conversations::active(state, context, told)?.id.clone();
    let body = bodies::store_text(state, context.now, text, replaced, told)?;
    match &before {
        Some(before) => tables::DOCUMENT_ORDER.delete(state, (before.order, id))?,
        None => tables::DOCUMENT_TOTALS.put(state, (), &count.saturating_add(1))?,
    }
    let document = Document {
        id: id.into(),
        title: title.into(),
        body,
        updated_at: context.now.at,
        updated_by: by,
        order: context.index,
        created_at: before.map_or(context.now.at, |before| before.created_at),
    };
    tables::DOCUMENT_ORDER.put(state, (document.order, id), &())?;
    tables::DOCUMENTS.put(state, id, &document)?;
    events::record(state, context, "doc.sync", Some(id.into()), Some(title.into()))?;
    told.push(Event::Document { id: id.into() });
    Ok(Reply::Done)
}

fn delete(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Some(before) = document(state, id)? else {
        return Err(Rejection::not_found(format!("document {id}")).into());
    };
    conversations::active(state, context, told)?;
    let left = count(state)?.saturating_sub(1);
    tables::DOCUMENT_TOTALS.put(state, (), &left)?;
    tables::DOCUMENT_ORDER.delete(state, (before.order, id))?;
    tables::DOCUMENTS.delete(state, id)?;
    bodies::drop_text(state, context.now, before.body, told)?;
    events::record(state, context, "doc.delete", Some(id.into()), Some(before.title))?;
    told.push(Event::Document { id: id.into() });
    Ok(Reply::Done)
}

fn set_strategy(
    state: &mut impl Store,
    context: &Context<'_>,
    content: &Content,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let replaced = strategy(state)?.map(|before| before.body);
    let text = bodies::check_text(state, context, "content", content, replaced)?;
    let by = conversations::active(state, context, told)?.id.clone();
    let body = bodies::store_text(state, context.now, text, replaced, told)?;
    let strategy = Strategy { body, updated_at: context.now.at, updated_by: by };
    tables::STRATEGY.put(state, (), &strategy)?;
    events::record(state, context, "strategy.update", None, None)?;
    told.push(Event::Strategy);
    Ok(Reply::Done)
}
