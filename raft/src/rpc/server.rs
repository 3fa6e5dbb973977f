//! The serving side: checks who speaks, then passes on to Raft.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever was not expected here is answered in one way, whichever it is"
)]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use nexus_domain::NodeId;
use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest};

use super::KIND_APPEND;
use super::message::{Answer, Call, JoinRequest, WireAppend, WireStreamAnswer};
use crate::core::Core;
use crate::snapshot::manifest::Manifest;
use crate::transport::{
    ChannelBinding, Duplex, FrameReceiver, FrameSender, Handler, Lane, Peer, Refusal, code,
};
use crate::types::{TypeConfig, Vote};
use crate::wire::{WireVote, decode, encode};
use openraft::async_runtime::WatchReceiver as _;

/// Answers other members.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) core: Arc<Core>,
}

impl Handler for Server {
    fn call(
        &self,
        from: &Peer,
        lane: Lane,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        let (core, from) = (self.core.clone(), from.node);
        Box::pin(async move {
            let call: Call = decode(&request).map_err(|text| malformed(&text))?;
            check_speaker(&call, from)?;
            let answer = match lane {
                Lane::Log | Lane::Heartbeat => core.raft_call(from, call).await,
                Lane::Snapshot => core.snapshot_call(call).await,
                Lane::Rpc => core.member_call(from, call).await,
                // Its streams are served before they come here.
                Lane::Relay => unexpected(&call),
            };
            Ok(encode(&answer))
        })
    }

    fn stream(&self, from: &Peer, lane: Lane, kind: u8, duplex: Duplex) -> BoxFuture<'static, ()> {
        let (core, from) = (self.core.clone(), from.node);
        Box::pin(async move {
            if kind == KIND_APPEND && lane == Lane::Log {
                serve_append(&core, from, duplex).await;
            } else {
                tracing::warn!(from, kind, "stream: of an unknown kind, closed");
            }
        })
    }

    fn join(
        &self,
        from: SocketAddr,
        binding: ChannelBinding,
        request: Bytes,
    ) -> BoxFuture<'static, Bytes> {
        let core = self.core.clone();
        Box::pin(async move { encode(&core.serve_join(from, binding, &request).await) })
    }
}

fn malformed(text: &str) -> Refusal {
    Refusal::new(code::MALFORMED, format!("request: {text}"))
}

/// Drops a message whose leader or candidate is not the node of the certificate (traps.md 9).
fn check_speaker(call: &Call, from: NodeId) -> Result<(), Refusal> {
    let claimed = match call {
        Call::Append(append) => append.vote,
        Call::Vote(request) | Call::PreVote(request) => request.vote,
        Call::Transfer { from, .. } => *from,
        Call::Offer { vote, .. } | Call::Install { vote, .. } => *vote,
        Call::Chunk { .. }
        | Call::Propose(_)
        | Call::ReadIndex
        | Call::Status
        | Call::Admit(_)
        | Call::Addresses
        | Call::Certify { .. }
        | Call::Digest { .. }
        | Call::Ping => return Ok(()),
    };
    check_vote(claimed, from)
}

fn check_vote(claimed: WireVote, from: NodeId) -> Result<(), Refusal> {
    if claimed.node == from {
        return Ok(());
    }
    let text = format!("node {from} speaks as node {}: dropped", claimed.node);
    Err(Refusal::new(code::NODE, text))
}

fn failed(text: impl ToString) -> Answer {
    Answer::Failed { text: text.to_string(), again: true }
}

