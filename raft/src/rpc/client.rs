//! openraft's network over the transport: one object per target and lane.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever was not expected here is answered in one way, whichever it is"
)]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use nexus_domain::NodeId;
use nexus_rt::Jobs;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{
    NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable,
};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{EmptyNode, OptionalSend};

use super::KIND_APPEND;
use super::commit_notice::{Joined, Notices};
use super::message::{Answer, Call, WireAppend, WireStreamAnswer};
use crate::freshness::Freshness;
use crate::snapshot::{SnapshotFolder, send};
use crate::transport::{CallError, Duplex, FrameReceiver, FrameSender, Lane, Transport};
use crate::types::{TypeConfig, Vote};
use crate::wire::{decode, encode};

/// How long opening the append stream may take; a dial on a LAN takes milliseconds.
const OPEN_LIMIT: Duration = Duration::from_secs(2);
/// How long an append on the stream may stay unanswered: fsyncs of a laggard disk take seconds.
const STREAM_ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Makes the network objects.
#[derive(Clone, Debug)]
pub(crate) struct Factory {
    pub(crate) node: NodeId,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) jobs: Jobs,
    pub(crate) notices: Arc<Notices>,
    pub(crate) freshness: Arc<Freshness>,
}

impl RaftNetworkFactory<TypeConfig> for Factory {
    type Network = Network;

    async fn new_client(&mut self, target: NodeId, _node: &EmptyNode) -> Network {
        Network { factory: self.clone(), target, lane: Lane::Log }
    }

    async fn new_heartbeat_client(&mut self, target: NodeId, _node: &EmptyNode) -> Network {
        Network { factory: self.clone(), target, lane: Lane::Heartbeat }
    }

    async fn new_snapshot_client(&mut self, target: NodeId, _node: &EmptyNode) -> Network {
        Network { factory: self.clone(), target, lane: Lane::Snapshot }
    }
}

/// The way to one target on one lane.
#[derive(Debug)]
pub(crate) struct Network {
    factory: Factory,
    target: NodeId,
    lane: Lane,
}

type Rpc = RPCError<TypeConfig>;

impl Network {
    async fn call(&self, call: &Call, kind: RPCTypes, limit: Duration) -> Result<Answer, Rpc> {
        let request = encode(call);
        let answer = self.factory.transport.call(self.target, self.lane, request, limit).await;
        let bytes = answer.map_err(|error| self.rpc_error(&error, kind, limit))?;
        let answer = decode(&bytes).map_err(|text| network(format!("answer: {text}")))?;
        match answer {
            Answer::Failed { text, .. } => Err(network(text)),
            answer => Ok(answer),
        }
    }

    fn rpc_error(&self, error: &CallError, action: RPCTypes, timeout: Duration) -> Rpc {
        match error {
            CallError::Unreachable { .. } | CallError::Refused { sent: false, .. } => {
                RPCError::Unreachable(Unreachable::new(error))
            }
            CallError::TimedOut { .. } => RPCError::Timeout(Timeout {
                action,
                id: self.factory.node,
                target: self.target,
                timeout,
            }),
            CallError::Broken { .. } | CallError::Refused { .. } | CallError::TooLarge { .. } => {
                RPCError::Network(NetworkError::new(error))
            }
        }
    }

