//! Request ids of an upload, which is several commands and one call.
//!
//! The first attempt begins under the call's own id: so another call under it is refused, and the
//! same one finds the upload that it has begun, and goes on where that stands. The command that
//! ends an attempt has an id that is made of the call's. An attempt that was given up is over for
//! good, because its last command is refused then and stays refused; the next one has ids of its
//! own. So of all attempts one at most is done, whoever repeats the call and wherever, and its
//! answer is found again.
//!
//! Without an id of the call each command gets one of this node.

use super::digest;
use crate::service::assets::hex;

/// The ids of one attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ids {
    /// Of the command that begins it.
    pub(super) begin: Option<String>,
    /// Of the command that names what was brought.
    pub(super) end: Option<String>,
}

impl Ids {
    /// Returns those of an attempt, counted from 0.
    pub(super) fn of(request: Option<&str>, attempt: u32) -> Self {
        let Some(given) = request else { return Self { begin: None, end: None } };
        // No caller's own id has a control character in it. A given one may have all the bytes
        // that an id may have, so it stands there by its hash.
        let made = |step| format!("\u{1}{step}/{attempt}/{}", hex(&digest(given.as_bytes())));
        let begin = if attempt == 0 { given.to_owned() } else { made("begin") };
        Self { begin: Some(begin), end: Some(made("end")) }
    }
}

#[cfg(test)]
mod tests {
    use nexus_contract::ids;
    use nexus_domain::limits;

    use super::*;

    #[test]
    fn every_step_of_every_attempt_has_an_id_of_its_own() {
        let long = "x".repeat(limits::CLIENT_ID_BYTES_MAX);
        let mut all = Vec::new();
        for request in ["a", "b", &long] {
            for attempt in 0..3 {
                let Ids { begin, end } = Ids::of(Some(request), attempt);
                assert_eq!(Ids::of(Some(request), attempt).begin, begin);
                all.extend([begin.unwrap(), end.unwrap()]);
            }
        }
        let own = all.iter().filter(|id| ids::request("requestId", id).is_ok());
        assert_eq!(own.collect::<Vec<_>>(), ["a", "b", long.as_str()]);
        assert!(all.iter().all(|id| id.len() <= limits::CLIENT_ID_BYTES_MAX), "{all:?}");
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!(Ids::of(None, 1), Ids { begin: None, end: None });
    }
}
