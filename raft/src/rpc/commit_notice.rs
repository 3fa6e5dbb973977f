//! Notices: append requests without entries, that only say how far the log is committed.
//!
//! A leader that writes one thing after another would send each follower two requests a write: the
//! entry, and then the word that it is committed. The next entry can carry that word, so a notice
//! waits a moment for it, unless somebody on that follower waits for the notice itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{Fuse, Stream, StreamExt as _};
use nexus_domain::NodeId;
use openraft::raft::AppendEntriesRequest;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::store::lock;
use crate::types::TypeConfig;

/// How long a notice waits: longer than one write takes where messages cost as much as the disk,
/// and far below what anybody notices.
const NOTICE_WAIT: Duration = Duration::from_millis(2);

type Request = AppendEntriesRequest<TypeConfig>;

/// Who waits for a notice right now.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    hurries: Mutex<BTreeMap<NodeId, Arc<Notify>>>,
}

impl Notices {
    /// Says that somebody on `node` waits for what is committed by now: its notice goes at once.
    pub(crate) fn hurry(&self, node: NodeId) {
        self.of(node).notify_one();
    }

    /// Returns what tells of the hurry of a node.
    pub(crate) fn of(&self, node: NodeId) -> Arc<Notify> {
        lock(&self.hurries).entry(node).or_default().clone()
    }
}

/// Requests to one follower, with notices joined to the entries that follow.
///
/// openraft counts what was acknowledged by log id and not by request, so that a request that was
/// left out because the next one says the same and more is not missed.
#[derive(Debug)]
pub(crate) struct Joined<S> {
    input: Fuse<S>,
    hurry: Arc<Notify>,
    next: Option<Request>,
    wait: Duration,
}

impl<S: Stream<Item = Request> + Unpin> Joined<S> {
    pub(crate) fn new(input: S, hurry: Arc<Notify>) -> Self {
        Self { input: input.fuse(), hurry, next: None, wait: NOTICE_WAIT }
    }

    /// Returns the next request that must be sent; a dropped call loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Request> {
        if self.next.is_none() {
            self.next = Some(self.input.next().await?);
        }
        let until = Instant::now() + self.wait;
        while let Some(request) = &self.next
            && request.entries.is_empty()
        {
            let following = tokio::select! {
                biased;
                following = self.input.next() => following,
                () = self.hurry.notified() => break,
                () = tokio::time::sleep_until(until) => break,
            };
            match following {
                Some(following) if says_more(&following, request) => self.next = Some(following),
                other => return std::mem::replace(&mut self.next, other),
            }
        }
        self.next.take()
    }
}

/// Returns whether `following` makes `request`, which has no entries, needless.
fn says_more(following: &Request, request: &Request) -> bool {
    following.vote == request.vote
        && following.prev_log_id == request.prev_log_id
        && following.leader_commit >= request.leader_commit
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use openraft::EntryPayload;
    use tokio::time::timeout;

    use super::*;
    use crate::types::{LogEntry, Vote, log_id};

    /// Longer than any test may take: what returns earlier did not wait.
    const FOR_EVER: Duration = Duration::from_secs(600);
    const LIMIT: Duration = Duration::from_secs(30);

    /// A request of the leader of `term`, behind the first entry.
    fn request(term: u64, commit: u64, entries: std::ops::Range<u64>) -> Request {
        let entry =
            |index| LogEntry { log_id: log_id(term, 1, index), payload: EntryPayload::Blank };
        AppendEntriesRequest {
            vote: Vote::new_committed(term, 1),
            prev_log_id: Some(log_id(1, 1, 1)),
            entries: entries.map(entry).collect(),
            leader_commit: Some(log_id(1, 1, commit)),
        }
    }

    /// Returns what is sent of `requests`, after which openraft has nothing for a while.
    async fn sent(requests: Vec<Request>, wait: Duration, hurry: bool) -> Vec<(u64, usize)> {
        let notices = Notices::default();
        let count = requests.len();
        let input = futures::stream::iter(requests).chain(futures::stream::pending());
        let mut joined = Joined { wait, ..Joined::new(input, notices.of(2)) };
        let mut sent = Vec::new();
        if hurry {
            notices.hurry(2);
        }
        for _ in 0..count {
            let next = match joined.next().now_or_never() {
                Some(next) => next,
                None if wait == FOR_EVER => break,
                None => timeout(LIMIT, joined.next()).await.expect("no request in time"),
            };
            let request = next.expect("the stream is open");
            sent.push((request.leader_commit.unwrap().index, request.entries.len()));
        }
        sent
    }

    #[tokio::test]
    async fn entries_carry_the_notice_before_them() {
        let requests = vec![request(1, 1, 0..0), request(1, 1, 2..4)];
        assert_eq!(sent(requests, FOR_EVER, false).await, [(1, 2)]);
    }

    #[tokio::test]
    async fn a_newer_notice_stands_for_an_older_one() {
        let requests = vec![request(1, 1, 0..0), request(1, 2, 0..0), request(1, 3, 2..3)];
        assert_eq!(sent(requests, FOR_EVER, false).await, [(3, 1)]);
    }

    #[tokio::test]
    async fn a_notice_that_nothing_follows_is_sent_in_the_end() {
        assert_eq!(sent(vec![request(1, 1, 0..0)], FOR_EVER, false).await, []);
        assert_eq!(sent(vec![request(1, 1, 0..0)], NOTICE_WAIT, false).await, [(1, 0)]);
    }

    #[tokio::test]
    async fn a_notice_that_somebody_waits_for_is_sent_at_once() {
        assert_eq!(sent(vec![request(1, 1, 0..0)], FOR_EVER, true).await, [(1, 0)]);
    }

    #[tokio::test]
    async fn what_another_leadership_says_stands_for_nothing() {
        let requests = vec![request(1, 1, 0..0), request(2, 1, 2..3)];
        assert_eq!(sent(requests, FOR_EVER, false).await, [(1, 0), (1, 1)]);
    }

    #[tokio::test]
    async fn the_end_of_the_stream_sends_what_waits() {
        let input = futures::stream::iter([request(1, 1, 0..0)]);
        let mut joined = Joined { wait: FOR_EVER, ..Joined::new(input, Arc::default()) };
        assert!(joined.next().await.is_some());
        assert!(joined.next().await.is_none());
    }
}
