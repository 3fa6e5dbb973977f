//! One message of a client, a line or a body: what rmcp can serve, or what to answer instead.
//!
//! Codes are JSON-RPC's: −32700 for what is no JSON, −32600 for what is no request, −32601 for a
//! method that is not served, −32602 for parameters that do not fit. The id is the request's,
//! wherever one can be read, else null.

use nexus_contract::catalog::Set;
use nexus_contract::json::{self, JsonError};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, JsonRpcMessage, RequestId};
use serde_json::{Map, Value, json};

/// Answers to one batch: a batch is refused anyway, so that the first requests of it are enough.
const BATCH_ANSWERS_MAX: usize = 64;
/// Characters of a client's own words that an answer repeats.
const SHOWN_CHARS_MAX: usize = 64;
/// Some editors begin a text with it, and JSON allows to ignore it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a message is.
#[derive(Debug)]
pub(crate) enum Read {
    /// A message for rmcp.
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing for rmcp; these answers, which may be none.
    Answers(Vec<Value>),
}

/// Reads a message without the end of its line; `set` are the tools to name. A `stateless` one is
/// of 2026-07-28, which has no handshake any more.
pub(crate) fn read(line: &[u8], set: Set, stateless: bool) -> Read {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Read::Answers(Vec::new());
    }
    match json::read(line) {
        Ok(Value::Array(items)) => Read::Answers(batch(&items)),
        Ok(Value::Object(fields)) => object(fields, set, stateless),
        Ok(other) => {
            let text =
                format!("invalid request: the message is {}; give a JSON object", kind(&other));
            refused(&Value::Null, ErrorCode::INVALID_REQUEST, &text)
        }
        Err(JsonError::Malformed(error)) => malformed(&error),
        Err(error @ JsonError::Doubled(_)) => doubled(line, &error),
    }
}

fn malformed(error: &serde_json::Error) -> Read {
    let text = format!("parse error: {error} of this message; give one JSON-RPC message at a time");
    refused(&Value::Null, ErrorCode::PARSE_ERROR, &text)
}

/// Refuses a message in which an object has a key twice. Who waits for an answer, and under which
/// id, is read as if the last of them counted.
fn doubled(line: &[u8], error: &JsonError) -> Read {
    let fields = match serde_json::from_slice(line) {
        Ok(Value::Array(items)) => return Read::Answers(batch(&items)),
        Ok(Value::Object(fields)) => fields,
        Ok(_) => Map::new(),
        Err(error) => return malformed(&error),
    };
    let Some(id) = fields.get("id").filter(|_| !is_answer(&fields)) else {
        tracing::debug!("a notification or an answer is left out: it {error}");
        return Read::Answers(Vec::new());
    };
    let id = if is_id(id) { id } else { &Value::Null };
    let text = format!("invalid request: the message {error}");
    refused(id, ErrorCode::INVALID_REQUEST, &text)
}

/// Makes the answer of an error.
pub(crate) fn error(id: &Value, code: ErrorCode, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}})
}

/// Says that a method is not served, and which are.
pub(crate) fn not_served(method: &str) -> String {
    let method = brief(method);
    format!(
        "method not found: {method}; this server has tools/list, tools/call, resources/list, \
         resources/templates/list, resources/read, prompts/list and prompts/get, begun by \
         initialize or server/discover"
    )
}

/// Says that a request came before the client began.
pub(super) fn too_early(method: &str) -> String {
    let method = brief(method);
    format!(
        "{method} came before the handshake: send initialize first, or, as of 2026-07-28, give \
         params._meta with io.modelcontextprotocol/protocolVersion and \
         io.modelcontextprotocol/clientCapabilities in every request"
    )
}

fn refused(id: &Value, code: ErrorCode, message: &str) -> Read {
    Read::Answers(vec![error(id, code, message)])
}

/// Refuses a batch, request by request: whoever sent it waits for each of them.
fn batch(items: &[Value]) -> Vec<Value> {
    let text = "invalid request: a batch; MCP has had none since 2025-06-18, give one message at \
                a time";
    let refuse = |id: &Value| error(id, ErrorCode::INVALID_REQUEST, text);
    let ids = items.iter().filter(|item| item.get("method").is_some());
    let ids = ids.filter_map(|item| item.get("id")).filter(|id| is_id(id));
    let answers: Vec<Value> = ids.take(BATCH_ANSWERS_MAX).map(refuse).collect();
    if answers.is_empty() { vec![refuse(&Value::Null)] } else { answers }
}

