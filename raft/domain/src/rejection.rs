//! Every refusal, with a stable code: replicated, and the same on every node.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::calendar;
use crate::command::tasks::TaskStatus;
use crate::entry::NodeId;

/// Why a command was refused. Numbers are for ever; text may improve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Encode, Decode)]
pub enum Rejection {
    /// The command needs a newer state version than the cluster has.
    #[n(0)]
    #[error(
        "command: needs state version {needs}, the cluster is at {has}; upgrade every node first"
    )]
    VersionTooNew {
        /// What it needs.
        #[n(0)]
        needs: u32,
        /// What the cluster has.
        #[n(1)]
        has: u32,
    },
    /// The request id was answered before and is forgotten: it is never run twice.
    #[n(1)]
    #[error(
        "requestId: is older than what is kept, so whether it was done is not known here; \
         look before you repeat it with a new id"
    )]
    RequestExpired,
    /// The request id was used for another call.
    #[n(2)]
    #[error("requestId: was used for another call; use a new id")]
    RequestReused,
    /// Too many open request ids.
    #[n(3)]
    #[error(
        "requestId: {limit} are kept for this caller, no more; \
         wait until old ones end (a client's after 24 hours), or leave it out"
    )]
    TooManyRequests {
        /// The bound.
        #[n(0)]
        limit: u32,
    },
    /// The actor is at home on another node.
    #[n(4)]
    #[error("caller: is {}; register it here first", place(*home))]
    NotHere {
        /// Its home node, 0 when it is not registered.
        #[n(0)]
        home: NodeId,
    },
    /// The entry came after its last moment.
    #[n(5)]
    #[error("request: came too late and was not done")]
    TooLate,
    /// A value breaks a rule.
    #[n(6)]
    #[error("{field}: {rule}")]
    Invalid {
        /// The field.
        #[n(0)]
        field: String,
        /// What would be right.
        #[n(1)]
        rule: String,
    },
    /// Something that was named is not there.
    #[n(7)]
    #[error("{what}: does not exist")]
    NotFound {
        /// What and which.
        #[n(0)]
        what: String,
    },
    /// It is there already, or in another state.
    #[n(8)]
    #[error("{what}")]
    Conflict {
        /// What stands against it, and what would be right.
        #[n(0)]
        what: String,
    },
    /// The actor may not do this.
    #[n(9)]
    #[error("{what}")]
    Forbidden {
        /// What may not be done, and who may.
        #[n(0)]
        what: String,
    },
    /// Something that cannot happen did; nothing was changed.
    #[n(10)]
    #[error("internal: {what}; nothing was changed, please report this")]
    Impossible {
        /// What was found.
        #[n(0)]
        what: String,
    },
    /// Others are in the way for a short while; the same call is right a little later.
    #[n(11)]
    #[error("{what}")]
    Busy {
        /// What is in the way, and until when.
        #[n(0)]
        what: String,
    },
    /// A task is not as the caller took it for: somebody else was first.
    #[n(15)]
    #[error(
        "task {task}: is {}, set by {}, updated_at {}; look at it again before you go on",
        status.word(),
        who(by, by_name),
        calendar::text(*updated_at)
    )]
    TaskChanged {
        /// Its number.
        #[n(0)]
        task: u64,
        /// How it stands.
        #[n(1)]
        status: TaskStatus,
        /// When it was changed last, milliseconds since 1970.
        #[n(2)]
        updated_at: u64,
        /// By whom: a conversation's or instance's id.
        #[n(3)]
        by: String,
        /// The name that it had (empty for an instance).
        #[n(4)]
        by_name: String,
    },
    /// A bound on what is kept is reached, and this would go over it: of every family the same.
    ///
    /// What a bound takes away by itself in a minute is [`Rejection::Busy`], and what is too long
    /// or too many in one command is [`Rejection::Invalid`].
    #[n(16)]
    #[error("{what}")]
    Full {
        /// What is full, and what makes room.
        #[n(0)]
        what: String,
    },
}

impl Rejection {
    /// Makes a refusal of a field's value.
    pub(crate) fn invalid(field: &str, rule: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), rule: rule.into() }
    }

    /// Makes a refusal because something is not there.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound { what: what.into() }
    }

    /// Makes a refusal because of what is there.
    pub(crate) fn conflict(what: impl Into<String>) -> Self {
        Self::Conflict { what: what.into() }
    }

    /// Makes a refusal of an actor.
    pub(crate) fn forbidden(what: impl Into<String>) -> Self {
        Self::Forbidden { what: what.into() }
    }

    /// Makes a refusal because others are in the way.
    pub(crate) fn busy(what: impl Into<String>) -> Self {
        Self::Busy { what: what.into() }
    }

    /// Makes a refusal because there is no room.
    pub(crate) fn full(what: impl Into<String>) -> Self {
        Self::Full { what: what.into() }
    }

    /// Returns the refusal with its texts cut, so that a record of it stays small.
    pub(crate) fn cut(self) -> Self {
        match self {
            Self::Invalid { field, rule } => {
                Self::Invalid { field: cut(field, 48), rule: cut(rule, 160) }
            }
            Self::NotFound { what } => Self::NotFound { what: cut(what, 200) },
            Self::Conflict { what } => Self::Conflict { what: cut(what, 200) },
            Self::Forbidden { what } => Self::Forbidden { what: cut(what, 200) },
            Self::Impossible { what } => Self::Impossible { what: cut(what, 200) },
            Self::Busy { what } => Self::Busy { what: cut(what, 200) },
            Self::TaskChanged { task, status, updated_at, by, by_name } => Self::TaskChanged {
                task,
                status,
                updated_at,
                by: cut(by, 150),
                by_name: cut(by_name, 48),
            },
            Self::Full { what } => Self::Full { what: cut(what, 200) },
            Self::VersionTooNew { .. }
            | Self::RequestExpired
            | Self::RequestReused
            | Self::TooManyRequests { .. }
            | Self::NotHere { .. }
            | Self::TooLate => self,
        }
    }

    /// Returns the stable code that outside faces show.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::VersionTooNew { .. } => "version_too_new",
            Self::RequestExpired => "request_expired",
            Self::RequestReused | Self::Conflict { .. } | Self::TaskChanged { .. } => "conflict",
            Self::TooManyRequests { .. } => "rate_limited",
            Self::NotHere { .. } => "not_here",
            Self::TooLate => "too_late",
            Self::Invalid { .. } => "invalid_arguments",
            Self::NotFound { .. } => "not_found",
            Self::Forbidden { .. } => "forbidden",
            Self::Impossible { .. } => "internal",
            Self::Busy { .. } => "busy",
            Self::Full { .. } => "full",
        }
    }
}

/// Cuts a text to a number of bytes, between two characters.
fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

/// Says where a conversation is at home.
fn place(home: NodeId) -> String {
    match home {
        0 => "not registered".into(),
        home => alloc::format!("at home on node {home}"),
    }
}

/// Says who did something: the name, and the id behind it.
fn who(id: &str, name: &str) -> String {
    if name.is_empty() { id.into() } else { alloc::format!("{name} ({id})") }
}
