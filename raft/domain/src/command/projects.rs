//! Commands about projects, their assets, and the uploads of what is too long for one entry.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::Origin;

/// Commands about projects; the actor is who changes them.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ProjectCommand {
    /// Makes or replaces a project: its manifest and its internal notes.
    #[n(0)]
    Sync {
        /// The whole manifest.
        #[n(0)]
        manifest: Box<Manifest>,
        /// The internal notes (Markdown).
        #[n(1)]
        docs: Content,
    },
    /// Sets the given fields of a manifest.
    #[n(1)]
    Update {
        /// Which project.
        #[n(0)]
        id: String,
        /// The fields.
        #[n(1)]
        patch: Box<Patch>,
    },
    /// Gives a project another id; what refers to it follows.
    #[n(2)]
    Rename {
        /// Its id.
        #[n(0)]
        from: String,
        /// Its new id.
        #[n(1)]
        to: String,
    },
    /// Deletes a project with its notes and assets.
    #[n(3)]
    Delete {
        /// Which one.
        #[n(0)]
        id: String,
    },
    /// Stores an asset that fits one chunk.
    #[n(4)]
    PutAsset {
        /// Whose.
        #[n(0)]
        project: String,
        /// Its file name; unsafe characters become `_`.
        #[n(1)]
        name: String,
        /// Its bytes, at most one chunk.
        #[cbor(n(2), with = "minicbor::bytes")]
        bytes: Vec<u8>,
    },
    /// Deletes an asset.
    #[n(5)]
    DeleteAsset {
        /// Whose.
        #[n(0)]
        project: String,
        /// Its file name.
        #[n(1)]
        name: String,
    },
    /// Begins an upload: of an asset, or of a text that another command then names.
    #[n(6)]
    BeginUpload {
        /// What it is for.
        #[n(0)]
        target: UploadTarget,
        /// All its bytes.
        #[n(1)]
        size: u64,
        /// Their SHA-256.
        #[cbor(n(2), with = "minicbor::bytes")]
        sha256: Vec<u8>,
    },
    /// Brings the next chunk: every one but the last is full.
    #[n(7)]
    UploadChunk {
        /// Which upload.
        #[n(0)]
        upload: u64,
        /// The chunk's place, from 0.
        #[n(1)]
        place: u64,
        /// Its bytes.
        #[cbor(n(2), with = "minicbor::bytes")]
        bytes: Vec<u8>,
    },
    /// Makes a complete upload the project's asset.
    #[n(8)]
    CommitAsset {
        /// Which upload.
        #[n(0)]
        upload: u64,
    },
    /// Gives an upload up.
    #[n(9)]
    AbandonUpload {
        /// Which upload.
        #[n(0)]
        upload: u64,
    },
    /// Sets how many bytes the assets of all projects may have. From a node.
    #[n(10)]
    SetQuota {
        /// How many.
        #[n(0)]
        bytes: u64,
    },
}

impl ProjectCommand {
    /// Returns who may bring it.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Sync { .. }
            | Self::Update { .. }
            | Self::Rename { .. }
            | Self::Delete { .. }
            | Self::PutAsset { .. }
            | Self::DeleteAsset { .. }
            | Self::BeginUpload { .. }
            | Self::UploadChunk { .. }
            | Self::CommitAsset { .. }
            | Self::AbandonUpload { .. } => Origin::Conversation,
            Self::SetQuota { .. } => Origin::Member,
        }
    }

    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Sync { .. } => "project_sync",
            Self::Update { .. } => "project_update",
            Self::Rename { .. } => "project_rename",
            Self::Delete { .. } => "project_delete",
            Self::PutAsset { .. } => "asset_put",
            Self::DeleteAsset { .. } => "asset_delete",
            Self::BeginUpload { .. } => "upload_begin",
            Self::UploadChunk { .. } => "upload_chunk",
            Self::CommitAsset { .. } => "asset_commit",
            Self::AbandonUpload { .. } => "upload_abandon",
            Self::SetQuota { .. } => "set_quota",
        }
    }
}

/// What an upload is for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum UploadTarget {
    /// A project's asset; `CommitAsset` ends it.
    #[n(0)]
    Asset {
        /// Whose.
        #[n(0)]
        project: String,
        /// Its file name; unsafe characters become `_`.
        #[n(1)]
        name: String,
    },
    /// A text; the command that names it as its [`Content`] ends it.
    #[n(1)]
    Text,
}

/// A long text in a command.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Content {
    /// It is here, at most one chunk.
    #[n(0)]
    Inline(#[n(0)] String),
    /// It came as this upload.
    #[n(1)]
    Uploaded(#[n(0)] u64),
}

/// What a project says of itself (n2n-nexus §7.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Manifest {
    /// Its id.
    #[n(0)]
    pub id: String,
    /// Its name.
    #[n(1)]
    pub name: String,
    /// What it is.
    #[n(2)]
    pub description: String,
    /// What it is made with.
    #[n(3)]
    pub tech_stack: Vec<String>,
    /// How it stands to others.
    #[n(4)]
    pub relations: Vec<Relation>,
    /// Where its source is.
    #[n(5)]
    pub repository_url: String,
    /// Where it lies on a machine.
    #[n(6)]
    pub local_path: String,
    /// Where it can be reached.
    #[n(7)]
    pub endpoints: Vec<Endpoint>,
    /// What can be called there.
    #[n(8)]
    pub api_spec: Vec<Operation>,
    /// What it costs.
    #[n(9)]
    pub billing: Option<Billing>,
    /// When its owner says that it changed; kept as it came.
    #[n(10)]
    pub last_updated: Option<String>,
    /// Which versions of other projects it needs.
    #[n(11)]
    pub api_dependencies: Option<BTreeMap<String, String>>,
    /// Which gateways it works with.
    #[n(12)]
    pub gateway_compatibility: Option<String>,
    /// Versions of its features.
    #[n(13)]
    pub api_versions: Option<BTreeMap<String, String>>,
    /// Who may use it.
    #[n(14)]
    pub feature_tier: FeatureTier,
}

