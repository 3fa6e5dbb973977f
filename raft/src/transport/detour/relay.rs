//! The streams of which circuits are made: asked for, passed on, and accepted.
//!
//! Who wants a circuit opens a stream to a relay and names the far end; the relay opens one to that
//! node and names the asker; each answers with an empty frame, or with why not. From then on the
//! relay passes on what comes, both ways. A relay goes to the far end directly and by no other
//! relay, so there are no loops. Nobody trusts it: what it carries is QUIC, end to end.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::time::timeout;

use super::Shared;
use crate::transport::{Duplex, FrameReceiver, FrameSender, Lane, NodeId, StreamError};

/// A stream that asks for a circuit to the node that its first frame names. To the relay itself it
/// is the question whether it is there.
pub(super) const KIND_RELAY: u8 = 128;
/// A stream that brings a circuit of the node that its first frame names.
pub(super) const KIND_RELAYED: u8 = 129;

/// Circuits that a node carries for others: each pair of members of a cluster of two dozen.
pub(super) const RELAYED_MAX: usize = 256;

/// The longest refusal that is read.
const TEXT_BYTES_MAX: usize = 400;

fn name(node: NodeId) -> Bytes {
    Bytes::copy_from_slice(&node.to_be_bytes())
}

/// Reads the frame that names a node.
async fn read_name(receiver: &mut FrameReceiver) -> Result<NodeId, String> {
    let mut frame = match receiver.recv().await {
        Some(Ok(frame)) => frame,
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err(StreamError::CutOff.to_string()),
    };
    frame.try_get_u64().map_err(|_short| "names no node".to_owned())
}

/// Opens a stream, names a node on it and reads the answer.
///
/// # Errors
/// Why there is no circuit, in the words of the one who said so.
pub(super) async fn open(
    shared: &Shared,
    to: NodeId,
    kind: u8,
    named: NodeId,
    limit: Duration,
) -> Result<Duplex, String> {
    let exchange = async {
        let opened = shared.direct.open(to, Lane::Relay, kind, limit).await;
        let mut duplex = opened.map_err(|error| error.to_string())?;
        let sent = duplex.sender.send(name(named)).await;
        sent.map_err(|error| error.to_string())?;
        match duplex.receiver.recv().await {
            Some(Ok(frame)) if frame.is_empty() => Ok(duplex),
            Some(Ok(frame)) => {
                let text = frame.get(..TEXT_BYTES_MAX).unwrap_or(&frame);
                Err(String::from_utf8_lossy(text).into_owned())
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the stream ended without an answer".to_owned()),
        }
    };
    let answered = timeout(limit, exchange).await;
    answered.unwrap_or_else(|_elapsed| Err(format!("node {to} did not answer in time")))
}

/// Answers a stream: with nothing, or with why not.
async fn answer(sender: &mut FrameSender, answer: &Result<(), String>) -> bool {
    let frame = match answer {
        Ok(()) => Bytes::new(),
        Err(text) => Bytes::copy_from_slice(text.as_bytes()),
    };
    sender.send(frame).await.is_ok() && answer.is_ok()
}

/// The relay's part: passes on what `from` and the node that it names send each other.
pub(super) async fn relay(shared: &Shared, from: NodeId, duplex: Duplex) {
    let Duplex { mut sender, mut receiver } = duplex;
    let (far, refusal) = match read_name(&mut receiver).await {
        Ok(target) if target == shared.node => (None, Ok(())),
        Ok(target) => match far_end(shared, from, target).await {
            Ok(far) => (Some((far, target)), Ok(())),
            Err(text) => (None, Err(text)),
        },
        Err(text) => (None, Err(text)),
    };
    if !answer(&mut sender, &refusal).await {
        return sender.finish();
    }
    let Some(((far, _place), target)) = far else { return sender.finish() };
    metrics::counter!("nexus_detour_circuits_relayed_total").increment(1);
    tracing::debug!(from, target, "carries packets between two members");
    tokio::select! {
        biased;
        () = pass(receiver, far.sender) => {}
        () = pass(far.receiver, sender) => {}
    }
}

/// Opens the second half of a circuit, if there is room and the way is direct.
async fn far_end(
    shared: &Shared,
    from: NodeId,
    target: NodeId,
) -> Result<(Duplex, tokio::sync::OwnedSemaphorePermit), String> {
    let Ok(place) = Arc::clone(&shared.relaying).try_acquire_owned() else {
        return Err("carries too much already".to_owned());
    };
    if target == from || shared.is_on_detour(target) {
        return Err(format!("does not reach node {target} directly either"));
    }
    let far = open(shared, target, KIND_RELAYED, from, shared.silence / 2).await?;
    Ok((far, place))
}

/// Passes frames on until either side is over.
async fn pass(mut receiver: FrameReceiver, mut sender: FrameSender) {
    while let Some(Ok(frame)) = receiver.recv().await {
        if sender.send(frame).await.is_err() {
            return;
        }
    }
    sender.finish();
}

/// The far end's part: takes packets of the node that `by` names, and sends to it there.
pub(super) async fn relayed(shared: &Arc<Shared>, by: NodeId, duplex: Duplex) {
    let Duplex { mut sender, mut receiver } = duplex;
    let origin = match read_name(&mut receiver).await {
        Ok(origin) if origin == shared.node => Err("that is this node itself".to_owned()),
        other => other,
    };
    let accepted = origin.as_ref().map(drop).map_err(Clone::clone);
    if !answer(&mut sender, &accepted).await {
        return sender.finish();
    }
    let Ok(origin) = origin else { return };
    tracing::debug!(origin, by, "a circuit was opened from the other end");
    let place = shared.circuits.add(origin, by, false);
    shared.is_there(origin);
    place.carry(Duplex { sender, receiver }).await;
}
