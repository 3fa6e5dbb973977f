//! Who calls, and under which request id.
//!
//! Nothing here is an argument of the model: the conversation comes from the request's `_meta`,
//! which the client writes, the instance from the process that the client started.

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nexus_contract::http::Caller;
use nexus_contract::limits::ID_CHARS_MAX;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The key under which Claude Code names the use of the tool.
const CLAUDE_TOOL_USE_ID: &str = "claudecode/toolUseId";
/// The key under which Codex names its conversation.
const CODEX_SESSION_ID: &str = "sessionId";
/// The key under which Codex names the call.
const CODEX_CALL_ID: &str = "callId";
/// The key under which any client may give the id of a call over HTTP.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotencyKey";
/// The key under which any client may say over HTTP which instance it is.
pub(crate) const INSTANCE_ID: &str = "instanceId";

/// What a request's `_meta` says about who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The conversation, where the client names it.
    pub caller: Option<Caller>,
    /// The call's own id, where the client gives one: the same for every copy of the call.
    pub call_id: Option<String>,
}

/// Reads a request's `_meta`.
pub fn claim(meta: &Map<String, Value>) -> Claim {
    // Ids of absurd length were made by nobody we know; they would only travel and be refused.
    let text = |key: &str| {
        let text = meta.get(key)?.as_str()?;
        let fits = !text.is_empty()
            && u32::try_from(text.chars().count()).is_ok_and(|count| count <= ID_CHARS_MAX);
        fits.then(|| text.to_owned())
    };
    if let Some(tool_use_id) = text(CLAUDE_TOOL_USE_ID) {
        return Claim {
            call_id: Some(tool_use_id.clone()),
            caller: Some(Caller::Claude { tool_use_id }),
        };
    }
    match text(CODEX_SESSION_ID) {
        Some(session_id) => Claim {
            call_id: text(CODEX_CALL_ID).map(|call_id| format!("{session_id}/{call_id}")),
            caller: Some(Caller::Codex { session_id }),
        },
        None => Claim { caller: None, call_id: None },
    }
}

/// This process: what it was started with, and the ids it gives.
#[derive(Debug)]
pub struct Process {
    id: String,
    calls: AtomicU64,
}

impl Process {
    /// Makes a process with a random id.
    pub fn random() -> Self {
        let bytes: [u8; 16] = nexus_rt::unique_bytes();
        Self { id: data_encoding::HEXLOWER.encode(&bytes), calls: AtomicU64::new(0) }
    }

    /// Returns the process's random id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the next request id of this process, for a call whose client gives none.
    pub fn next_request_id(&self) -> String {
        format!("{}-{}", self.id, self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns the instance id that a client has by where it was started: the same after a restart,
/// another one for another client, folder or host.
pub fn instance_id(hostname: &str, cwd: &Path, client: Option<&str>) -> String {
    let hash = Sha256::digest(cwd.as_os_str().as_encoded_bytes());
    let hash: String = data_encoding::HEXLOWER.encode(&hash).chars().take(8).collect();
    let client = client.map(plain).filter(|name| !name.is_empty());
    format!("mcp-{}-{hash}-{}", plain(hostname), client.as_deref().unwrap_or("client"))
}

/// Returns the instance id of a client that calls by HTTP and chose none: by the address it calls
/// from, which is the same to every node, and by its name. An address of this machine tells only
/// this machine's clients apart, so the node adds its own id to that one.
pub fn http_instance_id(from: IpAddr, client: Option<&str>) -> String {
    let client = client.map(plain).filter(|name| !name.is_empty());
    let client = client.as_deref().unwrap_or("client");
    let from = from.to_canonical();
    if from.is_loopback() {
        format!("mcp-http-{client}")
    } else {
        format!("http-{}-{client}", plain(&from.to_string()))
    }
}

/// Keeps what an id may be made of, and makes it short.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    for letter in name.trim().chars().take(64) {
        let keep = letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
        plain.push(if keep { letter } else { '-' });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(meta: &Value) -> Claim {
        claim(meta.as_object().unwrap())
    }

    #[test]
    fn clients_name_their_calls_each_in_its_way() {
        let claude = read(&json!({"claudecode/toolUseId": "toolu_1", "sessionId": "s"}));
        assert_eq!(claude.call_id.as_deref(), Some("toolu_1"));
        assert_eq!(claude.caller, Some(Caller::Claude { tool_use_id: "toolu_1".into() }));
        let codex = read(&json!({"sessionId": "s", "callId": "c", "threadId": "t"}));
        assert_eq!(codex.call_id.as_deref(), Some("s/c"));
        assert_eq!(codex.caller, Some(Caller::Codex { session_id: "s".into() }));
        let older = read(&json!({"sessionId": "s"}));
        assert_eq!((older.call_id, older.caller.is_some()), (None, true));
        for nobody in [
            json!({}),
            json!({"callId": "c"}),
            json!({"sessionId": 7}),
            json!({"sessionId": ""}),
            json!({"claudecode/toolUseId": "x".repeat(201)}),
        ] {
            assert_eq!(read(&nobody), Claim { caller: None, call_id: None }, "{nobody}");
        }
    }

    #[test]
    fn clients_over_http_are_told_apart_by_address_and_name() {
        let id = |from: &str, client| http_instance_id(from.parse().unwrap(), client);
        assert_eq!(id("127.0.0.1", None), "mcp-http-client");
        assert_eq!(id("::ffff:127.0.0.1", Some("Claude Code")), "mcp-http-Claude-Code");
        assert_eq!(id("10.0.0.9", Some("x")), "http-10.0.0.9-x");
        assert_eq!(id("::ffff:10.0.0.9", Some("x")), "http-10.0.0.9-x");
        assert_eq!(id("fe80::1", None), "http-fe80--1-client");
    }

    #[test]
    fn instance_ids_are_stable_and_apart() {
        let id = |host, cwd, client| instance_id(host, Path::new(cwd), client);
        let one = id("desk", "/src/app", Some("claude-code"));
        assert_eq!(one, id("desk", "/src/app", Some("claude-code")));
        assert!(one.starts_with("mcp-desk-") && one.ends_with("-claude-code"), "{one}");
        for other in [
            id("desk", "/src/app", Some("codex")),
            id("desk", "/src/other", Some("claude-code")),
            id("lap", "/src/app", Some("claude-code")),
            id("desk", "/src/app", None),
        ] {
            assert_ne!(one, other);
        }
        let odd = id("my desk", "/", Some("Some IDE/ü\n"));
        assert!(odd.starts_with("mcp-my-desk-") && odd.ends_with("-Some-IDE--"), "{odd}");
    }

    #[test]
    fn request_ids_are_never_the_same() {
        let (one, other) = (Process::random(), Process::random());
        assert_ne!(one.id(), other.id());
        assert_ne!(one.next_request_id(), one.next_request_id());
    }
}
