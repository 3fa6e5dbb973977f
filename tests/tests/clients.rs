//! The real Claude Code beside one node and the real Codex beside another talk through the tools,
//! while a node is killed between two of their messages.
//!
//! Skipped, with a line that says why, where the clients are not installed.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "all of this file is a test"
)]

use std::path::Path;
use std::time::Duration;

use nexus_tests::command::{self, Running};
use nexus_tests::process::{LIMIT, agree, three_voters};
use nexus_tests::scripted::{Clients, Home, Model};
use nexus_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long a client may take from its start to a point of the script.
const CLIENT: Duration = Duration::from_secs(120);

/// Which node dies between the second and the third message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The leader, which serves neither client.
    Leader,
    /// The node beside Claude Code.
    BesideClaude,
}

/// The tools as each client calls them.
fn claude(tool: &str, input: &Value) -> Value {
    json!({"tool": format!("mcp__n2n-nexus__{tool}"), "input": input})
}

fn codex(tool: &str, input: &Value) -> Value {
    json!({"tool": tool, "namespace": "mcp__n2n_nexus", "input": input})
}

/// Adds to a step what it waits for, what it tells, and what the result before it must hold.
fn step(mut step: Value, extra: Value) -> Value {
    let Value::Object(extra) = extra else { panic!("{extra} is no object") };
    step.as_object_mut().unwrap().extend(extra);
    step
}

/// Claude says c1, Codex answers x1; then the kill; Claude says c2, Codex answers x2.
fn scripts(folder: &Path) -> (Value, Value) {
    let file = |name: &str| json!(folder.join(name));
    let nothing = json!({});
    let claudes = json!([
        claude("read_messages", &nothing),
        step(
            claude("send_message", &json!({"message": "c1"})),
            json!({"touch": file("claude-ready"), "wait_file": file("codex-ready")})
        ),
        step(
            claude("read_messages", &nothing),
            json!({"expect": "messageId", "touch": file("c1"), "wait_file": file("x1")})
        ),
        step(
            claude("send_message", &json!({"message": "c2"})),
            json!({"expect": "x1", "touch": file("claude-read"), "wait_file": file("killed")})
        ),
        step(
            claude("read_messages", &nothing),
            json!({"expect": "messageId", "touch": file("c2"), "wait_file": file("x2")})
        ),
        step(json!({"text": "claude is done"}), json!({"expect": "x2"})),
    ]);
    let codexs = json!([
        codex("read_messages", &nothing),
        step(
            codex("read_messages", &nothing),
            json!({"touch": file("codex-ready"), "wait_file": file("c1")})
        ),
        step(codex("send_message", &json!({"message": "x1"})), json!({"expect": "c1"})),
        step(
            codex("read_messages", &nothing),
            json!({"expect": "messageId", "touch": file("x1"), "wait_file": file("c2")})
        ),
        step(codex("send_message", &json!({"message": "x2"})), json!({"expect": "c2"})),
        step(json!({"text": "codex is done"}), json!({"expect": "messageId", "touch": file("x2")})),
    ]);
    (claudes, codexs)
}

/// Waits for a point of the script; fails at once when a client or the script has ended.
async fn reached(path: &Path, clients: [&mut Running; 2], models: [&Model; 2]) {
    let [claude, codex] = clients;
    let what = format!("the script's {}", path.display());
    wait::until(&what, CLIENT, async || {
        if path.exists() {
            return Ok(());
        }
        for model in models {
            if let Some(mismatch) = model.mismatch() {
                panic!("{mismatch}\n{}", told(models));
            }
        }
        let ends = [("Claude Code", &mut *claude), ("Codex", &mut *codex)];
        for (name, client) in ends {
            assert!(
                client.is_running(),
                "{name} has ended: {}\n{}\n{}",
                client.stdout(),
                client.stderr(),
                told(models)
            );
        }
        Err(told(models))
    })
    .await;
}

fn told(models: [&Model; 2]) -> String {
    models.map(|model| format!("{:#}", json!(model.steps()))).join("\n")
}

