//! Events: what happened, newest first.

use nexus_contract::events::{Event, ListEventsInput, ListEventsOutput};
use nexus_domain::events;

use super::{Answer, Call, Service, time};

/// `list_events`: a read.
pub(super) async fn list_events(
    service: &Service,
    about: &Call<'_>,
    input: &ListEventsInput,
) -> Answer {
    let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
    let action = input.action.as_deref();
    let fresh = service.read(|view| events::list(view, action, limit)).await?;
    let shown = |row: &events::EventRow| Event {
        timestamp: time::text(row.at),
        actor: row.actor.clone(),
        action: row.action.clone(),
        target: row.target.clone(),
        detail: row.detail.clone(),
    };
    let list: Vec<Event> = fresh.value.iter().map(shown).collect();
    let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
    service.marks(about, &fresh).stamp(&ListEventsOutput { count, events: list })
}
