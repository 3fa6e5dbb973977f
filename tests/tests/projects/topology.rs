//! How projects stand to each other.

use nexus_tests::process::{Node, three_voters};
use serde_json::{Value, json};

use super::{call, make, manifest, relate};

async fn focused(node: &Node, id: &str) -> Value {
    call(node, "get_global_topology", json!({"projectId": id})).await
}

fn ids(nodes: &Value) -> Vec<&str> {
    nodes.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect()
}

/// Relations on one line each: from, what, to.
fn lines(edges: &Value) -> Vec<String> {
    let word = |edge: &Value, field: &str| edge[field].as_str().unwrap().to_owned();
    let line = |edge: &Value| {
        format!("{} {} {}", word(edge, "from"), word(edge, "type"), word(edge, "to"))
    };
    edges.as_array().unwrap().iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn circles_selves_and_targets_that_are_not_there() {
    let [one, _two, three] = three_voters(["one", "two", "three"]).await;
    relate(&one, "web_a", &[("web_b", "dependency"), ("web_a", "related"), ("x", "child")]).await;
    relate(&one, "web_b", &[("web_c", "dependency")]).await;
    relate(&one, "web_c", &[("web_a", "parent"), ("web_a", "dependency")]).await;
    relate(&one, "web_d", &[("web_a", "dependency")]).await;

    let all = call(&three, "get_global_topology", json!({})).await;
    let summary = json!({"totalProjects": 4, "totalEdges": 6, "danglingEdges": 1});
    assert_eq!((&all["mode"], &all["summary"]), (&json!("list"), &summary));
    let projects = all["projects"].as_object().unwrap();
    assert_eq!(projects.keys().collect::<Vec<_>>(), ["web_a", "web_b", "web_c", "web_d"]);
    let shown = &projects["web_b"];
    assert_eq!((&shown["name"], &shown["summary"]), (&json!("The shop"), &json!("Sells\nthings")));
    assert!(shown["lastActive"].as_str().unwrap().ends_with('Z'), "{shown}");
    assert!(all.get("note").is_none(), "{all}");

    // Outgoing relations alone are followed, and a circle is walked once.
    let around = focused(&three, "web_b").await;
    assert_eq!(around["mode"], "focused");
    assert_eq!(ids(&around["nodes"]), ["web_b", "web_c", "web_a"]);
    let edges = [
        "web_b dependency web_c",
        "web_c parent web_a",
        "web_c dependency web_a",
        "web_a dependency web_b",
        "web_a related web_a",
    ];
    assert_eq!(lines(&around["edges"]), edges);
    assert_eq!(lines(&around["dangling"]), ["web_a child x"]);
    assert_eq!(ids(&focused(&one, "web_d").await["nodes"]), ["web_d", "web_a", "web_b", "web_c"]);

    // A rename to the id that somebody waits for is what was waited for.
    let rename = json!({"oldId": "web_d", "newId": "x"});
    let renamed = call(&one, "rename_project", rename).await;
    assert!(renamed["note"].as_str().unwrap().starts_with("x has no known prefix"), "{renamed}");
    let around = focused(&three, "web_a").await;
    assert_eq!(ids(&around["nodes"]), ["web_a", "web_b", "x", "web_c"]);
    assert_eq!(lines(&around["dangling"]), Vec::<String>::new());
    // What is deleted dangles.
    call(&one, "host_delete_project", json!({"projectId": "web_b"})).await;
    let around = focused(&three, "web_a").await;
    assert_eq!(ids(&around["nodes"]), ["web_a", "x"]);
    assert_eq!(lines(&around["dangling"]), ["web_a dependency web_b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_long_descriptions_are_cut_alike_and_it_is_said() {
    let node = Node::found("one").await;
    let mut long = manifest("web_0");
    long["relations"] = json!([]);
    long.as_object_mut().unwrap().remove("apiDependencies");
    for at in 0..300 {
        long["id"] = format!("web_{at}").into();
        long["description"] = if at == 0 { "short".into() } else { "€".repeat(2_000).into() };
        make(&node, &long).await;
    }
    let all = call(&node, "get_global_topology", json!({})).await;
    let projects = all["projects"].as_object().unwrap();
    assert_eq!(projects.len(), 300);
    assert_eq!(projects["web_0"]["summary"], "short");
    let cut = projects["web_1"]["summary"].as_str().unwrap();
    assert!(projects["web_299"]["summary"] == cut, "{}", projects["web_299"]);
    assert!(cut.len() > 3_000 && "€".repeat(2_000).starts_with(cut), "{}", cut.len());
    let note = all["note"].as_str().unwrap();
    assert!(note.starts_with("Summaries are cut to ") && note.contains("get_project"), "{note}");
    assert!(all.to_string().len() < 1_100_000, "{}", all.to_string().len());
}
