//! What the conformance suite of MCP wants to find at a server, beside what a node serves: tools,
//! resources and prompts with fixed answers. Mounted by a test build alone (feature `conformance`):
//! everything around them, from the socket to rmcp, is what users run.
#![expect(deprecated, reason = "the suite asks for what older clients know")]

use nexus_contract::catalog::Set;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestParams, CompleteResult, CompletionInfo, DiscoverResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InitializeResult,
    InputRequiredResult, InputResponses, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, Prompt, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceTemplate, SetLevelRequestParams,
    SubscribeRequestParams, Tool, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// A red dot.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKm\
    MIQAAAABJRU5ErkJggg==";
/// Silence.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
/// What seals the states of unfinished requests; they are worth nothing.
const SEAL: &[u8] = b"the seal of fixtures";

/// A server with the fixtures mounted.
#[derive(Debug, Clone)]
pub(crate) struct Mounted<H>(pub(crate) H);

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("fixture: {error}"), None))
}

/// Tools with one answer each.
fn answers() -> Vec<(&'static str, Value)> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| {
        let contents = json!({"uri": uri, "mimeType": kind, "text": text});
        json!({"type": "resource", "resource": contents})
    };
    vec![
        ("test_simple_text", json!([text("This is a simple text response for testing.")])),
        ("test_image_content", json!([image])),
        ("test_audio_content", json!([{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}])),
        (
            "test_embedded_resource",
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )]),
        ),
        (
            "test_multiple_content_types",
            json!([
                text("Multiple content types test:"),
                image,
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    "{\"test\":\"data\",\"value\":123}"
                ),
            ]),
        ),
        (
            "test_error_handling",
            json!([text("This tool intentionally returns an error for testing")]),
        ),
        ("test_tool_with_logging", json!([text("logging is done")])),
        ("test_logging_tool", json!([text("logging is done")])),
        ("test_tool_with_progress", json!([text("progress is done")])),
        ("test_reconnection", json!([text("there is no stream to come back to")])),
        ("test_missing_capability", json!([text("the capability is there")])),
        ("json_schema_2020_12_tool", json!([text("a schema")])),
        ("test_custom_header", json!([text("a header")])),
    ]
}

/// What a tool's arguments are, where the suite looks at them.
fn schema(name: &str) -> Value {
    match name {
        "json_schema_2020_12_tool" => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "address",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }},
            "properties": {
                "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            },
            "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
            "if": {"required": ["address"]},
            "then": {"properties": {"address": {"required": ["street"]}}},
            "else": {"required": ["name"]},
            "additionalProperties": false,
        }),
        "test_custom_header" => json!({
            "type": "object",
            "properties": {"value": {"type": "string", "x-mcp-header": "Value"}},
            "required": ["value"],
        }),
        _ => json!({"type": "object", "properties": {}}),
    }
}

fn elicitation(field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": format!("what is {field}?"),
        "requestedSchema": {
            "type": "object", "properties": {field: {"type": kind}}, "required": [field],
        },
    }})
}

fn sampling() -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "a question"}}],
        "maxTokens": 100,
    }})
}

fn roots() -> Value {
    json!({"method": "roots/list"})
}

/// What is asked of the client for a tool or prompt, round by round, and whether a state goes
/// along.
fn rounds(name: &str) -> Option<(Vec<Value>, bool)> {
    let name_of = || elicitation("name", "string");
    let all = || json!({"user_name": name_of(), "greeting": sampling(), "client_roots": roots()});
    let confirm = || json!({"confirm": elicitation("ok", "boolean")});
    Some(match name.strip_prefix("test_input_required_result_") {
        Some("elicitation") => (vec![json!({"user_name": name_of()})], false),
        Some("sampling") => (vec![json!({"capital_question": sampling()})], false),
        Some("list_roots") => (vec![json!({"client_roots": roots()})], false),
        Some("request_state" | "tampered_state") => (vec![confirm()], true),
        Some("multiple_inputs") => (vec![all()], true),
        Some("multi_round") => (
            vec![json!({"step1": name_of()}), json!({"step2": elicitation("color", "string")})],
            true,
        ),
        Some("capabilities") => (vec![all()], false),
        Some("prompt") => (vec![json!({"user_context": elicitation("context", "string")})], false),
        _ if name == "test_streaming_elicitation" => {
            (vec![json!({"streaming": elicitation("value", "string")})], false)
        }
        _ => return None,
    })
}

const WITH_ROUNDS: [&str; 9] = [
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
    "test_streaming_elicitation",
];

