//! The MCP server over both wires.

use std::time::Duration;

use crate::support::{Act, FakeNode, RawClient, meta, options};
use nexus_adapter::stdio::Options;
use nexus_contract::catalog::Set;
use nexus_contract::{ApiError, ErrorCode, catalog};
use serde_json::{Value, json};

fn text(result: &Value) -> &str {
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{result}");
    content[0]["text"].as_str().unwrap()
}

fn sent() -> Value {
    json!({"ok": true, "sentTo": "global", "messageId": 5, "identity": "instance", "message": "ok"})
}

#[tokio::test]
async fn both_wires_list_the_catalogue_while_no_node_runs() {
    let data = tempfile::tempdir().unwrap();
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = RawClient::initialized(options(data.path()), version).await;
        let answer = client.ask("tools/list", json!({})).await;
        assert_eq!(answer["result"]["tools"], json!(catalog::listed()));
        client.close().await;
    }
    let mut client = RawClient::start(options(data.path()));
    let found = client.ask("server/discover", json!({"_meta": meta(&json!({}))})).await;
    let versions = found["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28") && versions.contains("2025-06-18"), "{found}");
    assert!(found["result"]["capabilities"]["tools"].is_object(), "{found}");
    let answer = client.ask("tools/list", json!({"_meta": meta(&json!({}))})).await;
    assert_eq!(answer["result"]["tools"], json!(catalog::listed()));
    assert_eq!(answer["result"]["resultType"], "complete");
    client.close().await;
}

#[tokio::test]
async fn the_list_and_the_calls_keep_to_the_set() {
    let data = tempfile::tempdir().unwrap();
    let node = FakeNode::start(data.path(), vec![Act::Result(sent())]).await;
    let core = || Options { set: Set::Core, ..options(data.path()) };
    let older = RawClient::initialized(core(), "2025-11-25").await;
    for mut client in [older, RawClient::start(core())] {
        let asked = |params: Value| {
            let mut params = params;
            params["_meta"] = meta(&json!({}));
            params
        };
        let answer = client.ask("tools/list", asked(json!({}))).await;
        let listed = answer["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let right: Vec<&str> = Set::Core.tools().map(|tool| tool.name).collect();
        assert_eq!(names, right);
        assert!(names.contains(&"send_message") && !names.contains(&"list_events"), "{names:?}");
        let call = json!({"name": "send_message", "arguments": {"message": "x"}});
        let answer = client.ask("tools/call", asked(call)).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let answer = client.ask("tools/call", asked(json!({"name": "list_events"}))).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("not in the set \"core\", whose tools are peers,"), "{said}");
        assert!(said.contains("--tools all"), "{said}");
        let answer = client.ask("tools/call", asked(json!({"name": 7}))).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("one of peers,") && !said.contains("list_events"), "{said}");
        client.close().await;
    }
    assert_eq!(node.calls().len(), 2, "what is not in the set reaches no node");
}

#[tokio::test]
async fn resources_are_served_on_both_wires() {
    let data = tempfile::tempdir().unwrap();
    let entry = json!({
        "docId": "plan", "title": "The plan", "lastUpdated": "2026-01-01T00:00:00.000Z",
        "updatedBy": "codex:s",
    });
    let listed = json!({"count": 1, "docs": [entry], "more": true});
    let mut document = entry.clone();
    document["content"] = json!("# Plan");
    document["stale"] = json!(true);
    let missing = ApiError::new(ErrorCode::NotFound, "no document \"none\"");
    let acts = || {
        vec![
            Act::Result(listed.clone()),
            Act::Result(document.clone()),
            Act::Refuse(missing.clone()),
            Act::Refuse(ApiError::rate_limit(2)),
        ]
    };
    for stateless in [false, true] {
        let node = FakeNode::start(data.path(), acts()).await;
        let mut client = if stateless {
            RawClient::start(options(data.path()))
        } else {
            RawClient::initialized(options(data.path()), "2025-11-25").await
        };
        let asked = |mut params: Value| {
            if stateless {
                params["_meta"] = meta(&json!({}));
            }
            params
        };
        let cursor = json!({"cursor": "documents/other"});
        let list = client.ask("resources/list", asked(cursor)).await;
        assert_eq!(list["result"]["nextCursor"], "documents/plan", "{list}");
        let resources = list["result"]["resources"].as_array().unwrap();
        assert_eq!(resources.len(), 1, "the strategy stands on the first page alone");
        assert_eq!(resources[0]["uri"], "nexus://documents/plan");
        let read =
            client.ask("resources/read", asked(json!({"uri": "nexus://documents/plan"}))).await;
        let contents = &read["result"]["contents"][0];
        assert_eq!(
            (&contents["text"], &contents["mimeType"]),
            (&json!("# Plan"), &json!("text/markdown"))
        );
        assert_eq!(contents["_meta"]["nexus/stale"], true, "{read}");
        let uri = json!({"uri": "nexus://documents/none"});
        let answer = client.ask("resources/read", asked(uri.clone())).await;
        assert_eq!(answer["error"]["code"], if stateless { -32602 } else { -32002 }, "{answer}");
        let answer = client.ask("resources/read", asked(uri)).await;
        assert_eq!(answer["error"]["data"], json!({"code": "rate_limited", "retryAfter": 2}));
        let answer = client.ask("resources/list", asked(json!({"cursor": "what"}))).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let templates = client.ask("resources/templates/list", asked(json!({}))).await;
        let first = &templates["result"]["resourceTemplates"][0];
        assert_eq!(first["uriTemplate"], "nexus://documents/{docId}", "{templates}");
        client.close().await;
        let calls = node.calls();
        let tools: Vec<&Value> = calls.iter().map(|call| &call["tool"]).collect();
        assert_eq!(
            json!(tools),
            json!(["list_global_docs", "get_global_doc", "get_global_doc", "get_global_doc"])
        );
        assert_eq!(calls[0]["args"], json!({"before": "other"}));
    }
}