/// Returns how often a text came with a result of `read_messages`.
fn times_read(model: &Model, text: &str) -> usize {
    let results = model.steps().into_iter().filter_map(|(_, result)| {
        // Codex puts a line about the time before it.
        let result = result.as_str()?;
        let result: Value = serde_json::from_str(result.get(result.find('{')?..)?).ok()?;
        result["messages"].as_array().cloned()
    });
    results.flatten().filter(|message| message["text"] == text).count()
}

async fn converse(victim: Victim) {
    let clients = match Clients::find() {
        Ok(clients) => clients,
        Err(why) => {
            eprintln!("skipped: the conversation of the real clients, {why}");
            return;
        }
    };
    let folder = tempfile::tempdir_in(command::scratch()).unwrap();
    let folder = folder.path();
    // The first one leads, and serves no client.
    let names = ["third", "beside-claude", "beside-codex"];
    let [mut third, mut beside_claude, beside_codex] = three_voters(names).await;
    let (claudes, codexs) = scripts(folder);
    let claude_model = Model::start(folder, "claude", &claudes).await;
    let codex_model = Model::start(folder, "codex", &codexs).await;
    let models = [&claude_model, &codex_model];
    let since = Instant::now();
    let home = Home::new(folder, "claude");
    let mut claude = Running::start(clients.claude(&home, &claude_model, beside_claude.data()));
    let home = Home::new(folder, "codex");
    let mut codex = Running::start(clients.codex(&home, &codex_model, beside_codex.data()));

    reached(&folder.join("claude-read"), [&mut claude, &mut codex], models).await;
    let talking = since.elapsed();
    let (dead, name) = match victim {
        Victim::Leader => (&mut third, "the leader"),
        Victim::BesideClaude => (&mut beside_claude, "the node beside Claude Code"),
    };
    dead.kill();
    let killed = Instant::now();
    std::fs::write(folder.join("killed"), "").unwrap();
    if victim == Victim::BesideClaude {
        // The call is under way and waits for its node, which comes back.
        wait::until("Claude Code's next message", CLIENT, async || {
            let taken = claude_model.steps().len();
            if taken >= 4 { Ok(()) } else { Err(format!("{taken} steps are taken")) }
        })
        .await;
        dead.start(&[]).await;
    }
    reached(&folder.join("c2"), [&mut claude, &mut codex], models).await;
    let gap = killed.elapsed();
    let ended = claude.end(CLIENT).await;
    assert!(ended.status.success() && ended.stdout.contains("claude is done"), "{ended}");
    let ended = codex.end(CLIENT).await;
    assert!(ended.status.success() && ended.stdout.contains("codex is done"), "{ended}");
    assert_eq!(models.map(Model::mismatch), [None, None], "{}", told(models));

    if victim == Victim::Leader {
        third.start(&[]).await;
    }
    let nodes = [&beside_claude, &beside_codex, &third];
    let digest = agree(&nodes, LIMIT).await;
    for node in nodes {
        let history = node.http().history().await.unwrap();
        let texts: Vec<&Value> = history.iter().map(|message| &message["text"]).collect();
        assert_eq!(texts, ["c1", "x1", "c2", "x2"], "{}", node.name());
        let from = |at: usize| history[at]["from"].as_str().unwrap();
        assert!(from(1).starts_with("codex:") && from(1) == from(3), "{history:#?}");
        assert!(!from(0).starts_with("codex:") && from(0) == from(2), "{history:#?}");
    }
    for (model, text) in
        [(&codex_model, "c1"), (&claude_model, "x1"), (&codex_model, "c2"), (&claude_model, "x2")]
    {
        assert_eq!(times_read(model, text), 1, "{text}\n{}", told(models));
    }
    eprintln!(
        "four messages, {name} killed after two: {:.1} s to the kill, the next message {} ms after \
         it, content {digest}",
        talking.as_secs_f32(),
        gap.as_millis()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_outlives_the_leader() {
    converse(Victim::Leader).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_when_the_node_beside_it_is_back() {
    converse(Victim::BesideClaude).await;
}
