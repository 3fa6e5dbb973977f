//! Commands of tasks; the actor is whoever creates or changes one.

use alloc::string::String;

use minicbor::{Decode, Encode};

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum TaskStatus {
    /// Nobody works on it.
    #[n(0)]
    Pending,
    /// Somebody does.
    #[n(1)]
    Running,
    /// It is done.
    #[n(2)]
    Completed,
    /// It did not succeed, or its time ran out.
    #[n(3)]
    Failed,
    /// It was called off.
    #[n(4)]
    Cancelled,
}

impl TaskStatus {
    /// Returns whether nothing more is done about such a task.
    #[must_use]
    pub fn is_finished(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Returns the word that people read.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A status where one may be left out; commands have no `Option` of an enum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum GivenStatus {
    /// None is given.
    #[default]
    #[n(0)]
    None,
    /// See [`TaskStatus::Pending`].
    #[n(1)]
    Pending,
    /// See [`TaskStatus::Running`].
    #[n(2)]
    Running,
    /// See [`TaskStatus::Completed`].
    #[n(3)]
    Completed,
    /// See [`TaskStatus::Failed`].
    #[n(4)]
    Failed,
    /// See [`TaskStatus::Cancelled`].
    #[n(5)]
    Cancelled,
}

impl GivenStatus {
    /// Returns the status, when one is given.
    #[must_use]
    pub fn status(self) -> Option<TaskStatus> {
        match self {
            Self::None => None,
            Self::Pending => Some(TaskStatus::Pending),
            Self::Running => Some(TaskStatus::Running),
            Self::Completed => Some(TaskStatus::Completed),
            Self::Failed => Some(TaskStatus::Failed),
            Self::Cancelled => Some(TaskStatus::Cancelled),
        }
    }
}

impl From<Option<TaskStatus>> for GivenStatus {
    fn from(status: Option<TaskStatus>) -> Self {
        match status {
            None => Self::None,
            Some(TaskStatus::Pending) => Self::Pending,
            Some(TaskStatus::Running) => Self::Running,
            Some(TaskStatus::Completed) => Self::Completed,
            Some(TaskStatus::Failed) => Self::Failed,
            Some(TaskStatus::Cancelled) => Self::Cancelled,
        }
    }
}

/// What a task is expected to be; when it is not, the command is refused and says what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Expected {
    /// Its status.
    #[n(0)]
    pub status: GivenStatus,
    /// When it was changed last, milliseconds since 1970.
    #[n(1)]
    pub updated_at: Option<u64>,
}

/// What is given of a task's metadata: the text, and what in it is compared with other tasks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Metadata {
    /// A JSON object as a text, at most 16 KiB.
    #[n(0)]
    pub json: String,
    /// Its member `target`, when that is a text (empty: none), at most 512 bytes.
    #[n(1)]
    pub target: String,
}

/// The given fields of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct TaskChange {
    /// The new status.
    #[n(0)]
    pub status: GivenStatus,
    /// The new progress in millionths, 0 to 1,000,000.
    #[n(1)]
    pub progress: Option<u32>,
    /// Where the result is.
    #[n(2)]
    pub result_uri: Option<String>,
    /// What went wrong.
    #[n(3)]
    pub error_message: Option<String>,
    /// The new metadata, instead of all that there was.
    #[n(4)]
    pub metadata: Option<Metadata>,
}

/// Commands of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum TaskCommand {
    /// Makes a pending task; its number is the next one.
    #[n(0)]
    Create {
        /// The meeting that it came out of.
        #[n(0)]
        source_meeting: Option<String>,
        /// What it is about.
        #[n(1)]
        metadata: Option<Metadata>,
        /// After how many ticks (milliseconds) it fails when it is not finished.
        #[n(2)]
        ttl: Option<u64>,
    },
    /// Changes the given fields of a task.
    #[n(1)]
    Update {
        /// Its number.
        #[n(0)]
        task: u64,
        /// What it must be.
        #[n(1)]
        expected: Expected,
        /// What shall be changed.
        #[n(2)]
        change: TaskChange,
    },
    /// Calls a pending or running task off.
    #[n(2)]
    Cancel {
        /// Its number.
        #[n(0)]
        task: u64,
        /// What it must be.
        #[n(1)]
        expected: Expected,
    },
}

impl TaskCommand {
    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Create { .. } => "task_create",
            Self::Update { .. } => "task_update",
            Self::Cancel { .. } => "task_cancel",
        }
    }
}
