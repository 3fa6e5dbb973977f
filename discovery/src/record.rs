//! What a node says about itself in its TXT record, as bytes.
//!
//! The record is a hint that anybody on the LAN can read and forge: it carries no secret, no host
//! name and no user name, and whoever reads it proves the node afterwards by its certificate.
//! Decoding bounds everything before it looks at it and never panics. Addresses and port are not
//! here: they travel in the SRV, A and AAAA records.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The version of the record that this code writes and reads.
const VERSION: &str = "1";
/// What is read of a foreign record at most: ours has six properties, a later one may have more.
const PROPERTIES_MAX: usize = 32;
/// As many bytes of a foreign record are looked at; mDNS packets hold little more.
const FOREIGN_BYTES_MAX: usize = 1300;
/// The value of `inv` stays below this: one TXT property holds 255 bytes with its key.
const INVITES_BYTES_MAX: usize = 200;
/// As many open invites are announced or believed.
pub const INVITES_MAX: usize = 16;
/// The public part of an invite code has at least and at most so many characters.
const INVITE_CHARS: std::ops::RangeInclusive<usize> = 4..=16;

/// Why a TXT record is not one of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A node of another version of the record: it is there, but not for us.
    #[error("record has version {0:?}: this nexus reads version 1, update the older side")]
    OtherVersion(String),
    /// A property that must be there is not.
    #[error("record lacks {0}")]
    Missing(&'static str),
    /// A property holds what it cannot hold.
    #[error("record property {key} is malformed: it should be {expected}")]
    Malformed {
        /// The property.
        key: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// More than a record of ours could be.
    #[error("record has more than {PROPERTIES_MAX} properties or {FOREIGN_BYTES_MAX} bytes")]
    TooLarge,
}

/// A text that is not the public part of an invite code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invite id is malformed: it should be 4 to 16 letters and digits")]
pub struct InviteIdError;

/// Names a cluster without saying its id: the first four bytes of the id's SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterHint([u8; 4]);

impl ClusterHint {
    /// Makes the hint of a cluster id.
    #[must_use]
    pub fn of(cluster_id: impl AsRef<[u8]>) -> Self {
        let digest: [u8; 32] = Sha256::digest(cluster_id.as_ref()).into();
        let [a, b, c, d, ..] = digest;
        Self([a, b, c, d])
    }

    fn parse(text: &str) -> Option<Self> {
        parse_hex(text, 8)
            .and_then(|number| u32::try_from(number).ok())
            .map(|number| Self(number.to_be_bytes()))
    }
}

impl fmt::Display for ClusterHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ClusterHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The public part of an invite code, by which a joiner recognises its inviter.
///
/// Letters are lower case inside, so that a code typed in capitals fits too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InviteId(String);

impl FromStr for InviteId {
    type Err = InviteIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = INVITE_CHARS.contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if fits { Ok(Self(text.to_ascii_lowercase())) } else { Err(InviteIdError) }
    }
}

impl fmt::Display for InviteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a node says its part in the cluster is; a hint like everything here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It votes.
    Voter,
    /// It has a copy and no vote.
    Learner,
    /// A part that this version does not know.
    Other,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Voter => "voter",
            Self::Learner => "learner",
            Self::Other => "other",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "voter" => Self::Voter,
            "learner" => Self::Learner,
            _ => Self::Other,
        }
    }
}

/// What a node says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its cluster.
    pub cluster: ClusterHint,
    /// Its node id, which is never 0.
    pub node: u64,
    /// Its part in the cluster.
    pub role: Role,
    /// A nonce drawn at each start, so that others notice a restart at once.
    pub boot: u64,
    /// The public parts of its open invites; the first [`INVITES_MAX`] are announced.
    pub invites: Vec<InviteId>,
}

impl Record {
    /// Encodes the record as TXT properties, fewer than 400 bytes in all.
    ///
    /// Invites beyond what fits are left out, the last ones first.
    #[must_use]
    pub fn encode(&self) -> Vec<(&'static str, String)> {
        let mut properties = vec![
            ("v", VERSION.to_owned()),
            ("cid", self.cluster.to_string()),
            ("nid", self.node.to_string()),
            ("role", self.role.as_str().to_owned()),
            ("boot", format!("{:016x}", self.boot)),
        ];
        let mut invites = String::new();
        for InviteId(invite) in self.invites.iter().take(INVITES_MAX) {
            if invites.len() + 1 + invite.len() > INVITES_BYTES_MAX {
                break;
            }
            if !invites.is_empty() {
                invites.push(',');
            }
            invites.push_str(invite);
        }
        if !invites.is_empty() {
            properties.push(("inv", invites));
        }
        properties
    }