fn object(fields: Map<String, Value>, set: Set, stateless: bool) -> Read {
    if is_answer(&fields) {
        return unanswered(fields);
    }
    let given = fields.get("id").cloned();
    let id = given.clone().filter(is_id).unwrap_or_default();
    let invalid =
        |what: &str| refused(&id, ErrorCode::INVALID_REQUEST, &format!("invalid request: {what}"));
    if let Some(wrong) = given.filter(|given| !is_id(given)) {
        return invalid(&format!("id is {}; give a string or a whole number", kind(&wrong)));
    }
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("jsonrpc is missing or of another version; give \"2.0\"");
    }
    let method = match fields.get("method") {
        Some(Value::String(method)) => method.clone(),
        Some(other) => return invalid(&format!("method is {}; give a string", kind(other))),
        None => return invalid("method is missing; give a string"),
    };
    if has_result(&fields) {
        return invalid("it has a method and a result; give one of them");
    }
    if !fields.contains_key("id") {
        return unanswered(fields);
    }
    if stateless && method == "initialize" {
        return refused(&id, ErrorCode::METHOD_NOT_FOUND, &not_served(&method));
    }
    let known = SERVED.contains(&method.as_str());
    if known && let Some(what) = wrong(&method, fields.get("params"), set) {
        return refused(&id, ErrorCode::INVALID_PARAMS, &unfit(&method, &what));
    }
    match serde_json::from_value::<ClientJsonRpcMessage>(Value::Object(fields)) {
        Ok(JsonRpcMessage::Request(asked))
            if !matches!(asked.request, ClientRequest::CustomRequest(_)) =>
        {
            Read::Message(Box::new(JsonRpcMessage::Request(asked)))
        }
        // rmcp takes a request of its own methods whose parameters it cannot read for one of
        // somebody else's.
        Ok(_) | Err(_) if known => {
            let what = "params do not fit; see MCP's schema";
            refused(&id, ErrorCode::INVALID_PARAMS, &unfit(&method, what))
        }
        Ok(_) | Err(_) => refused(&id, ErrorCode::METHOD_NOT_FOUND, &not_served(&method)),
    }
}

/// Returns whether a message is an answer of the client.
fn is_answer(fields: &Map<String, Value>) -> bool {
    has_result(fields) && !fields.contains_key("method")
}

fn has_result(fields: &Map<String, Value>) -> bool {
    fields.contains_key("result") || fields.contains_key("error")
}

/// Passes on what gets no answer, whatever it is: a notification, or an answer of the client.
fn unanswered(fields: Map<String, Value>) -> Read {
    match serde_json::from_value(Value::Object(fields)) {
        Ok(message) => Read::Message(Box::new(message)),
        Err(_words_about_types) => {
            tracing::debug!("a notification or an answer that cannot be read is left out");
            Read::Answers(Vec::new())
        }
    }
}

/// Returns whether a value can be a request's id, and be read as one.
fn is_id(value: &Value) -> bool {
    serde_json::from_value::<RequestId>(value.clone()).is_ok()
}

/// The methods whose parameters are known here.
const SERVED: [&str; 10] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
];

fn unfit(method: &str, what: &str) -> String {
    format!("invalid params of {method}: {what}")
}

/// Returns what is wrong with the parameters of a method that is served. Elsewhere a list may stand
/// for an object, and rmcp would take it for one: MCP has only objects.
fn wrong(method: &str, params: Option<&Value>, set: Set) -> Option<String> {
    match params {
        Some(Value::Object(params)) => wrong_field(method, params, set),
        None | Some(Value::Null) => wrong_field(method, &Map::new(), set),
        Some(other) => Some(format!("params is {}; give an object", kind(other))),
    }
}

/// Returns what is wrong with the first field that is, and what would be right.
fn wrong_field(method: &str, params: &Map<String, Value>, set: Set) -> Option<String> {
    let field = |at: &str, found: Option<&Value>, fits: fn(&Value) -> bool, right: &str| {
        let is = match found {
            Some(found) if fits(found) => return None,
            Some(found) => format!("is {}", kind(found)),
            None => "is missing".to_owned(),
        };
        Some(format!("{at} {is}; give {right}"))
    };
    let optional = |at: &str, key: &str, fits: fn(&Value) -> bool, right: &str| {
        let found = params.get(key).filter(|found| !found.is_null())?;
        field(at, Some(found), fits, right)
    };
    let own = match method {
        "tools/call" => {
            let right = format!("a tool's name: one of {}", set.names());
            field("params.name", params.get("name"), Value::is_string, &right).or_else(|| {
                optional("params.arguments", "arguments", Value::is_object, "an object")
            })
        }
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            optional("params.cursor", "cursor", Value::is_string, "a string")
        }
        "resources/read" => {
            let right = "a resource's uri, such as \"nexus://strategy\"";
            field("params.uri", params.get("uri"), Value::is_string, right)
        }
        "prompts/get" => {
            let right = "a prompt's name, as prompts/list has it";
            field("params.name", params.get("name"), Value::is_string, right).or_else(|| {
                optional("params.arguments", "arguments", Value::is_object, "an object")
            })
        }
        "initialize" => {
            let client = params.get("clientInfo");
            let of_client = |key: &str| client.and_then(|client| client.get(key));
            let version = params.get("protocolVersion");
            let right = "a version, such as \"2025-11-25\"";
            field("params.protocolVersion", version, Value::is_string, right)
                .or_else(|| {
                    let found = params.get("capabilities");
                    field("params.capabilities", found, Value::is_object, "an object")
                })
                .or_else(|| {
                    let right = "an object with name and version";
                    field("params.clientInfo", client, Value::is_object, right)
                })
                .or_else(|| {
                    let found = of_client("name");
                    field("params.clientInfo.name", found, Value::is_string, "a string")
                })
                .or_else(|| {
                    let found = of_client("version");
                    field("params.clientInfo.version", found, Value::is_string, "a string")
                })
        }
        _ => None,
    };
    own.or_else(|| optional("params._meta", "_meta", Value::is_object, "an object"))
}

/// Says what a value is, in JSON's words and briefly: none of a message's text gets into an error.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => brief(&value.to_string()),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn brief(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}