#[tokio::test]
async fn the_prompt_is_served_on_both_wires() {
    let data = tempfile::tempdir().unwrap();
    let older = RawClient::initialized(options(data.path()), "2025-11-25").await;
    for mut client in [older, RawClient::start(options(data.path()))] {
        let asked = |mut params: Value| {
            params["_meta"] = meta(&json!({}));
            params
        };
        let prompts = client.ask("prompts/list", asked(json!({}))).await;
        assert_eq!(prompts["result"]["prompts"][0]["name"], "use-nexus");
        let prompt = client.ask("prompts/get", asked(json!({"name": "use-nexus"}))).await;
        let said = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(said.len() <= 2_000 && said.contains("send_message"), "{said}");
        let answer = client.ask("prompts/get", asked(json!({"name": "other"}))).await;
        let words = "unknown prompt \"other\": the prompts are use-nexus";
        assert_eq!(answer["error"]["message"], words);
        client.close().await;
    }
}

#[tokio::test]
async fn a_call_carries_who_calls_from_where_and_one_id() {
    let data = tempfile::tempdir().unwrap();
    let node = FakeNode::start(data.path(), vec![Act::Result(sent())]).await;
    let mut client = RawClient::initialized(options(data.path()), "2025-06-18").await;
    let result = client.call("send_message", json!({"message": "hello"})).await;
    assert_eq!(result["structuredContent"], sent());
    assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), sent());
    assert_eq!(result["isError"], false);

    let codex = json!({"name": "peers", "_meta": {"sessionId": "s-1", "callId": "c-1"}});
    client.ask("tools/call", codex).await;
    client.close().await;

    let calls = node.calls();
    let [first, second] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!(first["tool"], "send_message");
    assert_eq!(first["args"], json!({"message": "hello"}));
    assert_eq!(first["cwd"], "/src/app");
    assert_eq!(first["clientName"], "codex-mcp-client");
    let instance = first["instanceId"].as_str().unwrap();
    assert!(instance.starts_with("mcp-desk-") && instance.ends_with("-codex-mcp-client"));
    assert_eq!(first.get("caller"), None);
    assert_eq!(first.get("instanceGiven"), None);
    let process = first["process"].as_str().unwrap();
    assert_eq!(first["requestId"], format!("{process}-0"));
    assert_eq!(second["caller"], json!({"client": "codex", "sessionId": "s-1"}));
    assert_eq!(second["requestId"], "s-1/c-1");
    assert_eq!(second["args"], json!({}));
    assert_eq!((&second["process"], &second["instanceId"]), (&json!(process), &json!(instance)));
}

#[tokio::test]
async fn the_stateless_wire_names_client_and_use_of_the_tool() {
    let data = tempfile::tempdir().unwrap();
    let node = FakeNode::start(data.path(), vec![Act::Result(sent())]).await;
    let given = Options { id: Some("builder-7".into()), ..options(data.path()) };
    let mut client = RawClient::start(given);
    let more = meta(&json!({"claudecode/toolUseId": "toolu_9"}));
    let call = json!({"name": "send_message", "arguments": {"message": "x"}, "_meta": more});
    let answer = client.ask("tools/call", call).await;
    assert_eq!(answer["result"]["structuredContent"], sent());
    assert_eq!(answer["result"]["resultType"], "complete");
    client.close().await;
    let call = node.calls().remove(0);
    assert_eq!(call["caller"], json!({"client": "claude", "toolUseId": "toolu_9"}));
    assert_eq!(call["requestId"], "toolu_9");
    assert_eq!(call["clientName"], "claude-code");
    assert_eq!((&call["instanceId"], &call["instanceGiven"]), (&json!("builder-7"), &json!(true)));
}

