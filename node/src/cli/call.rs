//! `nexus call`: any tool of the catalogue, from a shell.

use std::io::Read as _;

use nexus_adapter::{ClientError, LocalNode};
use nexus_contract::http::{ToolAnswer, ToolCall};
use nexus_contract::{ApiError, ErrorCode, catalog, json};
use serde_json::{Map, Value};

use super::out::{Out, knew};
use super::{Exit, Failure, Local, value};
use crate::config;

/// Random bytes of a request id: no two calls of a day meet.
const REQUEST_ID_BYTES: usize = 10;

const AFTER_HELP: &str = "\
Acts as cli-<user> unless --instance names another instance. A call that changes something gets a
request id; where it is not known whether it was done, the error names it: with --request-id ID the
same call has one effect however often it is sent.

Examples:
  nexus call send_message '{\"message\":\"tests are green\",\"category\":\"UPDATE\"}'
  nexus call read_messages '{\"latest\":true,\"count\":5}'
  nexus call list_events
  jq -n '{message: \"from a script\"}' | nexus call send_message -";

/// Arguments of `nexus call`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CallArgs {
    /// The tool's name
    tool: String,
    /// Its arguments as a JSON object; `-` reads them from standard input
    #[arg(default_value = "{}")]
    args: String,
    /// The instance to act as [default: cli-USER]
    #[arg(long, value_name = "ID", value_parser = value::some_instance)]
    instance: Option<String>,
    /// The id under which the call has one effect however often it is sent [default: a random one]
    #[arg(long, value_name = "ID", value_parser = value::request)]
    request_id: Option<String>,
    #[command(flatten)]
    local: Local,
    /// Answer with the whole JSON answer, errors too
    #[arg(long)]
    pub(crate) json: bool,
}

/// Calls the tool.
pub(crate) async fn run(args: CallArgs, out: &mut Out) -> Result<Exit, Failure> {
    let arguments = parse(&args.args)?;
    let cwd = std::env::current_dir().ok().map(|cwd| cwd.display().to_string());
    let call = ToolCall {
        tool: args.tool,
        args: arguments,
        instance_id: Some(args.instance.unwrap_or_else(own_instance)),
        instance_given: true,
        request_id: args.request_id,
        cwd,
        ..ToolCall::default()
    };
    let result = send(&args.local.node()?, call).await?;
    if out.is_json() {
        out.value(&ToolAnswer::new(result));
    } else {
        out.value(&result);
        show_marks(&result, out);
    }
    Ok(Exit::Done)
}

/// Sends a call; one that changes something goes under an id, which the error of an unknown outcome
/// names.
///
/// An id that was made here is worth less than the call itself: when the day's ids of the caller
/// are used up (traps.md 7), which is a certain refusal, the call goes once more without one.
async fn send(node: &LocalNode, mut call: ToolCall) -> Result<Map<String, Value>, ApiError> {
    let changes = catalog::find(&call.tool).is_some_and(|spec| !spec.hints.read_only);
    let made = call.request_id.is_none() && changes;
    if made {
        let bytes: [u8; REQUEST_ID_BYTES] = nexus_rt::unique_bytes();
        call.request_id = Some(format!("call-{}", data_encoding::HEXLOWER.encode(&bytes)));
    }
    let mut answer = node.call(&call).await;
    if made && answer.as_ref().is_err_and(are_ids_used_up) {
        call.request_id = None;
        answer = node.call(&call).await;
    }
    answer.map_err(|error| error.into_api_error(call.request_id.as_deref()))
}

/// Returns whether a refusal says that no more ids are kept for the caller. One that calls too fast
/// is told when to call again.
fn are_ids_used_up(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(error) => {
            error.code == ErrorCode::RateLimited && error.retry_after.is_none()
        }
        ClientError::NotReachable { .. } => false,
    }
}

/// Returns the instance that the command line acts as.
fn own_instance() -> String {
    format!("cli-{}", config::os_user())
}

/// Says what an answer's marks mean to people.
pub(crate) fn show_marks(result: &Map<String, Value>, out: &mut Out) {
    let is = |key: &str, value: bool| result.get(key).and_then(Value::as_bool) == Some(value);
    if is("stale", true) {
        let knew = knew(result.get("asOf").and_then(Value::as_str));
        out.warning(&format!("no majority of the voters answers: {knew}"));
    }
    if is("missingYourWrite", true) {
        out.warning("a write of yours that was acknowledged is not in this answer yet");
    }
    if is("appliedHere", false) {
        out.warning("done in the cluster; this node itself is behind and shows it later");
    }
}

