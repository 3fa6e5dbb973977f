//! Results of the tools of tasks, projects and documents.

use nexus_contract::documents::{
    DocumentEntry, GetGlobalDoc, GetGlobalDocOutput, GetGlobalStrategy, GetGlobalStrategyOutput,
    ListGlobalDocs, ListGlobalDocsOutput, SyncGlobalDoc, SyncGlobalDocOutput, UpdateGlobalStrategy,
    UpdateGlobalStrategyOutput,
};
use nexus_contract::projects::{
    AssetEntry, GetGlobalTopology, GetGlobalTopologyOutput, GetProject, GetProjectOutput,
    HostDeleteProject, Manifest, ManifestPatch, ProjectChangedOutput, ProjectEdge, ProjectFound,
    ProjectNode, RelationKind, RenameProject, RenameProjectOutput, SearchProjects,
    SearchProjectsOutput, SyncProjectAssets, TopologyMode, TopologySummary, UpdateProject,
    UploadProjectAsset, UploadProjectAssetOutput,
};
use nexus_contract::tasks::{
    CancelTask, CreateTask, CreateTaskOutput, GetTask, ListTasks, ListTasksOutput, Progress, Task,
    TaskStatus, UpdateTask,
};
use nexus_contract::testing;

use super::{TIME, Tried};

pub(super) fn tasks(tried: &mut Tried) {
    let task = Task {
        id: "7".into(),
        status: TaskStatus::Pending,
        progress: Progress::default(),
        source_meeting_id: None,
        metadata: None,
        result_uri: None,
        error_message: None,
        created_at: TIME.into(),
        created_by: "mcp-x".into(),
        updated_at: TIME.into(),
        updated_by: "mcp-x".into(),
        updated_by_name: None,
        ttl: None,
    };
    let metadata = serde_json::json!({"target": "issue 7", "deep": [null, {"a": 1}]});
    let done = Task {
        status: TaskStatus::Failed,
        progress: Progress::from_millionths(333_333),
        source_meeting_id: Some("m".into()),
        metadata: metadata.as_object().cloned(),
        result_uri: Some("http://x".into()),
        error_message: Some("TTL expired".into()),
        updated_by_name: Some("codex@app".into()),
        ttl: Some(60_000),
        ..task.clone()
    };
    tried.fit::<CreateTask>(vec![CreateTaskOutput {
        task_id: "7".into(),
        status: TaskStatus::Pending,
        message: "Task 7 is made; task 5 has the same target.".into(),
        task: done.clone(),
    }]);
    tried.fit::<GetTask>(vec![task.clone(), done.clone()]);
    tried.fit::<UpdateTask>(vec![done.clone()]);
    tried.fit::<CancelTask>(vec![done.clone()]);
    tried.fit::<ListTasks>(vec![
        ListTasksOutput { count: 0, tasks: vec![], more: false },
        ListTasksOutput { count: 2, tasks: vec![task, done], more: true },
    ]);
}

pub(super) fn projects(tried: &mut Tried) {
    let changed =
        ProjectChangedOutput { ok: true, project_id: "web_shop".into(), note: Some("n".into()) };
    tried.fit::<SyncProjectAssets>(vec![
        changed.clone(),
        ProjectChangedOutput { note: None, ..changed.clone() },
    ]);
    tried.fit::<UpdateProject>(vec![changed.clone()]);
    tried.fit::<HostDeleteProject>(vec![changed]);
    tried.fit::<UploadProjectAsset>(vec![UploadProjectAssetOutput {
        ok: true,
        project_id: "web_shop".into(),
        file_name: "a_b.png".into(),
    }]);
    let renamed = RenameProjectOutput {
        ok: true,
        old_id: "web_shop".into(),
        new_id: "shop".into(),
        note: Some("shop has no known prefix".into()),
    };
    tried
        .fit::<RenameProject>(vec![RenameProjectOutput { note: None, ..renamed.clone() }, renamed]);
    tried.fit::<SearchProjects>(vec![SearchProjectsOutput {
        query: "shop".into(),
        count: 1,
        results: vec![ProjectFound {
            id: "web_shop".into(),
            name: "The shop".into(),
            description: "Sells things".into(),
        }],
    }]);
    let manifest = serde_json::from_value(testing::manifest()).unwrap();
    let mut small = testing::manifest();
    for optional in [
        "billing",
        "lastUpdated",
        "apiDependencies",
        "gatewayCompatibility",
        "api_versions",
        "feature_tier",
    ] {
        small.as_object_mut().unwrap().remove(optional);
    }
    tried.fit::<GetProject>(vec![
        GetProjectOutput {
            manifest,
            internal_docs: Some("# Notes".into()),
            assets: vec![AssetEntry {
                file_name: "a.png".into(),
                size: 3,
                sha256: "ab".into(),
                last_updated: TIME.into(),
                updated_by: "codex:1".into(),
            }],
        },
        GetProjectOutput {
            manifest: serde_json::from_value(small).unwrap(),
            internal_docs: None,
            assets: vec![],
        },
    ]);
}

#[test]
fn a_manifest_comes_back_field_by_field() {
    let given = testing::manifest();
    let read: Manifest = serde_json::from_value(given.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), given);
    let mut patch = given;
    patch.as_object_mut().unwrap().remove("id");
    let read: ManifestPatch = serde_json::from_value(patch.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), patch);
}

pub(super) fn topology(tried: &mut Tried) {
    let node = ProjectNode {
        id: "web_shop".into(),
        name: "The shop".into(),
        summary: "Sells things".into(),
        last_active: TIME.into(),
    };
    let edge = ProjectEdge {
        from: "web_shop".into(),
        to: "lib_money".into(),
        kind: RelationKind::Dependency,
    };
    let list = GetGlobalTopologyOutput {
        mode: TopologyMode::List,
        summary: Some(TopologySummary { total_projects: 1, total_edges: 0, dangling_edges: 1 }),
        projects: Some([("web_shop".to_owned(), node.clone())].into()),
        nodes: None,
        edges: None,
        dangling: None,
        note: None,
    };
    let focused = GetGlobalTopologyOutput {
        mode: TopologyMode::Focused,
        summary: None,
        projects: None,
        nodes: Some(vec![node]),
        edges: Some(vec![edge.clone()]),
        dangling: Some(vec![edge]),
        note: Some("there is more".into()),
    };
    tried.fit::<GetGlobalTopology>(vec![list, focused]);
}

pub(super) fn documents(tried: &mut Tried) {
    let entry = DocumentEntry {
        doc_id: "rules".into(),
        title: "Rules".into(),
        last_updated: TIME.into(),
        updated_by: "mcp-x".into(),
    };
    tried.fit::<ListGlobalDocs>(vec![
        ListGlobalDocsOutput { count: 0, docs: vec![], more: false },
        ListGlobalDocsOutput { count: 1, docs: vec![entry.clone()], more: true },
    ]);
    tried.fit::<GetGlobalDoc>(vec![GetGlobalDocOutput { entry, content: String::new() }]);
    tried.fit::<SyncGlobalDoc>(vec![SyncGlobalDocOutput { ok: true, doc_id: "rules".into() }]);
    tried.fit::<UpdateGlobalStrategy>(vec![UpdateGlobalStrategyOutput { ok: true }]);
    tried.fit::<GetGlobalStrategy>(vec![
        GetGlobalStrategyOutput { content: String::new(), last_updated: None, updated_by: None },
        GetGlobalStrategyOutput {
            content: "# All".into(),
            last_updated: Some(TIME.into()),
            updated_by: Some("codex:1".into()),
        },
    ]);
}