#[tokio::test]
async fn refusals_pass_at_once_with_their_code_first() {
    let data = tempfile::tempdir().unwrap();
    let refusals = [
        ApiError::invalid_arguments("peers", "includeOffline: is 1; give true or false"),
        ApiError::new(ErrorCode::NoQuorum, "no majority: desk and lap do not answer"),
        ApiError::rate_limit(2),
        ApiError::new(ErrorCode::Busy, "too many writes wait").with_retry_after(2),
        ApiError::new(ErrorCode::UnknownOutcome, "not known to be done").with_request_id("r-1"),
    ];
    let acts = refusals.iter().cloned().map(Act::Refuse).collect();
    let node = FakeNode::start(data.path(), acts).await;
    let mut client = RawClient::initialized(options(data.path()), "2025-11-25").await;
    let expected = [
        "invalid_arguments: peers: includeOffline: is 1; give true or false",
        "no_quorum: no majority: desk and lap do not answer",
        "rate_limited: retry after 2s",
        "busy: too many writes wait; retry after 2s",
        "unknown_outcome: not known to be done (request id r-1)",
    ];
    for expected in expected {
        let result = client.call("peers", json!({})).await;
        assert_eq!(text(&result), expected);
        assert_eq!(result["isError"], true);
        assert_eq!(result.get("structuredContent"), None);
    }
    assert_eq!(node.calls().len(), 5, "a refusal is not tried again");
    std::fs::write(data.path().join("token"), "wrong").unwrap();
    let result = client.call("peers", json!({})).await;
    assert_eq!(text(&result), "unauthorized: token is missing or wrong");
    client.close().await;
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    let data = tempfile::tempdir().unwrap();
    let mut client = RawClient::initialized(options(data.path()), "2025-11-25").await;
    let answer = client.ask("tools/call", json!({"name": "launch", "arguments": {}})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("unknown tool \"launch\": the tools are peers,"), "{message}");
    client.close().await;
}

#[tokio::test]
async fn a_node_that_stays_away_is_said_so_with_what_to_type() {
    let data = tempfile::tempdir().unwrap();
    let impatient = Options { patience: Duration::from_millis(200), ..options(data.path()) };
    let mut client = RawClient::initialized(impatient, "2025-11-25").await;
    let result = client.call("send_message", json!({"message": "x"})).await;
    assert_eq!(result["isError"], true);
    let said = text(&result).to_owned();
    assert!(said.starts_with("node_unreachable: the local node is not reachable"), "{said}");
    assert!(said.contains("nothing was done") && said.contains("nexus up"), "{said}");

    // A port on which nobody listens, as a killed node leaves it.
    drop(FakeNode::start(data.path(), vec![Act::Hang]).await);
    let said = text(&client.call("send_message", json!({"message": "x"})).await).to_owned();
    assert!(said.starts_with("node_unreachable:") && said.contains("127.0.0.1"), "{said}");

    // Another program on the port.
    let _foreign = FakeNode::start(data.path(), vec![Act::Foreign]).await;
    let said = text(&client.call("send_message", json!({"message": "x"})).await).to_owned();
    assert!(said.starts_with("node_unreachable:") && said.contains("no nexus node"), "{said}");
    client.close().await;
}

