//! Answers that did not get to their caller, over HTTP.
//!
//! A call that names no id of its own cannot be told from the next one like it. When its answer
//! could not be written to the socket, the next identical call (caller, tool, arguments) within a
//! minute goes under the same request id, once: what the first one did is not done again, and its
//! answer comes out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus_contract::http::{Caller, ToolCall};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How long a lost answer waits for its call: longer than any client takes to try again by itself,
/// and too short for somebody to mean a second one.
const OWED_FOR: Duration = Duration::from_secs(60);
/// Lost answers that are kept: more are lost in a minute only where something cuts connections on
/// purpose. The oldest one goes.
const OWED_MAX: usize = 1_024;

/// What two identical calls have in common.
pub(crate) type Key = [u8; 32];

/// Returns the key of a call.
pub(crate) fn key(call: &ToolCall) -> Key {
    let actor = match (&call.caller, &call.instance_id) {
        (Some(Caller::Codex { session_id }), _) => ("codex", session_id.as_str()),
        (Some(Caller::Claude { tool_use_id }), _) => ("claude", tool_use_id.as_str()),
        (None, instance) => ("instance", instance.as_deref().unwrap_or_default()),
    };
    // JSON's lengths are written out by its quotes, so no two calls give the same text.
    let text = serde_json::json!([actor.0, actor.1, call.tool, call.args]).to_string();
    Sha256::digest(text).into()
}

/// The request ids of answers that were lost.
#[derive(Debug, Default)]
pub(crate) struct Owed(Mutex<BTreeMap<Key, (Instant, String)>>);

impl Owed {
    /// Takes the request id of the lost answer to such a call, if there is one.
    pub(crate) fn take(&self, key: &Key, now: Instant) -> Option<String> {
        let (lost, id) = self.lost().remove(key)?;
        (now.duration_since(lost) < OWED_FOR).then_some(id)
    }

    /// Keeps the request id of a call whose answer was lost.
    pub(crate) fn put(&self, key: Key, id: String, now: Instant) {
        let mut all = self.lost();
        all.retain(|_, (lost, _)| now.duration_since(*lost) < OWED_FOR);
        if all.len() >= OWED_MAX {
            let oldest = all.iter().min_by_key(|(_, (lost, _))| *lost).map(|(key, _)| *key);
            oldest.and_then(|key| all.remove(&key));
        }
        all.insert(key, (now, id));
    }

    fn lost(&self) -> MutexGuard<'_, BTreeMap<Key, (Instant, String)>> {
        // Every change is a single step, so that a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which answer is on its way.
#[derive(Debug, Default)]
enum Way {
    /// None that could be lost: the call is not read yet, or has an id of its own.
    #[default]
    Free,
    /// The answer to such a call, under this request id.
    Promised(Key, String),
    /// Nobody is there to take it any more.
    Lost,
}

/// What the server writes down of a request, for its [`Delivery`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Promise(Arc<Mutex<Way>>);

impl Promise {
    /// Notes under which request id a call goes; false when its client is gone already.
    pub(crate) fn make(&self, key: Key, id: &str) -> bool {
        let mut way = self.way();
        if matches!(*way, Way::Lost) {
            return false;
        }
        *way = Way::Promised(key, id.to_owned());
        true
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to one request, until it is written. Dropped before, it is owed.
#[derive(Debug)]
pub struct Delivery {
    promise: Promise,
    owed: Arc<Owed>,
}

impl Delivery {
    /// Begins with the request.
    pub(crate) fn begin(owed: &Arc<Owed>) -> (Self, Promise) {
        let promise = Promise::default();
        (Self { promise: promise.clone(), owed: Arc::clone(owed) }, promise)
    }

    /// Ends well: the answer is written to the socket.
    pub fn written(self) {
        *self.promise.way() = Way::Free;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let way = std::mem::replace(&mut *self.promise.way(), Way::Lost);
        if let Way::Promised(key, id) = way {
            tracing::info!(
                "the answer to a call was lost; the next call like it within a minute gets it"
            );
            self.owed.put(key, id, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(instance: &str, tool: &str, text: &str) -> ToolCall {
        ToolCall {
            tool: tool.to_owned(),
            args: json!({"message": text}),
            instance_id: Some(instance.to_owned()),
            ..ToolCall::default()
        }
    }

    #[test]
    fn a_lost_answer_is_owed_once_and_for_a_minute() {
        let owed = Arc::new(Owed::default());
        let lose = || {
            let (delivery, promise) = Delivery::begin(&owed);
            assert!(promise.make(key(&call("a", "t", "x")), "id-1"));
            drop(delivery);
        };
        lose();
        for other in [call("b", "t", "x"), call("a", "u", "x"), call("a", "t", "y")] {
            assert_eq!(owed.take(&key(&other), Instant::now()), None);
        }
        let same = key(&call("a", "t", "x"));
        assert_eq!(owed.take(&same, Instant::now()).as_deref(), Some("id-1"));
        assert_eq!(owed.take(&same, Instant::now()), None, "once");
        lose();
        assert_eq!(owed.take(&same, Instant::now() + OWED_FOR), None);
    }

    #[test]
    fn a_written_answer_is_not_owed() {
        let owed = Arc::new(Owed::default());
        let (delivery, promise) = Delivery::begin(&owed);
        assert!(promise.make(key(&call("a", "t", "x")), "id-1"));
        delivery.written();
        assert_eq!(owed.take(&key(&call("a", "t", "x")), Instant::now()), None);
        let (delivery, promise) = Delivery::begin(&owed);
        drop(delivery);
        assert!(!promise.make(key(&call("a", "t", "x")), "id-2"), "nobody is there any more");
        assert_eq!(owed.take(&key(&call("a", "t", "x")), Instant::now()), None);
    }

    #[test]
    fn lost_answers_are_bounded() {
        let owed = Owed::default();
        let key_of = |number: usize| key(&call("a", "t", &number.to_string()));
        for number in 0..=OWED_MAX {
            owed.put(key_of(number), number.to_string(), Instant::now());
        }
        assert_eq!(owed.lost().len(), OWED_MAX);
        assert!(owed.take(&key_of(OWED_MAX), Instant::now()).is_some());
    }
}