fn sealed(round: usize) -> String {
    let mut seal = Sha256::new();
    seal.update(SEAL);
    seal.update(round.to_string());
    format!("{round}.{}", data_encoding::HEXLOWER.encode(&seal.finalize()))
}

fn opened(state: &str) -> Result<usize, ErrorData> {
    let round = state.split('.').next().and_then(|round| round.parse().ok());
    round.filter(|round| sealed(*round) == state).ok_or_else(|| {
        ErrorData::invalid_params("params.requestState is not what this server gave", None)
    })
}

/// Asks the client for what is missing; with everything there, returns it as text.
fn negotiated(
    name: &str,
    responses: Option<&InputResponses>,
    state: Option<&str>,
    can: &ClientCapabilities,
) -> Option<Result<Result<String, InputRequiredResult>, ErrorData>> {
    let (rounds, has_state) = rounds(name)?;
    Some(round(name, (&rounds, has_state), responses, state, can))
}

fn round(
    name: &str,
    (rounds, has_state): (&[Value], bool),
    responses: Option<&InputResponses>,
    state: Option<&str>,
    can: &ClientCapabilities,
) -> Result<Result<String, InputRequiredResult>, ErrorData> {
    let now = state.map_or(Ok(0), opened)?;
    let wanted = |round: usize| {
        let all = rounds.get(round).and_then(Value::as_object).cloned().unwrap_or_default();
        all.into_iter()
            .filter(|(_, request)| {
                let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
                !name.ends_with("capabilities")
                    || (method.starts_with("elicitation") && can.elicitation.is_some())
                    || (method.starts_with("sampling") && can.sampling.is_some())
                    || (method.starts_with("roots") && can.roots.is_some())
            })
            .collect::<Map<String, Value>>()
    };
    let given = serde_json::to_value(responses).unwrap_or_default();
    let has = |key: &String| given.get(key).is_some_and(Value::is_object);
    let is_whole = wanted(now).keys().all(has);
    let next = if is_whole { now.saturating_add(1) } else { now };
    if next >= rounds.len() {
        return Ok(Ok(format!("state-ok, given: {given}")));
    }
    let mut asked = json!({"resultType": "input_required", "inputRequests": wanted(next)});
    if let Some(fields) = asked.as_object_mut().filter(|_| has_state) {
        fields.insert("requestState".to_owned(), sealed(next).into());
    }
    Ok(Err(typed(asked)?))
}

/// Says to the client what a tool wants said before its answer.
async fn before(name: &str, context: &RequestContext<RoleServer>) {
    let level = match name {
        "test_tool_with_logging" => Some(LoggingLevel::Info),
        "test_logging_tool" => context.meta.log_level(),
        _ => None,
    };
    if let Some(level) = level {
        for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            let message = LoggingMessageNotificationParam::new(level, json!(said));
            context.peer.notify_logging_message(message).await.ok();
        }
    }
    if name == "test_tool_with_progress"
        && let Some(token) = context.meta.get_progress_token()
    {
        for progress in [0.0, 50.0, 100.0] {
            let note = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
            context.peer.notify_progress(note).await.ok();
        }
    }
}

