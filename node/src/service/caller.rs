//! Who calls, as the log knows it.
//!
//! What a call says of itself is a claim. Codex's conversation is taken from what its client put
//! beside the call; a use of a tool that Claude Code names says nothing before hooks bind it, so
//! such a call counts as its instance. Between machines the node's certificate speaks.

use std::net::IpAddr;

use nexus_contract::chat::Identity;
use nexus_contract::http::{Caller, ToolCall};
use nexus_contract::ids;
use nexus_contract::validate::Violation;
use nexus_domain::NodeId;
use nexus_domain::command::Client;

/// Characters of a bucket's name: no id that is taken is longer.
const BUCKET_CHARS_MAX: usize = 200;
/// A working directory's bytes: what the log takes.
const CWD_BYTES_MAX: usize = 4_096;

/// A known caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Who {
    /// `codex:…`, or an instance's id.
    pub(crate) id: String,
    /// The program it is in.
    pub(crate) client: Client,
    /// A number of the process that speaks, where it says so.
    pub(crate) incarnation: Option<u64>,
    /// Its working directory; empty when unknown.
    pub(crate) cwd: String,
}

impl Who {
    /// Returns as what it was recognised.
    pub(crate) fn identity(&self) -> Identity {
        match self.client {
            Client::Claude | Client::Codex => Identity::Session,
            Client::Instance => Identity::Instance,
        }
    }
}

/// Returns who calls; `None` when the call names nobody.
///
/// # Errors
/// The field that names somebody in a form that no id has, and what would be right.
pub(crate) fn who(call: &ToolCall, node: NodeId) -> Result<Option<Who>, Violation> {
    let incarnation = call.process.as_deref().map(number);
    let cwd = call.cwd.clone().filter(|cwd| cwd.len() <= CWD_BYTES_MAX && !cwd.contains('\0'));
    let cwd = cwd.unwrap_or_default();
    if let Some(Caller::Codex { session_id }) = &call.caller {
        let field = "caller.sessionId";
        ids::session(field, session_id)?;
        let id = format!("codex:{session_id}");
        ids::session(field, &id)?;
        return Ok(Some(Who { id, client: Client::Codex, incarnation, cwd }));
    }
    let Some(given) = &call.instance_id else { return Ok(None) };
    ids::instance("instanceId", given)?;
    // Two machines may share a host name, so what was made from it gets the node's id; a user who
    // chose an id means it.
    let id = if call.instance_given || !given.starts_with("mcp-") {
        given.clone()
    } else {
        format!("{given}-n{node}")
    };
    ids::instance("instanceId", &id)?;
    Ok(Some(Who { id, client: Client::Instance, incarnation, cwd }))
}

/// Returns whose bucket a call is taken from: the conversation's, else the instance's, else the
/// one of all callers of an address that name nobody. No instance has a colon in its id.
pub(crate) fn bucket(call: &ToolCall, from: IpAddr) -> String {
    let name = match (&call.caller, &call.instance_id) {
        (Some(Caller::Codex { session_id }), _) => format!("codex:{session_id}"),
        (_, Some(instance)) => instance.clone(),
        (_, None) => return format!("address:{}", from.to_canonical()),
    };
    name.chars().take(BUCKET_CHARS_MAX).collect()
}

/// Makes a number of a process's id: FNV-1a, because the same id must give the same number in every
/// version, and nobody gains by a collision.
fn number(process: &str) -> u64 {
    process.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(instance: Option<&str>, given: bool, codex: Option<&str>) -> ToolCall {
        ToolCall {
            instance_id: instance.map(str::to_owned),
            instance_given: given,
            caller: codex.map(|id| Caller::Codex { session_id: id.to_owned() }),
            process: Some("p".to_owned()),
            ..ToolCall::default()
        }
    }

    fn id(call: &ToolCall) -> Option<String> {
        who(call, 7).unwrap().map(|who| who.id)
    }

    #[test]
    fn conversations_go_before_instances() {
        let both = who(&call(Some("mcp-a"), false, Some("s-1")), 7).unwrap().unwrap();
        assert_eq!((both.id.as_str(), both.identity()), ("codex:s-1", Identity::Session));
        let claude = ToolCall {
            caller: Some(Caller::Claude { tool_use_id: "toolu_1".into() }),
            ..call(Some("mcp-a"), false, None)
        };
        let claude = who(&claude, 7).unwrap().unwrap();
        assert_eq!((claude.id.as_str(), claude.identity()), ("mcp-a-n7", Identity::Instance));
    }

    #[test]
    fn everybody_has_a_bucket_of_its_own() {
        let from = "::ffff:10.0.0.9".parse().unwrap();
        let of = |instance, codex| bucket(&call(instance, true, codex), from);
        assert_eq!(of(Some("a"), None), "a");
        assert_eq!(of(Some("a"), Some("a")), "codex:a");
        assert_eq!(of(None, None), "address:10.0.0.9");
        assert_eq!(of(Some(&"x".repeat(999)), None).len(), BUCKET_CHARS_MAX);
    }

    #[test]
    fn only_made_instance_ids_get_the_node() {
        assert_eq!(id(&call(Some("mcp-a"), false, None)).as_deref(), Some("mcp-a-n7"));
        assert_eq!(id(&call(Some("mcp-a"), true, None)).as_deref(), Some("mcp-a"));
        assert_eq!(id(&call(Some("script"), false, None)).as_deref(), Some("script"));
        assert_eq!(id(&call(None, false, None)), None);
    }

    #[test]
    fn no_instance_speaks_as_a_conversation() {
        for wrong in ["codex:s", "claude:s", "", "a b", "a/b", "ä", &"x".repeat(201)] {
            assert!(who(&call(Some(wrong), true, None), 7).is_err(), "{wrong}");
        }
        for wrong in ["", "a b", &"x".repeat(201)] {
            assert!(who(&call(None, true, Some(wrong)), 7).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_has_one_number_for_ever() {
        assert_eq!(number(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number("a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(number("a"), number("b"));
    }
}