    /// Decodes TXT properties that came from anywhere.
    ///
    /// Unknown properties are ignored, the first of two equal keys counts, and so do only the
    /// first [`INVITES_MAX`] well-formed invites.
    ///
    /// # Errors
    ///
    /// [`RecordError`] says what is not as it should be; [`RecordError::OtherVersion`] comes
    /// before every other complaint, since another version may look otherwise.
    pub fn decode<'a>(
        properties: impl IntoIterator<Item = (&'a str, Option<&'a [u8]>)>,
    ) -> Result<Self, RecordError> {
        let raw = Raw::gather(properties)?;
        let version = text(raw.version, "v", "a text")?.unwrap_or_default();
        match version {
            VERSION => {}
            "" => return Err(RecordError::Missing("v")),
            other => return Err(RecordError::OtherVersion(other.chars().take(16).collect())),
        }
        let cluster = text(raw.cluster, "cid", CLUSTER)?.ok_or(RecordError::Missing("cid"))?;
        let cluster = ClusterHint::parse(cluster)
            .ok_or(RecordError::Malformed { key: "cid", expected: CLUSTER })?;
        let node = text(raw.node, "nid", NODE)?.ok_or(RecordError::Missing("nid"))?;
        let node = parse_node(node).ok_or(RecordError::Malformed { key: "nid", expected: NODE })?;
        let role = Role::parse(text(raw.role, "role", "a text")?.unwrap_or_default());
        let boot = text(raw.boot, "boot", BOOT)?.ok_or(RecordError::Missing("boot"))?;
        let boot =
            parse_hex(boot, 16).ok_or(RecordError::Malformed { key: "boot", expected: BOOT })?;
        let invites = text(raw.invites, "inv", INVITES)?.unwrap_or_default();
        let invites =
            invites.split(',').filter_map(|id| id.parse().ok()).take(INVITES_MAX).collect();
        Ok(Self { cluster, node, role, boot, invites })
    }
}

const CLUSTER: &str = "8 hexadecimal digits";
const NODE: &str = "a number from 1";
const BOOT: &str = "16 hexadecimal digits";
const INVITES: &str = "invite ids with commas between";

/// The properties of a foreign record that mean something here.
#[derive(Default)]
struct Raw<'a> {
    version: Option<&'a [u8]>,
    cluster: Option<&'a [u8]>,
    node: Option<&'a [u8]>,
    role: Option<&'a [u8]>,
    boot: Option<&'a [u8]>,
    invites: Option<&'a [u8]>,
}

impl<'a> Raw<'a> {
    fn gather(
        properties: impl IntoIterator<Item = (&'a str, Option<&'a [u8]>)>,
    ) -> Result<Self, RecordError> {
        let mut raw = Self::default();
        let mut bytes = 0_usize;
        for (count, (key, value)) in properties.into_iter().enumerate() {
            bytes = bytes.saturating_add(key.len()).saturating_add(value.map_or(0, <[u8]>::len));
            if count >= PROPERTIES_MAX || bytes > FOREIGN_BYTES_MAX {
                return Err(RecordError::TooLarge);
            }
            // Keys are compared without case, as DNS-SD wants it.
            let slot = match key.to_ascii_lowercase().as_str() {
                "v" => &mut raw.version,
                "cid" => &mut raw.cluster,
                "nid" => &mut raw.node,
                "role" => &mut raw.role,
                "boot" => &mut raw.boot,
                "inv" => &mut raw.invites,
                _ => continue,
            };
            if slot.is_none() {
                *slot = Some(value.unwrap_or_default());
            }
        }
        Ok(raw)
    }
}

fn text<'a>(
    value: Option<&'a [u8]>,
    key: &'static str,
    expected: &'static str,
) -> Result<Option<&'a str>, RecordError> {
    value
        .map(|bytes| {
            std::str::from_utf8(bytes).map_err(|_not_text| RecordError::Malformed { key, expected })
        })
        .transpose()
}

/// Reads exactly `digits` hexadecimal digits; the standard parser would take a sign too.
fn parse_hex(text: &str, digits: usize) -> Option<u64> {
    let all_digits = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if all_digits { u64::from_str_radix(text, 16).ok() } else { None }
}

fn parse_node(text: &str) -> Option<u64> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let node = if all_digits { text.parse().ok()? } else { return None };
    (node != 0).then_some(node)
}

#[cfg(test)]
mod tests;
