//! Where the local node is: given, or found through the data folder.

use std::path::{Path, PathBuf};

use nexus_contract::http::EndpointFile;

/// The file in the data folder in which a running node says where it listens.
pub const ENDPOINT_FILE: &str = "endpoint.json";
/// The file in the data folder that holds the token of this machine.
pub const TOKEN_FILE: &str = "token";

/// How to find the node. Looked through anew for every attempt, since a node that was started again
/// may listen on another port.
#[derive(Clone)]
pub struct EndpointSource {
    /// The data folder.
    pub data: PathBuf,
    /// The node's address, when it was given (`NEXUS_ENDPOINT`): then the folder is not asked.
    pub endpoint: Option<String>,
    /// The token, when it was given (`NEXUS_TOKEN`).
    pub token: Option<String>,
}

impl std::fmt::Debug for EndpointSource {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token gives access, so it stays out of every log.
        out.debug_struct("EndpointSource")
            .field("data", &self.data)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// Where the node is, now.
#[derive(Clone)]
pub struct Endpoint {
    /// `http://ADDRESS:PORT`, without a slash at the end.
    pub url: String,
    /// The token to send, if there is one.
    pub token: Option<String>,
    /// The node's process, when the data folder told.
    pub pid: Option<u32>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// Why no node can be found.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No node has said where it is.
    #[error("no node runs on this data folder: {} does not exist", path.display())]
    NoFile {
        /// The file looked for.
        path: PathBuf,
    },
    /// The file is there and cannot be read.
    #[error("file {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is there and says nothing.
    #[error("file {} is not what a node writes", path.display())]
    Undecodable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The token's file holds more than a token.
    #[error("token file {} holds no token: delete it and start the node again", .0.display())]
    Token(PathBuf),
    /// The address given is of a kind that nodes do not serve.
    #[error("endpoint {0:?} cannot be used: give http://ADDRESS:PORT")]
    Unusable(String),
}

impl EndpointSource {
    /// Makes the source that looks into a data folder.
    pub fn folder(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), endpoint: None, token: None }
    }

    /// Returns where the node is said to be. It may be gone all the same.
    ///
    /// # Errors
    /// When nothing says where, or what says so cannot be read.
    pub fn resolve(&self) -> Result<Endpoint, EndpointError> {
        let (address, pid) = match &self.endpoint {
            Some(given) => (given.clone(), None),
            None => {
                let file = read_endpoint(&self.data.join(ENDPOINT_FILE))?;
                (file.address, Some(file.pid))
            }
        };
        let token = match &self.token {
            Some(given) => Some(given.clone()),
            None => read_token(&self.data.join(TOKEN_FILE))?,
        };
        Ok(Endpoint { url: normal(&address)?, token, pid })
    }

    /// Says where this source looks, for messages.
    pub fn place(&self) -> String {
        match &self.endpoint {
            Some(given) => given.clone(),
            None => self.data.join(ENDPOINT_FILE).display().to_string(),
        }
    }
}

fn read_endpoint(path: &Path) -> Result<EndpointFile, EndpointError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(EndpointError::NoFile { path: path.to_owned() });
        }
        Err(source) => return Err(EndpointError::Unreadable { path: path.to_owned(), source }),
    };
    serde_json::from_slice(&text)
        .map_err(|source| EndpointError::Undecodable { path: path.to_owned(), source })
}

/// A folder without a token is no error here: the node may be open to this machine, and if it is
/// not, it says so.
fn read_token(path: &Path) -> Result<Option<String>, EndpointError> {
    match std::fs::read_to_string(path) {
        // It goes into a header, which carries no other characters.
        Ok(text) if !is_token(text.trim()) => Err(EndpointError::Token(path.to_owned())),
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|token| !token.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(EndpointError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Returns whether a text can be sent as a token.
pub fn is_token(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_graphic())
}

/// Checks an address that a user gave.
///
/// # Errors
/// When it names no node.
pub fn check(address: &str) -> Result<(), EndpointError> {
    normal(address).map(drop)
}

fn normal(address: &str) -> Result<String, EndpointError> {
    let unusable = || EndpointError::Unusable(address.to_owned());
    let rest = match address.trim().split_once("://") {
        Some(("http", rest)) => rest,
        Some(_) => return Err(unusable()),
        None => address.trim(),
    };
    let rest = rest.trim_end_matches('/');
    if rest.is_empty() || rest.contains(['/', '?', '#', '@', ' ']) {
        return Err(unusable());
    }
    Ok(format!("http://{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_made_whole_or_refused() {
        for (given, whole) in [
            ("127.0.0.1:5688", "http://127.0.0.1:5688"),
            ("http://[::1]:5688/", "http://[::1]:5688"),
            (" http://desk:1 ", "http://desk:1"),
        ] {
            assert_eq!(normal(given).unwrap(), whole);
        }
        for given in ["", "https://127.0.0.1:1", "http://", "http://u@h", "http://h/path", "a b"] {
            let text = normal(given).unwrap_err().to_string();
            assert!(text.ends_with("give http://ADDRESS:PORT"), "{text}");
        }
    }

    #[test]
    fn a_folder_is_read_anew_each_time() {
        let data = tempfile::tempdir().unwrap();
        let source = EndpointSource::folder(data.path());
        assert!(matches!(source.resolve(), Err(EndpointError::NoFile { .. })));
        let write = |name: &str, text: &str| std::fs::write(data.path().join(name), text).unwrap();
        write(ENDPOINT_FILE, "{");
        assert!(matches!(source.resolve(), Err(EndpointError::Undecodable { .. })));
        write(ENDPOINT_FILE, r#"{"address":"http://127.0.0.1:1","pid":7,"startedAt":1,"x":2}"#);
        let found = source.resolve().unwrap();
        assert_eq!(
            (found.url.as_str(), found.pid, found.token),
            ("http://127.0.0.1:1", Some(7), None)
        );
        write(TOKEN_FILE, "secret\n");
        let found = source.resolve().unwrap();
        assert_eq!(found.token.as_deref(), Some("secret"));
        assert!(!format!("{found:?} {source:?}").contains("secret"));
        write(TOKEN_FILE, "two\nlines");
        let text = source.resolve().unwrap_err().to_string();
        assert!(text.contains(TOKEN_FILE) && !text.contains("lines"), "{text}");
        let given = EndpointSource {
            endpoint: Some("127.0.0.1:2".into()),
            token: Some("other".into()),
            ..source
        };
        let found = given.resolve().unwrap();
        assert_eq!((found.url.as_str(), found.pid), ("http://127.0.0.1:2", None));
        assert_eq!(found.token.as_deref(), Some("other"));
    }
}
