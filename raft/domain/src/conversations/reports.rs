//! What hooks report, and the flag that a conversation listens at the end of its turns.

use alloc::vec::Vec;

use super::presence::{active, come_back, save, touch};
use super::{Conversation, conversation, turns};
use crate::command::presence::Report;
use crate::command::{Client, Status};
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::Store;
use crate::{limits, mail, notices};

pub(super) fn report(
    state: &mut impl Store,
    context: &Context<'_>,
    reports: &[Report],
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if reports.len() > limits::REPORTS_MAX {
        return Err(Rejection::invalid("reports", "must be at most 120").into());
    }
    let mut turns = Vec::new();
    for report in reports {
        // One that moved away meanwhile does not hold up the others.
        let Some(before) = conversation(state, &report.id)? else { continue };
        if before.home != context.node {
            continue;
        }
        let mut after = before.clone();
        set_status(state, context, report, &mut after)?;
        if !report.title.is_empty() {
            after.title = report.title.chars().take(limits::TITLE_CHARS_MAX).collect();
        }
        save(state, Some(&before), &after)?;
        turns::note(state, &before, &after, &mut turns)?;
        let marks = (report.announced, report.arrived);
        mail::report(state, &after, marks, context.now.tick, told)?;
        notices::noticed(state, &after.id, report.noticed)?;
        let shown = |row: &Conversation| (row.status, row.name.clone(), row.title.clone());
        if shown(&before) != shown(&after) {
            told.push(Event::Conversation { id: after.id });
        }
    }
    turns::keep(state, (context.index, context.now), turns, told)?;
    Ok(Reply::Done)
}

/// Sets what a conversation does; silence is passed over when it was active meanwhile.
fn set_status(
    state: &impl Store,
    context: &Context<'_>,
    report: &Report,
    conversation: &mut Conversation,
) -> Result<(), Stop> {
    if report.status != Status::Offline {
        if conversation.status == Status::Offline {
            come_back(state, conversation, report.status)?;
        }
        conversation.status = report.status;
        touch(conversation, context.now);
    } else if report.ended {
        conversation.status = Status::Offline;
        conversation.listens = None;
    } else if conversation.last_active_tick <= report.silent_since {
        conversation.status = Status::Offline;
    }
    Ok(())
}

pub(super) fn listen(
    state: &mut impl Store,
    context: &Context<'_>,
    on: bool,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if context.speaker()?.client == Client::Instance {
        let what = "caller: an instance cannot listen; it needs a conversation with hooks";
        return Err(Rejection::forbidden(what).into());
    }
    let before = active(state, context, told)?;
    let listens = on.then_some(true);
    if before.listens != listens {
        let after = Conversation { listens, ..before.clone().into_owned() };
        save(state, Some(&before), &after)?;
        told.push(Event::Conversation { id: after.id });
    }
    Ok(Reply::Done)
}
