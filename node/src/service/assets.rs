//! Assets: files of projects, byte for byte.
//!
//! A short one is an entry of the log, a longer one an upload. They are read from this node's own
//! state, part by part, so that neither memory nor a view of the state is held for long.

use data_encoding::{BASE64, HEXLOWER};
use nexus_contract::http::{AssetStored, Done};
use nexus_contract::projects::{
    UploadProjectAssetInput, UploadProjectAssetOutput, check_file_name,
};
use nexus_contract::{ApiError, ErrorCode, ReadMarks, ids};
use nexus_domain::command::projects::UploadTarget;
use nexus_domain::command::{Command, ProjectCommand};
use nexus_domain::{Fault, Reply, bodies, limits, projects};
use nexus_raft::{Committed, View};

use super::uploads::{self, Coming, Patience, Source};
use super::{Answer, Call, Service, count, errors, written};
use crate::service::caller::Who;

/// Bytes that are read of an asset at once.
const PART_BYTES: u64 = 256 * 1024;
/// What to do about an asset that does not exist.
const REMEDY: &str = "get_project lists those of a project";

/// Which file of which project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The project's id.
    pub(crate) project: String,
    /// The file's name.
    pub(crate) name: String,
}

impl Place {
    /// Checks the forms of both.
    pub(crate) fn check(&self, tool: &str) -> Result<(), ApiError> {
        ids::project("projectId", &self.project)
            .and_then(|()| check_file_name("fileName", &self.name))
            .map_err(|violation| ApiError::invalid_arguments(tool, violation))
    }

    fn no_project(&self) -> ApiError {
        let what = format!("project {}", self.project);
        errors::not_found("projectId", &what, super::projects::REMEDY)
    }
}

/// Bytes that shall become an asset.
#[derive(Debug)]
pub(crate) struct File {
    /// How many.
    pub(crate) size: u64,
    /// Their SHA-256.
    pub(crate) sha256: [u8; 32],
    /// Where they are.
    pub(crate) source: Source,
}

/// An asset as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// What is kept of it.
    pub(crate) asset: projects::Asset,
    /// How much that can be relied on.
    pub(crate) marks: ReadMarks,
}

/// `upload_project_asset`.
pub(super) async fn upload_project_asset(
    service: &Service,
    about: &Call<'_>,
    input: UploadProjectAssetInput,
) -> Answer {
    let UploadProjectAssetInput { project_id, file_name, base64_content } = input;
    let bytes = BASE64.decode(base64_content.as_bytes()).map_err(|_words| {
        let what = "base64Content: its last characters are no whole bytes; give base64 as RFC \
                    4648 has it, with padding";
        ApiError::invalid_arguments(about.tool, what)
    })?;
    drop(base64_content);
    let place = Place { project: project_id, name: file_name };
    let size = count(bytes.len());
    let file = File { size, sha256: uploads::digest(&bytes), source: Source::Memory(bytes) };
    let how = ("base64Content", Patience::OF_A_CALL);
    let made = if size > limits::CHUNK_BYTES { uploads::made_id(about) } else { None };
    let about = Call { request_id: about.request_id.or(made.as_deref()), ..about.clone() };
    let (committed, file_name) = store(service, &about, &place, file, how).await?;
    written(&committed).stamp(&UploadProjectAssetOutput {
        ok: true,
        project_id: place.project,
        file_name,
    })
}

