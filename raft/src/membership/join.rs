//! How a machine without an id gets an id and a certificate (traps.md 16).
//!
//! Any member answers a joiner and passes it on to the leader, which checks the secret and proposes
//! `Admit`; a signer issues the certificate for exactly the (id, key) that the state then holds.
//! The same key asks again and gets the same id, so an answer that was lost costs a repeat.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever was not expected here is answered in one way, whichever it is"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nexus_domain::command::ClusterCommand;
use nexus_domain::{Actor, Command, NodeId, Rejection, Reply};

use crate::core::Core;
use crate::identity::SecretHash;
use crate::propose::{ProposeError, Request};
use crate::rpc::message::{Answer, Call, JoinAnswer, JoinRequest, KnownMember};
use crate::store::lock;
use crate::transport::{Lane, Transport as _};
use crate::wire::{decode, encode};

/// Wrong secrets before an invite is burned.
const WRONG_SECRETS_MAX: u32 = 5;
/// How long a member may take to answer for a joiner.
pub(crate) const PASS_LIMIT: Duration = Duration::from_secs(12);

impl Core {
    /// Answers a joiner: as the leader, or by asking it.
    pub(crate) async fn join_machine(self: &Arc<Self>, request: JoinRequest) -> JoinAnswer {
        if self.leads() {
            return self.admit_machine(request).await;
        }
        match self.ask_leader(&Call::Admit(request), PASS_LIMIT).await {
            Ok(Answer::Joined(answer)) => answer,
            Ok(_) => JoinAnswer::Later("the leader answered something else".to_owned()),
            Err(text) if self.leader().is_none() => {
                JoinAnswer::Later(format!("no leader: {} ({text})", self.who_is_missing()))
            }
            Err(text) => JoinAnswer::Later(text),
        }
    }

    /// The leader's part: checks the secret, proposes, and has the certificate made.
    pub(crate) async fn admit_machine(self: &Arc<Self>, request: JoinRequest) -> JoinAnswer {
        if !self.leads() {
            return JoinAnswer::Later("the leader has just changed".to_owned());
        }
        if !self.confirm().await {
            return JoinAnswer::Later(format!("no quorum: {}", self.who_is_missing()));
        }
        let found = self.state.view(|view| nexus_domain::cluster::invite(view, &request.invite));
        let invite = match found {
            Ok(Some(invite)) => invite,
            Ok(None) => {
                return JoinAnswer::Refused(
                    "invite code: is not known to this cluster (withdrawn, expired long ago, or of \
                     another cluster); ask for a new one with `nexus invite`"
                        .to_owned(),
                );
            }
            Err(fault) => return JoinAnswer::Later(fault.to_string()),
        };
        let hash: [u8; 32] = invite.secret_hash.as_slice().try_into().unwrap_or_default();
        if !SecretHash(hash).matches(&request.secret) {
            return self.count_wrong_secret(&request.invite).await;
        }
        let listens: Vec<SocketAddr> =
            request.addresses.iter().filter_map(|address| address.parse().ok()).collect();
        let command = Command::Cluster(ClusterCommand::Admit {
            invite: request.invite,
            public_key: request.public_key.clone(),
            name: request.name,
            host: request.host,
        });
        let admitted = self.propose(Request { actor: Actor::Node, id: None, command }).await;
        match admitted.map(|committed| committed.reply) {
            Ok(Reply::Admitted { node, name }) => {
                self.book.hint(Some(node), &listens);
                self.welcome(node, name).await
            }
            Ok(_) => JoinAnswer::Later("the state answered something else".to_owned()),
            Err(ProposeError::Rejected(Rejection::Impossible { what })) => JoinAnswer::Later(what),
            Err(ProposeError::Rejected(rejection)) => JoinAnswer::Refused(rejection.to_string()),
            Err(error) => JoinAnswer::Later(error.to_string()),
        }
    }

    async fn count_wrong_secret(self: &Arc<Self>, invite: &str) -> JoinAnswer {
        let wrong = {
            let mut counts = lock(&self.wrong_secrets);
            let count = counts.entry(invite.to_owned()).or_default();
            *count = count.saturating_add(1);
            *count
        };
        tracing::warn!(invite, wrong, "a wrong secret was shown for an invite");
        if wrong >= WRONG_SECRETS_MAX {
            let command = Command::Cluster(ClusterCommand::Burn { id: invite.to_owned() });
            let burned = self.propose(Request { actor: Actor::Node, id: None, command }).await;
            if let Err(error) = burned {
                tracing::warn!(invite, "invite could not be burned: {error}");
            }
        }
        JoinAnswer::Refused(
            "invite code: its secret is wrong; copy the whole code, or make a new one with \
             `nexus invite`"
                .to_owned(),
        )
    }

    async fn welcome(self: &Arc<Self>, node: NodeId, name: String) -> JoinAnswer {
        let rows = match self.state.view(|view| nexus_domain::cluster::members(view)) {
            Ok(rows) => rows,
            Err(fault) => return JoinAnswer::Later(fault.to_string()),
        };
        let certificate = match self.certificate_for(node, &rows).await {
            Ok(certificate) => certificate,
            Err(text) => return JoinAnswer::Later(text),
        };
        let members = rows
            .into_iter()
            .map(|row| KnownMember {
                node: row.id,
                public_key: row.public_key,
                addresses: row.addresses,
                name: row.name,
            })
            .collect();
        let myself = self.book.myself();
        JoinAnswer::Welcome {
            node,
            name,
            cluster: myself.cluster.clone(),
            certificate,
            authority: myself.authority.to_vec(),
            members,
        }
    }

    /// Has a certificate made by this node if it signs, else by a member that does.
    pub(crate) async fn certificate_for(
        &self,
        node: NodeId,
        members: &[nexus_domain::cluster::Member],
    ) -> Result<Vec<u8>, String> {
        if self.authority.is_some() {
            return match self.certify(node) {
                Answer::Certificate(certificate) => Ok(certificate),
                Answer::Failed { text, .. } => Err(text),
                _ => Err("no certificate".to_owned()),
            };
        }
        let mut tried = Vec::new();
        for member in members.iter().filter(|member| member.id != self.node && member.id != node) {
            let call = encode(&Call::Certify { node });
            let answer = self.link.call(member.id, Lane::Rpc, call, Duration::from_secs(3)).await;
            if let Ok(bytes) = answer
                && let Ok(Answer::Certificate(certificate)) = decode::<Answer>(&bytes)
            {
                return Ok(certificate);
            }
            tried.push(member.name.as_str());
        }
        Err(format!(
            "no signer is awake: the machine that holds the cluster's key must be up (asked: {})",
            tried.join(", ")
        ))
    }

    /// The signer's part: issues a certificate for exactly the (id, key) in the state.
    pub(crate) fn certify(&self, node: NodeId) -> Answer {
        let fail = |text: String| Answer::Failed { text, again: true };
        let Some(authority) = &self.authority else {
            return fail("this node does not hold the cluster's key".to_owned());
        };
        let row = match self.state.view(|view| nexus_domain::cluster::member(view, node)) {
            Ok(Some(row)) => row,
            Ok(None) => return fail(format!("node {node} is no member as far as is known here")),
            Err(fault) => return fail(fault.to_string()),
        };
        let cluster = &self.book.myself().cluster;
        match authority.issue(node, cluster, &row.public_key, self.clock.wall_millis()) {
            Ok(certificate) => Answer::Certificate(certificate.to_vec()),
            Err(error) => fail(error.to_string()),
        }
    }
}
