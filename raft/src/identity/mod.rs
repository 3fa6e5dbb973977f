//! Who a node is: keys, certificates, the cluster's authority, and invite codes.
//!
//! - [`NodeKey`], [`NodeIdentity`]: the key that is a node, its certificate, and both on disk.
//! - [`Authority`]: the certificate authority of one cluster, held by signers only.
//! - [`InviteCode`]: what an operator carries to a new machine.
//! - [`Subject`]: what a certificate says, and how lenient its times are read.
//!
//! A certificate alone admits nobody: membership pins the key of each node id, and the transport
//! asks for that with every connection. The certificate ties key, node id and cluster together.

mod authority;
mod file;
mod invite;
mod node;
mod pin;

pub use authority::{Authority, AuthorityError};
pub use file::FileError;
pub use invite::{InviteCode, InviteError, InviteRole, SecretHash};
pub use node::{IdentityError, NodeIdentity, NodeKey, join_proof_is_valid};
pub use pin::{Fingerprint, Subject, SubjectError};

pub(crate) use pin::lenient_time;

#[cfg(test)]
mod tests;
