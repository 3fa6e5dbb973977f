//! Long streams of the in-process network: in order, late, and broken by a cut.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nexus_rt::CancellationToken;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Net;
use crate::transport::frame::{Duplex, FrameReceiver, FrameSender, StreamError};
use crate::transport::{Lane, NodeId};

/// Frames under way in one direction before the sender waits.
const FRAMES_MAX: usize = 256;

/// What a frame costs that is lost and sent again.
const RESEND_DELAY: Duration = Duration::from_millis(50);

#[derive(Debug)]
enum Item {
    Frame(Instant, Bytes),
    Abort,
}

/// Makes both ends of a stream: the first is the dialling side's.
pub(super) fn pair(
    net: &Arc<Net>,
    from: NodeId,
    to: NodeId,
    lane: Lane,
    over: &CancellationToken,
) -> (Duplex, Duplex) {
    let (there_in, there_out) = direction(net, from, to, over);
    let (back_in, back_out) = direction(net, to, from, over);
    let limit = lane.frame_bytes_max();
    let ours = Duplex {
        sender: FrameSender::memory(there_in, limit),
        receiver: FrameReceiver::memory(back_out),
    };
    let theirs = Duplex {
        sender: FrameSender::memory(back_in, limit),
        receiver: FrameReceiver::memory(there_out),
    };
    (ours, theirs)
}

fn direction(
    net: &Arc<Net>,
    from: NodeId,
    to: NodeId,
    over: &CancellationToken,
) -> (MemorySender, MemoryReceiver) {
    let (items, receiver) = mpsc::channel(FRAMES_MAX);
    let sender = MemorySender {
        net: Arc::clone(net),
        way: (from, to),
        items: Some(items),
        last: Instant::now(),
        over: over.clone(),
    };
    let receiver = MemoryReceiver { items: receiver, next: None, over: over.clone(), ended: false };
    (sender, receiver)
}

/// The sending half.
pub(crate) struct MemorySender {
    net: Arc<Net>,
    way: (NodeId, NodeId),
    /// `None` once the stream is finished.
    items: Option<mpsc::Sender<Item>>,
    /// When the last frame arrives; later ones do not pass it.
    last: Instant,
    over: CancellationToken,
}

impl std::fmt::Debug for MemorySender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemorySender").field("way", &self.way).finish_non_exhaustive()
    }
}

impl MemorySender {
    pub(crate) async fn send(&mut self, frames: &[Bytes]) -> Result<(), StreamError> {
        for frame in frames {
            let Some(items) = &self.items else { return Err(broken("it was finished")) };
            let fate = self.net.draw(self.way.0, self.way.1);
            let resend = if fate.lost { RESEND_DELAY } else { Duration::ZERO };
            self.last = self.last.max(Instant::now() + fate.delay + resend);
            let item = Item::Frame(self.last, frame.clone());
            tokio::select! {
                biased;
                () = self.over.cancelled() => return Err(broken("the connection was cut")),
                sent = items.send(item) => {
                    sent.map_err(|_closed| broken("the other side stopped reading"))?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self) {
        self.items = None;
    }

    pub(crate) fn abort(&mut self) {
        if let Some(items) = self.items.take()
            && items.try_send(Item::Abort).is_err()
        {
            // No room for the word: the whole connection ends, which says the same.
            self.over.cancel();
        }
    }
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct MemoryReceiver {
    items: mpsc::Receiver<Item>,
    /// A frame that has not arrived yet; kept here so that a dropped call loses nothing.
    next: Option<(Instant, Bytes)>,
    over: CancellationToken,
    ended: bool,
}

impl MemoryReceiver {
    pub(crate) async fn recv(&mut self) -> Result<Option<Bytes>, StreamError> {
        if self.ended {
            return Ok(None);
        }
        let over = self.over.clone();
        let result = tokio::select! {
            biased;
            () = over.cancelled() => Err(broken("the connection was cut")),
            result = self.arrive() => result,
        };
        self.ended = !matches!(result, Ok(Some(_)));
        result
    }

    async fn arrive(&mut self) -> Result<Option<Bytes>, StreamError> {
        if self.next.is_none() {
            match self.items.recv().await {
                None => return Ok(None),
                Some(Item::Abort) => return Err(broken("the other side broke it off")),
                Some(Item::Frame(at, frame)) => self.next = Some((at, frame)),
            }
        }
        if let Some((at, _)) = &self.next {
            sleep_until(*at).await;
        }
        Ok(self.next.take().map(|(_, frame)| frame))
    }
}

fn broken(cause: &str) -> StreamError {
    StreamError::Broken(cause.to_owned())
}
