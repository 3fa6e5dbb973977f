//! Receipts: what became of the direct messages that a conversation has sent.

use nexus_contract::http::{ReceiptList, ReceiptView};
use nexus_contract::mail::Receipt;
use nexus_contract::{ApiError, ErrorCode, ids};
use nexus_domain::mail::{self, ReceiptState};
use nexus_domain::{Fault, limits};
use nexus_raft::View;

use super::mail::{id, number_of};
use super::{Answer, Call, Service, errors, time};

/// How many are listed unless the caller says.
const LIMIT_DEFAULT: usize = 20;
/// What to do about the id of a message that was not sent.
const REMEDY: &str = "send and reply give the ids of those that were sent";
/// What a wrong limit is answered with.
pub(crate) const LIMIT: &str = "limit is no number of receipts: give 1 to 200";

/// Whose receipts, and which.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The sender's session id.
    pub(crate) of: String,
    /// The id of one message.
    pub(crate) message: Option<String>,
    /// The id of the message before which the list begins.
    pub(crate) before: Option<String>,
    /// How many at most.
    pub(crate) limit: Option<usize>,
}

/// `GET /api/receipts`: a read.
pub(crate) async fn list(service: &Service, asked: &Asked) -> Answer {
    let bad = |text: String| ApiError::new(ErrorCode::BadRequest, text);
    ids::session("of", &asked.of).map_err(|violation| bad(violation.to_string()))?;
    let limit = asked.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=limits::RECEIPTS_LIST_MAX).contains(&limit) {
        return Err(bad(LIMIT.to_owned()));
    }
    let (message, before) = (named("message", asked)?, named("before", asked)?);
    let find = |view: &View<'_>| -> Result<Vec<mail::Receipt>, Fault> {
        match message {
            Some(message) => Ok(mail::receipt(view, &asked.of, message)?.into_iter().collect()),
            None => mail::sent(view, &asked.of, before, limit),
        }
    };
    let fresh = service.read(find).await?;
    if fresh.value.is_empty()
        && let Some(message) = &asked.message
    {
        let what = format!("message {message} of {}", asked.of);
        return Err(errors::absent(fresh.stale.is_some(), "message", &what, REMEDY));
    }
    let about = Call { tool: "receipts", who: None, request_id: None };
    let receipts = fresh.value.iter().map(shown).collect();
    service.marks(&about, &fresh).stamp(&ReceiptList { receipts })
}

/// Reads an id that was given; one that is none names no message.
fn named(field: &str, asked: &Asked) -> Result<Option<u64>, ApiError> {
    let given = if field == "message" { &asked.message } else { &asked.before };
    let read = |given: &String| number_of(given).ok_or_else(|| unknown(field, given, &asked.of));
    given.as_ref().map(read).transpose()
}

fn unknown(field: &str, message: &str, of: &str) -> ApiError {
    let what = format!("message {message} of {of}");
    errors::not_found(field, &what, REMEDY)
}

fn shown(receipt: &mail::Receipt) -> ReceiptView {
    ReceiptView {
        message_id: id(receipt.id),
        to: receipt.to.clone(),
        created_at: time::text(receipt.at),
        state: from_state(receipt.state),
        unread: receipt.unread,
        reply_to: receipt.reply_to.map(id),
        answered_by: receipt.answered_by.map(id),
    }
}

/// Returns how far a message has come, in the contract's words.
pub(super) fn from_state(state: ReceiptState) -> Receipt {
    match state {
        ReceiptState::Accepted => Receipt::Accepted,
        ReceiptState::Announced => Receipt::Announced,
        ReceiptState::Taken => Receipt::Taken,
        ReceiptState::Seen => Receipt::Seen,
        ReceiptState::Answered => Receipt::Answered,
    }
}