impl Core {
    /// Answers Raft's own messages.
    async fn raft_call(&self, from: NodeId, call: Call) -> Answer {
        let raft = self.raft();
        match call {
            Call::Append(append) => {
                self.reach.heard(from);
                if let Some(word) = append.quorum {
                    self.freshness.told(word);
                }
                let request = match append.into_request() {
                    Ok(request) => request,
                    Err(text) => return failed(text),
                };
                match raft.append_entries(request).await {
                    Ok(answer) => Answer::Append(answer.into(), Some(self.freshness.moment())),
                    Err(error) => failed(error),
                }
            }
            Call::Vote(request) => match raft.vote(request.into()).await {
                Ok(answer) => answer.into(),
                Err(error) => failed(error),
            },
            Call::PreVote(request) => match raft.pre_vote(request.into()).await {
                Ok(answer) => {
                    if !answer.vote_granted {
                        metrics::counter!("nexus_pre_votes_refused_total").increment(1);
                    }
                    answer.into()
                }
                Err(error) => failed(error),
            },
            Call::Transfer { from, to, last } => {
                let request =
                    TransferLeaderRequest::<TypeConfig>::new(from.into(), to, last.map(Into::into));
                match raft.handle_transfer_leader(request).await {
                    Ok(Ok(())) => Answer::Transfer(None),
                    Ok(Err(error)) => Answer::Transfer(Some(error.to_string())),
                    Err(error) => failed(error),
                }
            }
            other => unexpected(&other),
        }
    }

    /// Answers the pieces of a snapshot.
    async fn snapshot_call(self: &Arc<Self>, call: Call) -> Answer {
        let core = self.clone();
        match call {
            Call::Offer { vote, manifest } => {
                if let Some(higher) = self.higher_vote(vote) {
                    return Answer::Installed { vote: higher };
                }
                if let Err(text) = self.snapshot_fits(&manifest, vote) {
                    return Answer::Failed { text, again: false };
                }
                let own = self.snapshots.newest_folder();
                let id = manifest.id();
                let begin = move || core.receiver.begin(manifest, own.as_ref());
                match self.blocking("snapshot-begin", begin).await {
                    Ok(missing) => Answer::Want { id, missing },
                    Err(error) => failed(error),
                }
            }
            Call::Chunk { id, file, offset, bytes } => {
                let write = move || core.receiver.chunk(&id, file, offset, &bytes);
                match self.blocking("snapshot-chunk", write).await {
                    Ok(()) => Answer::Written,
                    Err(error) => failed(error),
                }
            }
            Call::Install { id, vote } => self.install(&id, vote.into()).await,
            other => unexpected(&other),
        }
    }

    /// Checks everything before openraft hears of it: its install must not fail (traps.md 12).
    async fn install(self: &Arc<Self>, id: &str, vote: Vote) -> Answer {
        let (core, id) = (self.clone(), id.to_owned());
        let finish = move || {
            let folder = core.receiver.finish(&id)?;
            let too_new = core.snapshots.verify(&folder)?;
            Ok((folder, too_new))
        };
        let folder = match self.blocking("snapshot-finish", finish).await {
            Ok((folder, None)) => folder,
            Ok((_unused, Some(text))) => {
                // The log that comes behind it would stop this node as well.
                tracing::error!("snapshot: {text}");
                self.progress.stop(text.clone());
                return Answer::Failed { text, again: false };
            }
            Err(error) => return failed(error),
        };
        if let Err(text) = self.snapshot_fits(folder.manifest(), vote.into()) {
            return Answer::Failed { text, again: false };
        }
        let meta = match folder.manifest().meta() {
            Ok(meta) => meta,
            Err(error) => return failed(error),
        };
        let snapshot = openraft::Snapshot { meta, snapshot: folder };
        match self.raft().install_full_snapshot(vote, snapshot).await {
            Ok(answer) => Answer::Installed { vote: answer.vote.into() },
            Err(error) => failed(error),
        }
    }

    /// Checks what openraft would panic over: a snapshot from beyond its sender's leadership, or
    /// one that contradicts what is committed here.
    fn snapshot_fits(&self, manifest: &Manifest, vote: WireVote) -> Result<(), String> {
        let Some(last) = manifest.meta.last else { return Ok(()) };
        if (last.term, last.node) > (vote.term, vote.node) {
            return Err("snapshot: comes from beyond the leadership of its sender".to_owned());
        }
        let metrics = self.raft().metrics();
        let committed = metrics.borrow_watched().local_committed;
        let contradicts = committed.is_some_and(|committed| {
            crate::types::LogId::from(last) > committed && last.index <= committed.index
        });
        if contradicts {
            return Err("snapshot: contradicts what is committed on this node".to_owned());
        }
        Ok(())
    }

