//! The connections that this node dials: one for each node and lane, made when first needed.
//!
//! One dial at a time for each, shared by all that wait for it. A dial goes on when its callers
//! give up, so that short limits still find a connection in the end. After a failed dial there is
//! a short pause in which calls fail at once; it ends early when the node is heard of.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexus_rt::Backoff;
use quinn::Connection;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::dial::{DialError, dial};
use super::{Shared, close};
use crate::transport::{CallError, Hello, Lane, NodeId, code};

/// Pauses between dials of a node that does not answer: short, since a call in a pause fails.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// As long as a returning node may wait for us.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Timed-out calls during which nothing at all arrived, after which a connection is given up.
const SILENT_TIMEOUTS_MAX: u32 = 2;

/// An established connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: Connection,
    /// What the peer said.
    pub(super) hello: Hello,
    silent_timeouts: AtomicU32,
}

impl Link {
    pub(super) fn new(connection: Connection, hello: Hello) -> Self {
        Self { connection, hello, silent_timeouts: AtomicU32::new(0) }
    }

    /// Returns how many packets have arrived; a difference shows that the peer lives.
    pub(super) fn packets(&self) -> u64 {
        self.connection.stats().udp_rx.datagrams
    }

    /// Notes a call that ended in time.
    pub(super) fn note_answer(&self) {
        self.silent_timeouts.store(0, Ordering::Relaxed);
    }

    /// Notes a call that timed out; closes the connection when it is in doubt.
    ///
    /// A slow handler on a living peer is no reason to break the other calls of the connection,
    /// so only silence counts: a living peer acknowledges within its delay.
    pub(super) fn note_timeout(&self, packets_before: u64) {
        if self.packets() != packets_before {
            self.note_answer();
        } else if self.silent_timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= SILENT_TIMEOUTS_MAX {
            close(&self.connection, code::REDIAL, "no answer, dialling anew");
        }
    }

    fn is_usable(&self) -> bool {
        self.connection.close_reason().is_none()
    }
}

type Outcome = Option<Result<Arc<Link>, DialError>>;

#[derive(Debug)]
enum State {
    Idle,
    Dialling(watch::Receiver<Outcome>),
    Up(Arc<Link>),
    Pause { until: Instant, cause: DialError },
}

#[derive(Debug)]
struct Slot {
    state: State,
    backoff: Backoff,
    /// The dial whose result is wanted, a number that no other dial of the pool has.
    dial: u64,
}

impl Slot {
    fn new() -> Self {
        Self { state: State::Idle, backoff: Backoff::new(PAUSE_MIN, PAUSE_MAX), dial: 0 }
    }
}

/// What a caller gets from a look at a slot.
enum Look {
    Ready(Arc<Link>),
    Wait(watch::Receiver<Outcome>),
    Start(u64, watch::Sender<Outcome>, watch::Receiver<Outcome>),
    Failed(DialError),
}

/// All dialled connections.
#[derive(Debug, Default)]
pub(super) struct Pool {
    slots: Mutex<BTreeMap<(NodeId, Lane), Slot>>,
    dials: AtomicU64,
}

impl Pool {
    /// Returns a connection, dialling if there is none, until `deadline`.
    pub(super) async fn get(
        &self,
        shared: &Arc<Shared>,
        key: (NodeId, Lane),
        deadline: Instant,
    ) -> Result<Arc<Link>, CallError> {
        let (node, lane) = key;
        let mut receiver = match self.look(key) {
            Look::Ready(link) => return Ok(link),
            Look::Failed(cause) => return Err(cause.call_error(node)),
            Look::Wait(receiver) => receiver,
            Look::Start(number, sender, receiver) => {
                let shared = Arc::clone(shared);
                shared.jobs.clone().spawn("transport dial", async move {
                    let result = tokio::select! {
                        biased;
                        () = shared.stop.cancelled() => Err(DialError::stopping()),
                        result = dial(&shared, node, lane) => result.map(Arc::new),
                    };
                    shared.pool.finish(key, number, &result);
                    sender.send_replace(Some(result));
                });
                receiver
            }
        };
        let outcome = match timeout_at(deadline, receiver.wait_for(Option::is_some)).await {
            Err(_elapsed) => return Err(CallError::TimedOut { node, sent: false }),
            Ok(Ok(outcome)) => outcome.clone(),
            Ok(Err(_closed)) => None,
        };
        match outcome {
            Some(Ok(link)) => Ok(link),
            Some(Err(cause)) => Err(cause.call_error(node)),
            None => Err(DialError::stopping().call_error(node)),
        }
    }

    /// Drops a connection that turned out broken, unless another has taken its place.
    pub(super) fn remove(&self, key: (NodeId, Lane), link: &Arc<Link>) {
        if let Some(slot) = self.lock().get_mut(&key)
            && matches!(&slot.state, State::Up(found) if Arc::ptr_eq(found, link))
        {
            slot.state = State::Idle;
        }
    }

    /// Drops all connections to some nodes and forgets their failures.
    pub(super) fn disconnect(&self, concerns: impl Fn(NodeId) -> bool, reason: &str) {
        self.lock().retain(|&(node, _), slot| {
            if !concerns(node) {
                return true;
            }
            if let State::Up(link) = &slot.state {
                close(&link.connection, code::REDIAL, reason);
            }
            false
        });
    }

    /// Notes that a node has connected to us: it is up, and in the boot that it names.
    ///
    /// Pauses end, and connections to an earlier boot of it are dropped, since nobody is there.
    pub(super) fn heard(&self, hello: &Hello) {
        let mut slots = self.lock();
        for lane in Lane::ALL {
            let Some(slot) = slots.get_mut(&(hello.node, lane)) else { continue };
            match &slot.state {
                State::Pause { .. } => slot.state = State::Idle,
                State::Up(link) if link.hello.boot < hello.boot => {
                    close(&link.connection, code::REDIAL, "the node has started again");
                    slot.state = State::Idle;
                }
                State::Up(_) | State::Idle | State::Dialling(_) => {}
            }
            slot.backoff.reset();
        }
    }

    fn look(&self, key: (NodeId, Lane)) -> Look {
        let mut slots = self.lock();
        let slot = slots.entry(key).or_insert_with(Slot::new);
        match &slot.state {
            State::Up(link) if link.is_usable() => return Look::Ready(Arc::clone(link)),
            // A sender that is gone without a result was stopped with its job.
            State::Dialling(receiver) if receiver.has_changed().is_ok() => {
                return Look::Wait(receiver.clone());
            }
            State::Pause { until, cause } if Instant::now() < *until => {
                return Look::Failed(cause.clone());
            }
            State::Up(_) | State::Dialling(_) | State::Pause { .. } | State::Idle => {}
        }
        let (sender, receiver) = watch::channel(None);
        slot.state = State::Dialling(receiver.clone());
        slot.dial = self.dials.fetch_add(1, Ordering::Relaxed) + 1;
        Look::Start(slot.dial, sender, receiver)
    }

    fn finish(&self, key: (NodeId, Lane), dial: u64, result: &Result<Arc<Link>, DialError>) {
        let mut slots = self.lock();
        let Some(slot) = slots.get_mut(&key).filter(|slot| slot.dial == dial) else {
            return;
        };
        slot.state = match result {
            Ok(link) => {
                slot.backoff.reset();
                State::Up(Arc::clone(link))
            }
            Err(cause) => {
                let until = Instant::now() + slot.backoff.next();
                State::Pause { until, cause: cause.clone() }
            }
        };
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(NodeId, Lane), Slot>> {
        // A poisoned lock still holds a whole map: nothing panics half-way through a change.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
