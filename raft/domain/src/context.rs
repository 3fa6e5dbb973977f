//! What a family's command gets beside the state, and how it stops.

use crate::clock::Clock;
use crate::conversations::Conversation;
use crate::entry::{Actor, NodeId};
use crate::rejection::Rejection;
use crate::store::Fault;

/// What stands around a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The entry's position in the log.
    pub(crate) index: u64,
    /// The cluster's clock at this entry.
    pub(crate) now: Clock,
    /// The node that brought it.
    pub(crate) node: NodeId,
    /// Who it is from.
    pub(crate) actor: &'a Actor,
    /// The actor's row; `None` for a node, and for a conversation that registers itself newly.
    pub(crate) speaker: Option<&'a Conversation>,
}

impl Context<'_> {
    /// Returns the actor's row where the home check has proved that there is one.
    pub(crate) fn speaker(&self) -> Result<&Conversation, Rejection> {
        self.speaker.ok_or(Rejection::NotHere { home: 0 })
    }
}

/// Why a family's command ends early: `?` carries both.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It is refused; what it wrote is discarded.
    Refused(Rejection),
    /// The store cannot be used; the node stops.
    Fault(Fault),
}

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Self {
        Self::Refused(rejection)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