    fn higher_vote(&self, theirs: WireVote) -> Option<WireVote> {
        let ours = self.raft().metrics().borrow_watched().vote;
        (ours > Vote::from(theirs)).then(|| ours.into())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.jobs.blocking(name, work).await.map_err(io::Error::other)?
    }

    /// Answers what members ask of each other.
    pub(crate) async fn member_call(self: &Arc<Self>, from: NodeId, call: Call) -> Answer {
        match call {
            Call::Propose(bytes) => self.forwarded(from, &bytes).await,
            Call::ReadIndex if !self.leads() => failed("this node does not lead"),
            // Joins this node's own rounds, so that many followers cost one confirmation.
            Call::ReadIndex => match self.round().await {
                Ok(round) => {
                    self.notices.hurry(from);
                    Answer::ReadIndex { index: round.index }
                }
                Err(()) => failed("no quorum confirms that this node leads"),
            },
            Call::Status => match self.lead_status() {
                Some(status) => Answer::Status(status),
                None => failed("this node does not lead"),
            },
            Call::Admit(request) => Answer::Joined(self.admit_machine(request).await),
            Call::Addresses => Answer::Addresses(self.book.whereabouts()),
            Call::Certify { node } => self.certify(node),
            Call::Digest { index, majority } => self.answer_digest(from, index, majority).await,
            Call::Ping => self.here(),
            other => unexpected(&other),
        }
    }

    /// Answers a machine that has no certificate yet.
    async fn serve_join(
        self: &Arc<Self>,
        from: SocketAddr,
        binding: ChannelBinding,
        request: &[u8],
    ) -> super::message::JoinAnswer {
        use super::message::JoinAnswer;
        let request: JoinRequest = match decode(request) {
            Ok(request) => request,
            Err(text) => return JoinAnswer::Refused(format!("join request: {text}")),
        };
        if !crate::identity::join_proof_is_valid(&request.public_key, &binding, &request.proof) {
            return JoinAnswer::Refused(
                "join request: does not prove that the sender holds its key".to_owned(),
            );
        }
        let (invite, name) = (&request.invite, &request.name);
        tracing::info!(%from, invite, name, "a machine wants to join");
        self.join_machine(JoinRequest { proof: Vec::new(), ..request }).await
    }
}

fn unexpected(call: &Call) -> Answer {
    let name = format!("{call:?}");
    let name = name.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    Answer::Failed { text: format!("{name} does not belong on this lane"), again: false }
}

/// Serves the append stream of a leader: requests in, answers out, in order.
async fn serve_append(core: &Arc<Core>, from: NodeId, duplex: Duplex) {
    let Duplex { sender, receiver } = duplex;
    let heard = core.clone();
    let requests = futures::stream::unfold(receiver, move |receiver| {
        let core = heard.clone();
        async move {
            let next = next_append(from, receiver).await;
            if next.is_some() {
                core.reach.heard(from);
            }
            next
        }
    });
    let answers = core.raft().stream_append(requests);
    answer_appends(answers, sender, from).await;
}

async fn next_append(
    from: NodeId,
    mut receiver: FrameReceiver,
) -> Option<(AppendEntriesRequest<TypeConfig>, FrameReceiver)> {
    let frame = match receiver.recv().await? {
        Ok(frame) => frame,
        Err(error) => {
            tracing::debug!(from, "append stream: {error}");
            return None;
        }
    };
    let request = decode::<WireAppend>(&frame).and_then(|append| {
        check_vote(append.vote, from).map_err(|refusal| refusal.text)?;
        append.into_request()
    });
    match request {
        Ok(request) => Some((request, receiver)),
        Err(text) => {
            tracing::warn!(from, "append stream: {text}");
            None
        }
    }
}

async fn answer_appends<S, E>(answers: S, mut sender: FrameSender, from: NodeId)
where
    S: futures::Stream<Item = Result<openraft::raft::StreamAppendResult<TypeConfig>, E>>,
    E: std::fmt::Display,
{
    let mut answers = std::pin::pin!(answers);
    while let Some(answer) = answers.next().await {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(from, "append stream: {error}");
                return;
            }
        };
        if let Err(error) = sender.send(encode(&WireStreamAnswer::from(answer))).await {
            tracing::debug!(from, "append stream: {error}");
            return;
        }
    }
    sender.finish();
}
