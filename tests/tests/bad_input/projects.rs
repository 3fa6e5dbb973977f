//! What the tools of projects must refuse.

use nexus_contract::ErrorCode::{Conflict, InvalidArguments, NotFound};
use nexus_contract::testing::manifest;
use serde_json::{Value, json};

use super::table::{Stage, Table};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] = &[
    "sync_project_assets",
    "upload_project_asset",
    "update_project",
    "rename_project",
    "search_projects",
    "get_global_topology",
    "get_project",
    "host_delete_project",
];

/// Ids that are well formed and name no project.
const UNKNOWN: [&str; 4] = ["web_none", "WEB_SHOP", "...", "web_shop."];
/// Ids that a schema lets pass, or that people write.
const NO_ID: [&str; 4] = [".", "..", "a#b", "web/shop"];
const MISSING: &[&str] = &["projectId: project ", " does not exist; search_projects finds those"];
const FOLDER: &[&str] = &["A-Z a-z 0-9 . _ -"];

#[tokio::test(flavor = "multi_thread")]
async fn projects_are_refused_in_words() {
    let mut stage = Stage::new().await;
    for id in ["web_shop", "lib_money"] {
        stage.call("sync_project_assets", json!({"manifest": of(id), "internalDocs": ""})).await;
    }
    let own = [
        sync(),
        upload(),
        update(),
        rename(),
        Table::of("search_projects"),
        Table::of("get_global_topology").rows("projectId", UNKNOWN, &json!({}), NotFound, MISSING),
        Table::of("get_project").rows("projectId", UNKNOWN, &json!({}), NotFound, MISSING),
        Table::of("host_delete_project").rows("projectId", UNKNOWN, &json!({}), NotFound, MISSING),
    ];
    stage.hold(TOOLS, own).await;
}

fn of(id: &str) -> Value {
    let mut manifest = manifest();
    manifest["id"] = id.into();
    manifest
}

/// The whole call with one field of the manifest set to something else.
fn with(field: &str, value: Value) -> Value {
    let mut manifest = manifest();
    manifest[field] = value;
    json!({"manifest": manifest, "internalDocs": ""})
}

/// What a manifest must not say, by field; `of` is what it is called.
fn manifests(mut table: Table, of: &str, with: impl Fn(&str, Value) -> Value) -> Table {
    let named = |what: &str| format!("{of}.{what}");
    for bad in [".", ".."] {
        let relations = json!([{"targetId": bad, "type": "child"}]);
        let field = named("relations[0].targetId: is ");
        let row = with("relations", relations);
        table = table.row(&format!("a relation to {bad}"), row, InvalidArguments, &[&field]);
        let row = with("apiDependencies", json!({bad: "1"}));
        let field = named("apiDependencies: is ");
        table = table.row(&format!("a need of {bad}"), row, InvalidArguments, &[&field]);
    }
    let many = |key: &str, count: usize| -> Value {
        (0..count).map(|at| (format!("{key}{at}"), json!("1"))).collect::<Value>()
    };
    let rows = [
        ("a name of two lines", "name", json!("a\nb"), "name: has a line break"),
        ("a feature that is blank", "api_versions", json!({" ": "1"}), "api_versions: is only"),
        ("a long feature", "api_versions", json!({"ü".repeat(51): "1"}), "api_versions: has 102"),
        ("many features", "api_versions", many("f", 1_001), "api_versions: has 1001 entries"),
        ("many needs", "apiDependencies", many("p", 1_001), "apiDependencies: has 1001 entries"),
        // What only the log knows.
        ("references to 129 projects", "apiDependencies", many("p", 129), "relations: must name"),
    ];
    for (what, field, value, says) in rows {
        table = table.row(what, with(field, value), InvalidArguments, &[&named(says)]);
    }
    let long = json!(vec!["x".repeat(2_000); 30]);
    let whole = format!("{of}: must have at most 56 KiB in all");
    table.row("a manifest of 60 KB", with("techStack", long), InvalidArguments, &[&whole])
}