/// Stores a file; returns its name as it is kept, too.
async fn store(
    service: &Service,
    about: &Call<'_>,
    place: &Place,
    mut file: File,
    (field, patience): (&'static str, Patience),
) -> Result<(Committed, String), ApiError> {
    let Place { project, name } = place.clone();
    let outcome = if file.size <= limits::CHUNK_BYTES {
        let bytes = file.source.read(0, file.size).await?;
        let put = ProjectCommand::PutAsset { project, name, bytes };
        service.propose(about, Command::Project(put)).await
    } else {
        let target = UploadTarget::Asset { project, name };
        let coming = Coming::new((field, target), (file.size, file.sha256), file.source);
        let commit = |upload| Command::Project(ProjectCommand::CommitAsset { upload });
        uploads::bring(service, about, coming, patience, &commit).await
    };
    let committed = outcome.map_err(|error| {
        if error.code == ErrorCode::NotFound { place.no_project() } else { error }
    })?;
    let Reply::Named { name } = &committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let name = name.clone();
    Ok((committed, name))
}

/// Who changes an asset, and under which request id.
#[derive(Debug)]
pub(crate) struct Sender {
    /// What is done, for messages.
    pub(crate) what: &'static str,
    /// Who.
    pub(crate) who: Who,
    /// The request id, if one was given.
    pub(crate) request_id: Option<String>,
}

impl Sender {
    fn call(&self) -> Call<'_> {
        let request_id = self.request_id.as_deref();
        Call { tool: self.what, who: Some(self.who.clone()), request_id }
    }
}

impl Service {
    /// Checks that there is such a project, before a long file is sent for nothing.
    ///
    /// # Errors
    /// It does not exist, or no majority answers.
    pub(crate) async fn takes_files(&self, place: &Place) -> Result<(), ApiError> {
        let fresh = self.read(|view| exists(view, &place.project)).await?;
        if fresh.stale.is_some() {
            let text = "no majority of the voters answers, so no file is taken: nexus status shows \
                        who is missing; nothing was stored";
            return Err(ApiError::new(ErrorCode::NoQuorum, text).with_retry_after(2));
        }
        if fresh.value { Ok(()) } else { Err(place.no_project()) }
    }

    /// Stores a file that was sent.
    ///
    /// # Errors
    /// Every refusal of the log; nothing was stored then, except under `unknown_outcome`.
    pub(crate) async fn put_asset(&self, sender: &Sender, place: &Place, file: File) -> Answer {
        let (size, sha256) = (file.size, hex(&file.sha256));
        let (field, patience) = ("body", Patience::OF_A_FILE);
        let stored = store(self, &sender.call(), place, file, (field, patience)).await;
        let (committed, file_name) = stored?;
        written(&committed).stamp(&AssetStored {
            ok: true,
            project_id: place.project.clone(),
            file_name,
            size,
            sha256,
        })
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// Every refusal of the log.
    pub(crate) async fn delete_asset(&self, sender: &Sender, place: &Place) -> Answer {
        let Place { project, name } = place.clone();
        let command = Command::Project(ProjectCommand::DeleteAsset { project, name });
        let committed = self.propose(&sender.call(), command).await.map_err(|error| {
            if error.code == ErrorCode::NotFound && error.message.starts_with("project ") {
                return place.no_project();
            }
            let what = format!("asset {} of project {}", place.name, place.project);
            errors::missing(error, "fileName", &what, REMEDY)
        })?;
        let done = format!("{} of project {} is deleted", place.name, place.project);
        written(&committed).stamp(&Done::new(done))
    }

    /// Finds a file.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) async fn asset(&self, place: &Place) -> Result<Found, ApiError> {
        let Place { project, name } = place;
        let fresh = self
            .read(|view| {
                let found = projects::asset(view, project, name)?;
                Ok((found, exists(view, project)?))
            })
            .await?;
        let about = Call { tool: "", who: None, request_id: None };
        let marks = self.marks(&about, &fresh);
        match fresh.value {
            (Some(asset), _) => Ok(Found { asset, marks }),
            (None, has_project) => {
                let what = format!("asset {name} of project {project}");
                let none = errors::not_found("fileName", &what, REMEDY);
                let error = if has_project { none } else { place.no_project() };
                Err(errors::as_known_here(&marks, error))
            }
        }
    }

    /// Reads the next part of a file from this node's state; `None` when it was replaced or deleted
    /// since it was found.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) fn asset_part(
        &self,
        body: bodies::Body,
        from: u64,
    ) -> Result<Option<Vec<u8>>, ApiError> {
        let part = self.cluster.look(|view| bodies::read(view, body, from, PART_BYTES));
        part.map_err(|error| errors::read(&error))
    }
}

fn exists(view: &View<'_>, project: &str) -> Result<bool, Fault> {
    Ok(projects::project(view, project)?.is_some())
}

/// Writes bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}