fn parse(text: &str) -> Result<Value, Failure> {
    let text = if text == "-" {
        let mut input = String::new();
        std::io::stdin()
            .read_to_string(&mut input)
            .map_err(|error| Failure::Usage(format!("standard input cannot be read: {error}")))?;
        input
    } else {
        text.to_owned()
    };
    let such = "give an object, such as '{\"message\":\"hello\"}'";
    match json::read(text.as_bytes()) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err(Failure::Usage(format!("the argument is no JSON object; {such}"))),
        Err(error) => Err(Failure::Usage(format!("the argument {error}; {such}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::Json;
    use axum::http::StatusCode;
    use axum::routing::post;
    use nexus_adapter::EndpointSource;
    use nexus_contract::http::PATH_CALL;
    use serde_json::json;

    use super::*;

    /// Sends a call to what answers as `answer` does; returns the request ids that came, and what
    /// the caller is told.
    async fn sent(
        tool: &str,
        given: Option<&str>,
        answer: impl Fn(usize) -> Result<Value, ApiError> + Clone + Send + Sync + 'static,
    ) -> (Vec<Option<String>>, Result<Map<String, Value>, ApiError>) {
        let ids: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let seen = Arc::clone(&ids);
        let serve = async move |Json(call): Json<ToolCall>| {
            let number = {
                let mut seen = seen.lock().unwrap();
                seen.push(call.request_id);
                seen.len()
            };
            match answer(number) {
                Ok(result) => (StatusCode::OK, Json(json!({"ok": true, "result": result}))),
                Err(error) => {
                    let status = StatusCode::from_u16(error.status()).unwrap();
                    (status, Json(error.to_json()))
                }
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let jobs = nexus_rt::Jobs::new();
        let token = jobs.token();
        jobs.spawn("a node", async move {
            let router = axum::Router::new().route(PATH_CALL, post(serve));
            let stop = async move { token.cancelled().await };
            axum::serve(listener, router).with_graceful_shutdown(stop).await.unwrap();
        });
        let data = tempfile::tempdir().unwrap();
        let endpoint = Some(format!("http://{address}"));
        let source = EndpointSource { data: data.path().to_owned(), endpoint, token: None };
        let node = LocalNode::new(source).unwrap();
        let request_id = given.map(str::to_owned);
        let call = ToolCall { tool: tool.to_owned(), request_id, ..ToolCall::default() };
        let told = send(&node, call).await;
        drop(node);
        jobs.shutdown(Duration::from_secs(5)).await;
        (ids.lock().unwrap().clone(), told)
    }

    #[tokio::test]
    async fn a_call_that_changes_something_goes_under_an_id() {
        let good = |_number| Ok(json!({"done": true}));
        let (ids, told) = sent("send_message", None, good).await;
        assert!(told.is_ok(), "{told:?}");
        let [Some(id)] = ids.as_slice() else { panic!("{ids:?}") };
        assert!(id.starts_with("call-") && nexus_contract::ids::request("", id).is_ok(), "{id}");
        let (other, _) = sent("send_message", None, good).await;
        assert_ne!(other, ids);
        assert_eq!(sent("send_message", Some("mine"), good).await.0, [Some("mine".to_owned())]);
        assert_eq!(sent("list_events", None, good).await.0, [None]);
        assert_eq!(sent("send_mesage", None, good).await.0, [None]);
    }

    #[tokio::test]
    async fn when_the_ids_are_used_up_the_call_is_worth_more_than_its_id() {
        let used_up = || ApiError::new(ErrorCode::RateLimited, "requestId: 1000 are kept");
        let answer = move |number| if number == 1 { Err(used_up()) } else { Ok(json!({})) };
        let (ids, told) = sent("send_message", None, answer).await;
        assert!(told.is_ok(), "{told:?}");
        assert!(matches!(ids.as_slice(), [Some(_), None]), "{ids:?}");
        // A user's own id is its word; and who calls too fast is told so.
        let (ids, told) = sent("send_message", Some("mine"), move |_| Err(used_up())).await;
        assert_eq!((ids.len(), told.unwrap_err().code), (1, ErrorCode::RateLimited));
        let too_fast = |_number| Err(ApiError::rate_limit(1));
        let (ids, told) = sent("send_message", None, too_fast).await;
        assert_eq!((ids.len(), told.unwrap_err().code), (1, ErrorCode::RateLimited));
    }
}
