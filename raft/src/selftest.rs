//! A check at every start: that a refused pre-vote is refused.
//!
//! openraft's default network grants every pre-vote silently; a network that forgot the call would
//! turn the protection of the leader off without a word.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use nexus_domain::NodeId;
use nexus_rt::{Jobs, SystemClock};
use openraft::EmptyNode;
use openraft::network::{RPCOption, RaftNetworkFactory as _, RaftNetworkV2 as _};
use openraft::raft::VoteRequest;

use crate::freshness::Freshness;
use crate::machine::Progress;
use crate::rpc::client::Factory;
use crate::rpc::message::Answer;
use crate::transport::{CallError, Duplex, Lane, Transport};
use crate::types::{Vote, log_id};
use crate::wire::{WireVote, encode};

fn nowhere(node: NodeId) -> CallError {
    CallError::Unreachable { node, cause: "this peer only votes".to_owned() }
}

/// A transport whose one peer refuses every vote.
#[derive(Debug)]
struct Refusing;

impl Transport for Refusing {
    fn call(
        &self,
        _to: NodeId,
        _lane: Lane,
        _request: Bytes,
        _limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let vote = WireVote { term: 7, node: 2, committed: true };
        let answer = Answer::Vote { vote, granted: false, last: None };
        Box::pin(async move { Ok(encode(&answer)) })
    }

    fn open(
        &self,
        to: NodeId,
        _lane: Lane,
        _kind: u8,
        _limit: Duration,
    ) -> BoxFuture<'static, Result<Duplex, CallError>> {
        Box::pin(async move { Err(nowhere(to)) })
    }

    fn disconnect(&self, _to: NodeId) {}

    fn redial(&self, _to: NodeId) {}

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn close(&self, _code: u32, _reason: &str) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// Asks a peer that refuses for a pre-vote.
///
/// # Errors
/// When the network answers that it was granted.
pub(crate) async fn pre_vote_can_be_refused(jobs: Jobs) -> Result<(), String> {
    let freshness = Freshness::new(1, 1, Arc::new(SystemClock), Arc::new(Progress::new()));
    let (transport, freshness) = (Arc::new(Refusing), Arc::new(freshness));
    let notices = Arc::default();
    let mut factory = Factory { node: 1, transport, jobs, notices, freshness };
    let mut network = factory.new_client(2, &EmptyNode::new()).await;
    let request = VoteRequest::new(Vote::new(8, 1), Some(log_id(7, 2, 1)));
    let option = RPCOption::new(Duration::from_secs(1));
    match network.pre_vote(request, option).await {
        Ok(answer) if answer.vote_granted => {
            Err("self-test: a refused pre-vote came out as granted".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("self-test: pre-vote: {error}")),
    }
}
