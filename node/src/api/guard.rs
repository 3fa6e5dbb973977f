//! Who may ask: the checks that every request passes before anything is read from its body.
//!
//! The token keeps other users of the machine out, `Host` and `Origin` keep web pages out: a page
//! can make a browser call this machine, by name tricks too, but it can set neither header.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method};
use nexus_contract::http::{PATH_CALL, PATH_HEALTH, PATH_READY, PATH_TOOLS};
use nexus_contract::{ApiError, ErrorCode};

use crate::config::LocalTrust;

/// The names under which every node may be called.
const NAMES: &[&str] = &["localhost", "host.docker.internal"];

/// What requests are held against.
pub(crate) struct Guard {
    token: String,
    allowed_hosts: Vec<String>,
    local_trust: LocalTrust,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token stays out of every log.
        out.debug_struct("Guard")
            .field("allowed_hosts", &self.allowed_hosts)
            .field("local_trust", &self.local_trust)
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// Makes the guard.
    pub(crate) fn new(token: String, allowed_hosts: &[String], local_trust: LocalTrust) -> Self {
        let allowed_hosts = allowed_hosts.iter().map(|name| name.to_lowercase()).collect();
        Self { token, allowed_hosts, local_trust }
    }

    /// Checks one request.
    ///
    /// # Errors
    /// `foreign_host`, `foreign_origin`, `unauthorized` or `bad_request`, in this order.
    pub(crate) fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<(), ApiError> {
        self.check_host(headers)?;
        check_origin(headers)?;
        self.check_token(path, headers, peer)?;
        check_content(method, headers)
    }

    fn check_host(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let refused = |is: String| {
            ApiError::new(
                ErrorCode::ForeignHost,
                format!(
                    "Host header {is}: call the node by its address, by localhost, or by a name \
                     in allowedHosts of settings.json"
                ),
            )
        };
        let given = text(headers, &HOST).ok_or_else(|| refused("is missing".to_owned()))?;
        let host = host_of(given).to_lowercase();
        let known = host.parse::<IpAddr>().is_ok()
            || NAMES.contains(&host.as_str())
            || self.allowed_hosts.contains(&host);
        if known {
            Ok(())
        } else {
            Err(refused(format!("names {:?}", host.chars().take(64).collect::<String>())))
        }
    }