    async fn vote_call(
        &self,
        call: Call,
        limit: Duration,
    ) -> Result<VoteResponse<TypeConfig>, Rpc> {
        match self.call(&call, RPCTypes::Vote, limit).await? {
            Answer::Vote { vote, granted, last } => {
                Ok(VoteResponse::new(Vote::from(vote), last.map(Into::into), granted))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Heartbeats: a stream of one, so a short call each.
    fn append_each<S>(
        &mut self,
        input: S,
        option: RPCOption,
    ) -> BoxStream<'_, Result<StreamAppendResult<TypeConfig>, Rpc>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        let network = &*self;
        Box::pin(input.then(move |request| {
            let option = option.clone();
            async move {
                let prev = request.prev_log_id;
                let last = request.entries.last().map(|entry| entry.log_id).or(prev);
                let answer = network.append_once(&request, &option).await?;
                if answer.is_conflict() && prev.is_none() {
                    return Err(network_error("conflict at the beginning of the log"));
                }
                Ok(answer.into_stream_result(prev, last))
            }
        }))
    }

    async fn append_once(
        &self,
        request: &AppendEntriesRequest<TypeConfig>,
        option: &RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, Rpc> {
        let quorum = self.factory.freshness.word_for(self.target);
        let call = Call::Append(WireAppend::new(request, quorum));
        match self.call(&call, RPCTypes::AppendEntries, option.soft_ttl()).await? {
            Answer::Append(answer, moment) => {
                if let Some(moment) = moment {
                    self.factory.freshness.heard(self.target, moment);
                }
                Ok(answer.into())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Replication: one long stream, requests sent ahead of their answers.
    ///
    /// The first request is taken before the stream is opened: openraft's pause after an error is
    /// in its request stream, and whoever fails without asking for a request is called again at
    /// once.
    async fn append_stream<S>(
        &self,
        mut input: S,
    ) -> Result<BoxStream<'static, Result<StreamAppendResult<TypeConfig>, Rpc>>, Rpc>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        let Some(first) = input.next().await else {
            return Ok(Box::pin(futures::stream::empty()));
        };
        let input = futures::stream::iter([first]).chain(input);
        let opened =
            self.factory.transport.open(self.target, self.lane, KIND_APPEND, OPEN_LIMIT).await;
        let Duplex { sender, receiver } =
            opened.map_err(|error| self.rpc_error(&error, RPCTypes::AppendEntries, OPEN_LIMIT))?;
        let pace = Arc::new(Pace::default());
        let token = self.factory.jobs.token().child_token();
        let (job_pace, job_token) = (pace.clone(), token.clone());
        let input = Joined::new(input, self.factory.notices.of(self.target));
        self.factory.jobs.spawn("append stream", async move {
            let pumping = pump(input, sender, &job_pace);
            let _ended = job_token.run_until_cancelled(pumping).await;
        });
        let timeout = Timeout {
            action: RPCTypes::AppendEntries,
            id: self.factory.node,
            target: self.target,
            timeout: STREAM_ANSWER_LIMIT,
        };
        let state = Some((receiver, pace, token.drop_guard(), timeout));
        Ok(Box::pin(futures::stream::unfold(state, |state| async move {
            let (mut receiver, pace, guard, timeout) = state?;
            let item = next_answer(&mut receiver, &pace, &timeout).await?;
            let goes_on = matches!(&item, Ok(Ok(_)));
            Some((item, goes_on.then_some((receiver, pace, guard, timeout))))
        })))
    }
}

/// How many requests were sent and answered on a stream.
#[derive(Debug, Default)]
struct Pace {
    sent: AtomicU64,
    answered: AtomicU64,
}

/// Sends requests as they come; those that wait already go out in one write.
async fn pump<S>(mut input: Joined<S>, mut sender: FrameSender, pace: &Pace)
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin,
{
    while let Some(request) = input.next().await {
        let frame: Bytes = encode(&WireAppend::new(&request, None));
        pace.sent.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = sender.send(frame).await {
            tracing::debug!("append stream: {error}");
            return;
        }
    }
    sender.finish();
}

/// Waits for the next answer; a peer that owes one for too long ends the stream.
async fn next_answer(
    receiver: &mut FrameReceiver,
    pace: &Pace,
    timeout: &Timeout<TypeConfig>,
) -> Option<Result<StreamAppendResult<TypeConfig>, Rpc>> {
    loop {
        let owed_before = pace.sent.load(Ordering::Relaxed) > pace.answered.load(Ordering::Relaxed);
        match tokio::time::timeout(STREAM_ANSWER_LIMIT, receiver.recv()).await {
            Ok(None) => return None,
            Ok(Some(Err(error))) => return Some(Err(RPCError::Network(NetworkError::new(&error)))),
            Ok(Some(Ok(frame))) => {
                pace.answered.fetch_add(1, Ordering::Relaxed);
                return Some(match decode::<WireStreamAnswer>(&frame) {
                    Ok(answer) => Ok(answer.into()),
                    Err(text) => Err(network(format!("answer: {text}"))),
                });
            }
            Err(_elapsed) if owed_before => {
                return Some(Err(RPCError::Timeout(timeout.clone())));
            }
            Err(_elapsed) => {}
        }
    }
}

fn network(text: impl ToString) -> Rpc {
    RPCError::Network(NetworkError::from_string(text))
}

fn network_error(text: &str) -> Rpc {
    network(text)
}

fn unexpected(answer: &Answer) -> Rpc {
    let name = format!("{answer:?}");
    let name = name.split([' ', '(', '{']).next().unwrap_or_default();
    network(format!("answer: {name} was not expected"))
}

impl RaftNetworkV2<TypeConfig> for Network {
    type SnapshotData = SnapshotFolder;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, Rpc> {
        self.append_once(&rpc, &option).await
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<TypeConfig>, Rpc>>, Rpc>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            if self.lane == Lane::Heartbeat {
                return Ok(self.append_each(input, option));
            }
            let answers = self.append_stream(input).await?;
            let answers: BoxStream<'s, _> = answers;
            Ok(answers)
        })
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Rpc> {
        self.vote_call(Call::Vote(rpc.into()), option.soft_ttl()).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Rpc> {
        self.vote_call(Call::PreVote(rpc.into()), option.soft_ttl()).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: crate::types::Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let transport = self.factory.transport.as_ref();
        let sending = send::send(transport, self.target, vote, &snapshot.snapshot);
        tokio::select! {
            biased;
            closed = cancel => Err(StreamingError::Closed(closed)),
            sent = sending => match sent {
                Ok(vote) => Ok(SnapshotResponse::new(vote)),
                Err(send::SendError::Call(error)) => {
                    Err(self.rpc_error(&error, RPCTypes::InstallSnapshot, send::CHUNK_LIMIT).into())
                }
                Err(error) => Err(StreamingError::Network(NetworkError::new(&error))),
            },
        }
    }

    async fn transfer_leader(
        &mut self,
        req: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, Rpc> {
        let call = Call::from(req);
        match self.call(&call, RPCTypes::TransferLeader, option.soft_ttl()).await? {
            Answer::Transfer(None) => Ok(Ok(())),
            Answer::Transfer(Some(text)) => Err(network(text)),
            other => Err(unexpected(&other)),
        }
    }
}