impl Manifest {
    /// Sets the fields that a patch gives.
    pub fn set(&mut self, patch: &Patch) {
        fn set<T: Clone>(field: &mut T, given: Option<&T>) {
            if let Some(given) = given {
                field.clone_from(given);
            }
        }
        fn set_optional<T: Clone>(field: &mut Option<T>, given: &Option<T>) {
            if given.is_some() {
                field.clone_from(given);
            }
        }
        set(&mut self.name, patch.name.as_ref());
        set(&mut self.description, patch.description.as_ref());
        set(&mut self.tech_stack, patch.tech_stack.as_ref());
        set(&mut self.relations, patch.relations.as_ref());
        set(&mut self.repository_url, patch.repository_url.as_ref());
        set(&mut self.local_path, patch.local_path.as_ref());
        set(&mut self.endpoints, patch.endpoints.as_ref());
        set(&mut self.api_spec, patch.api_spec.as_ref());
        set_optional(&mut self.billing, &patch.billing);
        set_optional(&mut self.last_updated, &patch.last_updated);
        set_optional(&mut self.api_dependencies, &patch.api_dependencies);
        set_optional(&mut self.gateway_compatibility, &patch.gateway_compatibility);
        set_optional(&mut self.api_versions, &patch.api_versions);
        if patch.feature_tier != FeatureTier::Unsaid {
            self.feature_tier = patch.feature_tier;
        }
    }
}

/// The fields of a manifest that shall change; `None` and `Unsaid` keep what is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Patch {
    /// See [`Manifest::name`].
    #[n(0)]
    pub name: Option<String>,
    /// See [`Manifest::description`].
    #[n(1)]
    pub description: Option<String>,
    /// See [`Manifest::tech_stack`].
    #[n(2)]
    pub tech_stack: Option<Vec<String>>,
    /// See [`Manifest::relations`].
    #[n(3)]
    pub relations: Option<Vec<Relation>>,
    /// See [`Manifest::repository_url`].
    #[n(4)]
    pub repository_url: Option<String>,
    /// See [`Manifest::local_path`].
    #[n(5)]
    pub local_path: Option<String>,
    /// See [`Manifest::endpoints`].
    #[n(6)]
    pub endpoints: Option<Vec<Endpoint>>,
    /// See [`Manifest::api_spec`].
    #[n(7)]
    pub api_spec: Option<Vec<Operation>>,
    /// See [`Manifest::billing`].
    #[n(8)]
    pub billing: Option<Billing>,
    /// See [`Manifest::last_updated`].
    #[n(9)]
    pub last_updated: Option<String>,
    /// See [`Manifest::api_dependencies`].
    #[n(10)]
    pub api_dependencies: Option<BTreeMap<String, String>>,
    /// See [`Manifest::gateway_compatibility`].
    #[n(11)]
    pub gateway_compatibility: Option<String>,
    /// See [`Manifest::api_versions`].
    #[n(12)]
    pub api_versions: Option<BTreeMap<String, String>>,
    /// See [`Manifest::feature_tier`].
    #[n(13)]
    pub feature_tier: FeatureTier,
}

/// How a project stands to another one.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Relation {
    /// The other's id; it need not be there yet.
    #[n(0)]
    pub target: String,
    /// What the other is to it.
    #[n(1)]
    pub kind: RelationKind,
}

/// What another project is to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum RelationKind {
    /// It is needed.
    #[n(0)]
    Dependency,
    /// It stands above.
    #[n(1)]
    Parent,
    /// It stands below.
    #[n(2)]
    Child,
    /// It has to do with it.
    #[n(3)]
    Related,
}

/// Where a project can be reached.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Endpoint {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// Its address.
    #[n(1)]
    pub url: String,
    /// What it is for.
    #[n(2)]
    pub description: String,
}

/// What can be called on a project.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Operation {
    /// The method.
    #[n(0)]
    pub method: String,
    /// The path.
    #[n(1)]
    pub path: String,
    /// What it does.
    #[n(2)]
    pub summary: String,
}

/// What a project costs, in free words.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Billing {
    /// The plan.
    #[n(0)]
    pub plain: String,
    /// The price.
    #[n(1)]
    pub price: String,
}

/// Who may use a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum FeatureTier {
    /// Nothing is said.
    #[default]
    #[n(0)]
    Unsaid,
    /// Everybody.
    #[n(1)]
    Standard,
    /// Who pays for more.
    #[n(2)]
    Advanced,
    /// Teams.
    #[n(3)]
    Team,
}
