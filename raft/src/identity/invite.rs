//! Invite codes: what an operator carries from a member to a new machine.
//!
//! `nexus1.<role>.<authority>.<id>.<secret>`: the fingerprint of the cluster's authority lets the
//! new machine know the cluster before it says anything; the id is public and names the invite;
//! the secret admits once. Nothing here prints the secret except [`InviteCode::encode`].

use std::fmt;

use data_encoding::BASE32_NOPAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

use super::pin::Fingerprint;

/// The form of code that this version makes and reads.
const VERSION: &str = "nexus1";
/// Characters of a fingerprint in base 32.
const AUTHORITY_LENGTH: usize = 52;
/// Characters of the public id.
const ID_LENGTH: usize = 6;
/// 160 bits: beyond guessing, and a whole number of base 32 characters.
const SECRET_BYTES: usize = 20;
/// Characters of the secret in base 32.
const SECRET_LENGTH: usize = 32;

/// Why a text is no invite code; never shows the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// The text does not begin as a code does.
    #[error("invite code does not begin with {VERSION}., so it is no invite code of nexus")]
    Prefix,
    /// The code was made by another version.
    #[error("invite code is of version {found}, this program reads {VERSION}: upgrade it")]
    Version {
        /// The first part of the code.
        found: String,
    },
    /// The code has too few parts or too short ones.
    #[error("invite code is cut off at its {part}: copy it again, to its last character")]
    Truncated {
        /// The part that is missing or too short.
        part: &'static str,
    },
    /// The code is longer than codes are.
    #[error("invite code has too much at its {part}: copy it again, without what follows it")]
    TooLong {
        /// The part that is too long.
        part: &'static str,
    },
    /// The role is none that exists.
    #[error("invite code has the role {found:?}, expected voter, learner or auto")]
    Role {
        /// What stands in the place of the role.
        found: String,
    },
    /// A part holds characters that a code never has.
    #[error("invite code has wrong characters in its {part}, expected a-z and 2-7: copy it again")]
    Characters {
        /// The part with the wrong characters.
        part: &'static str,
    },
    /// The operating system gave no randomness.
    #[error("the system gives no random numbers, so no invite code can be made")]
    Random,
}

/// What an invited machine becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InviteRole {
    /// A voter as soon as it has caught up.
    Voter,
    /// A learner for good.
    Learner,
    /// A learner that is promoted when it has been steady.
    Auto,
}

impl InviteRole {
    /// Returns the word for the role.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Voter => "voter",
            Self::Learner => "learner",
            Self::Auto => "auto",
        }
    }

    fn parse(text: &str) -> Result<Self, InviteError> {
        match text {
            "voter" => Ok(Self::Voter),
            "learner" => Ok(Self::Learner),
            "auto" => Ok(Self::Auto),
            // A mistyped code may have the secret here; a short word cannot be one.
            other => Err(InviteError::Role { found: other.chars().take(ID_LENGTH + 4).collect() }),
        }
    }
}

impl fmt::Display for InviteRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// SHA-256 of an invite's secret: what the state keeps instead of it.
#[derive(Clone, Copy, Debug)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// Returns the hash of a secret.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Tells whether `secret` has this hash, in a time that does not depend on where they differ.
    #[must_use]
    pub fn matches(&self, secret: &[u8]) -> bool {
        *self == Self::of(secret)
    }
}

impl PartialEq for SecretHash {
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl Eq for SecretHash {}

/// An invite code.
#[derive(Clone, PartialEq, Eq)]
pub struct InviteCode {
    role: InviteRole,
    authority: Fingerprint,
    id: String,
    secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for InviteCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InviteCode")
            .field("role", &self.role)
            .field("authority", &self.authority)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl InviteCode {
    /// Makes a code with a fresh id and secret.
    ///
    /// # Errors
    ///
    /// [`InviteError::Random`] when the operating system gives no randomness.
    pub fn generate(role: InviteRole, authority: Fingerprint) -> Result<Self, InviteError> {
        let random = SystemRandom::new();
        let mut id = [0; 5];
        let mut secret = [0; SECRET_BYTES];
        random.fill(&mut id).map_err(|_unspecified| InviteError::Random)?;
        random.fill(&mut secret).map_err(|_unspecified| InviteError::Random)?;
        let id = base32(&id).chars().take(ID_LENGTH).collect();
        Ok(Self { role, authority, id, secret })
    }

    /// Returns the code as text; it holds the secret, so it is shown once and never logged.
    #[must_use]
    pub fn encode(&self) -> String {
        let Self { role, authority, id, secret } = self;
        format!("{VERSION}.{role}.{authority}.{id}.{}", base32(secret))
    }

    /// Reads a code; blanks around it do not matter.
    ///
    /// # Errors
    ///
    /// [`InviteError`] names the part that is wrong and never shows the secret.
    pub fn parse(text: &str) -> Result<Self, InviteError> {
        let mut parts = text.trim().split('.');
        let version = parts.next().unwrap_or_default();
        if version != VERSION {
            return Err(wrong_version(version));
        }
        let mut next = |part| match parts.next() {
            None | Some("") => Err(InviteError::Truncated { part }),
            Some(text) => Ok(text),
        };
        let role = next("role")?;
        let authority = next("authority")?;
        let id = next("id")?;
        let secret = next("secret")?;
        if parts.next().is_some() {
            return Err(InviteError::TooLong { part: "secret" });
        }
        let role = InviteRole::parse(role)?;
        let authority = Fingerprint(unbase32("authority", authority, AUTHORITY_LENGTH)?);
        check_characters("id", id, ID_LENGTH)?;
        let secret = unbase32("secret", secret, SECRET_LENGTH)?;
        Ok(Self { role, authority, id: id.to_owned(), secret })
    }

    /// Returns what the invited machine becomes.
    #[must_use]
    pub fn role(&self) -> InviteRole {
        self.role
    }

    /// Returns the fingerprint of the cluster's authority.
    #[must_use]
    pub fn authority(&self) -> Fingerprint {
        self.authority
    }

    /// Returns the public id of the invite.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the secret; it goes over a checked connection only.
    #[must_use]
    pub fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Returns what the state keeps of the secret.
    #[must_use]
    pub fn secret_hash(&self) -> SecretHash {
        SecretHash::of(&self.secret)
    }
}

/// Encodes bytes as lower-case base 32 without padding.
pub(super) fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

fn wrong_version(found: &str) -> InviteError {
    let digits = found.strip_prefix("nexus").unwrap_or_default();
    let is_version = !digits.is_empty() && digits.len() <= 4;
    if is_version && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        InviteError::Version { found: found.to_owned() }
    } else {
        InviteError::Prefix
    }
}

fn check_characters(part: &'static str, text: &str, length: usize) -> Result<(), InviteError> {
    if !text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7')) {
        return Err(InviteError::Characters { part });
    }
    match text.len() {
        found if found < length => Err(InviteError::Truncated { part }),
        found if found > length => Err(InviteError::TooLong { part }),
        _ => Ok(()),
    }
}

fn unbase32<const N: usize>(
    part: &'static str,
    text: &str,
    length: usize,
) -> Result<[u8; N], InviteError> {
    check_characters(part, text, length)?;
    BASE32_NOPAD
        .decode(text.to_ascii_uppercase().as_bytes())
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(InviteError::Characters { part })
}
