//! `nexus call`: any tool of the catalogue, from a shell.

use std::io::Read as _;

use nexus_adapter::ClientError;
use nexus_contract::http::{ToolAnswer, ToolCall};
use nexus_contract::json;
use serde_json::{Map, Value};

use super::out::{Out, knew};
use super::{Exit, Failure, Local, value};
use crate::config;

const AFTER_HELP: &str = "\
Acts as cli-<user> unless --instance names another instance.

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
    /// The id under which the call has one effect however often it is sent
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
    let answer = args.local.node()?.call(&call).await;
    let result = answer.map_err(|error: ClientError| {
        Failure::from(error.into_api_error(call.request_id.as_deref()))
    })?;
    if out.is_json() {
        out.value(&ToolAnswer::new(result));
    } else {
        out.value(&result);
        show_marks(&result, out);
    }
    Ok(Exit::Done)
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