#[tokio::test]
async fn a_call_goes_on_when_the_node_is_back_on_another_port() {
    let data = tempfile::tempdir().unwrap();
    let first = FakeNode::start(data.path(), vec![Act::Hang]).await;
    let mut client = RawClient::initialized(options(data.path()), "2025-11-25").await;
    let params = json!({"name": "send_message", "arguments": {"message": "x"}});
    let id = client.send("tools/call", params).await;
    first.wait_for_calls(1).await;
    let before = first.calls().remove(0);
    // The node dies with the call in its hands; tools are listed all the same.
    drop(first);
    let listed = client.ask("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].is_array());
    let starting = ApiError::new(ErrorCode::Starting, "the node opens its stores");
    let acts = vec![Act::Refuse(starting), Act::Result(sent())];
    let second = FakeNode::start(data.path(), acts).await;
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"], sent(), "{answer}");
    let calls = second.calls();
    assert_eq!(calls, [before.clone(), before], "the same call under the same id");
    client.close().await;
}

#[tokio::test]
async fn a_call_that_may_have_been_done_is_never_called_undone() {
    let data = tempfile::tempdir().unwrap();
    let node = FakeNode::start(data.path(), vec![Act::Hang]).await;
    let impatient = Options { patience: Duration::from_millis(300), ..options(data.path()) };
    let mut client = RawClient::initialized(impatient, "2025-11-25").await;
    let params = json!({"name": "send_message", "arguments": {"message": "x"}});
    let id = client.send("tools/call", params).await;
    node.wait_for_calls(1).await;
    let request_id = node.calls()[0]["requestId"].as_str().unwrap().to_owned();
    drop(node);
    let answer = client.answer(id).await;
    let said = text(&answer["result"]);
    assert!(said.starts_with("unknown_outcome:"), "{said}");
    assert!(said.contains("may or may not") && said.contains(&request_id), "{said}");
    client.close().await;
}

#[tokio::test]
async fn noise_on_the_line_is_survived_and_calls_run_side_by_side() {
    let data = tempfile::tempdir().unwrap();
    let node = FakeNode::start(data.path(), vec![Act::Hang, Act::Result(sent())]).await;
    let mut client = RawClient::initialized(options(data.path()), "2025-11-25").await;
    client.line("this is not JSON").await;
    client.line("{\"jsonrpc\":\"2.0\",\"id\":").await;
    let params = json!({"name": "send_message", "arguments": {"message": "x"}});
    let slow = client.send("tools/call", params.clone()).await;
    node.wait_for_calls(1).await;
    let quick = client.ask("tools/call", params).await;
    assert_eq!(quick["result"]["structuredContent"], sent());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": slow}});
    client.line(&cancel.to_string()).await;
    let again = client.call("send_message", json!({"message": "y"})).await;
    assert_eq!(again["structuredContent"], sent());
    client.close().await;
}

/// Says what is wrong in each of the ways in which a request can be, and looks at each answer.
async fn every_fault_is_answered(client: &mut RawClient, more: &Value) {
    for (line, id, code, words) in [
        ("{\"jsonrpc\":\"2.0\",", json!(null), -32700, "parse error: EOF"),
        ("true", json!(null), -32600, "the message is true"),
        (r#"{"jsonrpc":"2.0","id":"a","method":3}"#, json!("a"), -32600, "method is 3"),
        (r#"[{"jsonrpc":"2.0","id":"b","method":"ping"}]"#, json!("b"), -32600, "a batch"),
    ] {
        client.line(line).await;
        let answer = client.answer(id).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    for (method, params, code, words) in [
        ("tools/call", json!({"arguments": {}}), -32602, "params.name is missing; give a tool's"),
        ("tools/call", json!({"name": "peers", "arguments": 1}), -32602, "params.arguments is 1"),
        ("tools/nothing", json!({}), -32601, "method not found: tools/nothing; this server has"),
        // One that rmcp knows and this server does not have.
        (
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"},
            }),
            -32601,
            "method not found: completion/complete; this server has",
        ),
    ] {
        let mut params = params;
        params["_meta"] = more.clone();
        let answer = client.ask(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    let listed = client.ask("tools/list", json!({"_meta": more})).await;
    assert_eq!(listed["result"]["tools"], json!(catalog::listed()));
}

#[tokio::test]
async fn every_fault_is_answered_under_its_id_on_both_wires() {
    let data = tempfile::tempdir().unwrap();
    let mut client = RawClient::initialized(options(data.path()), "2025-11-25").await;
    every_fault_is_answered(&mut client, &json!({})).await;
    client.close().await;
    let mut client = RawClient::start(options(data.path()));
    let found = client.ask("server/discover", json!({"_meta": meta(&json!({}))})).await;
    assert!(found["result"].is_object(), "{found}");
    let listed = client.ask("tools/list", json!({"_meta": meta(&json!({}))})).await;
    assert!(listed["result"].is_object(), "{listed}");
    every_fault_is_answered(&mut client, &meta(&json!({}))).await;
    client.close().await;
}

#[tokio::test]
async fn what_comes_too_early_is_no_end() {
    let data = tempfile::tempdir().unwrap();
    let mut client = RawClient::start(options(data.path()));
    client.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.line(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    let early = client.ask("tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32602, "{early}");
    let said = early["error"]["message"].as_str().unwrap();
    assert!(said.contains("before the handshake: send initialize first"), "{said}");
    let other = json!({"_meta": meta(&json!({
        "io.modelcontextprotocol/protocolVersion": "1999-01-01"
    }))});
    let answer = client.ask("tools/list", other).await;
    assert!(answer["error"]["message"].is_string(), "{answer}");
    client.line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#).await;
    let listed = client.ask("tools/list", json!({"_meta": meta(&json!({}))})).await;
    assert_eq!(listed["result"]["tools"], json!(catalog::listed()));
    client.close().await;
}

#[tokio::test]
async fn a_client_that_leaves_at_once_is_no_failure() {
    let data = tempfile::tempdir().unwrap();
    RawClient::start(options(data.path())).close().await;
}
