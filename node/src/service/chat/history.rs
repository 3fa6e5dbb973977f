//! History: what was said, own messages too; it moves nobody's place and needs no reader.

use nexus_contract::chat::{Message, ReadMessagesInput, ReadMode};
use nexus_domain::{Fault, chat};
use nexus_raft::View;

use super::{Spot, shown};
use crate::service::{Answer, Call, Service, count};

/// Reads the newest messages, or those above a number.
pub(super) async fn read(
    service: &Service,
    about: &Call<'_>,
    spot: &Spot,
    input: &ReadMessagesInput,
) -> Answer {
    let fresh = service.read(|view| look(view, spot, input)).await?;
    let is_stale = fresh.stale.is_some();
    let marks = service.marks(about, &fresh);
    let (messages, note) = fresh.value.ok_or_else(|| spot.absent(is_stale))?;
    marks.stamp(&spot.answer(ReadMode::History, None, messages, note))
}

/// What history shows: the messages, and what to say of those that were left out.
type Shown = (Vec<Message>, Option<String>);

/// Looks for the messages in a state; `None` when there is no such meeting.
fn look(view: &View<'_>, spot: &Spot, input: &ReadMessagesInput) -> Result<Option<Shown>, Fault> {
    if !spot.is_in(view)? {
        return Ok(None);
    }
    let most = usize::try_from(input.count).unwrap_or(usize::MAX);
    let found = match input.after_id {
        Some(id) => chat::after(view, &spot.room, id, most)?,
        None => chat::latest(view, &spot.room, most)?,
    };
    let note = if found.len() < most { left_out(view, spot, input, &found)? } else { None };
    Ok(Some((shown(view, found, false)?, note)))
}

/// Says where to go on when one answer does not hold as many as were asked for.
fn left_out(
    view: &View<'_>,
    spot: &Spot,
    input: &ReadMessagesInput,
    found: &[chat::Message],
) -> Result<Option<String>, Fault> {
    let (Some(first), Some(last)) = (found.first(), found.last()) else { return Ok(None) };
    let (is_cut, place) = if input.after_id.is_some() {
        let is_cut = last.id < chat::last_id(view, &spot.room)?;
        (is_cut, format!("go on with afterId {}", last.id))
    } else {
        let is_cut = count(found.len()) < chat::count(view, &spot.room)?;
        (is_cut, format!("those before {} with afterId", first.id))
    };
    Ok(is_cut.then(|| format!("One answer holds no more text than this: {place}.")))
}