fn prompts() -> Vec<(&'static str, Value, Value)> {
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    vec![
        ("test_simple_prompt", json!([]), json!([text("This is a simple prompt for testing.")])),
        (
            "test_prompt_with_arguments",
            json!([{"name": "arg1", "required": true}, {"name": "arg2", "required": true}]),
            json!([]),
        ),
        (
            "test_prompt_with_embedded_resource",
            json!([{"name": "resourceUri", "required": true}]),
            json!([
                {"role": "user", "content": {"type": "resource", "resource": {
                    "uri": "test://example-resource", "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                }}},
                text("Please process the embedded resource above."),
            ]),
        ),
        (
            "test_prompt_with_image",
            json!([]),
            json!([
                {"role": "user", "content": {
                    "type": "image", "data": IMAGE, "mimeType": "image/png",
                }},
                text("Please analyze the image above."),
            ]),
        ),
        ("test_input_required_result_prompt", json!([]), json!([])),
    ]
}

impl<H: ServerHandler> ServerHandler for Mounted<H> {
    fn get_info(&self) -> InitializeResult {
        let mut info = self.0.get_info();
        let more = json!({
            "logging": {}, "completions": {}, "resources": {"subscribe": true},
        });
        let mut capabilities = serde_json::to_value(&info.capabilities).unwrap_or_default();
        if let (Some(all), Some(more)) = (capabilities.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        if let Ok(all) = serde_json::from_value(capabilities) {
            info.capabilities = all;
        }
        info
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        // A newer client subscribes by subscriptions/listen, which this server does not have.
        if let Some(resources) = &mut info.capabilities.resources {
            resources.subscribe = None;
        }
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let mounted = mounted_tools().into_iter().find(|tool| tool.name == name);
        mounted.or_else(|| self.0.get_tool(name))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.0.list_tools(request, context).await?;
        listed.tools.extend(mounted_tools());
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        let can = context.client_capabilities().unwrap_or_default();
        let responses = request.input_responses.as_ref();
        if let Some(outcome) = negotiated(name, responses, request.request_state.as_deref(), &can) {
            return Ok(match outcome? {
                Ok(text) => {
                    let content = json!([{"type": "text", "text": text}]);
                    typed::<CallToolResult>(json!({"resultType": "complete", "content": content}))?
                        .into()
                }
                Err(asked) => asked.into(),
            });
        }
        let Some((_, content)) = answers().into_iter().find(|(known, _)| *known == name) else {
            return self.0.call_tool(request, context).await;
        };
        if name == "test_missing_capability" && can.sampling.is_none() {
            let required = ClientCapabilities::builder().enable_sampling().build();
            return Err(ErrorData::missing_required_client_capability(required));
        }
        before(name, &context).await;
        let failed = name == "test_error_handling";
        let result = json!({"resultType": "complete", "content": content, "isError": failed});
        Ok(typed::<CallToolResult>(result)?.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.0.list_resources(request, context).await?;
        for name in ["static-text", "static-binary", "watched-resource"] {
            let resource = Resource::new(format!("test://{name}"), name);
            listed.resources.push(resource.with_description("a fixture"));
        }
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.0.list_resource_templates(request, context).await?;
        let template = ResourceTemplate::new("test://template/{id}/data", "template");
        listed.resource_templates.push(template.with_description("a fixture"));
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri.as_str(), id) {
            ("test://static-text", _) => json!({
                "uri": uri, "mimeType": "text/plain",
                "text": "This is the content of the static text resource.",
            }),
            ("test://static-binary", _) => {
                json!({"uri": uri, "mimeType": "image/png", "blob": IMAGE})
            }
            ("test://watched-resource", _) => {
                json!({"uri": uri, "mimeType": "text/plain", "text": "watched"})
            }
            (_, Some(id)) => {
                let text =
                    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
            }
            (_, None) => return self.0.read_resource(request, context).await,
        };
        Ok(ReadResourceResult::new(vec![typed(contents)?]).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.0.list_prompts(request, context).await?;
        for (name, arguments, _) in prompts() {
            let prompt = json!({"name": name, "description": "a fixture", "arguments": arguments});
            listed.prompts.push(typed::<Prompt>(prompt)?);
        }
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.name.as_str();
        let can = context.client_capabilities().unwrap_or_default();
        let responses = request.input_responses.as_ref();
        let said =
            |text: String| json!([{"role": "user", "content": {"type": "text", "text": text}}]);
        let messages = match negotiated(name, responses, request.request_state.as_deref(), &can)
            .transpose()?
        {
            Some(Err(asked)) => return Ok(asked.into()),
            Some(Ok(text)) => said(text),
            None if name == "test_prompt_with_arguments" => {
                let given = request.arguments.unwrap_or_default();
                let of = |key: &str| {
                    given.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                said(format!("Prompt with arguments: arg1='{}', arg2='{}'", of("arg1"), of("arg2")))
            }
            None => match prompts().into_iter().find(|(known, _, _)| *known == name) {
                Some((_, _, messages)) => {
                    let given = request.arguments.unwrap_or_default();
                    let uri = given.get("resourceUri").and_then(Value::as_str);
                    let text = messages.to_string();
                    let text = text.replace(
                        "test://example-resource",
                        uri.unwrap_or("test://example-resource"),
                    );
                    serde_json::from_str(&text).unwrap_or(messages)
                }
                None => return self.0.get_prompt(request, context).await,
            },
        };
        Ok(typed::<GetPromptResult>(json!({"resultType": "complete", "messages": messages}))?
            .into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = vec![format!("{}-completed", request.argument.value)];
        let values = CompletionInfo::new(values);
        Ok(CompleteResult::new(values.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn mounted_tools() -> Vec<Tool> {
    let names = answers().into_iter().map(|(name, _)| name).chain(WITH_ROUNDS);
    let tools = names.map(|name| {
        debug_assert!(Set::All.find(name).is_none(), "{name} is a tool of nexus");
        let schema = schema(name).as_object().cloned().unwrap_or_default();
        Tool::new(name, "a fixture of the conformance suite", schema)
    });
    tools.collect()
}