    fn check_token(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<(), ApiError> {
        if path == PATH_HEALTH || path == PATH_READY {
            return Ok(());
        }
        let refused = |what: &str| {
            ApiError::new(
                ErrorCode::Unauthorized,
                format!(
                    "token {what}: send \"Authorization: Bearer TOKEN\" with what stands in the \
                     file token of the node's data folder"
                ),
            )
        };
        let Some(given) = headers.get(AUTHORIZATION) else {
            let local = peer.ip().to_canonical().is_loopback();
            let tools = path == PATH_CALL || path == PATH_TOOLS;
            let open = self.local_trust == LocalTrust::Open && local && tools;
            return if open { Ok(()) } else { Err(refused("is missing")) };
        };
        let token = given.to_str().ok().and_then(bearer);
        match token {
            Some(token) if is_same(token.as_bytes(), self.token.as_bytes()) => Ok(()),
            Some(_) => Err(refused("is wrong")),
            None => Err(refused("is not given as a bearer token")),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Compares in a time that tells only whether the lengths agree.
fn is_same(given: &[u8], right: &[u8]) -> bool {
    let difference = given.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == right.len() && std::hint::black_box(difference) == 0
}

/// Returns the host of `HOST:PORT`, `[IPV6]:PORT` or either without a port.
fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    let host = match authority.rsplit_once(':') {
        // Two colons are an IPv6 address without brackets, which has no port.
        Some((host, _)) if !host.contains(':') => host,
        Some(_) | None => authority,
    };
    host.strip_suffix('.').unwrap_or(host)
}

/// A browser always says where a page came from; programs say nothing.
fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let host = text(headers, &HOST).unwrap_or_default();
    let own = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
    let is_local = |authority: &str| {
        let host = host_of(authority);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    match own {
        Some(authority) if authority.eq_ignore_ascii_case(host) && is_local(authority) => Ok(()),
        Some(_) | None => Err(ApiError::new(
            ErrorCode::ForeignOrigin,
            "Origin header names a web page of another origin: call from a program, not from a \
             web page",
        )),
    }
}

/// A page can post without asking first only in types other than JSON; before it puts anything, its
/// browser asks, and is refused. So a file that is put has the type that it has.
fn check_content(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let has_body = method == Method::POST && text(headers, &CONTENT_LENGTH) != Some("0");
    let kind = text(headers, &CONTENT_TYPE);
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    };
    match kind {
        Some(kind) if is_json(kind) => Ok(()),
        None if !has_body => Ok(()),
        Some(_) if method == Method::GET || method == Method::PUT => Ok(()),
        other => {
            let is = other.map_or("is missing".to_owned(), |kind| {
                format!("is {:?}", kind.chars().take(64).collect::<String>())
            });
            let text = format!("Content-Type header {is}: send application/json");
            Err(ApiError::new(ErrorCode::BadRequest, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const LOCAL: &str = "127.0.0.1:9";

    fn guard(trust: LocalTrust) -> Guard {
        Guard::new("right".into(), &["Desk.Example".to_owned()], trust)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn code(
        guard: &Guard,
        method: &Method,
        path: &str,
        pairs: &[(&'static str, &str)],
        peer: &str,
    ) -> Option<ErrorCode> {
        let outcome = guard.check(method, path, &headers(pairs), peer.parse().unwrap());
        outcome.err().map(|error| error.code)
    }

    #[test]
    fn any_address_and_known_names_are_hosts() {
        let guard = guard(LocalTrust::Token);
        let with = |host: &str| code(&guard, &Method::GET, PATH_HEALTH, &[("host", host)], LOCAL);
        for host in [
            "127.0.0.1:5688",
            "10.1.2.3",
            "[::1]:5688",
            "[fe80::1]",
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "host.docker.internal:5688",
            "desk.example:5688",
        ] {
            assert_eq!(with(host), None, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:5688", "desk.example.evil", ""] {
            assert_eq!(with(host), Some(ErrorCode::ForeignHost), "{host}");
        }
        let none = code(&guard, &Method::GET, PATH_HEALTH, &[], LOCAL);
        assert_eq!(none, Some(ErrorCode::ForeignHost));
    }

    #[test]
    fn only_pages_of_this_very_address_pass() {
        let guard = guard(LocalTrust::Token);
        let with = |origin: &str, host: &str| {
            let pairs = [("origin", origin), ("host", host)];
            code(&guard, &Method::GET, PATH_HEALTH, &pairs, LOCAL)
        };
        assert_eq!(with("http://127.0.0.1:5688", "127.0.0.1:5688"), None);
        assert_eq!(with("http://localhost:5688", "localhost:5688"), None);
        for (origin, host) in [
            ("http://127.0.0.1:3000", "127.0.0.1:5688"),
            ("https://127.0.0.1:5688", "127.0.0.1:5688"),
            ("http://10.0.0.1:5688", "10.0.0.1:5688"),
            ("http://evil.example", "127.0.0.1:5688"),
            ("null", "127.0.0.1:5688"),
            ("", "127.0.0.1:5688"),
        ] {
            assert_eq!(with(origin, host), Some(ErrorCode::ForeignOrigin), "{origin}");
        }
    }

    #[test]
    fn the_token_is_asked_for_everywhere_but_for_health() {
        let guard = guard(LocalTrust::Token);
        let with = |path: &str, value: Option<&str>| {
            let mut pairs = vec![("host", "localhost")];
            pairs.extend(value.map(|value| ("authorization", value)));
            code(&guard, &Method::GET, path, &pairs, LOCAL)
        };
        assert_eq!(with(PATH_HEALTH, None), None);
        assert_eq!(with(PATH_READY, None), None);
        assert_eq!(with(PATH_TOOLS, Some("Bearer right")), None);
        assert_eq!(with(PATH_TOOLS, Some("bearer  right ")), None);
        for value in [None, Some("Bearer wrong"), Some("Bearer righ"), Some("right"), Some("")] {
            assert_eq!(with(PATH_TOOLS, value), Some(ErrorCode::Unauthorized), "{value:?}");
            assert_eq!(with("/nowhere", value), Some(ErrorCode::Unauthorized), "{value:?}");
        }
    }

    #[test]
    fn open_trust_is_for_tools_and_this_machine_alone() {
        let guard = guard(LocalTrust::Open);
        let with = |path: &str, peer: &str, value: Option<&str>| {
            let mut pairs = vec![("host", "localhost")];
            pairs.extend(value.map(|value| ("authorization", value)));
            code(&guard, &Method::GET, path, &pairs, peer)
        };
        assert_eq!(with(PATH_TOOLS, LOCAL, None), None);
        assert_eq!(with(PATH_CALL, "[::1]:9", None), None);
        assert_eq!(with(PATH_CALL, "[::ffff:127.0.0.1]:9", None), None);
        let refused = Some(ErrorCode::Unauthorized);
        assert_eq!(with(PATH_CALL, "10.0.0.9:9", None), refused);
        assert_eq!(with("/api/invites", LOCAL, None), refused);
        assert_eq!(with("/api/toolsx", LOCAL, None), refused);
        assert_eq!(with(PATH_TOOLS, LOCAL, Some("Bearer wrong")), refused);
    }

    #[test]
    fn what_is_posted_is_json() {
        let guard = guard(LocalTrust::Token);
        let with = |pairs: &[(&'static str, &str)]| {
            let mut all = vec![("host", "localhost"), ("authorization", "Bearer right")];
            all.extend_from_slice(pairs);
            code(&guard, &Method::POST, PATH_CALL, &all, LOCAL)
        };
        assert_eq!(with(&[("content-type", "application/json; charset=utf-8")]), None);
        assert_eq!(with(&[("content-length", "0")]), None);
        assert_eq!(with(&[("content-type", "text/plain")]), Some(ErrorCode::BadRequest));
        assert_eq!(with(&[("content-length", "5")]), Some(ErrorCode::BadRequest));
        assert_eq!(with(&[]), Some(ErrorCode::BadRequest));
    }

    #[test]
    fn what_is_put_is_of_any_type() {
        let guard = guard(LocalTrust::Token);
        for kind in ["image/png", "application/x-www-form-urlencoded", "application/json"] {
            let pairs = [("host", "localhost"), ("content-type", kind)];
            let token = [("authorization", "Bearer right")];
            let with = |more: &[(&'static str, &str)]| {
                let all = [&pairs, more].concat();
                code(&guard, &Method::PUT, "/api/projects/a/assets/b", &all, LOCAL)
            };
            assert_eq!(with(&token), None);
            assert_eq!(with(&[]), Some(ErrorCode::Unauthorized));
            let page = [token[0], ("origin", "http://evil.example")];
            assert_eq!(with(&page), Some(ErrorCode::ForeignOrigin));
        }
    }
}
