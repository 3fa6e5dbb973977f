//! Commands about the documents of the whole cluster.

use alloc::string::String;

use minicbor::{Decode, Encode};

use super::projects::Content;

/// Commands about documents and the strategy; the actor is who writes them.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum DocumentCommand {
    /// Makes or replaces a document.
    #[n(0)]
    Sync {
        /// Which one; stable.
        #[n(0)]
        id: String,
        /// Its title.
        #[n(1)]
        title: String,
        /// What it says (Markdown).
        #[n(2)]
        content: Content,
    },
    /// Deletes a document.
    #[n(1)]
    Delete {
        /// Which one.
        #[n(0)]
        id: String,
    },
    /// Replaces the strategy, the one document that everybody shares.
    #[n(2)]
    SetStrategy {
        /// What it says (Markdown).
        #[n(0)]
        content: Content,
    },
}

impl DocumentCommand {
    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Sync { .. } => "doc_sync",
            Self::Delete { .. } => "doc_delete",
            Self::SetStrategy { .. } => "strategy_update",
        }
    }
}
