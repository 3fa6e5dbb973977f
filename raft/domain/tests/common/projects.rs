//! Anything at all about projects and documents.

use std::collections::BTreeMap;

use nexus_domain::command::projects::{
    Billing, Content, Endpoint, FeatureTier, Manifest, Operation, Patch, Relation, RelationKind,
    UploadTarget,
};
use nexus_domain::command::{DocumentCommand, ProjectCommand};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;

use super::{bytes, number, text};

/// Returns ids: of projects that the sequences have, and anything else.
fn id() -> BoxedStrategy<String> {
    prop_oneof![2 => "web_[0-6]", 1 => text()].boxed()
}

fn content() -> BoxedStrategy<Content> {
    prop_oneof![text().prop_map(Content::Inline), number().prop_map(Content::Uploaded)].boxed()
}

fn relations() -> BoxedStrategy<Vec<Relation>> {
    let kind = prop_oneof![Just(RelationKind::Dependency), Just(RelationKind::Child)];
    vec((id(), kind).prop_map(|(target, kind)| Relation { target, kind }), 0..5).boxed()
}

fn map() -> BoxedStrategy<Option<BTreeMap<String, String>>> {
    of(btree_map(id(), text(), 0..4)).boxed()
}

fn tier() -> BoxedStrategy<FeatureTier> {
    prop_oneof![Just(FeatureTier::Unsaid), Just(FeatureTier::Advanced)].boxed()
}

/// Returns any set of fields; a manifest is made of one.
fn patch() -> BoxedStrategy<Patch> {
    let endpoint = (text(), text(), text()).prop_map(|(name, url, description)| Endpoint {
        name,
        url,
        description,
    });
    let operation = (text(), text(), text()).prop_map(|(method, path, summary)| Operation {
        method,
        path,
        summary,
    });
    let billing = (text(), text()).prop_map(|(plain, price)| Billing { plain, price });
    let words = (of(text()), of(text()), of(text()), of(text()), of(text()), of(text())).boxed();
    let lists = (
        of(vec(text(), 0..3)),
        of(relations()),
        of(vec(endpoint, 0..3)),
        of(vec(operation, 0..3)),
        of(billing),
    )
        .boxed();
    (words, lists, map(), map(), tier())
        .prop_map(|(words, lists, api_dependencies, api_versions, feature_tier)| Patch {
            name: words.0,
            description: words.1,
            tech_stack: lists.0,
            relations: lists.1,
            repository_url: words.2,
            local_path: words.3,
            endpoints: lists.2,
            api_spec: lists.3,
            billing: lists.4,
            last_updated: words.4,
            api_dependencies,
            gateway_compatibility: words.5,
            api_versions,
            feature_tier,
        })
        .boxed()
}

fn manifest() -> BoxedStrategy<Manifest> {
    (id(), patch())
        .prop_map(|(id, given)| {
            let mut manifest = Manifest { id, ..Manifest::default() };
            manifest.set(&given);
            manifest
        })
        .boxed()
}

pub(crate) fn project() -> BoxedStrategy<ProjectCommand> {
    let target = prop_oneof![
        Just(UploadTarget::Text),
        (id(), text()).prop_map(|(project, name)| UploadTarget::Asset { project, name }),
    ];
    prop_oneof![
        (manifest(), content()).prop_map(|(manifest, docs)| {
            ProjectCommand::Sync { manifest: manifest.into(), docs }
        }),
        (id(), patch()).prop_map(|(id, patch)| ProjectCommand::Update { id, patch: patch.into() }),
        (id(), id()).prop_map(|(from, to)| ProjectCommand::Rename { from, to }),
        id().prop_map(|id| ProjectCommand::Delete { id }),
        (id(), text(), bytes()).prop_map(|(project, name, bytes)| {
            ProjectCommand::PutAsset { project, name, bytes }
        }),
        (id(), text()).prop_map(|(project, name)| ProjectCommand::DeleteAsset { project, name }),
        (target, number(), bytes()).prop_map(|(target, size, sha256)| {
            ProjectCommand::BeginUpload { target, size, sha256 }
        }),
        (number(), number(), bytes()).prop_map(|(upload, place, bytes)| {
            ProjectCommand::UploadChunk { upload, place, bytes }
        }),
        number().prop_map(|upload| ProjectCommand::CommitAsset { upload }),
        number().prop_map(|upload| ProjectCommand::AbandonUpload { upload }),
        number().prop_map(|bytes| ProjectCommand::SetQuota { bytes }),
    ]
    .boxed()
}

pub(crate) fn document() -> BoxedStrategy<DocumentCommand> {
    prop_oneof![
        (id(), text(), content())
            .prop_map(|(id, title, content)| { DocumentCommand::Sync { id, title, content } }),
        id().prop_map(|id| DocumentCommand::Delete { id }),
        content().prop_map(|content| DocumentCommand::SetStrategy { content }),
    ]
    .boxed()
}
