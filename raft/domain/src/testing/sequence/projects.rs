//! Projects, documents and uploads of a seed's log.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use super::Sequence;
use crate::bodies::{self, Upload, UploadFor};
use crate::command::projects::{
    Billing, Content, Endpoint, FeatureTier, Manifest, Patch, Relation, RelationKind, UploadTarget,
};
use crate::command::{Command, DocumentCommand, ProjectCommand};
use crate::limits::CHUNK_BYTES;

impl Sequence {
    /// Makes a command of projects or documents.
    pub(super) fn project_command(&mut self) -> Command {
        match self.random.below(100) {
            0..=19 => Command::Project(self.sync()),
            20..=29 => Command::Project(self.update()),
            30..=36 => {
                let (from, to) = (self.project_id(), self.project_id());
                Command::Project(ProjectCommand::Rename { from, to })
            }
            37..=42 => Command::Project(ProjectCommand::Delete { id: self.project_id() }),
            43..=59 => Command::Project(self.asset()),
            60..=74 => Command::Project(self.begin()),
            75..=77 => self.quota(),
            78..=81 => {
                let id = self.document_id();
                Command::Document(DocumentCommand::Delete { id })
            }
            _ => {
                let content = Content::Inline(self.markdown());
                self.document(content)
            }
        }
    }

    /// Makes a quota: mostly wide, sometimes one that keeps nearly everything out.
    pub(super) fn quota(&mut self) -> Command {
        let bytes =
            if self.random.chance(70) { u64::MAX >> 28 } else { self.random.below(200_000) };
        Command::Project(ProjectCommand::SetQuota { bytes })
    }

    /// Returns an id of a project: of few, so that they meet; now and then none at all.
    fn project_id(&mut self) -> String {
        match self.random.below(50) {
            0 => "../etc".into(),
            number => format!("web_{}", number.checked_rem(7).unwrap_or_default()),
        }
    }

    fn document_id(&mut self) -> String {
        format!("doc-{}", self.random.below(4))
    }

    fn markdown(&mut self) -> String {
        "# A title\n\nText with ünïcode.\n".repeat(self.length(4))
    }

    fn relations(&mut self) -> Vec<Relation> {
        let kinds = [RelationKind::Dependency, RelationKind::Parent, RelationKind::Related];
        let mut relations = Vec::new();
        for _ in 0..self.random.below(4) {
            let kind = self.random.one(&kinds).copied().unwrap_or(RelationKind::Child);
            relations.push(Relation { target: self.project_id(), kind });
        }
        relations
    }

    fn sync(&mut self) -> ProjectCommand {
        let id = self.project_id();
        let dependencies = self.random.chance(40).then(|| [(self.project_id(), "^1".to_string())]);
        let manifest = Manifest {
            name: format!("The {id}"),
            description: "Sells things. ".repeat(self.length(5)),
            tech_stack: vec!["rust".into(); self.length(3)],
            relations: self.relations(),
            endpoints: vec![
                Endpoint {
                    name: "http".into(),
                    url: "https://shop.example".into(),
                    description: String::new(),
                };
                self.length(3)
            ],
            billing: self
                .random
                .chance(30)
                .then(|| Billing { plain: "free".into(), price: "0".into() }),
            api_dependencies: dependencies.map(Into::into),
            feature_tier: if self.random.chance(50) {
                FeatureTier::Team
            } else {
                FeatureTier::Unsaid
            },
            id,
            ..Manifest::default()
        };
        let docs = Content::Inline(self.markdown());
        ProjectCommand::Sync { manifest: manifest.into(), docs }
    }

    fn update(&mut self) -> ProjectCommand {
        let patch = Patch {
            name: self.random.chance(50).then(|| "n".repeat(self.length(220))),
            relations: self.random.chance(50).then(|| self.relations()),
            last_updated: self.random.chance(30).then(|| "yesterday".to_string()),
            ..Patch::default()
        };
        ProjectCommand::Update { id: self.project_id(), patch: patch.into() }
    }

    fn asset(&mut self) -> ProjectCommand {
        let project = self.project_id();
        let name = format!("dir/file-{}", self.random.below(3));
        if self.random.chance(25) {
            return ProjectCommand::DeleteAsset { project, name: name.replace('/', "_") };
        }
        ProjectCommand::PutAsset { project, name, bytes: vec![7; self.length(300)] }
    }

    /// Goes on with an upload that is under way, mostly as its owner; sometimes another one begins
    /// beside it.
    pub(super) fn upload_goes_on(&mut self) -> Option<(String, Command)> {
        let open = bodies::uploads(&self.state).unwrap_or_default();
        let (number, upload) = self.random.one(&open)?.clone();
        let command = if self.random.chance(35) {
            Command::Project(self.begin())
        } else {
            self.go_on(number, &upload)
        };
        let owner = if self.random.chance(95) { upload.owner } else { self.speaker().1 };
        Some((owner, command))
    }

    fn begin(&mut self) -> ProjectCommand {
        let target = if self.random.chance(60) {
            let name = format!("file-{}", self.random.below(3));
            UploadTarget::Asset { project: self.project_id(), name }
        } else {
            UploadTarget::Text
        };
        // Mostly one chunk, sometimes two, seldom so many that timers must sweep them.
        let size = match self.random.below(20) {
            0 => 0,
            1..=4 => CHUNK_BYTES.saturating_add(self.random.below(100)),
            5 if self.random.chance(30) => CHUNK_BYTES.saturating_mul(17),
            _ => self.random.below(500),
        };
        let mut sha256 = Sha256::digest(content(size)).to_vec();
        if self.random.chance(10) {
            sha256.reverse();
        }
        ProjectCommand::BeginUpload { target, size, sha256 }
    }

    fn go_on(&mut self, upload: u64, known: &Upload) -> Command {
        if self.random.chance(5) {
            return Command::Project(ProjectCommand::AbandonUpload { upload });
        }
        if known.is_complete() || self.random.chance(3) {
            return match known.target {
                UploadFor::Asset { .. } => Command::Project(ProjectCommand::CommitAsset { upload }),
                UploadFor::Text => self.document(Content::Uploaded(upload)),
            };
        }
        let place = known.next().saturating_add(u64::from(self.random.chance(3)));
        let length = known.size.saturating_sub(known.received).min(CHUNK_BYTES);
        let bytes = content(length.saturating_sub(u64::from(self.random.chance(3))));
        Command::Project(ProjectCommand::UploadChunk { upload, place, bytes })
    }

    fn document(&mut self, content: Content) -> Command {
        Command::Document(match self.random.below(4) {
            0 => DocumentCommand::SetStrategy { content },
            1 if matches!(content, Content::Uploaded(_)) => {
                let manifest = Manifest {
                    id: self.project_id(),
                    name: "With long notes".into(),
                    ..Manifest::default()
                };
                let sync = ProjectCommand::Sync { manifest: manifest.into(), docs: content };
                return Command::Project(sync);
            }
            _ => {
                let title = "t".repeat(self.length(30));
                DocumentCommand::Sync { id: self.document_id(), title, content }
            }
        })
    }
}

/// Returns what an upload of this size brings; every chunk of it is alike.
fn content(size: u64) -> Vec<u8> {
    vec![b'x'; usize::try_from(size).unwrap_or_default()]
}