fn sync() -> Table {
    let docs = "ü".repeat(512 * 1024 + 1);
    let mut table = manifests(Table::of("sync_project_assets"), "manifest", with);
    for id in NO_ID {
        let what = format!("the id {id}");
        let words = &["manifest.id: ", FOLDER[0]];
        table = table.row(&what, with("id", id.into()), InvalidArguments, words);
    }
    table.row(
        "notes of 1 MiB and two bytes",
        json!({"manifest": manifest(), "internalDocs": docs}),
        InvalidArguments,
        &["internalDocs: has 1048578 bytes; give at most 1048576 bytes"],
    )
}

/// A file with the project that is there.
fn file(name: &str, content: &str) -> Value {
    json!({"projectId": "web_shop", "fileName": name, "base64Content": content})
}

fn upload() -> Table {
    let long = "A".repeat(4 * 1024 * 1024 + 4);
    let stream = &["4194304", "a longer file is sent by PUT /api/projects/{id}/assets/{name}"];
    Table::of("upload_project_asset")
        .rows(
            "projectId",
            UNKNOWN,
            &json!({"fileName": "a", "base64Content": "TWE="}),
            NotFound,
            MISSING,
        )
        // As long a file is an upload, which the log refuses at its beginning.
        .row(
            "a long file of no project",
            json!({"projectId": "web_none", "fileName": "a", "base64Content": "A".repeat(400_000)}),
            NotFound,
            MISSING,
        )
        .row("a folder", file(".", "TWE="), InvalidArguments, &["fileName: is a folder; give"])
        .row(
            "a name of two lines",
            file("a\nb", "TWE="),
            InvalidArguments,
            &["fileName: has a line break"],
        )
        .row(
            "a name of 202 bytes",
            file(&"ü".repeat(101), "TWE="),
            InvalidArguments,
            &["fileName: has 202 bytes; give at most 200 bytes"],
        )
        .row("no multiple of 4", file("a", "TWE"), InvalidArguments, &["base64Content: has 3"])
        .row("a line break", file("a", "TWFu\nTWF"), InvalidArguments, &["has '\\n' in it"])
        .row("padding inside", file("a", "TW=u"), InvalidArguments, &["has '=' in it"])
        .row("the URL's letters", file("a", "TW-_"), InvalidArguments, &["has '-' in it"])
        .row("half a byte", file("a", "TWF="), InvalidArguments, &["base64Content: ", "RFC 4648"])
        .row("a file over the bound", file("a", &long), InvalidArguments, stream)
}

fn update() -> Table {
    let patch =
        |field: &str, value: Value| json!({"projectId": "web_shop", "patch": {field: value}});
    let name = &json!({"patch": {"name": "x"}});
    manifests(Table::of("update_project"), "patch", patch)
        .rows("projectId", UNKNOWN, name, NotFound, MISSING)
        .row(
            "nothing",
            json!({"projectId": "web_shop", "patch": {}}),
            InvalidArguments,
            &["patch: gives no field; give at least one of a manifest, never id"],
        )
        .row(
            "another id",
            patch("id", json!("web_store")),
            InvalidArguments,
            &["patch.id: is not a known field; give any of "],
        )
        .row(
            "no field that is known",
            patch("tech_stack", json!([])),
            InvalidArguments,
            &["patch.tech_stack: is not a known field"],
        )
}

fn rename() -> Table {
    let missing = &["oldId: project ", " does not exist; search_projects finds those"];
    let taken = json!({"oldId": "web_shop", "newId": "lib_money"});
    Table::of("rename_project")
        .rows("oldId", UNKNOWN, &json!({"newId": "web_other"}), NotFound, missing)
        .rows("newId", NO_ID, &json!({"oldId": "web_shop"}), InvalidArguments, FOLDER)
        .row(
            "the same id",
            json!({"oldId": "web_shop", "newId": "web_shop"}),
            InvalidArguments,
            &["newId: is the same as oldId; give another id"],
        )
        .row(
            "an id that is taken",
            taken,
            Conflict,
            &["newId: project lib_money exists; choose another id"],
        )
}
